import json
import math
from pathlib import Path
from typing import Any

import pytest

from analysis.detection.alerts import Alert
from analysis.detection.detection import ChangeState
from analysis.detection.series_file import (
    FileFindings,
    ForeignSeries,
    FoundChange,
    ReplayedSeries,
    parse_series,
    write_alerts,
    write_findings,
)
from analysis.detection.verdict import Outcome
from perf.model.errors import InputError
from perf.model.metrics import Better

PATH = Path("series.json")
GOOD = {"name": "a", "better": "higher", "values": [1, None, 2.5]}


def problems(content: bytes | str) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        parse_series(PATH, content.encode() if isinstance(content, str) else content)
    assert caught.value.exit_code == 2
    return caught.value.problems


def of(*series: Any) -> str:  # noqa: ANN401  any JSON
    return json.dumps({"series": series})


def test_series_are_read_with_their_missing_trials() -> None:
    (one, two) = parse_series(PATH, of(GOOD, {**GOOD, "name": "b", "better": "lower"}).encode())
    assert one == ForeignSeries(name="a", better=Better.HIGHER, values=(1.0, None, 2.5))
    assert one.known == (0, 2)
    assert (two.name, two.better) == ("b", Better.LOWER)


def test_a_series_may_be_empty_or_all_missing() -> None:
    read = parse_series(
        PATH, of({**GOOD, "values": []}, {**GOOD, "name": "b", "values": [None]}).encode()
    )
    assert [one.known for one in read] == [(), ()]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ('"fast"', '"fast"'),
        ("true", "true"),
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
        ("1e999", "Infinity"),
        ("[]", "a list"),
        ("{}", "an object"),
        ('"\\u001b[31m"', '"\\u001b[31m"'),
    ],
)
def test_a_value_that_is_no_number_is_named_with_series_index_and_value(value: str, shown: str) -> None:
    content = '{"series": [{"name": "a", "better": "lower", "values": [1.0, %s]}]}' % value  # noqa: UP031
    assert problems(content) == (
        f'series "a": values[1] is {shown}; it must be a finite number, or null for a missing trial',
    )


def test_an_endless_integer_is_refused_as_well() -> None:
    (short,) = problems('{"series": [{"name": "a", "better": "lower", "values": [1%s]}]}' % ("0" * 400))
    assert short.startswith('series "a": values[0] is 100000')
    assert len(short) < 150
    (long,) = problems("[" + "1" * 5000 + "]")
    assert long.startswith("not JSON: ")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "the file is empty; write "),
        (b"\xff\xfe\x00", "not JSON: "),
        ('{"series": [', "not JSON: Expecting value: line 1 column 13"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "the file is a list; it must be an object with the keys series"),
        ("{}", "the key series is missing; add it"),
        ('{"series": []}', "series is empty"),
        ('{"series": {}}', "series is an object; it must be a list"),
        (of(1), "series[0] is 1; it must be an object with the keys name, better, values"),
        (of({"better": "lower", "values": []}), "the key series[0].name is missing; add it"),
        (of({**GOOD, "name": ""}), 'series "": name is empty'),
        (of({**GOOD, "name": 5}), "series[0].name is 5; it must be text in quotes"),
        (of({**GOOD, "better": "best"}), 'series "a": better is "best"; write "higher" or "lower"'),
        (
            of({**GOOD, "values": [1e101]}),
            'series "a": values[0] is 1e+101; it must be from -1e+100 to',
        ),
        (
            of({**GOOD, "values": [-1e101]}),
            'series "a": values[0] is -1e+101; it must be from -1e+100 to',
        ),
        (of({**GOOD, "values": 5}), 'series "a": values is 5; it must be a list'),
        (of(GOOD, GOOD), 'the name "a" is given to series[0], series[1]; each series needs its own'),
        (
            '{"series": [{"name": "a", "better": "lower", "values": [], "values": [1]}]}',
            'series "a": the key "values" is written twice; keep one',
        ),
    ],
)
def test_anything_else_that_is_wrong_is_said(content: str | bytes, problem: str) -> None:
    if isinstance(content, str):
        content = content.replace("GOOD", json.dumps(GOOD))
    (found,) = problems(content)
    assert found.startswith(problem)


def test_everything_is_said_at_once() -> None:
    bad = {"name": "b", "better": "up", "values": ["x", 1, "y"]}
    found = problems(of(GOOD, bad, GOOD))
    assert len(found) == 4
    assert [name in "".join(found) for name in ("better", "values[0]", "values[2]", "series[2]")]


def test_of_very_many_problems_the_first_are_shown_and_all_are_counted() -> None:
    with pytest.raises(InputError, match=r"^1,000 problems in series\.json:") as caught:
        parse_series(PATH, of({**GOOD, "values": ["x"] * 1000}).encode())
    assert str(caught.value).endswith("… and 950 more")


def test_changes_are_written_with_null_for_what_no_number_can_say() -> None:
    change = FoundChange(
        index=3,
        state=ChangeState.CONFIRMED,
        before=0.0,
        after=2.0,
        relative_change=math.inf,
        p_value=1e-9,
        outcome=Outcome.IMPROVED,
    )
    written = json.loads(
        write_findings([FileFindings(name="a", changes=(change,), noise_floor=math.inf)])
    )
    assert written == {
        "series": [
            {
                "name": "a",
                "changes": [
                    {
                        "index": 3,
                        "state": "confirmed",
                        "before": 0.0,
                        "after": 2.0,
                        "relative_change": None,
                        "p_value": 1e-9,
                        "outcome": "improved",
                    }
                ],
                "noise_floor": None,
                "minimum_detectable_effect": None,
                "drifts": [],
                "spreads": [],
            }
        ]
    }


def test_alerts_are_written_with_the_nights_of_their_story() -> None:
    alert = Alert(
        index=7,
        earliest=6,
        latest=8,
        rises=True,
        relative_change=0.1,
        state=ChangeState.CONFIRMED,
        provisional_at=7,
        confirmed_at=9,
        withdrawn_at=12,
    )
    written = json.loads(write_alerts([ReplayedSeries(name="a", alerts=(alert,))]))
    assert written == {
        "series": [
            {
                "name": "a",
                "alerts": [{"index": 7, "told_at": 9, "state": "confirmed", "withdrawn_at": 12}],
            }
        ]
    }


def test_keys_of_others_are_left_alone() -> None:
    (found,) = parse_series(PATH, of({**GOOD, "unit": "ms"}).encode())
    assert found.name == GOOD["name"]

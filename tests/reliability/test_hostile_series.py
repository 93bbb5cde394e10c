"""Files of series for `detect --input`: judged as they are, or all that is wrong is said at once."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations import (
    NO_FILES,
    broken_bytes,
    broken_documents,
    is_well_told,
    offer,
    put_in_place,
    run_bounded,
    within,
)

from analysis.commands.backtest import _read
from analysis.detection.backtest import Judge
from analysis.detection.series_file import FileFindings, parse_series, write_findings
from analysis.detection.step_detector import StepDetector
from perf.config.catalog import default_root, load_catalog
from perf.model.errors import InputError
from perf.model.metrics import LARGEST

STEP = [100.0 + (7 * n % 5) + (20 if n > 20 else 0) for n in range(40)]
TREE: dict[str, Any] = {
    "unit": "ms",
    "series": [
        {"name": "a", "better": "higher", "values": [*STEP, None]},
        {"name": "b", "better": "lower", "values": [1.0, None, 2]},
    ],
}
SOUND = json.dumps(TREE).encode()
PATH = Path("series.json")
SETTINGS = load_catalog(default_root()).detection
JUDGE = Judge(settings=SETTINGS, detector=StepDetector(settings=SETTINGS))


@pytest.mark.keeps("hostile-series")
def test_a_broken_file_is_judged_as_it_reads_or_all_that_is_wrong_is_reported(
    effort: Callable[[int, int], int], figures: dict[str, object]
) -> None:
    def take(content: bytes) -> None:
        found = parse_series(PATH, content)
        findings = [JUDGE(one) for one in found]
        items = json.loads(content)["series"]
        read = [tuple(one and float(one) for one in item["values"]) for item in items]
        assert [one.values for one in found] == read, "a value is not the nearest to what was written"
        reported = json.loads(write_findings(findings))["series"]
        assert [one["name"] for one in reported] == [one.name for one in found]

    broken = broken_documents(TREE) | broken_bytes(SOUND)
    figures["series"] = offer(broken, take, InputError, effort(15, 600), PATH, examples=[SOUND])


@pytest.mark.keeps("hostile-series")
def test_every_number_within_the_limits_is_judged(effort: Callable[[int, int], int]) -> None:
    extreme = st.sampled_from([0.0, -0.0, 5e-324, 2.2e-308, LARGEST, -LARGEST, 1.0, 1 + 2**-52])
    numbers = extreme | st.floats(-LARGEST, LARGEST) | st.none()

    @settings(max_examples=effort(10, 300), database=None)
    @given(values=st.lists(numbers, min_size=10, max_size=60))
    def judge(values: list[float | None]) -> None:
        item = {"name": "a", "better": "lower", "values": values}
        (series,) = parse_series(PATH, json.dumps({"series": [item]}).encode())
        assert list(series.values) == values
        with within(20):
            found = JUDGE(series)
        for change in found.changes:
            assert values[change.index] is not None
            assert math.isfinite(change.before)
            assert math.isfinite(change.after)
            assert 0 <= change.p_value <= 1
        json.loads(write_findings([found]))

    judge()


@pytest.mark.keeps("hostile-series")
@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "series.json"
    put_in_place(path, kind)
    with within(20), pytest.raises(InputError) as caught:
        _read(path)
    assert is_well_told(caught.value, path)


@pytest.mark.keeps("hostile-series")
def test_of_very_many_problems_the_first_are_kept_and_reading_ends() -> None:
    item = {"name": "a", "better": "lower", "values": ["x"] * 100_000}
    with within(20), pytest.raises(InputError, match=r"^1,001 problems") as caught:
        parse_series(PATH, json.dumps({"series": [item, {}]}).encode())
    assert is_well_told(caught.value, PATH)
    same = {"name": "a", "better": "lower", "values": []}
    with pytest.raises(InputError, match=r"series\[9\] and 90 more; each series needs its own"):
        parse_series(PATH, json.dumps({"series": [same] * 100}).encode())


_READ = """
import sys, resource
from pathlib import Path
from analysis.commands.backtest import _read
from perf.model.errors import InputError
head, part, tail, count, path = sys.argv[1:]
with open(path, "w") as file:
    file.write(head)
    for number in range(int(count)):
        file.write(part.replace("#", str(number)))
    file.write(tail)
try:
    found = _read(Path(path))
    print("read", len(found), sum(len(one.values) for one in found))
except InputError as error:
    print("refused", str(error)[:300])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, "MB")
"""
ONE = '{"series":[{"name":"a","better":"lower","values":[1'


@pytest.mark.slow
@pytest.mark.keeps("hostile-series")
@pytest.mark.parametrize(
    ("head", "part", "tail", "count", "reported"),
    [
        (
            '{"series":[{"name":"a","better":"lower","values":[]}',
            ",{}",
            "]}",
            5_000_000,
            "refused 1,001",
        ),
        (ONE, ",[]", "]}]}", 10_000_000, "refused 1,001"),
        (ONE, ",100.125", "]}]}", 1_000_000, "read 1 1000001"),
        (
            '{"series":[{"name":"a","better":"lower","values":[]}',
            ',{"name":"s#","better":"lower","values":[1.5,2.5,3.5,4.5,5.5,6.5,7.5,8.5,9.5,10.5]}',
            "]}",
            1_000_000,
            "read 1000001 10000000",
        ),
    ],
    ids=["junk", "bad-values", "million-points", "million-series"],
)
def test_large_files_are_read_or_refused_in_four_gigabytes(
    head: str,
    part: str,
    tail: str,
    count: int,
    reported: str,
    tmp_path: Path,
    figures: dict[str, object],
    request: pytest.FixtureRequest,
) -> None:
    ended = run_bounded(
        _READ, head, part, tail, count, tmp_path / "series.json", memory_mb=4096, seconds=280
    )
    assert ended.stdout.startswith(reported), ended.stdout + ended.stderr[-2000:]
    figures[request.node.callspec.id] = ended.stdout.split("\n")[-2]


def test_findings_of_no_series_are_an_empty_list() -> None:
    assert json.loads(write_findings([])) == {"series": []}
    assert json.loads(write_findings([FileFindings(name="\u202e")]))["series"][0]["name"] == "\u202e"

"""The file of comparisons as hostile data: what is refused, and what errors show."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from analysis.comparing.results import (
    SCHEMA_VERSION,
    ComparisonFile,
    ExperimentChange,
    Revision,
    read_comparisons,
    write_comparisons,
)
from analysis.detection.verdict import Outcome
from perf.model.errors import InputError

PATH = Path("comparison.json")
CHANGE = ExperimentChange(suite="night", experiment="write", knobs=())
BARE = ComparisonFile(
    schema_version=SCHEMA_VERSION,
    created_at=datetime(2026, 3, 1, tzinfo=UTC),
    knickpoint="0.1.0",
    base=Revision(ref="main", sha="3f1c9a27"),
    head=Revision(ref="topic", sha="b7e2d1c0"),
)
NAMED = {"name": "x", "sha256": "0c1d2e3f4a5b"}
SIDE = {
    "label": "x",
    "version": "1",
    **dict.fromkeys(("config", "topology", "testbed", "workload"), NAMED),
}
MEASURE = {
    "measure": {"phase": "steady", "operation": "write", "metric": "response_time", "statistic": "p99"},
    "is_trusted": True,
    "outcome": "undecided",
    "reason": "",
    "relevant_change": 0.1,
    "before": 1.0,
    "effect": {"relative_change": 0.1, "low": -0.1, "high": 1e13, "confidence": 0.99},
    "baseline": [{"value": 1.0, "iterations": [1.0]}],
}


def write(**measure: object) -> bytes:
    """Return a file with one comparison of one measure and one trial; some of it as reported."""
    turn = {"id": "a", "side": "baseline", "block": 1, "status": "completed", "duration_s": 60.0}
    result = {
        **dict.fromkeys(("id", "suite", "experiment", "system", "question_sha256"), "x"),
        "purpose": "candidate",
        "baseline": SIDE,
        "candidate": SIDE,
        "seed": 1,
        "outcome": "undecided",
        "reason": "",
        "ended": "",
        "measures": [{**MEASURE, **measure}],
        "trials": [turn],
        "started_at": "2026-03-01T00:00:00Z",
        "finished_at": "2026-03-01T01:00:00Z",
    }
    content: dict[str, Any] = json.loads(write_comparisons(BARE))
    return json.dumps({**content, "comparisons": [result]}).encode()


def test_a_file_from_before_settings_had_a_key_is_read() -> None:
    content = json.loads(write_comparisons(replace(BARE, changes=(CHANGE,))))
    del content["changes"][0]["unlisted"]
    content["changes"][0]["knobs"] = [{"path": "x: settings.a", "before": "1", "after": "2"}]
    (change,) = read_comparisons(json.dumps(content).encode(), PATH).changes
    assert (change.unlisted, [one.key for one in change.knobs]) == (0, [""])


def test_what_changed_and_was_not_compared_is_undecided_beside_any_good_outcome() -> None:
    (result,) = read_comparisons(write(outcome="unchanged"), PATH).comparisons
    unmeasured = ExperimentChange(suite="night", experiment="read", knobs=(), text="removed at head")

    def outcome(**parts: Any) -> Outcome:  # noqa: ANN401  fields of a file
        return replace(BARE, **parts).outcome

    assert outcome() is Outcome.UNCHANGED
    assert outcome(base=None) is outcome(head=None) is Outcome.INVALID
    assert outcome(changes=(CHANGE,)) is Outcome.UNCHANGED
    assert outcome(changes=(unmeasured,)) is Outcome.UNDECIDED
    good = (replace(result, outcome=Outcome.UNCHANGED), replace(result, outcome=Outcome.IMPROVED))
    assert outcome(comparisons=good, changes=(CHANGE,)) is Outcome.IMPROVED
    assert outcome(comparisons=good, changes=(CHANGE, unmeasured)) is Outcome.UNDECIDED
    bad = replace(result, outcome=Outcome.REGRESSED)
    assert outcome(comparisons=(bad,), changes=(unmeasured,)) is Outcome.REGRESSED
    assert outcome(comparisons=good, problems=("it broke",)) is Outcome.INVALID


def test_a_bound_beyond_all_reason_is_still_one_of_ours() -> None:
    (result,) = read_comparisons(write(detectable=1e13), PATH).comparisons
    assert result.measures[0].detectable == 1e13


@pytest.mark.parametrize(
    "measure",
    [
        {"before": float("inf")},
        {"before": 1e200},
        {"detectable": float("nan")},
        {"effect": {**MEASURE["effect"], "low": float("-inf")}},  # type: ignore[dict-item]
        {"baseline": [{"value": 1e200}]},
        {"baseline": [{"value": 1.0, "iterations": [float("nan")]}]},
    ],
)
def test_no_number_is_endless(measure: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"comparisons\.0\.measures\.0"):
        read_comparisons(write(**measure), PATH)


def test_the_name_of_a_key_gives_no_order_to_a_log() -> None:
    content = json.loads(write_comparisons(BARE))
    content["\n::set-output name=pr::666\u202e\x1b[2J" + "x" * 500] = 1
    with pytest.raises(InputError) as caught:
        read_comparisons(json.dumps(content).encode(), PATH)
    (problem,) = caught.value.problems
    assert problem.startswith("\\n::set-output name=pr::666\\u202e\\x1b[2Jx")
    assert problem.isprintable()
    assert len(problem) < 150


def test_a_file_of_another_version_is_refused_by_name() -> None:
    content = json.dumps({**json.loads(write()), "schema_version": 99}).encode()
    with pytest.raises(InputError, match=r"1 problem in comparison\.json:\n  schema_version 99"):
        read_comparisons(content, PATH)

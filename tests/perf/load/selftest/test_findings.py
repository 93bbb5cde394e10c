"""Verdicts, words and exit codes, without a process."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from perf.commands import selftest as commands
from perf.load.selftest.finding import CheckOutcome, SelftestFinding, bound, compare, merge_outcomes
from perf.load.selftest.floor import Floor, Rung, measure_floor
from perf.load.selftest.scenarios import LoadProfile, Scenario, run_until_reported
from perf.load.selftest.stand import Delays, LoadEvidence, Pause, Stand
from perf.load.selftest.table import conclude, format_findings, format_floor
from perf.model.errors import MeasureError, NotReady
from perf.model.records import Operation
from perf.systems.null.behaviour import Behaviour
from perf.workloads.stages import Stage

FINE = compare("merge", "counts", planted=10, reported=10, tolerance=0)
BAD = compare("schedule", "arrivals", planted=500, reported=400, tolerance=11, unit="/s")
UNSURE = compare("service time", "p50", planted=10, reported=20, tolerance=3, delays=8, unit="ms")
CALM = Delays(p50_ms=0.1, p99_ms=0.5, max_ms=3.0)


@pytest.mark.parametrize(
    ("reported", "delays", "outcome"),
    [
        (103, 0, CheckOutcome.OK),
        (97, 0, CheckOutcome.OK),
        (104, 0, CheckOutcome.FAILED),
        (104, 1, CheckOutcome.CANNOT_TELL),
        (105, 1, CheckOutcome.FAILED),
    ],
)
def test_a_difference_is_fine_explained_or_a_failure(
    reported: float, delays: float, outcome: CheckOutcome
) -> None:
    found = compare("t", "c", planted=100, reported=reported, tolerance=3, delays=delays)
    assert found.outcome is outcome


@pytest.mark.parametrize(
    ("reported", "delays", "outcome"),
    [
        (100, 79, CheckOutcome.OK),
        (100, 80, CheckOutcome.CANNOT_TELL),
        (0, 79, CheckOutcome.FAILED),
        (0, 80, CheckOutcome.CANNOT_TELL),
    ],
)
def test_an_agreement_that_delays_alone_could_make_is_none(
    reported: float, delays: float, outcome: CheckOutcome
) -> None:
    found = compare("t", "c", planted=100, reported=reported, tolerance=20, delays=delays, unlike=0)
    assert found.outcome is outcome


def test_what_the_server_did_counts_where_it_differs_from_what_was_planted() -> None:
    found = compare("t", "c", planted=400, done=430, reported=431, tolerance=3)
    assert found.outcome is CheckOutcome.OK
    assert "400" in found.planted
    assert "430" in found.planted


def test_a_bound_is_a_most() -> None:
    outcomes = [bound("t", "c", limit=8, reported=n, delays=1).outcome for n in (7, 8, 9, 10)]
    assert outcomes == [CheckOutcome.OK, CheckOutcome.OK, CheckOutcome.CANNOT_TELL, CheckOutcome.FAILED]


def test_the_worst_outcome_wins_and_none_is_no_success() -> None:
    assert merge_outcomes((FINE, UNSURE, BAD)) is CheckOutcome.FAILED
    assert merge_outcomes((FINE, UNSURE)) is CheckOutcome.CANNOT_TELL
    assert merge_outcomes((FINE,)) is CheckOutcome.OK
    assert merge_outcomes(()) is CheckOutcome.CANNOT_TELL


def test_the_table_has_a_line_for_each_finding_with_all_that_belongs_to_it() -> None:
    lines = format_findings((FINE, BAD, UNSURE)).splitlines()
    (line,) = (line for line in lines if "arrivals" in line)
    assert line.split() == ["arrivals", "500", "/s", "400", "/s", "±", "11", "/s", "FAILED"]
    assert sum(line.endswith(("ok", "FAILED", "cannot tell")) for line in lines) == 3


def test_each_end_has_a_sentence_of_its_own() -> None:
    assert "all 1 checks" in conclude((FINE,))
    assert "(schedule, service time)" in conclude((FINE, BAD, UNSURE))
    assert "defect" in conclude((BAD,))
    assert "Stop what else runs here" in conclude((FINE, UNSURE))


def _rung(load: float, *, achieved: float = 1.0, late_ms: float = 1.0) -> Rung:
    return Rung(
        offered_load_ops_per_s=load,
        achieved_share=achieved,
        lateness_p50_ms=0.1,
        lateness_p99_ms=late_ms,
        lateness_max_ms=9.0,
    )


def _floor(*rungs: Rung) -> Floor:
    return Floor(cpu_us_per_operation=18.2, throughput_ops_per_s=33_124.0, rungs=rungs, delays=CALM)


def test_the_highest_honest_load_is_the_last_before_the_first_that_is_not() -> None:
    late, missed = _rung(1000, late_ms=5.1), _rung(2000, achieved=0.98)
    assert _floor(_rung(500), late, _rung(2000)).highest_honest_load == 500
    assert _floor(_rung(500), _rung(1000), missed, _rung(4000)).highest_honest_load == 1000
    assert _floor(late, _rung(2000)).highest_honest_load is None


def test_the_floor_says_whether_the_ladder_was_high_enough() -> None:
    assert "at least 1000/s" in format_floor(_floor(_rung(500), _rung(1000)))
    assert "highest honest load      500/s" in format_floor(_floor(_rung(500), _rung(1000, late_ms=7)))
    assert "none of the ladder" in format_floor(_floor(_rung(500, late_ms=7)))


class NotRun(Stand):
    """A stand that keeps what it was to offer."""

    def observe(
        self,
        name: str,
        *,
        servers: Sequence[Behaviour],
        stages: Sequence[Stage],
        engines: Sequence[int] = (0,),
        timeout_s: float = 5.0,
        pause: Pause | None = None,
        mix: Mapping[Operation, float] = {},
    ) -> LoadEvidence:
        raise NotReady("observe", name, " ".join(stage.load.kind for stage in stages))


def test_what_an_overloaded_rung_leaves_behind_meets_no_closed_loop(tmp_path: Path) -> None:
    with pytest.raises(NotReady, match=r"closed( open)+$"):
        measure_floor(NotRun(directory=tmp_path))


class Answers:
    """A scenario that gives prepared findings, one tuple per run."""

    def __init__(self, *answers: tuple[SelftestFinding, ...]) -> None:
        self.answers = list(answers)

    def __call__(self, _: Stand, __: LoadProfile) -> tuple[SelftestFinding, ...]:
        return self.answers.pop(0)


def test_only_a_run_that_cannot_tell_is_repeated(tmp_path: Path) -> None:
    stand, reported = Stand(directory=tmp_path), list[str]()

    def run(*answers: tuple[SelftestFinding, ...]) -> CheckOutcome:
        scenario = Scenario(title="t", run=Answers(*answers))
        return merge_outcomes(run_until_reported(scenario, stand, LoadProfile(), reported.append))

    assert run((UNSURE,), (FINE,)) is CheckOutcome.OK
    assert run((UNSURE,), (UNSURE,), (UNSURE,)) is CheckOutcome.CANNOT_TELL
    assert run((UNSURE, BAD), (FINE,)) is CheckOutcome.FAILED
    assert len(reported) == 2 + 3 + 1


@pytest.mark.parametrize("finding", [FINE, BAD, UNSURE], ids=lambda one: one.outcome.value)
def test_the_command_prints_everything_and_fails_unless_all_is_fine(
    finding: SelftestFinding, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = Scenario(title="t", run=lambda _, __: (finding,))
    monkeypatch.setattr(commands, "SCENARIOS", (scenario,))
    monkeypatch.setattr(commands, "measure_floor", lambda *_: _floor(_rung(500)))
    result = CliRunner().invoke(commands.selftest, ["engine"])
    assert finding.check in result.output
    assert "CPU time per operation" in result.output
    if finding is FINE:
        assert result.exit_code == 0
    else:
        assert isinstance(result.exception, MeasureError)
        assert result.exception.exit_code == 3


def test_help_teaches() -> None:
    text = CliRunner().invoke(commands.selftest, ["engine", "--help"]).output
    for topic in (
        "schedule",
        "service time",
        "closed loop",
        "intended time",
        "send lateness",
        "merge",
        "counters",
        "floor",
    ):
        assert f"    {topic}  " in text or f" {topic}:" in text

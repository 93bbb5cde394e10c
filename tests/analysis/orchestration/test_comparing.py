"""A comparison from first trial to verdict: when it ends, what it keeps. Trials are made up."""

import io
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from analysis.comparing.blocks import Measure
from analysis.comparing.results import ComparisonResult
from analysis.detection.verdict import Outcome
from analysis.orchestration.comparing import Budget, read_results, run_comparison
from perf.config.catalog import Catalog, load_catalog
from perf.history import bundle
from perf.jobs import measuring
from perf.jobs.interleaving import RESULT, Pairing, take_side
from perf.jobs.measuring import Job
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.errors import InputError, UsageError
from perf.model.facts import DATASET
from perf.model.results import Fact, Purpose, Reason, Sample, Taken, Trial, TrialStatus
from perf.systems import registry
from perf.systems.contract import System
from perf.trial.harness import Order

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
THROUGHPUT = Measure(phase="saturation", operation="write", metric="throughput", statistic="mean")
SCATTER = (0.0, 0.004, -0.003, 0.002, -0.005, 0.001)
Run = Callable[..., ComparisonResult]
WHY = "it does not start"


@pytest.fixture
def catalog() -> Catalog:
    return load_catalog(CONFIGS)


@pytest.fixture
def pairing(catalog: Catalog) -> Pairing:
    suite = catalog.suite("fake-short")
    return Pairing(
        purpose=Purpose.COMPARISON,
        suite=suite.name,
        baseline=take_side(catalog, suite, "fake-blink", "1.0.0"),
        candidate=take_side(catalog, suite, "fake-blink", "1.0.1"),
    )


@pytest.fixture
def levels() -> dict[str, float]:
    """Return what each release achieves in operations per second; 0 fails, below 0 is invalid."""
    return {"1.0.0": 1000.0, "1.0.1": 1000.0, "scatter": 1.0}


@pytest.fixture
def run(
    catalog: Catalog,
    pairing: Pairing,
    levels: dict[str, float],
    tmp_path: Path,
    make_trial: Callable[..., Trial],
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    count = 0

    def measure(order: Order, _: System, paths: DataPaths, __: Progress) -> Trial:
        nonlocal count
        count += 1
        level = levels[order.release.version]
        value = level * (1 + levels["scatter"] * SCATTER[count % len(SCATTER)])
        status = (
            TrialStatus.COMPLETED
            if level > 0
            else TrialStatus.INVALID
            if level < 0
            else TrialStatus.FAILED
        )
        trial = make_trial(
            id=order.trial,
            purpose=order.purpose,
            release=order.release,
            status=status,
            reasons=() if level > 0 else (Reason(kind="start-failed", text=WHY),),
            samples=(
                Sample(
                    phase="saturation",
                    operation="write",
                    metric="throughput",
                    statistic="mean",
                    value=value,
                ),
            ),
        )
        trial = replace(trial, finished_at=trial.started_at + timedelta(minutes=3))
        bundle.seal(bundle.stage(paths, trial.id), trial, ())
        return trial

    monkeypatch.setattr(measuring, "run_trial", measure)

    def start(trials: int = 40, minutes: float = 1000.0, **options: object) -> ComparisonResult:
        return run_comparison(
            Job(catalog, DataPaths(tmp_path), Progress(io.StringIO())),
            options.pop("pairing", pairing),  # type: ignore[arg-type]
            Budget(trials=trials, minutes=minutes),
            **options,  # type: ignore[arg-type]
        )

    return start


def test_a_large_loss_is_reported_soon_and_kept(
    run: Run, levels: dict[str, float], tmp_path: Path
) -> None:
    levels["1.0.1"] = 700.0
    result = run(reproduce="knickpoint compare …")
    assert result.outcome is Outcome.REGRESSED
    assert len(result.trials) <= 12
    (measure,) = result.measures
    assert measure.effect is not None
    assert measure.effect.low < -0.3 < measure.effect.high
    assert result.ended.startswith("decided after")
    assert (result.baseline.version, result.candidate.version) == ("1.0.0", "1.0.1")
    assert result.command == "knickpoint compare …"
    assert read_results(DataPaths(tmp_path)) == (result,)


def test_equal_sides_end_as_unchanged(run: Run) -> None:
    assert run().outcome is Outcome.UNCHANGED


def test_a_budget_of_trials_ends_it(run: Run, levels: dict[str, float]) -> None:
    levels["scatter"] = 20.0
    result = run(trials=4)
    assert result.outcome is Outcome.UNDECIDED
    assert len(result.trials) == 4
    assert "budget" in result.ended


def test_minutes_allow_no_block_that_would_pass_them(run: Run) -> None:
    result = run(minutes=20)
    assert len(result.trials) == 4
    assert result.ended == "the 20 minutes allow no further block after 1 block, 4 trials"


def test_a_side_that_never_starts_ends_it_at_once(run: Run, levels: dict[str, float]) -> None:
    levels["1.0.1"] = 0.0
    result = run()
    assert result.outcome is Outcome.INVALID
    assert result.reason == "the candidate, 1.0.1, could not be measured: it does not start"
    assert len(result.trials) <= 4
    assert sum(trial.status is TrialStatus.FAILED for trial in result.trials) == 2


def test_a_side_that_is_never_valid_ends_it_after_two_blocks(
    run: Run, levels: dict[str, float]
) -> None:
    levels["1.0.1"] = -1.0
    result = run()
    assert result.outcome is Outcome.INVALID
    assert result.ended == "no trial of the candidate completed after 2 blocks, 14 trials"
    assert len(result.trials) == 14


def test_turns_that_were_taken_before_count(run: Run, tmp_path: Path) -> None:
    first = run()
    paths = DataPaths(tmp_path)
    prior = tuple(
        Taken(
            block=1000 + one.block,
            pair=f"{index % 4 // 2}",
            side=one.side,
            trial=bundle.read(paths.trials / one.id)[0],
        )
        for index, one in enumerate(first.trials)
    )
    again = run(prior=prior)
    assert again.ended == "decided by what was measured before"
    assert [one.id for one in again.trials] == [one.id for one in first.trials]
    assert again.outcome is Outcome.UNCHANGED
    assert [one.id for one in read_results(paths)] == [first.id, again.id]


def test_remarks_of_a_side_are_said(run: Run, pairing: Pairing) -> None:
    remark = Reason(kind="planted", text="a handicap was planted")
    planted = replace(pairing, candidate=replace(pairing.candidate, remarks=(remark,)))
    assert run(pairing=planted).remarks == ("candidate: a handicap was planted",)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"1.0.0": "a", "1.0.1": "a"}, ()),
        ({"1.0.0": "a", "1.0.1": "b"}, ("the sides started from different files in 2 of 2 pairs: ",)),
    ],
)
def test_sides_that_started_from_different_files_say_so(
    run: Run, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], said: tuple[str, ...]
) -> None:
    measure = measuring.run_trial

    def start_from(order: Order, system: System, paths: DataPaths, progress: Progress) -> Trial:
        trial = measure(order, system, paths, progress)
        fact = Fact(host="", name=DATASET, value=files[order.release.version])
        return replace(trial, environment_before=(fact,))

    monkeypatch.setattr(measuring, "run_trial", start_from)
    remarks = run(trials=4).remarks
    assert len(remarks) == len(said)
    assert all(map(str.startswith, remarks, said))


@pytest.mark.parametrize(
    ("shipped", "listed"),
    [
        (({"f: a": "1", "f: b": "2"}, {"f: a": "1", "f: b": "3"}), [("f: b", "2", "3")]),
        (({"f: a": "1"}, {"f: b": "2"}), [("f: a", "1", ""), ("f: b", "", "2")]),
        (({"f: a": "1"}, {}), [("defaults", "in files that it ships", "in its code")]),
        (({}, {}), []),
    ],
    ids=["value", "absent", "one ships none", "none ships any"],
)
def test_defaults_that_differ_between_the_releases_are_listed(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    shipped: tuple[dict[str, str], ...],
    listed: list[tuple[str, str, str]],
) -> None:
    by_version = dict(zip(("1.0.0", "1.0.1"), shipped, strict=True))
    monkeypatch.setattr(
        type(registry.load("fake")),
        "defaults",
        lambda _, release, __: by_version[release.version],
        raising=False,
    )
    assert [(one.path, one.before, one.after) for one in run(trials=4).defaults] == listed


def test_a_workload_without_a_trusted_metric_is_refused(
    catalog: Catalog, pairing: Pairing, tmp_path: Path
) -> None:
    comparing = replace(catalog.detection.comparison, trusted={})
    settings = replace(catalog.detection, comparison=comparing)
    budget = Budget(trials=4, minutes=1)
    job = Job(replace(catalog, detection=settings), DataPaths(tmp_path), Progress(io.StringIO()))
    with pytest.raises(UsageError, match=r"nothing of workload blink can decide .*\(closed\)"):
        run_comparison(job, pairing, budget)


def test_a_damaged_result_is_named(run: Run, tmp_path: Path) -> None:
    paths = DataPaths(tmp_path)
    path = paths.comparisons / run().id / RESULT
    path.write_text("{}")
    with pytest.raises(InputError, match=r"result\.json"):
        read_results(paths)


def test_turns_that_are_repeated_are_part_of_the_budget(run: Run, levels: dict[str, float]) -> None:
    levels["1.0.1"] = -1.0
    result = run(trials=8)
    assert result.outcome is Outcome.INVALID
    assert len(result.trials) == 7  # the first of a repeated pair failed: the second is not taken
    assert result.ended == "the budget of 8 trials was used up after 1 block, 7 trials"


def test_hosts_that_carry_neither_side_are_no_finding_about_one(
    run: Run, levels: dict[str, float]
) -> None:
    levels.update({"1.0.0": 0.0, "1.0.1": 0.0})
    result = run()
    assert result.reason == "neither side could be measured: it does not start"
    assert result.ended == "neither side could be measured"


def test_what_a_host_said_at_length_can_still_be_read(
    run: Run, levels: dict[str, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels["1.0.1"] = 0.0
    monkeypatch.setattr(sys.modules[__name__], "WHY", "exit 1: " + "x" * 5000)
    result = run()
    assert read_results(DataPaths(tmp_path)) == (result,)


def test_a_run_cut_short_goes_on_and_ends_as_it_would_have(
    run: Run, levels: dict[str, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels["1.0.1"] = 700.0
    measure, left = measuring.run_trial, [5]

    def interrupt(*order: object) -> Trial:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return measure(*order)

    monkeypatch.setattr(measuring, "run_trial", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run()
    kept = sorted(path.name for path in DataPaths(tmp_path).trials.iterdir())
    result = run()
    ids = [one.id for one in result.trials]
    assert len(ids) == len(set(ids)) == 8
    assert set(kept) < set(ids)
    assert result.outcome is Outcome.REGRESSED

"""Two sides in turns: their order, what resumes, what is the same question. Trials seal at once."""

import io
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from perf.config.catalog import Catalog, load_catalog
from perf.history import bundle
from perf.jobs import measuring
from perf.jobs.interleaving import (
    PLAN,
    RESULT,
    RESUMABLE_FOR,
    ComparisonRun,
    Pairing,
    Side,
    fetch_sides,
    open_plan,
    question_hash,
    read_plans,
    read_turn,
    take_side,
)
from perf.jobs.measuring import Job
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.errors import BundleError, HostUnfit, UsageError
from perf.model.results import Purpose, Reason, Taken, Trial, TrialStatus
from perf.systems.contract import System
from perf.trial.harness import Order

NOW = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
CONFIGS = Path(__file__).parents[2] / "data" / "configs"


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
def statuses(make_trial: Callable[..., Trial], monkeypatch: pytest.MonkeyPatch) -> list[TrialStatus]:
    """Return the statuses of the next trials, to be filled; without any, trials complete."""
    planned: list[TrialStatus] = []

    def run(order: Order, _: System, paths: DataPaths, __: Progress) -> Trial:
        status = planned.pop(0) if planned else TrialStatus.COMPLETED
        trial = make_trial(
            id=order.trial,
            night=order.night,
            purpose=order.purpose,
            release=order.release,
            remarks=order.remarks,
            status=status,
        )
        bundle.seal(bundle.stage(paths, trial.id), trial, ())
        return trial

    monkeypatch.setattr(measuring, "run_trial", run)
    return planned


def begin(pairing: Pairing, paths: DataPaths, now: datetime = NOW) -> ComparisonRun:
    job = Job(load_catalog(CONFIGS), paths, Progress(io.StringIO()))
    artifacts = fetch_sides(job, pairing)
    plan, _ = open_plan(pairing, artifacts, paths, now)
    return ComparisonRun(plan=plan, pairing=pairing, artifacts=artifacts, job=job)


def sides(taken: list[Taken]) -> str:
    return "".join("A" if one.side == "baseline" else "B" for one in taken)


@pytest.mark.usefixtures("statuses")
def test_sides_take_turns_in_blocks_whose_order_the_seed_draws(
    pairing: Pairing, tmp_path: Path
) -> None:
    course = begin(pairing, DataPaths(tmp_path))
    orders = [sides(list(course.measure_block(block))) for block in range(1, 9)]
    assert set(orders) == {"ABBA", "BAAB"}
    again = begin(replace(pairing, purpose=Purpose.BISECTION), DataPaths(tmp_path / "again"))
    assert [sides(list(again.measure_block(block))) for block in range(1, 9)] == orders
    other = begin(replace(pairing, seed=2), DataPaths(tmp_path / "other"))
    assert [sides(list(other.measure_block(block))) for block in range(1, 9)] != orders


@pytest.mark.usefixtures("statuses")
def test_over_kept_data_the_release_that_can_make_it_for_both_begins(
    pairing: Pairing, tmp_path: Path
) -> None:
    def keep(side: Side) -> Side:
        workload = replace(side.deployment.workload, dataset="kept")
        return replace(side, deployment=replace(side.deployment, workload=workload))

    old, new = keep(pairing.baseline), keep(pairing.candidate)
    for seed in (1, 2, 3, 4):
        forth = replace(pairing, baseline=old, candidate=new, seed=seed)
        back = replace(pairing, baseline=new, candidate=old, seed=seed)
        for order, asked in (("ABBA", forth), ("BAAB", back)):
            course = begin(asked, DataPaths(tmp_path / f"{seed}-{order}"))
            assert sides(list(course.measure_block(1))) == order
    course = begin(forth, DataPaths(tmp_path / "later"))
    assert {sides(list(course.measure_block(block))) for block in range(2, 9)} == {"ABBA", "BAAB"}


@pytest.mark.usefixtures("statuses")
def test_a_pair_that_was_measured_before_is_half_of_the_first_block(
    pairing: Pairing, tmp_path: Path
) -> None:
    first = list(begin(pairing, DataPaths(tmp_path / "first")).measure_block(1))[:2]
    for opening in (first, first[::-1]):
        course = replace(begin(pairing, DataPaths(tmp_path / sides(opening))), opening=tuple(opening))
        rest = list(course.measure_block(1))
        assert sides(opening + rest) in {"ABBA", "BAAB"}
        assert [one.pair for one in rest] == ["2", "2"]
        assert len(list(course.measure_block(2))) == 4


@pytest.mark.usefixtures("statuses")
def test_trials_say_why_and_of_what_they_are(pairing: Pairing, tmp_path: Path) -> None:
    planted = Reason(kind="planted", text="a handicap")
    candidate = replace(pairing.candidate, remarks=(planted,))
    course = begin(replace(pairing, candidate=candidate), DataPaths(tmp_path))
    by_side = {one.side: one.trial for one in course.measure_block(1)}
    assert by_side["candidate"].release.version == "1.0.1"
    assert by_side["candidate"].remarks == (planted,)
    assert by_side["baseline"].remarks == ()
    assert {trial.purpose for trial in by_side.values()} == {Purpose.COMPARISON}


def test_a_pair_that_did_not_complete_is_measured_once_more(
    pairing: Pairing, tmp_path: Path, statuses: list[TrialStatus]
) -> None:
    done, bad = TrialStatus.COMPLETED, TrialStatus.INVALID
    statuses += [done, bad, done, done, done, bad]
    course = begin(pairing, DataPaths(tmp_path))
    taken = list(course.measure_block(1))
    assert [one.trial.status for one in taken] == [done, bad, done, done, done, bad]
    assert [one.trial.id.split(".")[1] for one in taken] == ["01a", "01b", "01c", "01d", "01ar", "01br"]
    assert [one.pair for one in taken] == ["1", "1", "2", "2", "1r", "1r"]
    assert [one.side for one in taken[:2]] == [one.side for one in taken[4:]]
    assert [read_turn(course.plan, one.trial.id) for one in taken] == [
        (1, one.pair, one.side) for one in taken
    ]


@pytest.mark.usefixtures("statuses")
def test_two_trials_that_an_interruption_parted_are_no_pair(pairing: Pairing, tmp_path: Path) -> None:
    paths = DataPaths(tmp_path)
    first = next(begin(pairing, paths).measure_block(1))
    long_ago = NOW.timestamp()
    os.utime(paths.trials / first.trial.id, (long_ago, long_ago))
    taken = list(begin(pairing, paths).measure_block(1))
    assert [one.pair for one in taken] == ["1", "2", "2", "1r", "1r"]


@pytest.mark.usefixtures("statuses")
def test_a_comparison_is_young_for_as_long_as_something_happens_in_it(
    pairing: Pairing, tmp_path: Path
) -> None:
    paths = DataPaths(tmp_path)
    course = begin(pairing, paths)
    trial = next(course.measure_block(1)).trial
    later = NOW + RESUMABLE_FOR
    os.utime(paths.trials / trial.id, (later.timestamp(), later.timestamp()))
    assert begin(pairing, paths, later + timedelta(hours=1)).plan == course.plan
    assert begin(replace(pairing, seed=9), paths, later).plan != course.plan


@pytest.mark.usefixtures("statuses")
def test_a_run_cut_short_repeats_nothing(
    pairing: Pairing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = begin(pairing, DataPaths(tmp_path)).measure_block(1)
    first = [next(turns), next(turns)]
    resumed = begin(pairing, DataPaths(tmp_path), NOW + timedelta(hours=1))
    assert [one.trial for one in resumed.measure_block(1)][:2] == [one.trial for one in first]
    monkeypatch.setattr(measuring, "run_trial", None)
    assert len(list(resumed.measure_block(1))) == 4


@pytest.mark.parametrize("ends", ["finished", "old", "another seed's purpose"])
def test_a_finished_old_or_other_comparison_is_not_resumed(
    pairing: Pairing, tmp_path: Path, ends: str
) -> None:
    paths = DataPaths(tmp_path)
    first = begin(pairing, paths).plan
    later = NOW + (RESUMABLE_FOR if ends == "old" else timedelta(minutes=1))
    if ends == "finished":
        (paths.comparisons / first.id / RESULT).write_text("{}")
    if ends == "another seed's purpose":
        pairing = replace(pairing, purpose=Purpose.BISECTION)
    second = begin(pairing, paths, later).plan
    assert second.id != first.id
    assert second.question_sha256 == first.question_sha256
    assert [plan.id for plan in read_plans(paths)] == [first.id, second.id]


@pytest.mark.usefixtures("statuses")
def test_a_lost_plan_lends_its_trials_to_no_new_one(pairing: Pairing, tmp_path: Path) -> None:
    paths = DataPaths(tmp_path)
    course = begin(pairing, paths)
    next(course.measure_block(1))
    (paths.comparisons / course.plan.id / PLAN).unlink()
    (paths.comparisons / course.plan.id).rmdir()
    assert begin(pairing, paths).plan.id != course.plan.id


def test_a_question_is_what_is_measured_and_not_what_it_is_called(
    pairing: Pairing, catalog: Catalog, tmp_path: Path
) -> None:
    artifacts = fetch_sides(Job(catalog, DataPaths(tmp_path), Progress(io.StringIO())), pairing)
    asked = question_hash(pairing, artifacts)
    renamed = replace(pairing, suite="x", baseline=replace(pairing.baseline, label="base"))
    assert question_hash(renamed, artifacts) == asked
    swapped = replace(pairing, baseline=pairing.candidate, candidate=pairing.baseline)
    planted = replace(pairing.candidate, remarks=(Reason(kind="planted", text="x"),))
    config = replace(pairing.candidate.deployment.config, settings={"delay_ms": 1})
    slow = replace(pairing.candidate, deployment=replace(pairing.candidate.deployment, config=config))
    others = [swapped, replace(pairing, candidate=planted), replace(pairing, candidate=slow)]
    hashes = {question_hash(other, artifacts) for other in others}
    assert len(hashes | {asked}) == 4


def test_a_damaged_plan_is_named(pairing: Pairing, tmp_path: Path) -> None:
    paths = DataPaths(tmp_path)
    path = paths.comparisons / begin(pairing, paths).plan.id / PLAN
    path.write_text("{")
    with pytest.raises(BundleError, match=r"plan\.json is not the plan of a comparison"):
        read_plans(paths)


def test_an_unfit_host_says_that_the_same_command_resumes(
    pairing: Pairing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise HostUnfit("no memory")

    monkeypatch.setattr(measuring, "run_trial", refuse)
    with pytest.raises(HostUnfit, match=r"no memory\nfinished trials are kept"):
        next(begin(pairing, DataPaths(tmp_path)).measure_block(1))


def test_unknown_experiments_and_configs_are_named(catalog: Catalog) -> None:
    suite = catalog.suite("fake-short")
    with pytest.raises(UsageError, match="has no experiment 'x'"):
        take_side(catalog, suite, "x", "1.0.0")
    with pytest.raises(UsageError, match="there is no fake config 'slow'"):
        take_side(catalog, suite, "fake-blink", "1.0.0", "slow")

"""Nights that meet trouble of their own: damaged bundles, lost plans, a second command."""

import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import filelock
import pytest

from perf.config.catalog import load_catalog
from perf.history import bundle
from perf.jobs import holding, measuring
from perf.jobs.feasible import check_load_time
from perf.jobs.measuring import Job, explain, measure_one
from perf.jobs.night import measure_night, read_nights
from perf.load.native_binary import ENGINE, SETTING, built_dir
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.design import Deployment, Needs, Suite, Testbed
from perf.model.errors import HostUnfit, MeasureError, UsageError
from perf.model.records import Sensor
from perf.model.results import Purpose, Trial, TrialId, TrialStatus
from perf.systems.contract import System
from perf.trial import preflight
from perf.trial.harness import Order

CONFIGS = Path(__file__).parents[2] / "data" / "configs"


@pytest.fixture
def job(tmp_path: Path) -> Job:
    catalog = load_catalog(CONFIGS)
    suite = catalog.suite("fake-short")
    loop = catalog.testbed(suite.testbed)
    # Addresses of its own: no server is started here, but that none is there is looked for.
    hosts = tuple(replace(one, address=f"{one.address[:-1]}5{one.address[-1]}") for one in loop.hosts)
    catalog = replace(catalog, testbeds={**catalog.testbeds, loop.name: replace(loop, hosts=hosts)})
    return Job(catalog, DataPaths(tmp_path / "var"), Progress(io.StringIO()))


@pytest.fixture
def suite(job: Job) -> Suite:
    return job.catalog.suite("fake-short")


@pytest.fixture(autouse=True)
def _sealed_at_once(make_trial: Callable[..., Trial], monkeypatch: pytest.MonkeyPatch) -> None:
    """Seal each trial as soon as it is ordered: a night knows nothing of what happens in one."""

    def run(order: Order, _: System, paths: DataPaths, __: Progress) -> Trial:
        trial = make_trial(
            id=order.trial,
            night=order.night,
            purpose=order.purpose,
            experiment=order.deployment.experiment.name,
            release=order.release,
        )
        bundle.seal(bundle.stage(paths, trial.id), trial, ())
        return trial

    monkeypatch.setattr(measuring, "run_trial", run)


def test_hosts_that_drifted_refuse_a_night_before_it_is_planned(
    job: Job, suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def refuse(_: Deployment, profile: str, __: Path) -> None:
        asked.append(profile)
        raise HostUnfit("db1: vm.swappiness is 60, wanted 1")

    monkeypatch.setattr(preflight, "check_readiness", refuse)
    with pytest.raises(HostUnfit, match=r"vm\.swappiness is 60"):
        measure_night(job, suite)
    assert asked == ["server"]
    assert read_nights(job.paths) == ()


def test_a_native_engine_that_is_not_built_refuses_a_night_before_it_is_planned(
    job: Job, suite: Suite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    catalog = job.catalog
    testbed = replace(catalog.testbed(suite.testbed), engine="native")
    catalog = replace(catalog, testbeds={**catalog.testbeds, testbed.name: testbed})
    monkeypatch.setenv(SETTING, str(tmp_path / "absent"))
    with pytest.raises(HostUnfit, match="engine: native cannot offer the load"):
        measure_night(replace(job, catalog=catalog), suite)
    assert read_nights(job.paths) == ()


def test_a_native_engine_that_was_replaced_in_the_cache_measures_nothing(
    job: Job, suite: Suite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(SETTING, raising=False)
    monkeypatch.setenv("KNICKPOINT_CACHE", str(tmp_path / "cache"))
    program = built_dir() / ENGINE
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    catalog = job.catalog
    testbed = replace(catalog.testbed(suite.testbed), engine="native")
    catalog = replace(catalog, testbeds={**catalog.testbeds, testbed.name: testbed})
    job = replace(job, catalog=catalog)
    measure_night(job, suite)
    program.write_text("#!/bin/sh\ntouch owned\n")
    with pytest.raises(HostUnfit, match="not what it was when it was first used here"):
        measure_night(job, suite)
    program.write_text("#!/bin/sh\n")
    measure_night(job, suite)


def test_what_cannot_be_stored_within_its_limit_refuses_a_night(job: Job, suite: Suite) -> None:
    catalog = job.catalog
    testbed, name = catalog.testbed(suite.testbed), suite.experiments[0].workload
    limits = replace(testbed.limits, load_s=2.0)
    workload = replace(catalog.workload(name), preload_rows_per_device=1)
    for devices, is_refused in ((200_000, False), (200_001, True)):
        records = Sensor(kind="sensor", devices=devices, payload_bytes=200)
        changed = replace(
            catalog,
            workloads={**catalog.workloads, name: replace(workload, records=records)},
            testbeds={
                **catalog.testbeds,
                testbed.name: replace(testbed, limits=limits, client_cores=1),
            },
        )
        now = replace(job, catalog=changed)
        if not is_refused:
            check_load_time(changed.resolve(suite, suite.experiments[0]))
            continue
        for start in (
            partial(measure_night, now, suite),
            partial(measure_one, now, suite, "fake-blink", "1.1.1"),
        ):
            with pytest.raises(
                UsageError, match=r"preload of workload \S+ has 200,001 rows, .* 3 s even"
            ):
                start()
        assert read_nights(job.paths) == ()


def test_a_damaged_bundle_does_not_stop_its_night(job: Job, suite: Suite) -> None:
    first, _ = measure_night(job, suite)
    (night,) = read_nights(job.paths)
    (job.paths.trials / first.id / "trial.json").write_text("{")
    missing = job.paths.trials / night.trials[1].id
    missing.rename(missing.with_name("kept-aside"))
    (second,) = measure_night(job, suite)
    assert second.id == night.trials[1].id


def test_a_lost_plan_lends_its_trials_to_no_new_night(job: Job, suite: Suite) -> None:
    before = {trial.id for trial in measure_night(job, suite)}
    for plan in job.paths.nights.iterdir():
        plan.unlink()
    after = {trial.id for trial in measure_night(job, suite)}
    assert len(before) == len(after) == 2
    assert before.isdisjoint(after)


def test_trials_of_a_sentinel_say_so_and_others_stay_scheduled(job: Job, suite: Suite) -> None:
    (blink,) = suite.experiments
    watch = replace(blink, name="watch", releases=("1.0.0",), sentinel_every_nights=4)
    watched = replace(suite, experiments=(blink, watch))
    trials = measure_night(job, watched)
    assert {(trial.experiment, trial.purpose) for trial in trials} == {
        ("fake-blink", Purpose.SCHEDULED),
        ("watch", Purpose.SENTINEL),
    }
    assert measure_one(job, watched, "watch", "1.1.1").purpose is Purpose.SENTINEL


def test_an_extra_trial_belongs_to_no_night(job: Job, suite: Suite) -> None:
    trial = measure_one(job, suite, "fake-blink", "1.1.1")
    assert trial.status is TrialStatus.COMPLETED
    assert (trial.release.version, trial.night) == ("1.1.1", "")
    assert trial.purpose is Purpose.SCHEDULED
    assert read_nights(job.paths) == ()
    with pytest.raises(UsageError, match="has no experiment 'fake-nothing'; it has: fake-blink"):
        measure_one(job, suite, "fake-nothing", "1.1.1")


def test_what_an_interrupted_trial_staged_is_removed_but_not_an_import(job: Job, suite: Suite) -> None:
    for name in ("2026-03-01T020000.fake-blink.1.0.0", f"{bundle.IMPORTED}csv-1"):
        bundle.stage(job.paths, TrialId(name))
    trial = measure_one(job, suite, "fake-blink", "1.0.0")
    left = {path.name for path in job.paths.trials.iterdir()}
    assert left == {trial.id, ".staging-imported-csv-1"}


def test_a_second_command_is_refused_and_reported_by_whom(
    job: Job, suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holding, "_LOCK_WAIT_S", 0.1)
    job.paths.data.mkdir()
    job.paths.lock.with_suffix(".pid").write_text("4711\n")
    with (
        filelock.FileLock(job.paths.lock),
        pytest.raises(MeasureError, match=r"another run \(pid 4711\) measures into"),
    ):
        measure_night(job, suite)


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note what is asked of the leases of hosts, and when trials run."""
    reported: list[str] = []
    run = measuring.run_trial

    @contextmanager
    def note_hold(testbeds: Iterable[Testbed], purpose: str, _: object) -> Iterator[None]:
        names = " ".join(testbed.name for testbed in testbeds)
        reported.append(f"hold {names} for {purpose}")
        yield
        reported.append(f"give back {names}")

    def note_trial(order: Order, *rest: Any) -> Trial:  # noqa: ANN401  passed on
        reported.append(f"trial at {order.release.version}")
        return run(order, *rest)

    def note_renewal(testbed: Testbed, for_s: float) -> None:
        reported.append(f"renew {testbed.name} for {for_s:.0f} s")

    monkeypatch.setattr(holding.lease, "hold", note_hold)
    monkeypatch.setattr(holding.lease, "renew", note_renewal)
    monkeypatch.setattr(measuring, "run_trial", note_trial)
    return reported


def test_a_job_holds_its_testbed_and_renews_before_each_trial(
    job: Job, suite: Suite, reported: list[str]
) -> None:
    measure_night(job, suite)
    # Three times 45.6 s as planned, 0.2 s of warm-up at most, 222 s of limits, and ten minutes.
    renewal = "renew loop for 959 s"
    assert reported == [
        "hold loop for the trials of suite fake-short",
        *(renewal, "trial at 1.0.0"),
        *(renewal, "trial at 1.0.1"),
        "give back loop",
    ]
    reported.clear()
    measure_one(job, suite, "fake-blink", "1.0.1")
    assert reported[0] == "hold loop for a trial of fake-blink at 1.0.1"


def test_a_job_that_lost_its_testbed_begins_no_trial(
    job: Job, suite: Suite, reported: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(*_: object) -> None:
        raise MeasureError("broken by anna@ci-1")

    monkeypatch.setattr(holding.lease, "renew", lose)
    with pytest.raises(MeasureError, match="broken by anna@ci-1"):
        measure_night(job, suite)
    assert not any("trial at" in one for one in reported)


def test_an_unfit_host_is_refused_before_anything_is_planned(job: Job, suite: Suite) -> None:
    testbed = job.catalog.testbeds["loop"]
    unfit = replace(testbed, needs=Needs(memory_mb=10**9, disk_mb=1))
    catalog = replace(job.catalog, testbeds={**job.catalog.testbeds, "loop": unfit})
    with pytest.raises(HostUnfit, match="MB of memory available"):
        measure_night(replace(job, catalog=catalog), suite)
    assert read_nights(job.paths) == ()


def test_what_failed_is_reported_with_its_log(make_trial: Callable[..., Trial], tmp_path: Path) -> None:
    failed = make_trial(status=TrialStatus.FAILED, log_tail="one\ntwo: out of memory\n")
    text = explain(failed, DataPaths(tmp_path))
    assert "FAILED" in text
    assert text.splitlines()[-2] == "two: out of memory"
    assert text.endswith(str(tmp_path / "trials" / failed.id))
    assert "\n" not in explain(make_trial(), DataPaths(tmp_path))

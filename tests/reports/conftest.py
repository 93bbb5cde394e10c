"""A small made-up history for the pages: three releases, eight nights, two workloads, every trouble.

The newest trial of Cassandra 5.0.3 has all that a trial can have: a ladder, a search, diagnostics.
Cassandra 5.0.3 writes 14 % slower than its forerunners; the last night has one failed trial, with a
hostile log, one invalid trial, and one planned trial that never came.
"""

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import chromium
import pytest
from catalogs import shipped
from made_up_bisection import RECORD
from made_up_comparison import RESULTS
from made_up_hostility import make_hostile
from made_up_judgement import SETTINGS, PlantedDetector, tell_all
from made_up_profiles import PROFILED
from made_up_reproduction import REPORT
from made_up_times import record
from playwright.sync_api import Browser

from analysis.judging.judgement import Judgement, judge
from perf.history.distributions import Recording
from perf.model.nights import Night, PlannedTrial
from perf.model.results import (
    Counter,
    Fact,
    LoadStep,
    Move,
    Named,
    Observation,
    Reason,
    Release,
    Sample,
    SeriesKey,
    StepOutcome,
    Trial,
    TrialId,
    TrialStatus,
)
from reports.pages.whole_site import all_batches
from reports.site.context import NO_BOUNDS, SiteContext
from reports.site.writing import SiteFile, batch_of, flatten, write_site

FIRST_NIGHT = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
NOW = datetime(2026, 3, 8, 6, 30, tzinfo=UTC)
NIGHTS = 8
RELEASES = tuple(
    Release(
        system="cassandra",
        version=f"5.0.{patch}",
        line="5.0",
        ordinal=patch,
        released_at=date(2025, 6 + patch, 1),
    )
    for patch in (1, 2, 3)
)
WORKLOADS = {"cassandra-sensor-write": "write", "cassandra-sensor-read": "read-latest"}
HOSTILE = "<script>alert('pwned')</script> & \"quotes\" did not start"
CAVEAT = "Three nodes share two cores of one machine: differences count, absolute numbers do not."


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """A history with its judgement, plans and caveats."""

    trials: tuple[Trial, ...]
    observations: tuple[Observation, ...]
    judgement: Judgement
    nights: tuple[Night, ...]
    caveats: dict[str, str]
    now: datetime

    def context(self) -> SiteContext:
        """Return all that a site of this history is made of."""
        catalog = shipped()
        local = replace(catalog.testbeds["local"], caveat=CAVEAT)
        return SiteContext(
            heads={trial.id: trial for trial in self.trials},
            digests={trial.id: hashlib.sha256(trial.id.encode()).hexdigest() for trial in self.trials},
            bounds=NO_BOUNDS,
            archive=MadeUpArchive(self.trials),
            judgement=self.judgement,
            catalog=replace(
                catalog,
                detection=SETTINGS,
                testbeds={"local": local},
                triage=(),
                reports=(*catalog.reports, REPORT),
            ),
            nights=self.nights,
            comparisons=RESULTS,
            bisections=(RECORD,),
            left_out=(),
            now=self.now,
            target=Path("site"),
            profiles=(PROFILED,),
        )

    def files(self) -> tuple[SiteFile, ...]:
        """Render the whole site."""
        return _render(self.context())


def _render(context: SiteContext) -> tuple[SiteFile, ...]:
    return tuple(file for batch in flatten(all_batches(context)) for file in batch.make(batch.versions))


def _shorten(trial: Trial) -> Trial:
    """Return what a history gives of a trial in brief."""
    whole = tuple(one for one in trial.samples if one.iteration is None)
    return replace(trial, samples=whole, counters=(), environment_after=())


@dataclass(frozen=True, slots=True)
class MadeUpArchive:
    """Trials that no history holds."""

    all: tuple[Trial, ...]

    def trials(self, ids: Sequence[TrialId], *, brief: bool = False) -> tuple[Trial, ...]:
        """Return these trials, whole or in brief, by start and id."""
        found = (trial for trial in self.all if trial.id in ids)
        return tuple(map(_shorten, found) if brief else found)

    def first_values(
        self, ids: Sequence[TrialId], phase: str, metric: str, statistic: str
    ) -> Mapping[TrialId, tuple[str, float]]:
        """Return the first operation's value of the whole phase."""
        wanted = phase, metric, statistic, None
        return {
            trial.id: (one.operation, one.value)
            for trial in self.trials(ids)
            for one in reversed(trial.samples)
            if (one.phase, one.metric, one.statistic, one.iteration) == wanted
        }

    def recordings(self, ids: Sequence[TrialId], *kinds: str) -> tuple[Recording, ...]:
        """Return the histograms that are made up for any trial."""
        return tuple(map(record, ids))

    def moves(self, lists: Sequence[Sequence[TrialId]]) -> Sequence[Sequence[Move]]:
        """State that the kernel was another one from the third trial of each list on."""
        kernel = Move(place=2, name="kernel of <node-1>", before="6.1.0", after="6.1.1")
        return [(kernel,) if len(trials) > 2 else () for trials in lists]


@pytest.fixture(scope="session")
def demo(make_trial: Callable[..., Trial]) -> Demo:
    """Return the made-up history."""
    generator = random.Random(20260301)  # noqa: S311  test data, not a secret
    trials: list[Trial] = []
    planned: list[PlannedTrial] = []
    for night in range(NIGHTS):
        planned = []
        started = FIRST_NIGHT + timedelta(days=night)
        night_id = f"{started:%Y-%m-%d}-1"
        for experiment, operation in WORKLOADS.items():
            for release in RELEASES:
                trial_id = f"{night_id}.{len(planned) + 1:02d}.{experiment}.{release.version}"
                planned.append(
                    PlannedTrial(id=trial_id, experiment=experiment, version=release.version)
                )
                slow = 0.86 if (operation, release.ordinal) == ("write", 3) else 1.0
                trials.append(
                    make_trial(
                        id=TrialId(trial_id),
                        night=night_id,
                        experiment=experiment,
                        release=release,
                        workload=Named(name=experiment.partition("-")[2], sha256="0123456789ab"),
                        started_at=started + timedelta(minutes=4 * len(planned)),
                        finished_at=started + timedelta(minutes=4 * len(planned) + 3),
                        samples=_samples(operation, slow, generator),
                        counters=_counters(operation),
                        environment_before=_facts("6.1.0-18", "1800"),
                        environment_after=_facts("6.1.0-18", "1795"),
                    )
                )
    trials[-1:] = []  # the last planned trial never came
    trials[-3] = _enrich(trials[-3], "write")
    trials[-1] = _spoil(
        _enrich(trials[-1], "read-latest"),
        TrialStatus.INVALID,
        "client fell behind: 3.1 % started late",
    )
    trials[-2] = _spoil(trials[-2], TrialStatus.FAILED, HOSTILE)
    last = Night(
        id=trials[-1].night,
        suite="quickstart",
        plan_sha256="44" * 32,
        started_at=FIRST_NIGHT + timedelta(days=NIGHTS - 1),
        trials=tuple(planned),
    )
    observations = tuple(o for trial in trials for o in _observe(trial))
    return Demo(
        trials=tuple(trials),
        observations=observations,
        judgement=tell_all(judge(observations, SETTINGS, PlantedDetector())),
        nights=(last,),
        caveats={"local": CAVEAT},
        now=NOW,
    )


def _samples(operation: str, speed: float, generator: random.Random) -> tuple[Sample, ...]:
    noise = generator.gauss(1, 0.015)
    base = 4200.0 if operation == "write" else 2900.0
    rows = (
        ("saturation", "throughput", "mean", base * speed * noise),
        ("saturation", "response_time", "p99", 18.2 / speed / noise),
        ("steady", "response_time", "p50", 2.31 / speed / noise),
        ("steady", "response_time", "p95", 4.87 / speed / noise),
        ("steady", "response_time", "p99", 7.93 / speed / noise),
        ("steady", "response_time", "p99.9", 15.6 / speed / noise),
        ("steady", "service_time", "p99", 7.41 / speed / noise),
    )
    return tuple(
        Sample(
            phase=phase,
            operation=operation,
            metric=metric,
            statistic=statistic,
            value=value * (1 if iteration is None else generator.gauss(1, 0.02)),
            iteration=iteration,
        )
        for phase, metric, statistic, value in rows
        for iteration in (None, 1, 2, 3)
    )


def _counters(operation: str) -> tuple[Counter, ...]:
    return tuple(
        Counter(phase="saturation", operation=operation, iteration=i, name=name, value=value)
        for i in (1, 2, 3)
        for name, value in (("attempted", 42_017), ("completed", 42_011), ("timeouts", 6))
    )


def _facts(kernel: str, clock: str) -> tuple[Fact, ...]:
    return (
        Fact(host="localhost", name="kernel", value=kernel),
        Fact(host="localhost", name="cpu model", value="Example CPU"),
        Fact(host="localhost", name="cpu MHz", value=clock),
    )


REMARKS = (
    Reason(kind="warm-up-capped", text="steady: 1 of 3 warm-ups ran to their cap of 8 s"),
    Reason(kind="telemetry-missing", text="phase steady: gc_pause is left out: <b>node-3</b> is gone"),
)
STEPS = tuple(
    LoadStep(
        phase=phase,
        offered_load_ops_per_s=offered,
        achieved_ops_per_s=achieved,
        response_time_p99_ms=p99_ms,
        send_lateness_p99_ms=0.4,
        client_cpu_share=offered / 4200,
        outcome=outcome,
        text=f"p99 of response time against an objective of 20 ms, at {offered:g} ops/s",
    )
    for phase, offered, achieved, p99_ms, outcome in (
        ("ladder-500", 500.0, 500.0, 4.1, StepOutcome.HELD),
        ("ladder-1000", 1000.0, 999.5, 5.2, StepOutcome.HELD),
        ("ladder-2000", 2000.0, 1999.0, 9.7, StepOutcome.HELD),
        ("ladder-4000", 4000.0, 3391.0, 874.0, StepOutcome.CLIENT_LIMITED),
        ("search-01", 2000.0, 1998.0, 9.9, StepOutcome.HELD),
        ("search-02", 2828.4271, 2700.0, None, StepOutcome.MISSED),
        ("search-03", 2378.4142, 2377.0, 27.5, StepOutcome.MISSED),
        ("search-04", 2181.0155, 2180.0, 16.5, StepOutcome.HELD),
    )
)


def _enrich(trial: Trial, operation: str) -> Trial:
    """Return a trial all that a trial can have."""
    rows = (
        ("search", "highest_load", "estimate", "", 2277.6),
        ("search", "highest_load", "lower", "", 2181.0),
        ("search", "highest_load", "upper", "", 2378.4),
        ("saturation", "row_throughput", "mean", "", 41_200.0),
        ("saturation", "client_cpu", "mean", "", 163.4),
        ("steady", "send_lateness", "p99", "", 0.412),
        ("steady", "warm_up", "mean", "", 4.67),
        *(
            (phase, metric, statistic, host, value * share)
            for phase in ("saturation", "steady")
            for metric, statistic, value in (
                ("server_cpu", "mean", 412.0),
                ("storage_written", "mean", 3121.5),
                ("network_sent", "mean", 1811.0),
                ("compaction_debt", "last", 17.25),
                ("gc_pause", "mean", 2.1),
            )
            for host, share in (("", 1.0), ("node-1", 0.4), ("node-2", 0.35), ("node-3", 0.25))
        ),
        ("saturation", "write_amplification", "mean", "", 3.04),
    )
    diagnostics = tuple(
        Sample(
            phase=phase,
            operation=operation,
            metric=metric,
            statistic=statistic,
            host=host,
            value=value if iteration is None else value * (0.9 + 0.1 * iteration),
            iteration=iteration,
        )
        for phase, metric, statistic, host, value in rows
        for iteration in ((None, 1, 2) if metric in {"client_cpu", "warm_up"} else (None,))
    )
    canaries = tuple(
        Sample(
            phase=phase,
            operation="canary",
            metric=metric,
            statistic=statistic,
            value=value * slower * factor,
            host="localhost",
        )
        for phase, slower in (("canary-before", 1.0), ("canary-after", 1.08))
        for metric, value in (("canary_cpu", 12.31), ("canary_memory", 8123.0), ("canary_fsync", 1.7))
        for statistic, factor in (("p50", 1.0), ("min", 0.98), ("max", 1.3))
    )
    return replace(
        trial,
        remarks=REMARKS,
        steps=STEPS,
        samples=(*trial.samples, *diagnostics, *canaries),
    )


def _spoil(trial: Trial, status: TrialStatus, why: str) -> Trial:
    failed = status is TrialStatus.FAILED
    return replace(
        trial,
        status=status,
        reasons=(Reason(kind="start" if failed else "lateness", text=f"{why}. More here."),),
        samples=() if failed else trial.samples,
        counters=() if failed else trial.counters,
        environment_after=() if failed else trial.environment_after,
        log_tail=f"ERROR {HOSTILE}\n" if failed else "",
    )


def _observe(trial: Trial) -> tuple[Observation, ...]:
    over_all = [sample for sample in trial.samples if sample.iteration is None]
    return tuple(
        Observation(
            key=SeriesKey(
                system=trial.release.system,
                line=trial.release.line,
                topology=trial.topology.name,
                testbed_class=trial.testbed_class,
                config=trial.config.name,
                workload=f"{trial.workload.name}@{trial.workload.sha256}",
                engine=trial.engine,
                phase=whole.phase,
                operation=whole.operation,
                metric=whole.metric,
                statistic=whole.statistic,
                host=whole.host,
            ),
            trial=trial.id,
            release=trial.release,
            started_at=trial.started_at,
            status=trial.status,
            night=trial.night,
            value=whole.value,
            iterations=tuple(
                s.value
                for s in trial.samples
                if (s.phase, s.operation, s.metric, s.statistic, s.host)
                == (whole.phase, whole.operation, whole.metric, whole.statistic, whole.host)
                and s.iteration is not None
            ),
        )
        for whole in over_all
    )


@pytest.fixture(scope="session")
def demo_site(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the made-up history as a site on disk."""
    site = tmp_path_factory.mktemp("demo") / "site"
    write_site(site, [batch_of(*demo.files())])
    return site


@pytest.fixture(scope="session")
def hostile_site(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the made-up history with hostile names as a site on disk."""
    site = tmp_path_factory.mktemp("hostile") / "site"
    write_site(site, [batch_of(*_render(make_hostile(demo.context(), demo.trials)))])
    return site


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Yield the one Chromium of all tests."""
    with chromium.start() as started:
        yield started


@pytest.fixture(params=["light", "dark"])
def watched(browser: Browser, request: pytest.FixtureRequest) -> Iterator[chromium.Watched]:
    """Yield a narrow page in each colour scheme."""
    with chromium.watch(browser, request.param, width=360) as page:
        yield page

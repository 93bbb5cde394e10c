"""Builders of plausible values, as fixtures: a test names only what it is about.

Each fixture gives a function. `make_trial(status=TrialStatus.FAILED)` is a whole trial that differs
in one field; annotate them as `Callable[..., Trial]` and so on. All are pure and seeded.
"""

import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from budget import EFFORT, tries
from filelock import FileLock
from hdrh.histogram import HdrHistogram
from hypothesis import settings
from kept import Teller
from xdist.scheduler import LoadFileScheduling

from perf.model.design import Host, Needs, Steadiness, Testbed, TimeLimits, Validity
from perf.model.results import (
    Artifact,
    Counter,
    Fact,
    Interval,
    Named,
    Observation,
    Purpose,
    Release,
    Sample,
    SeriesKey,
    Source,
    Trial,
    TrialId,
    TrialStatus,
)

# Where tests run as a job of GitHub Actions, its summary is not theirs to write.
os.environ.pop("GITHUB_STEP_SUMMARY", None)
# The same examples in every run: a failure is of the change, never of the day.
settings.register_profile("same", derandomize=True, deadline=None, max_examples=tries(100))
settings.load_profile("same")


def pytest_configure(config: pytest.Config) -> None:
    """Write down what each test came to where that is asked for."""
    if reported := os.environ.get("KNICKPOINT_TESTS_TOLD"):
        config.pluginmanager.register(Teller(Path(reported)))


UNTIL = "KNICKPOINT_TESTS_UNTIL"
"""The Unix time from which on no slow test is begun; what is left out for that is listed at the end."""
TOO_LATE = f"too late to begin it: {UNTIL} has passed"
DEAR = (
    "tests/lab/",
    "tests/infra/",
    "tests/perf/jobs/test_suites_real.py",
    "tests/perf/trial/",
    "tests/planting/",
    "tests/reliability/test_faults",
    "tests/act/",
    "tests/reliability/",
)
"""What takes longest begins first, so that no worker is left with it at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what is dear first; `--no-loadscope-reorder` keeps that order among workers."""

    def place(item: pytest.Item) -> int:
        return next((at for at, dear in enumerate(DEAR) if item.nodeid.startswith(dear)), len(DEAR))

    items.sort(key=place)


RING = "Cassandra on 127.0.0.1 to 127.0.0.3"
SHARED = {
    "tests/act/test_bisect.py": RING,
    "tests/act/test_candidate_refusals.py": RING,
    "tests/act/test_command.py": RING,
    "tests/act/test_nightly.py": RING,
    "tests/act/test_pull_request.py": RING,
    "tests/perf/jobs/test_suites_real.py": RING,
    "tests/perf/systems/test_access_real.py": RING,
    "tests/contract/": "Cassandra, the emulator, the null and fake servers of the contract",
    "tests/infra/test_site_real.py": "a Debian of its own",
    "tests/infra/": "the kernel of the machine",
    "tests/lab/": "the kernel of the machine",
    "tests/perf/history/storage/": "PostgreSQL",
    "tests/perf/trial/": "the ports of the fake servers",
    "tests/reliability/test_faults": "the addresses of trials with faults",
    "tests/reports/pages/": "Chromium and the demo site",
}
"""What the files below a path share, so that one worker runs all that share it."""


class OneServerOfAKind(LoadFileScheduling):
    """Hand files to workers, but the files that share something to one of them."""

    def _split_scope(self, nodeid: str) -> str:
        shared = (what for path, what in SHARED.items() if nodeid.startswith(path))
        return next(shared, super()._split_scope(nodeid))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave a slow test out that would begin too late."""
    until = os.environ.get(UNTIL)
    if until and time.time() > float(until) and item.get_closest_marker("slow"):
        pytest.skip(TOO_LATE)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List what was left out, so that nobody takes it for shown."""
    skipped = terminalreporter.stats.get("skipped", [])
    if left_out := [one.nodeid for one in skipped if TOO_LATE in str(one.longrepr)]:
        terminalreporter.section(f"LEFT OUT, for {UNTIL} had passed: {len(left_out)} tests")
        terminalreporter.write_line("\n".join(left_out))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> OneServerOfAKind:
    """Start each kind of server once per run."""
    return OneServerOfAKind(config, log)


STARTED_AT = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
RELEASE = Release(system="cassandra", version="5.0.4", line="5.0", ordinal=4)
KEY = SeriesKey(
    system="cassandra",
    line="5.0",
    topology="local-three",
    testbed_class="local",
    config="default",
    workload="sensor-write@0123456789ab",
    engine="python",
    phase="saturation",
    operation="write",
    metric="throughput",
    statistic="mean",
)
SAMPLES = tuple(
    Sample(
        phase="saturation",
        operation="write",
        metric=metric,
        statistic=statistic,
        value=value,
        iteration=iteration,
    )
    for metric, statistic, values in (
        ("throughput", "mean", (1000.0, 990.0, 1010.0)),
        ("response_time", "p50", (2.5, 2.4, 2.6)),
        ("response_time", "p99", (9.75, 9.5, 10.0)),
        ("service_time", "p99", (9.25, 9.0, 9.5)),
    )
    for iteration, value in zip((None, 1, 2), values, strict=True)
)
TRIAL = Trial(
    id=TrialId("2026-03-01-sensor-write-cassandra-5.0.4"),
    night="2026-03-01",
    purpose=Purpose.SCHEDULED,
    experiment="sensor-write",
    release=RELEASE,
    artifact=Artifact(source=Source.ARCHIVE, sha256="ab" * 32),
    topology=Named(name="local-three", sha256="111111111111"),
    testbed=Named(name="local", sha256="222222222222"),
    testbed_class="local",
    workload=Named(name="sensor-write", sha256="0123456789ab"),
    config=Named(name="default", sha256="333333333333"),
    engine="python",
    seed=42,
    started_at=STARTED_AT,
    finished_at=STARTED_AT + timedelta(minutes=3),
    status=TrialStatus.COMPLETED,
    environment_before=(Fact(host="localhost", name="kernel", value="6.1.0"),),
    environment_after=(Fact(host="localhost", name="kernel", value="6.1.0"),),
    samples=SAMPLES,
    counters=(
        Counter(phase="saturation", operation="write", iteration=1, name="attempted", value=5000),
        Counter(phase="saturation", operation="write", iteration=1, name="completed", value=4990),
        Counter(phase="saturation", operation="write", iteration=1, name="timeouts", value=10),
    ),
    harness_version="0.1.0",
)
TESTBED = Testbed(
    name="here",
    description="one node on this host",
    testbed_class="here",
    transport="local",
    hosts=(Host(name="node-1", address="127.0.0.1", role="server"),),
    client_cores=1,
    needs=Needs(memory_mb=1, disk_mb=1),
    limits=TimeLimits(),
    validity=Validity(
        max_error_share=0.0,
        max_miss_share=0.0,
        min_achieved_share=0.0,
        max_lateness_share=100.0,
        max_client_cpu_share=100.0,
        max_client_wait_share=100.0,
        max_iteration_spread=100.0,
        max_foreign_cpu_share=1.0,
        max_steal_share=1.0,
        max_throttled_share=1.0,
        max_clock_step_ms=10_000.0,
    ),
    steadiness=Steadiness(window_s=1, tolerance=1.0),
)


@pytest.fixture
def figures(record_property: Callable[[str, object], None]) -> dict[str, object]:
    """Return what a test that keeps a promise puts its figures into: `figures["kills"] = 213`."""
    reported: dict[str, object] = {}
    record_property("figures", reported)
    return reported


@pytest.fixture(scope="session", autouse=True)
def unsynced() -> Iterator[None]:
    """Wait for no disk: what a power loss leaves is tried on processes whose changes are recorded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)  # which refuses what is no open file, too
        yield


@pytest.fixture(scope="module")
def fake_ports() -> Iterator[None]:
    """Keep the ports of the fake servers, which are fixed, to one module of all workers at a time."""
    with FileLock(Path(tempfile.gettempdir()) / "knickpoint-tests-fake-ports.lock"):
        yield


@pytest.fixture(scope="session")
def effort() -> Callable[[int, int], int]:
    """Return `effort(quick, full)`: how often to try, between the two by KNICKPOINT_EFFORT."""
    return lambda quick, full: round(quick + EFFORT * (full - quick))


@pytest.fixture(scope="session")
def make_trial() -> Callable[..., Trial]:
    """Give `make_trial(**changes)`: a completed trial of Cassandra 5.0.4, with these fields changed."""

    def make(**changes: Any) -> Trial:  # noqa: ANN401  the fields of Trial, checked by replace
        return replace(TRIAL, **changes)

    return make


@pytest.fixture(scope="session")
def make_interval() -> Callable[..., Interval]:
    """Return `make_interval(values_us, **changes)`: the histogram of these values over one second."""

    def make(values_us: Sequence[int], **changes: Any) -> Interval:  # noqa: ANN401  fields of Interval
        histogram = HdrHistogram(1, 60_000_000, 3)
        for value in values_us:
            histogram.record_value(value)
        interval = Interval(
            phase="saturation",
            operation="write",
            kind="response_time",
            iteration=1,
            start_s=STARTED_AT.timestamp(),
            length_s=1.0,
            max_us=max(values_us, default=0),
            encoded=histogram.encode().decode(),
        )
        return replace(interval, **changes)

    return make


@pytest.fixture(scope="session")
def make_intervals(make_interval: Callable[..., Interval]) -> Callable[..., tuple[Interval, ...]]:
    """Return `make_intervals(iterations=2, seconds=3, seed=1)`: a warm-up, then the iterations.

    Both kinds are there for each second; response times are service times plus a wait.
    """

    def make(iterations: int = 2, seconds: int = 3, seed: int = 1) -> tuple[Interval, ...]:
        generator = random.Random(seed)  # noqa: S311  test data, not a secret
        intervals = []
        for iteration in range(iterations + 1):
            for second in range(seconds):
                start_s = STARTED_AT.timestamp() + iteration * seconds + second
                service = [int(generator.lognormvariate(7.5, 0.6)) + 1 for _ in range(20)]
                response = [value + generator.randrange(500) for value in service]
                for kind, values in (("response_time", response), ("service_time", service)):
                    changes = {"kind": kind, "iteration": iteration, "start_s": start_s}
                    intervals.append(make_interval(values, **changes))
        return tuple(intervals)

    return make


@pytest.fixture(scope="session")
def make_observations() -> Callable[..., tuple[Observation, ...]]:
    """Return `make_observations(values, per_release=1, **key_changes)`: a series, oldest first.

    The values belong to releases 5.0.1, 5.0.2 …, `per_release` nights each.
    """

    def make(
        values: Sequence[float],
        per_release: int = 1,
        **key_changes: Any,  # noqa: ANN401  the fields of SeriesKey, checked by replace
    ) -> tuple[Observation, ...]:
        key = replace(KEY, **key_changes)
        observations = []
        for index, value in enumerate(values):
            ordinal = index // per_release + 1
            version = f"{key.line}.{ordinal}"
            release = Release(system=key.system, version=version, line=key.line, ordinal=ordinal)
            observations.append(
                Observation(
                    key=key,
                    trial=TrialId(f"trial-{index:04d}"),
                    release=release,
                    started_at=STARTED_AT + timedelta(days=index),
                    status=TrialStatus.COMPLETED,
                    value=value,
                    iterations=(value, value),
                )
            )
        return tuple(observations)

    return make


@pytest.fixture(scope="session")
def make_testbed() -> Callable[..., Testbed]:
    """Return `make_testbed(**changes)`: one server on this host, and limits that nothing passes."""

    def make(**changes: Any) -> Testbed:  # noqa: ANN401  the fields of Testbed, checked by replace
        return replace(TESTBED, **changes)

    return make

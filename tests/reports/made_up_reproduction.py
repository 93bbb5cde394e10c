"""A made-up report with all that one can have, and trials that reproduce it with known answers.

Of the system fake, `slow` is measured with half the throughput of `fast`, and at twice its times. The
report says the same of them in figures ten times as high.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta

from perf.model.references import (
    PublishedColumn,
    PublishedCourse,
    PublishedRow,
    PublishedTable,
    Quotient,
    Report,
    Scaling,
    Spot,
    Subject,
)
from perf.model.results import Counter, Fact, Named, Release, Sample, Trial, TrialId

RATE = Spot(metric="throughput", statistic="mean")
P99 = Spot(metric="response_time", statistic="p99")
MAIN = PublishedTable(
    name="main",
    title="Table 1: writes",
    note="Seconds there.",
    at=Spot(subject="fast", workload="sensor-write", operation="write"),
    columns=(
        PublishedColumn(name="rate", title="Writes/s", at=RATE),
        PublishedColumn(name="p99", title="99 %", at=P99),
        PublishedColumn(name="errors", title="Err", at=Spot(metric="errors", statistic="mean")),
        PublishedColumn(name="cpu", title="CPU", not_here="CPU is not told in per cent here"),
    ),
    rows=(
        PublishedRow(
            name="full",
            title="Full <load>",
            at=Spot(phase="saturation"),
            values=(42_000.5, 20.0, 0, 95),
        ),
        PublishedRow(
            name="calm",
            title="Calm",
            at=Spot(phase="steady"),
            values=(10_500.0, 4.0, None, 12),
            ratios_to=("full",),
        ),
    ),
)
SIDES = PublishedTable(
    name="sides",
    title="Table 2: fast and slow",
    at=Spot(workload="sensor-write", phase="saturation", operation="write", metric="throughput"),
    columns=(
        PublishedColumn(name="fast", title="Fast", at=Spot(subject="fast", statistic="mean")),
        PublishedColumn(
            name="slow", title="Slow", at=Spot(subject="slow", statistic="mean"), ratio_to="fast"
        ),
        PublishedColumn(name="ratio", title="Slow / fast", quotient=Quotient(of="slow", over="fast")),
    ),
    rows=(
        PublishedRow(name="rate", title="Rate", values=(None, None, 0.5), words={"slow": "< 21,000"}),
    ),
)
OTHER = PublishedTable(
    name="other",
    title="Table 3: slow alone",
    at=Spot(subject="slow", workload="sensor-write", operation="write"),
    columns=MAIN.columns[:2],
    rows=(
        PublishedRow(name="full", title="Full", at=Spot(phase="saturation"), values=(21_000.0, 40.0)),
    ),
    ratio_to="main",
)
REPORT = Report(
    name="made-up",
    title="Fast & slow, a made-up report",
    authors=("A. Nobody", "B. <Nobody>"),
    publisher="Nowhere",
    url="https://example.org/report?a=1&b=2",
    link="Only its data.",
    published="unknown",
    retrieved="2026-01-01",
    suite="quickstart",
    suites=("quickstart",),
    hardware="Five nodes with <disks>.",
    client="Another client.",
    left_open=("One node and three are both claimed.",),
    not_compared=("Absolute figures.",),
    left_out=("Figure 9: its picture is lost.",),
    subjects=(
        Subject(
            name="fast",
            title="Fast",
            system="cassandra",
            setup="Tuned.",
            configs=("default",),
            nodes=3,
        ),
        Subject(name="slow", title="Slow", system="cassandra", setup="As is.", configs=("sentinel",)),
    ),
    tables=(MAIN, SIDES, OTHER),
    scalings=(
        Scaling(
            title="From one to three",
            small="slow",
            large="fast",
            small_workload="sensor-write",
            large_workload="sensor-write",
            phase="saturation",
            operation="write",
            published_percent=397,
            theoretical_percent=400,
        ),
    ),
    courses=(
        PublishedCourse(
            title="How times evolve",
            workload="sensor-write",
            phases=("saturation",),
            note="No curve was published.",
        ),
        PublishedCourse(
            title="Drift",
            workload="sensor-write",
            phases=("saturation",),
            operations=("write", "read-latest"),
            note="None either.",
        ),
    ),
)
NUMBERS: Mapping[tuple[str, str, str], float] = {
    ("saturation", "throughput", "mean"): 4000.0,
    ("saturation", "response_time", "p99"): 20.0,
    ("saturation", "operations_per_dollar", "mean"): 8_000_000.0,
    ("steady", "throughput", "mean"): 1000.0,
    ("steady", "response_time", "p99"): 5.0,
}


def make_measured(
    make_trial: Callable[..., Trial],
    name: str = "a",
    *,
    slower: float = 1.0,
    workload: str = "sensor-write-by-10",
    price: str = "",
    minutes: int = 0,
    **changes: object,
) -> Trial:
    """Make a trial of NUMBERS, `slower` times as slow, with three runs of 90, 100 and 110 % each."""
    base = make_trial()
    samples = tuple(
        Sample(
            phase=phase,
            operation="write",
            metric=metric,
            statistic=statistic,
            value=share * (value * slower if metric == "response_time" else value / slower),
            iteration=iteration,
        )
        for (phase, metric, statistic), value in NUMBERS.items()
        for iteration, share in ((None, 1.0), (1, 0.9), (2, 1.0), (3, 1.1))
    )
    prices = (Fact(host="", name="price_per_hour_usd", value=price),) if price else ()
    counters = (
        Counter(phase="saturation", operation="write", iteration=1, name="error:Overloaded", value=2),
        Counter(phase="saturation", operation="write", iteration=2, name="timeouts", value=1),
        Counter(phase="steady", operation="write", iteration=1, name="completed", value=9),
    )
    values = {
        "id": TrialId(name),
        "workload": Named(name=workload, sha256="0123456789ab"),
        "config": Named(name="default", sha256="ab0123456789"),
        "samples": samples,
        "counters": counters,
        "environment_before": prices,
        "started_at": base.started_at + timedelta(minutes=minutes),
        **changes,
    }
    return make_trial(**values)


def release(version: str, system: str = "cassandra") -> Release:
    """Make a release; its line are its first two numbers, its ordinal is the last."""
    line, _, patch = version.rpartition(".")
    return Release(system=system, version=version, line=line, ordinal=int(patch))

"""A made-up experiment of any length on two release lines, for the pages of its series.

Line 5.0 has as many trials as asked for, 25 of each release, all of which gave two series; at two
thirds its throughput drops by 12 %. Its seventh trial is invalid, its eighth was planned only. Line 4.1
has six trials. What is judged is planted, so that thousands of points are made in no time.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from catalogs import shipped
from made_up_judgement import DETECTABLE, NOISE, SETTINGS

from analysis.detection.detection import ChangePoint, ChangeState
from analysis.detection.series import Point, Points, Series
from analysis.detection.verdict import Outcome
from analysis.judging.judgement import JudgedSeries, Judgement
from analysis.judging.verdicts import Verdict, VerdictBasis
from perf.model.nights import Night, PlannedTrial
from perf.model.references import PublishedColumn, PublishedRow, PublishedTable, Report, Spot, Subject
from perf.model.results import (
    Move,
    Named,
    Purpose,
    Reason,
    Release,
    SeriesKey,
    Trial,
    TrialHead,
    TrialId,
    TrialStatus,
)
from reports.site.context import NO_BOUNDS, SiteContext

FIRST = datetime(2025, 1, 1, 2, 0, tzinfo=UTC)
NIGHTS_OF_A_RELEASE = 25
INVALID, MISSING = 6, 7
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
SLOWER = replace(KEY, phase="steady", metric="response_time", statistic="p99")
PUBLISHED = Report(
    name="made-up",
    title="a paper <of 2024>",
    authors=("Nobody",),
    publisher="Nowhere",
    url="https://example.org/paper",
    published="2024",
    retrieved="unknown",
    suite="quickstart",
    suites=("quickstart",),
    hardware="Five nodes.",
    client="Another client.",
    not_compared=("Anything.",),
    subjects=(Subject(name="there", title="There", system="cassandra", setup="Five nodes."),),
    tables=(
        PublishedTable(
            name="only",
            title="Only",
            at=Spot(subject="there", workload="sensor-write", phase="saturation", operation="write"),
            columns=(
                PublishedColumn(
                    name="rate", title="Rate", at=Spot(metric="throughput", statistic="mean")
                ),
            ),
            rows=(PublishedRow(name="one", title="One", values=(4500.0,)),),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class OneKernelLater:
    """An archive whose third trial in each list runs on another kernel; it gives no trial whole."""

    def trials(self, ids: Sequence[TrialId], *, brief: bool = False) -> tuple[Trial, ...]:
        """Return none."""
        return ()

    def first_values(self, ids: Sequence[TrialId], *wanted: str) -> dict[TrialId, tuple[str, float]]:
        """Return none."""
        return {}

    def moves(self, lists: Sequence[Sequence[TrialId]]) -> Sequence[Sequence[Move]]:
        """State that the kernel was another one from the third trial of each list on."""
        return [[Move(place=2, name="kernel of node-1", before="6.1.0", after="6.1.1")] for _ in lists]


def make_scene(make_trial: Callable[..., Trial], trials: int, target: Path) -> SiteContext:
    """Return the context of a history in which line 5.0 has `trials` trials."""
    noise = random.Random(20250101)  # noqa: S311  test data, not a secret
    new = [_head(make_trial, "5.0", number) for number in range(trials)]
    missing = new.pop(MISSING)
    new[INVALID] = replace(
        new[INVALID],
        status=TrialStatus.INVALID,
        reasons=(Reason(kind="lateness", text="client fell behind: 3.1 % started late. More."),),
    )
    old = [_head(make_trial, "4.1", number) for number in range(6)]
    step = 2 * trials // 3
    throughput = _judge(KEY, new, 4200.0, noise, step, 0.88)
    parts = (
        _judge(replace(KEY, line="4.1"), old, 3900.0, noise),
        throughput,
        _judge(SLOWER, new, 7.9, noise),
    )
    catalog = shipped()
    return SiteContext(
        heads={head.id: head for head in (*old, *new)},
        digests={head.id: f"digest of {head.id}" for head in (*old, *new)},
        bounds=NO_BOUNDS,
        archive=OneKernelLater(),
        judgement=Judgement(series=parts, outcome=throughput.verdict.outcome, minimum_points=6),
        catalog=replace(catalog, detection=SETTINGS, triage=(), reports=(PUBLISHED,)),
        nights=(_night(missing),),
        comparisons=(),
        bisections=(),
        left_out=(),
        now=FIRST + timedelta(days=trials),
        target=target,
    )


def _head(make_trial: Callable[..., Trial], line: str, number: int) -> TrialHead:
    patch = number // NIGHTS_OF_A_RELEASE + 1
    started = FIRST + timedelta(days=number, minutes=5 if line == "4.1" else 0)
    night = f"{started:%Y-%m-%d}-1"
    whole = make_trial(
        id=TrialId(f"{night}.01.cassandra-sensor-write.{line}.{patch}"),
        night=night,
        experiment="cassandra-sensor-write",
        release=Release(
            system="cassandra",
            version=f"{line}.{patch}",
            line=line,
            ordinal=patch,
            released_at=date(2024, 1, 1),
        ),
        workload=Named(name="sensor-write", sha256="0123456789ab"),
        started_at=started,
        finished_at=started + timedelta(minutes=3),
        purpose=Purpose.IMPORTED if number == 0 else Purpose.SCHEDULED,
    )
    return TrialHead(**{name: getattr(whole, name) for name in TrialHead.__dataclass_fields__})


def _night(missing: TrialHead) -> Night:
    planned = PlannedTrial(
        id=missing.id, experiment=missing.experiment, version=missing.release.version
    )
    return Night(
        id=missing.night,
        suite="quickstart",
        plan_sha256="44" * 32,
        started_at=missing.started_at,
        trials=(planned,),
    )


def _judge(
    key: SeriesKey,
    heads: Sequence[TrialHead],
    level: float,
    noise: random.Random,
    step: int = 0,
    factor: float = 1.0,
) -> JudgedSeries:
    """Make up the points of a series; with a step, a confirmed regression from that point on."""
    used = [head for head in heads if head.status is TrialStatus.COMPLETED]
    points = []
    for place, head in enumerate(used):
        value = level * noise.gauss(1, 0.015) * (factor if step and place >= step else 1)
        points.append(
            Point(
                trial=head.id,
                release=head.release,
                started_at=head.started_at,
                value=value,
                iterations=tuple(value * noise.gauss(1, 0.02) for _ in range(3)),
                night=head.night,
                purpose=head.purpose,
            )
        )
    series = Series(key=key, points=Points.of(points))
    return JudgedSeries(
        series=series,
        change_points=(_change(series, step, level, factor),) if step else (),
        verdict=Verdict(
            outcome=Outcome.REGRESSED if step else Outcome.UNCHANGED, basis=VerdictBasis.NO_CHANGE
        ),
        noise=replace(NOISE, deviation=0.015 * level, level=level),
        detectable=DETECTABLE,
    )


def _change(series: Series, step: int, level: float, factor: float) -> ChangePoint:
    return ChangePoint(
        series=series,
        last_before=series.points[step - 1],
        first_after=series.points[step],
        index=step,
        earliest=step,
        latest=step + 1,
        before=level,
        after=factor * level,
        relative_change=factor - 1,
        p_value=1e-9,
        points_after=len(series.points) - step,
        detector="planted",
        state=ChangeState.CONFIRMED,
        outcome=Outcome.REGRESSED,
    )

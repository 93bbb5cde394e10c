"""A judgement with all that one can have: made up where the made-up history is too short for it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from statistics import fmean

from analysis.detection.alerts import Alert
from analysis.detection.detection import (
    ChangePoint,
    ChangeState,
    DetectorResult,
    Drift,
    Shift,
    SpreadChange,
)
from analysis.detection.noise import Noise
from analysis.detection.series import Series
from analysis.detection.verdict import Outcome
from analysis.judging.drift import WatchEvidence, WatchState
from analysis.judging.explanations import Explanation
from analysis.judging.incidents import Cause, Incident
from analysis.judging.judgement import Detectable, JudgedSeries, Judgement
from analysis.judging.remeasurement import RemeasurementQuestion
from perf.model.results import Purpose
from perf.model.rules import Detection, TriageEntry, TriageState

SETTINGS = Detection(
    max_p_value=2e-4,
    max_rank_p_value=0.001,
    provisional_p_value=0.001,
    provisional_rank_p_value=0.01,
    window_points=50,
    minimum_points=8,
    confirming_points=3,
    false_alarms_per_1000_series_nights=1.0,
    judged={
        "throughput": ("mean",),
        "response_time": ("p50", "p99"),
        "service_time": ("p99",),
        "highest_load": ("estimate",),
    },
    relevant_change={
        "throughput": 0.05,
        "response_time": 0.1,
        "service_time": 0.1,
        "highest_load": 0.05,
    },
)
NOISE = Noise(deviation=55.0, persistence=0.1, level=3600.0, points=8, all_points=60)
"""Of a throughput; `scale_noise` makes that of any other series."""
DETECTABLE = tuple(
    Detectable(nights=nights, relative_change=change)
    for nights, change in ((1, 0.0914), (3, 0.0412), (10, 0.0251))
)
CANARY = {
    "phase": "canary-before",
    "operation": "canary",
    "metric": "canary_cpu",
    "statistic": "p50",
    "host": "localhost",
}
TRIAGED = TriageEntry(
    name="noisy-neighbour",
    state=TriageState.TESTBED,
    system="cassandra",
    line="5.0",
    sign="drop",
    owner="ops <ops>",
    note="a neighbour on the same host",
    expires=date(2026, 4, 1),
)


def change_inside(one: JudgedSeries, version: str) -> JudgedSeries:
    """Return a series that fell by 14.6 % from one night of a release to another, if it has any."""
    points = one.series.points
    places = [place for place, point in enumerate(points) if point.release.version == version]
    if not places:
        return one
    index = places[len(places) // 2]
    change = ChangePoint(
        series=one.series,
        last_before=points[index - 1],
        first_after=points[index],
        index=index,
        earliest=index,
        latest=index,
        before=100.0,
        after=85.4,
        relative_change=-0.146,
        p_value=1e-6,
        points_after=len(points) - index,
        detector="planted",
        state=ChangeState.CONFIRMED,
        outcome=Outcome.REGRESSED,
    )
    return replace(one, change_points=(*one.change_points, change))


@dataclass(frozen=True)
class PlantedDetector:
    """Sees the one step that is planted, before point 16, and is not sure of its place by one point."""

    name: str = "planted"

    def read(self, values: Sequence[float], days: Sequence[int] = ()) -> DetectorResult:
        """Return whether the step is in this series."""
        before, after = values[:16], values[16:]
        if not len(after) or abs(fmean(after) / fmean(before) - 1) < 0.1:
            return DetectorResult()
        shift = Shift(index=16, earliest=15, latest=17, p_value=1e-9, is_confirmed=True)
        return DetectorResult(shifts=(shift,))


def scale_noise(series: Series) -> Noise:
    """Return a series as much noise as it would have, measured against its own newest level."""
    newest = [point.value for point in series.points[-NOISE.points :]]
    level = fmean(newest) if newest else NOISE.level
    return replace(NOISE, level=level, deviation=NOISE.floor * abs(level), points=len(newest))


def tell_all(judgement: Judgement) -> Judgement:
    """Return a judgement all that one can have, made up where the history is too short for it."""
    changed = [one for one in judgement.series if one.change_points]
    (write,) = (one for one in changed if one.series.key.metric == "throughput")
    read = next(one for one in judgement.series if one.series.key.operation == "read-latest")
    series = tuple(
        _see_all(one)
        if one is read
        else replace(
            one,
            noise=scale_noise(one.series),
            detectable=DETECTABLE,
            drifts=(),
            spreads=(),
            alerts=(),
        )
        for one in judgement.series
    )
    watched = tuple(
        replace(write, series=replace(write.series, key=key, points=points), change_points=())
        for key, points in (
            (replace(write.series.key, **CANARY), write.series.points),
            (
                replace(write.series.key, config="sentinel", topology="local-one"),
                write.series.points[:8],
            ),
        )
    )
    changes = tuple(one.change_points[0] for one in changed)
    lead = write.change_points[0]
    return replace(
        judgement,
        series=series,
        watched=watched,
        expected_false_alarms=0.02,
        asked=20,
        incidents=_describe_incidents(lead, changes, watched),
    )


def _describe_incidents(
    lead: ChangePoint, changes: Sequence[ChangePoint], watched: Sequence[JudgedSeries]
) -> tuple[Incident, ...]:
    """Return an incident of the database that is news, and one of the testbed that was mended."""
    of_database = Incident(
        name="a1b2c3d4",
        lead=lead,
        changes=(lead, *(change for change in changes if change is not lead)),
        fixed_by=(),
        cause=Cause.DATABASE,
        evidence=_give_evidence(watched, None),
        explanations=(Explanation(name="JVM of node-1", before="17.0.1", after="<17.0.2>"),),
        triage=None,
        is_news=True,
        question=RemeasurementQuestion(changes=(lead,)),
    )
    fleeting = replace(lead, state=ChangeState.PROVISIONAL, index=9)
    of_testbed = Incident(
        name="e5f6a7b8",
        lead=fleeting,
        changes=(fleeting,),
        fixed_by=(replace(lead, index=12, outcome=Outcome.IMPROVED),),
        cause=Cause.TESTBED,
        evidence=_give_evidence(watched, lead),
        explanations=(),
        triage=TRIAGED,
        is_news=False,
        question=None,
    )
    return of_database, of_testbed


def _see_all(judged: JudgedSeries) -> JudgedSeries:
    """Return a series a drift, a change of scatter, a withdrawn alert and an imported point."""
    first, *others = judged.series.points
    points = (replace(first, purpose=Purpose.IMPORTED), *others)
    return replace(
        judged,
        series=replace(judged.series, points=points),
        noise=scale_noise(judged.series),
        detectable=DETECTABLE,
        drifts=(Drift(first=2, last=9, before=points[2].value, after=1.1 * points[9].value),),
        spreads=(SpreadChange(index=15, before=10.0, after=21.0, p_value=1e-6),),
        alerts=(
            Alert(
                index=18,
                earliest=17,
                latest=19,
                rises=True,
                relative_change=0.12,
                state=ChangeState.PROVISIONAL,
                provisional_at=4,
                confirmed_at=None,
                withdrawn_at=6,
            ),
        ),
    )


def _give_evidence(
    watched: Sequence[JudgedSeries], followed: ChangePoint | None
) -> tuple[WatchEvidence, ...]:
    canary, sentinel = watched
    moved = WatchEvidence(key=canary.series.key, state=WatchState.STILL, before=20, after=5)
    if followed:
        own = replace(followed, relative_change=0.11)
        moved = replace(moved, state=WatchState.FOLLOWED, change=own)
    silent = WatchEvidence(key=sentinel.series.key, state=WatchState.SILENT, last_night="2026-03-01-1")
    return (moved, silent)

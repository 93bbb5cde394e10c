"""What the page of one series shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import TypeAlias

from analysis.incidents import Incident
from analysis.judgement import JudgedSeries
from analysis.verdict import Outcome
from perf.metrics import HIGHEST_LOAD
from perf.model import Purpose, SeriesKey, TrialHead, TrialId
from perf.rules import Detection
from reports.view import links
from reports.view.changes import (
    ChangeRow,
    ScatterRow,
    Slope,
    WithdrawnRow,
    view_changes,
    view_scatter,
    view_slopes,
    view_withdrawn,
)
from reports.view.sensitivity import Sensitivity, view_sensitivity
from reports.view.wording import (
    NOTHING,
    OUTCOME_BADGES,
    WATCH_BADGE,
    Badge,
    Field,
    Moment,
    count,
    definition_words,
    direction_words,
    heading,
    interval,
    join_caveats,
    metric_words,
    moment,
    phase_words,
    quantity,
    sentence,
    series_words,
    spread,
    unit_words,
)

WATCHES = (
    "This series watches the testbed: the work behind it never changes, so what moves here are the "
    "hosts. It is read by the same test as all series, and no verdict rests on it."
)

Bounds: TypeAlias = Mapping[tuple[TrialId, str, str], tuple[float, float]]
NO_BOUNDS: Bounds = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRow:
    """One point: text for the table and tooltips, plain numbers for the chart."""

    index: int
    release: str
    night: str
    started: Moment
    text: str
    spread: str
    trial: str
    page: str
    value: float
    low: float
    high: float
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """The stretch between two change points, and its mean; `first` and `last` are point numbers.

    Single points scatter from `low` to `high`; both are the mean where the noise is not known.
    """

    first: int
    last: int
    mean: float
    low: float
    high: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Neighbouring points of one release or one night; `first` and `last` are point numbers."""

    name: str
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesView:
    """All that the page of one series shows.

    `is_by_night` where all points are of one release, so that only nights tell them apart; `is_watch`
    where they are a canary's or a sentinel's.
    """

    page: str
    data: str
    title: str
    experiment: str
    metric: str
    unit: str
    direction: str
    description: str
    verdict: Badge
    reason: str
    fields: tuple[Field, ...]
    points: tuple[PointRow, ...]
    sensitivity: Sensitivity
    changes: tuple[ChangeRow, ...]
    slopes: tuple[Slope, ...]
    scatter: tuple[ScatterRow, ...]
    withdrawn: tuple[WithdrawnRow, ...]
    segments: tuple[Segment, ...]
    bands: tuple[Band, ...]
    is_by_night: bool
    has_imported: bool
    is_watch: bool
    summary: str
    spread_title: str
    caveat: str


def view_series(
    judged: JudgedSeries,
    trials: Mapping[TrialId, TrialHead],
    *,
    settings: Detection,
    incidents: Mapping[tuple[SeriesKey, int], Incident] | None = None,
    bounds: Bounds = NO_BOUNDS,
    caveats: Mapping[str, str],
    watches: str = "",
) -> SeriesView:
    """Put a judged series into words.

    `bounds` are the ends between which the answers of searches lie, by trial, phase and operation.
    `caveats` maps testbed name to the sentence shown with it, `watches` says what the series is for if
    it is a canary's or a sentinel's.
    """
    key, points = judged.series.key, judged.series.points
    rows = _view_points(judged, trials, bounds)
    latest = trials[points[-1].trial] if points else None
    is_by_night = len({row.release for row in rows}) == 1
    bands = _find_bands(rows, is_by_night=is_by_night)
    return SeriesView(
        page=links.series_page(key),
        data=links.series_stem(key),
        title=heading(series_words(key)),
        experiment=latest.experiment if latest else f"{key.system} {key.workload}",
        metric=metric_words(key.metric, key.statistic),
        unit=unit_words(key.metric),
        direction=direction_words(key.metric),
        description=definition_words(key.metric),
        verdict=WATCH_BADGE if watches else OUTCOME_BADGES[judged.verdict.outcome],
        reason=watches or sentence(judged.verdict.reason),
        fields=_view_key(key),
        points=rows,
        sensitivity=view_sensitivity(judged),
        changes=view_changes(judged, incidents or {}, settings),
        slopes=view_slopes(judged),
        scatter=view_scatter(judged),
        withdrawn=view_withdrawn(judged),
        segments=_find_segments(judged),
        bands=bands,
        is_by_night=is_by_night,
        has_imported=any(row.origin == "imported" for row in rows),
        is_watch=bool(watches),
        summary=_summarize(rows, bands, is_by_night=is_by_night),
        spread_title="Uncertainty" if key.metric == HIGHEST_LOAD.name else "Iterations",
        caveat=join_caveats({trials[point.trial].testbed.name for point in points}, caveats),
    )


def _summarize(rows: Sequence[PointRow], bands: Sequence[Band], *, is_by_night: bool) -> str:
    points = count(len(rows), "point")
    if is_by_night:
        return f"{points} of {rows[0].release} over {count(len(bands), 'night')}"
    return f"{points} over {count(len(bands), 'release')}"


def _view_points(
    judged: JudgedSeries, trials: Mapping[TrialId, TrialHead], bounds: Bounds
) -> tuple[PointRow, ...]:
    key = judged.series.key
    metric = key.metric
    of_search = bounds if metric == HIGHEST_LOAD.name else NO_BOUNDS
    return tuple(
        PointRow(
            index=index,
            release=point.release.version,
            night=trials[point.trial].night,
            started=moment(point.started_at),
            text=quantity(point.value, metric),
            spread=f"between {interval(*ends)}" if ends else spread(point.iterations),
            trial=point.trial,
            page=links.trial_page(point.trial),
            value=point.value,
            low=min(ends or point.iterations, default=point.value),
            high=max(ends or point.iterations, default=point.value),
            origin="imported" if point.purpose is Purpose.IMPORTED else "measured",
        )
        for index, point in enumerate(judged.series.points, start=1)
        for ends in [of_search.get((point.trial, key.phase, key.operation))]
    )


def _view_key(key: SeriesKey) -> tuple[Field, ...]:
    return (
        Field(name="System", value=key.system),
        Field(name="Line", value=key.line),
        Field(name="Topology", value=key.topology),
        Field(name="Testbed class", value=key.testbed_class),
        Field(name="Config", value=key.config),
        Field(name="Workload", value=key.workload, note="name@hash of its content"),
        Field(name="Load engine", value=key.engine),
        Field(name="Phase", value=key.phase, note=f"measured {phase_words(key.phase)}"),
        Field(name="Operation", value=key.operation),
        Field(name="Metric", value=key.metric, note=definition_words(key.metric)),
        Field(name="Statistic", value=key.statistic or NOTHING),
        *((Field(name="Host", value=key.host),) if key.host else ()),
    )


def _find_segments(judged: JudgedSeries) -> tuple[Segment, ...]:
    points, metric = judged.series.points, judged.series.key.metric
    known = judged.verdict.outcome not in (Outcome.UNDECIDED, Outcome.INVALID)
    if not points or not (judged.change_points or known):
        # A mean over releases that nobody could judge would claim that they are alike.
        return ()
    edges = (0, *(change.index for change in judged.change_points), len(points))
    means = (
        (first, last, fmean(point.value for point in points[first:last]))
        for first, last in pairwise(edges)
        if not any(drift.first < last and first <= drift.last for drift in judged.drifts)
    )
    scatter = judged.noise.deviation if judged.noise else 0.0
    return tuple(
        Segment(
            first=first + 1,
            last=last,
            mean=mean,
            low=mean - scatter,
            high=mean + scatter,
            text=quantity(mean, metric),
        )
        for first, last, mean in means
    )


def _find_bands(rows: Sequence[PointRow], *, is_by_night: bool) -> tuple[Band, ...]:
    bands: list[Band] = []
    for row in rows:
        name = (row.night or row.started.day) if is_by_night else row.release
        first = row.index
        if bands and bands[-1].name == name:
            first = bands.pop().first
        bands.append(Band(name=name, first=first, last=row.index))
    return tuple(bands)

"""What the page of one series shows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from analysis.detection import ChangePoint, State
from analysis.judgement import JudgedSeries
from analysis.verdict import Outcome
from perf.metrics import HIGHEST_LOAD
from perf.model import SeriesKey, Trial, TrialId
from reports.view import links
from reports.view.steps import find_bounds
from reports.view.wording import (
    NOTHING,
    OUTCOME_BADGES,
    STATE_BADGES,
    Badge,
    Field,
    Moment,
    caveat_words,
    count,
    definition_words,
    direction_words,
    heading,
    interval,
    metric_words,
    moment,
    number,
    percent,
    phase_words,
    probability,
    quantity,
    sentence,
    series_words,
    spread,
    unit_words,
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """One change point, `index` being the number of the first point after it."""

    index: int
    between: str
    before: str
    after: str
    change: str
    label: str
    p_value: str
    outcome: Badge
    state: Badge
    points_after: str
    page_before: str
    page_after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """The stretch between two change points, and its mean; `first` and `last` are point numbers."""

    first: int
    last: int
    mean: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseBand:
    """The neighbouring points of one release; `first` and `last` are point numbers."""

    release: str
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesView:
    """All that the page of one series shows."""

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
    changes: tuple[ChangeRow, ...]
    segments: tuple[Segment, ...]
    bands: tuple[ReleaseBand, ...]
    summary: str
    spread_title: str
    caveat: str


def view_series(
    judged: JudgedSeries, trials: Mapping[TrialId, Trial], caveats: Mapping[str, str]
) -> SeriesView:
    """Put a judged series into words. `caveats` maps testbed name to the sentence shown with it."""
    key, points = judged.series.key, judged.series.points
    rows = _view_points(judged, trials)
    latest = trials[points[-1].trial] if points else None
    bands = _find_bands(rows)
    return SeriesView(
        page=links.series_page(key),
        data=links.series_data(key),
        title=heading(series_words(key)),
        experiment=latest.experiment if latest else f"{key.system} {key.workload}",
        metric=metric_words(key.metric, key.statistic),
        unit=unit_words(key.metric),
        direction=direction_words(key.metric),
        description=definition_words(key.metric),
        verdict=OUTCOME_BADGES[judged.verdict.outcome],
        reason=sentence(judged.verdict.reason),
        fields=_view_key(key),
        points=rows,
        changes=tuple(_view_change(change) for change in judged.change_points),
        segments=_find_segments(judged),
        bands=bands,
        summary=f"{count(len(rows), 'point')} over {count(len(bands), 'release')}",
        spread_title="Uncertainty" if key.metric == HIGHEST_LOAD.name else "Iterations",
        caveat=_caveat({trials[point.trial].testbed.name for point in points}, caveats),
    )


def _caveat(testbeds: Iterable[str], caveats: Mapping[str, str]) -> str:
    """Say what must be known of all testbeds of one class that a series has points from."""
    found = dict.fromkeys(caveat_words(testbed, caveats) for testbed in sorted(testbeds))
    return " ".join(caveat for caveat in found if caveat)


def _view_points(judged: JudgedSeries, trials: Mapping[TrialId, Trial]) -> tuple[PointRow, ...]:
    metric = judged.series.key.metric
    return tuple(
        PointRow(
            index=index,
            release=point.release.version,
            night=trials[point.trial].night,
            started=moment(point.started_at),
            text=quantity(point.value, metric),
            spread=f"between {interval(*bounds)}" if bounds else spread(point.iterations),
            trial=point.trial,
            page=links.trial_page(point.trial),
            value=point.value,
            low=min(bounds or point.iterations, default=point.value),
            high=max(bounds or point.iterations, default=point.value),
        )
        for index, point in enumerate(judged.series.points, start=1)
        for bounds in [find_bounds(trials[point.trial].samples, judged.series.key)]
    )


def _view_change(change: ChangePoint) -> ChangeRow:
    metric = change.series.key.metric
    before, after = change.last_before, change.first_after
    return ChangeRow(
        index=change.index + 1,
        between=_name_gap(change),
        before=quantity(change.before, metric),
        after=quantity(change.after, metric),
        change=percent(change.relative_change),
        label=_label(change),
        p_value=probability(change.p_value),
        outcome=OUTCOME_BADGES[change.outcome],
        state=STATE_BADGES[change.state],
        points_after=count(change.points_after, "point") + " after it",
        page_before=links.trial_page(before.trial),
        page_after=links.trial_page(after.trial),
    )


def _label(change: ChangePoint) -> str:
    """Say a change in the little room beside its line in the chart."""
    doubt = " ?" if change.state is State.PROVISIONAL else ""
    return f"{OUTCOME_BADGES[change.outcome].symbol} {percent(change.relative_change)}{doubt}"


def _name_gap(change: ChangePoint) -> str:
    before, after = change.last_before, change.first_after
    if before.release.version == after.release.version:
        days = f"{before.started_at:%Y-%m-%d} and {after.started_at:%Y-%m-%d}"
        return f"within {after.release.version}, between {days}"
    return f"{before.release.version} → {after.release.version}"


def view_change_briefly(change: ChangePoint) -> str:
    """Say a change in one line: before → after, how much, and where."""
    metric = change.series.key.metric
    values = f"{number(change.before)} → {quantity(change.after, metric)}"
    return f"{values} ({percent(change.relative_change)}), {_name_gap(change)}"


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
    )
    return tuple(
        Segment(first=first + 1, last=last, mean=mean, text=quantity(mean, metric))
        for first, last, mean in means
    )


def _find_bands(rows: tuple[PointRow, ...]) -> tuple[ReleaseBand, ...]:
    bands: list[ReleaseBand] = []
    for row in rows:
        first = row.index
        if bands and bands[-1].release == row.release:
            first = bands.pop().first
        bands.append(ReleaseBand(release=row.release, first=first, last=row.index))
    return tuple(bands)

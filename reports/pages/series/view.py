"""What the page of one series shows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from analysis.detection.noise import noise_of_level
from analysis.detection.series import Points
from analysis.detection.verdict import Outcome
from analysis.judging.incidents import Incident
from analysis.judging.judgement import JudgedSeries
from analysis.judging.standing import find_told
from perf.model.columns import Occasion
from perf.model.metrics import HIGHEST_LOAD
from perf.model.references import Reference, references_for
from perf.model.results import Purpose, SeriesKey, TrialHead, TrialId
from perf.model.rules import Detection
from reports.site.context import Bounds
from reports.wording import links
from reports.wording.beginnings import Chain, tell_change
from reports.wording.changes import (
    ChangeRow,
    ScatterRow,
    Slope,
    WithdrawnRow,
    view_changes,
    view_scatter,
    view_slopes,
    view_withdrawn,
)
from reports.wording.leading import Lead, lead_series
from reports.wording.sensitivity import Sensitivity, view_sensitivity
from reports.wording.wording import (
    NOTHING,
    OUTCOME_BADGES,
    WATCH_BADGE,
    Badge,
    NamedValue,
    count,
    definition_words,
    direction_words,
    heading,
    metric_words,
    moment,
    night_words,
    phase_words,
    quantity,
    series_words,
    unit_words,
)

WATCHES = (
    "This series watches the testbed: the work behind it never changes, so what moves here are the "
    "hosts. It is read by the same test as all series, and no verdict rests on it."
)

NO_CHAIN = Chain()


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """The stretch between two change points, and its level; `first` and `last` are point numbers.

    `mean` is the level as the change points tell it, so with outliers pulled in; without any, that of
    all points. Single points scatter from `low` to `high`: `mean` itself where no noise is known.
    """

    first: int
    last: int
    mean: float
    low: float
    high: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRow:
    """A figure that others have published: no measurement here, so it is never part of a verdict."""

    value: float
    text: str
    about: str
    source: str
    url: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """The series with the workload's content before or after; `text` ends where the link begins."""

    text: str
    name: str
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesView:
    """All that the page of one series shows beside its single points.

    `is_by_night` where all points are of one release, so that only nights tell them apart; `is_watch`
    where they are a canary's or a sentinel's. `in_words` says what the chart shows. `visible_share` is
    the smallest relative change that the fewest confirming nights would show, None if not known.
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
    lead: Lead
    fields: tuple[NamedValue, ...]
    points: int
    sensitivity: Sensitivity
    changes: tuple[ChangeRow, ...]
    slopes: tuple[Slope, ...]
    scatter: tuple[ScatterRow, ...]
    withdrawn: tuple[WithdrawnRow, ...]
    segments: tuple[Segment, ...]
    references: tuple[ReferenceRow, ...]
    neighbours: tuple[Neighbour, ...]
    visible_share: float | None
    is_by_night: bool
    has_imported: bool
    is_watch: bool
    summary: str
    in_words: str
    spread_title: str
    caveat: str


def view_series(
    judged: JudgedSeries,
    trials: Mapping[TrialId, TrialHead],
    *,
    settings: Detection,
    incidents: Mapping[tuple[SeriesKey, int], Incident] | None = None,
    caveat: str,
    watches: str = "",
    references: Sequence[Reference] = (),
    chain: Chain = NO_CHAIN,
) -> SeriesView:
    """Put a judged series into words.

    `caveat` is what must be known of the testbeds of its points, `watches` says what the series is for
    if it is a canary's or a sentinel's, `references` are all published figures, `chain` says which
    series had the workload's content before, and which has the one after.
    """
    key, points = judged.series.key, judged.series.points
    latest = trials[points[-1].trial] if points else None
    is_by_night = len(points.versions) == 1
    summary = _summarize(points, is_by_night=is_by_night)
    changes = view_changes(judged, incidents or {}, settings)
    told = find_told(judged.detectable)
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
        lead=Lead(text=watches) if watches else lead_series(judged, incidents or {}, settings),
        fields=_view_key(key),
        points=len(points),
        sensitivity=view_sensitivity(judged),
        changes=changes,
        slopes=view_slopes(judged),
        scatter=view_scatter(judged),
        withdrawn=view_withdrawn(judged),
        segments=(segments := _find_segments(judged)),
        references=_view_references(key, references),
        neighbours=tuple(_view_neighbours(key, points, chain)),
        visible_share=told.relative_change if told else None,
        is_by_night=is_by_night,
        has_imported=points.has(_is_imported),
        is_watch=bool(watches),
        summary=summary,
        in_words=_say_chart(judged, summary, segments, changes),
        spread_title="Uncertainty" if key.metric == HIGHEST_LOAD.name else "Iterations",
        caveat=caveat,
    )


def _is_imported(occasion: Occasion) -> bool:
    return occasion.purpose is Purpose.IMPORTED


def _summarize(points: Points, *, is_by_night: bool) -> str:
    many = count(len(points), "point")
    if is_by_night:
        nights = {one.night or moment(one.started_at).day for one in points.occasions}
        return f"{many} of {points[0].release.version} over {count(len(nights), 'night')}"
    return f"{many} over {count(len(points.versions), 'release')}"


def _say_chart(
    judged: JudgedSeries, summary: str, segments: Sequence[Segment], changes: Sequence[ChangeRow]
) -> str:
    """Say what the chart shows: how much there is, its level, its changes and the newest value."""
    points, metric = judged.series.points, judged.series.key.metric
    if not points:
        return "No points."
    newest, value = points[-1], quantity(points[-1].value, metric)
    level = segments[-1].text if segments and segments[-1].last == len(points) else ""
    told = "; ".join(f"{one.outcome.word.lower()} {one.change}, {one.between}" for one in changes)
    return " ".join(
        (
            f"{summary}.",
            f"The newest level is {level}." if level else "No level is claimed.",
            f"{heading(count(len(changes), 'change point'))}: {told}." if told else "No change points.",
            f"Newest value: {value}, {newest.release.version}, {night_words(newest.night)}.",
        )
    )


def find_ends(key: SeriesKey, trial: TrialId, bounds: Bounds) -> tuple[float, float] | None:
    """Give the ends between which a search's answer lies; None for what no search answered."""
    return bounds.get((trial, key.phase, key.operation)) if key.metric == HIGHEST_LOAD.name else None


def _view_references(key: SeriesKey, references: Sequence[Reference]) -> tuple[ReferenceRow, ...]:
    return tuple(
        ReferenceRow(
            value=one.value,
            text=quantity(one.value, key.metric),
            about=" ".join(filter(None, (one.system, one.version or one.line))),
            source=one.source,
            url=one.url,
            note=one.note,
        )
        for one in references_for(key, references)
    )


def _view_neighbours(key: SeriesKey, points: Points, chain: Chain) -> Iterator[Neighbour]:
    """Say that a series begins or ends because its workload was changed."""
    if key in chain.before:
        before = chain.before[key]
        since = f"{moment(min(one.started_at for one in points.occasions)).day}: " if points else ""
        yield Neighbour(
            text=f"Begins here, {since}{tell_change(before, key)} Its predecessor is the series of",
            name=before.workload,
            page=links.series_page(before),
        )
    if key in chain.after:
        after = chain.after[key]
        yield Neighbour(
            text=f"Ends here: {tell_change(key, after)} It goes on as the series of",
            name=after.workload,
            page=links.series_page(after),
        )


def _view_key(key: SeriesKey) -> tuple[NamedValue, ...]:
    return (
        NamedValue(name="System", value=key.system),
        NamedValue(name="Line", value=key.line),
        NamedValue(name="Topology", value=key.topology),
        NamedValue(name="Testbed class", value=key.testbed_class),
        NamedValue(name="Config", value=key.config),
        NamedValue(name="Workload", value=key.workload, note="name@hash of its content"),
        NamedValue(name="Load engine", value=key.engine),
        NamedValue(name="Phase", value=key.phase, note=f"measured {phase_words(key.phase)}"),
        NamedValue(name="Operation", value=key.operation),
        NamedValue(name="Metric", value=key.metric, note=definition_words(key.metric)),
        NamedValue(name="Statistic", value=key.statistic or NOTHING),
        *((NamedValue(name="Host", value=key.host),) if key.host else ()),
    )


def _find_segments(judged: JudgedSeries) -> tuple[Segment, ...]:
    points = judged.series.points
    known = judged.verdict.outcome not in (Outcome.UNDECIDED, Outcome.INVALID)
    if not points or not (judged.change_points or known):
        # A mean over releases that nobody could judge would claim that they are alike.
        return ()
    edges = (0, *(change.index for change in judged.change_points), len(points))
    return tuple(
        _view_segment(judged, number, first, last)
        for number, (first, last) in enumerate(pairwise(edges))
        if not any(drift.first < last and first <= drift.last for drift in judged.drifts)
    )


def _view_segment(judged: JudgedSeries, number: int, first: int, last: int) -> Segment:
    """Draw a level as the changes beside it tell it, and how far its own points scatter."""
    values = judged.series.points.values[first:last]
    changes, noise = judged.change_points, judged.noise
    if number:
        level = changes[number - 1].after
    elif changes:
        level = changes[0].before
    else:
        level = fmean(values)
    own = judged.newest_noise if last == len(judged.series.points) else noise
    scatter = noise_of_level(own, values).deviation if own else 0.0
    return Segment(
        first=first + 1,
        last=last,
        mean=level,
        low=level - scatter,
        high=level + scatter,
        text=quantity(level, judged.series.key.metric),
    )

"""The largest movers of tonight in words: what moved furthest, and whether anybody was told of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from analysis.judging.incidents import Incident
from analysis.judging.judgement import Judgement
from analysis.judging.movers import Mover, find_mover, rank
from perf.model.results import SeriesKey
from reports.wording import links
from reports.wording.series_list import draw_trend
from reports.wording.sparklines import Sparkline
from reports.wording.wording import (
    Badge,
    direction_arrow,
    direction_words,
    number,
    percent,
    quantity,
    series_words,
)

_MOST = 3
_FLAGGED = Badge(kind="calm", symbol="●", word="Flagged")
_NOT_FLAGGED = Badge(kind="unsure", symbol="○", word="Not flagged")


@dataclass(frozen=True, slots=True, kw_only=True)
class MoverRow:
    """One series that moved far tonight; `incident` is the page of what was told, empty if nothing."""

    system: str
    release: str
    workload: str
    title: str
    page: str
    arrow: str
    direction: str
    before: str
    after: str
    change: str
    deviations: str
    badge: Badge
    incident: str
    text: str
    spark: Sparkline


def view_movers(judgement: Judgement, night: str) -> tuple[MoverRow, ...]:
    """Put the largest movers of a night into words, the furthest first."""
    movers = rank(
        (
            find_mover(judged.series, judged.change_points, judged.newest_noise, night)
            for judged in judgement.series
        ),
        _MOST,
    )
    told = _by_place(judgement.incidents)
    return tuple(_view_mover(mover, told) for mover in movers)


def _by_place(incidents: Iterable[Incident]) -> Mapping[SeriesKey, list[tuple[range, Incident]]]:
    """Give, by series, the incidents with the points after their changes."""
    found: dict[SeriesKey, list[tuple[range, Incident]]] = {}
    for incident in incidents:
        for change in (*incident.changes, *incident.mended_by):
            after = range(change.index, change.index + change.points_after)
            found.setdefault(change.series.key, []).append((after, incident))
    return found


def _view_mover(mover: Mover, told: Mapping[SeriesKey, list[tuple[range, Incident]]]) -> MoverRow:
    series, point, metric = mover.series, mover.point, mover.series.key.metric
    at = series.points.index(point)
    incident = next((one for after, one in told.get(series.key, ()) if at == after.start), None)
    return MoverRow(
        system=series.key.system,
        release=point.release.version,
        workload=series.key.workload.partition("@")[0],
        title=series_words(series.key),
        page=links.series_page(series.key),
        arrow=direction_arrow(metric),
        direction=direction_words(metric),
        before=number(mover.level),
        after=quantity(point.value, metric),
        change=percent(mover.relative_change),
        deviations=f"{number(mover.deviations)} σ",
        badge=_FLAGGED if incident else _NOT_FLAGGED,
        incident=links.incident_page(incident.name) if incident else "",
        text="A change is told here."
        if incident
        else "No change is told here: one point cannot tell a spike from a step. "
        "Look again after the next night.",
        spark=draw_trend(series),
    )

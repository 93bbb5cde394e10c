"""The largest movers of tonight in words: what moved furthest, and whether anybody was told of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from analysis.judging.incidents import Incident
from analysis.judging.judgement import Judgement
from analysis.judging.movers import Mover, find_mover, rank
from perf.model.results import SeriesKey
from reports.wording.series_list import draw_trend
from reports.wording.sparklines import Sparkline

_MOST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class MoverRow:
    """One series that moved far tonight, with what was told of it and its trend."""

    mover: Mover
    incident: Incident | None
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
    at = mover.series.points.index(mover.point)
    incident = next((one for after, one in told.get(mover.series.key, ()) if at == after.start), None)
    return MoverRow(mover=mover, incident=incident, spark=draw_trend(mover.series))

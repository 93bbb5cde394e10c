"""Series that can say nothing of their own: they are shown, but not counted beside what they repeat."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from analysis.detection.detection import ChangePoint
from analysis.detection.series import Series
from analysis.detection.verdict import Outcome
from analysis.judging.incidents import Incident
from analysis.judging.judgement import JudgedSeries
from perf.model.metrics import RESPONSE_TIME, SERVICE_TIME, THROUGHPUT
from perf.model.results import SeriesKey


def find_echoes(judged: Iterable[JudgedSeries]) -> frozenset[SeriesKey]:
    """Return the series that cannot differ from another series, or from the load that was offered.

    An offered throughput that changed says that the database could not bear the load: that is no echo.
    """
    every = tuple(judged)
    return _find_twins(one.series for one in every) | {
        one.series.key
        for one in every
        if one.series.key.metric == THROUGHPUT.name
        and _is(one.series.key, "steady")
        and not one.change_points
        and one.verdict.outcome is not Outcome.INVALID
    }


def _find_twins(series: Iterable[Series]) -> frozenset[SeriesKey]:
    """Return the service times at saturation that equal the response times of the same trials."""
    found = {one.key: one for one in series if _is(one.key, "saturation")}
    return frozenset(
        key
        for key, one in found.items()
        if key.metric == SERVICE_TIME.name
        and (other := found.get(_response_time(key)))
        and one.points
        and one.points.trials == other.points.trials
        and tuple(one.points.values) == tuple(other.points.values)
    )


def _is(key: SeriesKey, phase: str) -> bool:
    """Return whether this is the phase, of the only operation or of one of several: write-steady."""
    return key.phase in {phase, f"{key.operation}-{phase}"}


def _response_time(key: SeriesKey) -> SeriesKey:
    return replace(key, metric=RESPONSE_TIME.name)


def without_echoes(judged: Sequence[JudgedSeries]) -> tuple[JudgedSeries, ...]:
    """Return the series that are worth a count."""
    echoes = find_echoes(judged)
    return tuple(one for one in judged if one.series.key not in echoes)


def split_changes(incident: Incident) -> tuple[tuple[ChangePoint, ...], tuple[ChangePoint, ...]]:
    """Return the changes of an incident, and those that repeat them; the lead is never one of these."""
    twins = _find_twins(one.series for one in incident.changes)
    first: dict[SeriesKey, SeriesKey] = {}
    own: list[ChangePoint] = []
    echoes: list[ChangePoint] = []
    for change in incident.changes:
        key = change.series.key
        owner = first.setdefault(_response_time(key) if key in twins else key, key)
        (own if owner == key else echoes).append(change)
    return tuple(own), tuple(echoes)

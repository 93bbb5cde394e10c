"""What the values of a night are held against: the level that each series had, and the config."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from statistics import median
from typing import TypeAlias

from analysis.detection.effects import relative_change
from analysis.judging.incidents import Cause, Incident
from analysis.judging.judgement import JudgedSeries
from perf.model.results import Named, Purpose, TrialHead, TrialId, TrialStatus
from reports.wording.links import incident_page
from reports.wording.wording import percent, quantity

HEADLINES = (("saturation", "throughput", "mean"), ("steady", "response_time", "p99"))
"""Phase, metric and statistic of the values that a night shows of each trial."""
_LEAST, _MOST = 3, 30
"""Points of a level: fewer are none, more would only slow a page down."""
_TRACKS_AT_HAND = 100
"""Lists of trials that series share, of which the places are kept: one of an experiment and a line."""
_BY_ITSELF = (Purpose.SCHEDULED, Purpose.SENTINEL)
Offsets: TypeAlias = Mapping[TrialId, Mapping[tuple[str, str], float]]
"""By trial, then phase and operation, how far a headline value is off the level before."""
_Setup: TypeAlias = tuple[str, str, str, str]


def find_offsets(series: Iterable[JudgedSeries], trials: Container[TrialId]) -> Offsets:
    """Return how far headline values of trials are off the level before: the median since a change."""
    found: defaultdict[TrialId, dict[tuple[str, str], float]] = defaultdict(dict)

    @cache  # the series of an experiment share their trials
    def find_places(of_series: tuple[TrialId, ...]) -> Sequence[int]:
        return [at for at, trial in enumerate(of_series) if at and trial in trials]

    for judged in series:
        key, points = judged.series.key, judged.series.points
        if (key.phase, key.metric, key.statistic) not in HEADLINES or key.host:
            continue
        begins = sorted({0, *(change.index for change in judged.change_points)})
        for place in find_places(points.trials):
            # The value after a change is still held against the level before it.
            begin = begins[bisect_left(begins, place) - 1]
            before = points.values[max(begin, place - _MOST) : place]
            if len(before) >= _LEAST and (level := median(before)):
                off = (points.values[place] - level) / abs(level)
                found[points.trials[place]][key.phase, key.operation] = off
    return found


@lru_cache(_TRACKS_AT_HAND)
def _find_places(of_series: tuple[TrialId, ...]) -> Mapping[TrialId, int]:
    """Return the place of each trial of a series; the series of an experiment share them."""
    return {trial: place for place, trial in enumerate(of_series)}


def say_value(judged: JudgedSeries, night: Collection[TrialId]) -> str:
    """Describe the value of a night against the level before the newest change up to then."""
    points = judged.series.points
    places = _find_places(points.trials)
    place = min((places[trial] for trial in night if trial in places), default=None)
    if place is None:
        return ""
    value = quantity(points.values[place], judged.series.key.metric)
    before = points.values[max(0, place - _MOST) : place]
    level = median(before) if len(before) >= _LEAST else 0.0
    for change in judged.change_points:
        level = change.before if change.index <= place else level
    off = percent(relative_change(level, points.values[place])) if level else ""
    return f"{value}, {off} against the level before" if off else value


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigMove:
    """A config that changed before the trials of some experiments in a night, and what came of it.

    `is_late` where it changed in an earlier night, none of whose trials with it was completed;
    `before` and `after` are two trials between which it changed.
    """

    config: str
    experiments: tuple[str, ...]
    is_late: bool
    incident: str
    before: TrialHead
    after: TrialHead


def find_config_moves(
    heads: Mapping[TrialId, TrialHead], incidents: Iterable[Incident]
) -> Mapping[str, Sequence[ConfigMove]]:
    """Return by night the configs whose content changed; `heads` are in the order of their start.

    Trials that take turns are passed over: their configs differ on purpose.
    """
    attributed = _list_attributed(heads, incidents)
    newest: dict[_Setup, TrialHead] = {}
    completed: dict[_Setup, TrialHead] = {}
    found: defaultdict[str, defaultdict[tuple[str, bool, str, str], list[tuple[TrialHead, TrialHead]]]]
    found = defaultdict(lambda: defaultdict(list))
    for head in heads.values():
        if not head.night or head.purpose not in _BY_ITSELF:
            continue
        setup = head.release.system, head.experiment, head.config.name, head.testbed_class
        is_completed = head.status is TrialStatus.COMPLETED
        last, last_completed = newest.get(setup, head), completed.get(setup, head)
        is_new = last.config.sha256 != head.config.sha256
        if is_new or (is_completed and last_completed.config.sha256 != head.config.sha256):
            before = last if is_new else last_completed
            hashes = before.config.sha256, head.config.sha256
            found[head.night][head.config.name, not is_new, *hashes].append((before, head))
        newest[setup] = head
        if is_completed:
            completed[setup] = head
    return {
        night: tuple(
            ConfigMove(
                config=config,
                experiments=tuple(dict.fromkeys(after.experiment for _, after in pairs)),
                is_late=is_late,
                incident=next(
                    (
                        attributed[after.experiment, after.config]
                        for _, after in pairs
                        if (after.experiment, after.config) in attributed
                    ),
                    "",
                ),
                before=pairs[0][0],
                after=pairs[0][1],
            )
            for (config, is_late, *_), pairs in moves.items()
        )
        for night, moves in found.items()
    }


def _list_attributed(
    heads: Mapping[TrialId, TrialHead], incidents: Iterable[Incident]
) -> Mapping[tuple[str, Named], str]:
    """Return by experiment and config the page of the incident that a change to that content made."""
    found: dict[tuple[str, Named], str] = {}
    for incident in incidents:
        if incident.cause is not Cause.CONFIGURATION:
            continue
        for change in incident.changes:
            before, after = map(heads.get, (change.last_before.trial, change.first_after.trial))
            if before and after and before.config != after.config:
                found.setdefault((after.experiment, after.config), incident_page(incident.name))
    return found

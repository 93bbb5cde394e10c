"""What the values of a night are held against: the level that each series had, and the config."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias

from analysis.detection.effects import relative_change
from analysis.judging.incidents import Cause, Incident
from analysis.judging.judgement import JudgedSeries
from perf.model.results import Named, Purpose, TrialHead, TrialId, TrialStatus
from reports.wording.links import incident_page

HEADLINES = (("saturation", "throughput", "mean"), ("steady", "response_time", "p99"))
"""Phase, metric and statistic of the values that a night shows of each trial."""
_LEAST, _MOST = 3, 30
"""Points of a level: fewer are none, more would only slow a page down."""
_BY_ITSELF = (Purpose.SCHEDULED, Purpose.SENTINEL)
Offsets: TypeAlias = Mapping[TrialId, Mapping[tuple[str, str], float]]
"""By trial, then phase and operation, how far a headline value is off the level before."""
_Setup: TypeAlias = tuple[str, str, str, str]


def find_offsets(series: Iterable[JudgedSeries]) -> Offsets:
    """Return how far each headline value is off the level before: the median since the last change."""
    found: defaultdict[TrialId, dict[tuple[str, str], float]] = defaultdict(dict)
    for judged in series:
        key = judged.series.key
        if (key.phase, key.metric, key.statistic) not in HEADLINES or key.host:
            continue
        values, begin = judged.series.points.values, 0
        changes = {change.index for change in judged.change_points}
        for place, trial in enumerate(judged.series.points.trials):
            before = values[max(begin, place - _MOST) : place]
            level = median(before) if len(before) >= _LEAST else 0.0
            if level:
                found[trial][key.phase, key.operation] = relative_change(level, values[place])
            if place in changes:
                begin = place
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigMove:
    """A config that changed before the trials of some experiments in a night, and what came of it.

    `is_late` where it changed in an earlier night, none of whose trials with it was completed.
    """

    config: str
    experiments: tuple[str, ...]
    is_late: bool
    incident: str


def find_config_moves(
    heads: Mapping[TrialId, TrialHead], incidents: Iterable[Incident]
) -> Mapping[str, Sequence[ConfigMove]]:
    """Return by night the configs whose content changed; `heads` are in the order of their start.

    Trials that take turns are passed over: their configs differ on purpose.
    """
    attributed = _list_attributed(heads, incidents)
    newest: dict[_Setup, str] = {}
    completed: dict[_Setup, str] = {}
    found: defaultdict[str, defaultdict[tuple[str, bool, str], list[str]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for head in heads.values():
        if not head.night or head.purpose not in _BY_ITSELF:
            continue
        setup = head.release.system, head.experiment, head.config.name, head.testbed_class
        content = head.config.sha256
        is_new = newest.get(setup, content) != content
        is_late = head.status is TrialStatus.COMPLETED and completed.get(setup, content) != content
        if is_new or is_late:
            incident = attributed.get((head.experiment, head.config), "")
            found[head.night][head.config.name, not is_new, incident].append(head.experiment)
        newest[setup] = content
        if head.status is TrialStatus.COMPLETED:
            completed[setup] = content
    return {
        night: tuple(
            ConfigMove(
                config=config,
                experiments=tuple(dict.fromkeys(experiments)),
                is_late=is_late,
                incident=incident,
            )
            for (config, is_late, incident), experiments in moves.items()
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

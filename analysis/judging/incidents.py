"""Incidents: changes of one cause, shown as one story.

Two changes are of one cause if their places can be one (see `places`) and their series differ. Changes
are taken strongest first; each joins the first incident with all of whose changes it can share a place,
or begins one. So an incident's first change leads it, and the order of arrival does not matter.

The strongest is, in this order: one that nobody has set aside, a regression, a confirmed one,
a relevant one, one of a measured series rather than of one derived from it, the largest in units of its
noise floor. What a new price did to operations per dollar is of no other cause: it is one story for all
series of the testbed, wherever it shows in them.

A regression and the change that undid it are one story: a later change of the same series that brought
the level back belongs to the incident of the regression, and leads none of its own.

Where both releases took turns on the same hosts, that says more about the cause than all that was
recorded of the nights.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from enum import StrEnum

from analysis.detection.detection import ChangePoint, ChangeState
from analysis.detection.effects import relative_change
from analysis.detection.noise import Noise
from analysis.detection.series import Point
from analysis.detection.verdict import Outcome
from analysis.judging.change_locations import ChangeLocation, meet
from analysis.judging.drift import Watch, WatchEvidence, environment_evidence, is_of_testbed
from analysis.judging.explanations import Explanation, PriceMove, explain
from analysis.judging.findings import is_imported
from analysis.judging.remeasurement import CONFIG, RemeasurementQuestion, Reply, ask
from analysis.judging.verdicts import ChangeRemark, FalseDiscovery, WithinRelease
from perf.model.metrics import origin
from perf.model.results import Purpose, SeriesKey, TrialId
from perf.model.rules import Detection, TriageEntry, TriageState


class Cause(StrEnum):
    """What a change is put down to."""

    DATABASE = "database"
    """Between two releases: a sentinel stood still, or old and new took turns, and nothing else that is
    known changed. Within one release the binaries are the same."""
    CONFIGURATION = "configuration"
    """The settings under configs/systems/ changed there, and nothing else that is recorded did."""
    TESTBED = "testbed"
    """What watches the testbed moved, too; or its price did; or trials in turns rule out what nights
    confirm; or somebody said so."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Changes of one cause. `changes` begin with the lead, the one that says most.

    `fixed_by` are the later changes that undid them. `is_news` is false where nobody has to look: each
    of its changes is triaged, imported in bulk, too small to matter, fixed, made by a new price, or a
    suspicion that trials in turns have ruled out. `replies` are what these say of its changes,
    `question` what they could still be asked about the lead. `came_back_after` is the triage entry
    whose fix the lead undoes, `price_move` the new price that made it.
    """

    name: str
    lead: ChangePoint
    changes: tuple[ChangePoint, ...]
    fixed_by: tuple[ChangePoint, ...]
    cause: Cause
    evidence: tuple[WatchEvidence, ...]
    explanations: tuple[Explanation, ...]
    triage: TriageEntry | None
    is_news: bool
    question: RemeasurementQuestion | None
    replies: tuple[tuple[ChangePoint, Reply], ...] = ()
    came_back_after: TriageEntry | None = None
    price_move: PriceMove | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A change with all that is known about it by itself.

    `relevant` is the smallest relative change of its metric that matters, `fixed_by` the later change
    of the same series that undid it, `reply` what trials in turns say, `priced` how the price moved, if
    that explains a change of what is counted per dollar, `by_chance` that it waits for another night.
    """

    place: ChangeLocation
    relevant: float
    noise: Noise | None = None
    triage: TriageEntry | None = None
    fixed_by: ChangePoint | None = None
    came_back_after: TriageEntry | None = None
    reply: Reply | None = None
    priced: PriceMove | None = None
    by_chance: FalseDiscovery | None = None

    @property
    def change(self) -> ChangePoint:
        """Return the change itself."""
        return self.place.change

    @property
    def at(self) -> tuple[SeriesKey, int]:
        """Return its series and index, which no other change has."""
        return _at(self.change)

    @property
    def is_set_aside(self) -> bool:
        """Return whether nobody has to look at it, however large it is."""
        return self.triage is not None or is_imported(self.change)

    @property
    def is_relevant(self) -> bool:
        """Return whether it is large enough to act on."""
        return abs(self.change.relative_change) >= self.relevant

    @property
    def is_derived(self) -> bool:
        """Return whether its series is a multiple of another one, and so tells the same once more."""
        metric = self.change.series.key.metric
        return origin(metric) != metric

    @property
    def is_reordering(self) -> bool:
        """Return whether releases that were measured at two prices only follow each other."""
        return self.priced is not None and not self.priced.is_event

    @property
    def is_news(self) -> bool:
        """Return whether somebody should look at it."""
        is_fixed = self.fixed_by is not None and self.fixed_by.state is ChangeState.CONFIRMED
        is_open = not (self.is_set_aside or is_fixed or self.is_cleared or self.priced)
        return self.is_relevant and is_open

    @property
    def _is_refuted(self) -> bool:
        return self.reply is not None and self.reply.agrees is False

    @property
    def is_cleared(self) -> bool:
        """Return whether trials in turns rule out what the nights only suspect."""
        return self._is_refuted and self.change.state is ChangeState.PROVISIONAL

    @property
    def is_proven(self) -> bool:
        """Return whether trials in turns show it, so that it is the releases that differ."""
        return self.reply is not None and self.reply.agrees is True

    @property
    def is_contradicted(self) -> bool:
        """Return whether nights confirm what trials in turns rule out."""
        return self._is_refuted and self.change.state is ChangeState.CONFIRMED

    @property
    def size(self) -> float:
        """Return its size in noise floors; 0 where the noise is not known, or the price says it all."""
        if self.priced or self.noise is None or math.isinf(self.noise.floor):
            return 0.0
        size = abs(self.change.relative_change)
        return size / self.noise.floor if self.noise.floor else math.inf

    @property
    def rank(self) -> tuple[object, ...]:
        """Return the sort key of changes, the strongest first; no two changes have the same."""
        return (
            self.is_set_aside,
            self.change.outcome is not Outcome.REGRESSED,
            self.change.state is not ChangeState.CONFIRMED,
            not self.is_relevant,
            self.is_derived,
            -self.size,
            self.change.series.key,
            self.change.index,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentContext:
    """What may explain changes: what watches the testbed, and what was true of each trial."""

    watches: tuple[Watch, ...]
    environments: Mapping[TrialId, Mapping[str, str]]
    settings: Detection


def build_incidents(cases: Sequence[Case], context: IncidentContext) -> tuple[Incident, ...]:
    """Join all changes to incidents, each with its cause; news first, then the largest."""
    fixing = {_at(case.fixed_by) for case in cases if case.fixed_by}
    groups = group(case for case in cases if case.at not in fixing and not case.is_reordering)
    incidents = [(_incident(joined, context), joined[0].size) for joined in groups]
    incidents.sort(key=lambda one: (not one[0].is_news, -one[1], one[0].name))
    return tuple(incident for incident, _ in incidents)


def _at(change: ChangePoint) -> tuple[SeriesKey, int]:
    return change.series.key, change.index


def _incident(joined: Sequence[Case], context: IncidentContext) -> Incident:
    lead = joined[0]
    evidence = environment_evidence(lead.place, context.watches, context.settings)
    explanations = explain(lead.place, context.environments)
    cause = _cause(lead, evidence, explanations)
    is_news = any(case.is_news for case in joined)
    is_open = lead.change.state is ChangeState.PROVISIONAL or cause is Cause.TESTBED
    fixes = {_at(case.fixed_by): case.fixed_by for case in joined if case.fixed_by}
    return Incident(
        name=name_incident(lead.change),
        lead=lead.change,
        changes=tuple(case.change for case in joined),
        fixed_by=tuple(fixes.values()),
        cause=cause,
        evidence=evidence,
        explanations=explanations,
        triage=lead.triage,
        is_news=is_news,
        question=ask(lead.change, lead.reply) if is_news and is_open else None,
        replies=tuple((case.change, case.reply) for case in joined if case.reply),
        came_back_after=lead.came_back_after,
        price_move=lead.priced,
    )


def _cause(lead: Case, evidence: Sequence[WatchEvidence], explanations: Sequence[Explanation]) -> Cause:
    is_testbed, is_within = is_of_testbed(evidence), lead.place.is_within
    if lead.triage and lead.triage.state is TriageState.TESTBED:
        return Cause.TESTBED
    if lead.is_proven:
        return Cause.DATABASE
    if is_testbed or lead.is_contradicted or lead.priced:
        return Cause.TESTBED
    if explanations:
        is_of_config = all(one.name.startswith(CONFIG) for one in explanations)
        return Cause.CONFIGURATION if is_of_config and is_within else Cause.UNKNOWN
    return Cause.DATABASE if is_testbed is False and not is_within else Cause.UNKNOWN


def is_put_down_to_testbed(case: Case, incident: Incident | None) -> bool:
    """Return whether the testbed made a change: its incident says so, its price, or trials in turns."""
    is_home = incident is not None and incident.cause is Cause.TESTBED
    return case.is_contradicted or bool(case.priced) or (is_home and not case.is_proven)


def remark(case: Case, incident: Incident | None, context: IncidentContext) -> ChangeRemark:
    """Return what is known of a change; one that fixed another has no incident of its own."""
    known = tuple(one for one in (case.priced, case.reply) if one)
    is_testbed = is_put_down_to_testbed(case, incident)
    evidence = incident.evidence if incident else ()
    testbed = (*known, *(one for one in evidence if one.follows)) if is_testbed else ()
    waits = known if case.is_cleared else ()
    by_chance = (case.by_chance,) if case.by_chance else ()
    unmoved = [one for one in evidence if one.is_of_sentinel and not one.follows]
    notes = (
        *(() if incident and (testbed or waits) else known),
        case.came_back_after if incident else None,
        _find_others(case, incident.explanations if incident else (), context),
        *unmoved[:1],
    )
    return ChangeRemark(
        set_aside=case.triage or (Purpose.IMPORTED if is_imported(case.change) else None),
        testbed=testbed,
        waits=(*waits, *by_chance),
        notes=tuple(one for one in notes if one),
    )


def _find_others(
    case: Case, explanations: tuple[Explanation, ...], context: IncidentContext
) -> tuple[Explanation, ...] | WithinRelease | None:
    if explanations or not case.place.is_within:
        return explanations
    is_recorded = any(point.trial in context.environments for point in case.place.after)
    return WithinRelease.NOTHING_CHANGED if is_recorded else WithinRelease.NOTHING_RECORDED


def group(cases: Iterable[Case]) -> tuple[tuple[Case, ...], ...]:
    """Join the cases to incidents, the lead of each first. Each case is in exactly one."""
    groups: list[list[Case]] = []
    for case in sorted(cases, key=lambda case: case.rank):
        of_one_cause = (joined for joined in groups if all(_may_join(case, one) for one in joined))
        if (home := next(of_one_cause, None)) is not None:
            home.append(case)
        else:
            groups.append([case])
    return tuple(map(tuple, groups))


def _may_join(one: Case, other: Case) -> bool:
    if one.priced and other.priced:
        is_one_testbed = one.place.testbed == other.place.testbed
        return is_one_testbed and one.priced.prices == other.priced.prices
    if one.priced or other.priced or not meet(one.place, other.place):
        return False
    return one.change.series.key != other.change.series.key


def find_fixes(changes: Sequence[ChangePoint], relevant: float) -> Mapping[int, ChangePoint]:
    """Return, by index of a regression, the change that undid it; of one series, ascending by index.

    Undone is a regression once the level is no longer worse than before it by a relevant amount, or by
    half of the regression if that is less.
    """
    fixes = {}
    for number, worse in enumerate(changes):
        if worse.outcome is not Outcome.REGRESSED:
            continue
        limit = min(relevant, abs(worse.relative_change) / 2)
        sign = math.copysign(1, worse.relative_change)
        for later in changes[number + 1 :]:
            is_back = sign * relative_change(worse.before, later.after) < limit
            if later.outcome is Outcome.IMPROVED and is_back:
                fixes[worse.index] = later
                break
    return fixes


def name_incident(lead: ChangePoint) -> str:
    """Name an incident by the series, the direction and the place of its lead: eight hex digits."""
    return name_place(lead.series.key, lead.outcome, lead.last_before, lead.first_after)


def name_place(key: SeriesKey, outcome: Outcome, before: Point, after: Point) -> str:
    """Name what lies between two neighbouring points of a series: eight hex digits."""
    where = (after.release.version, after.trial if before.release == after.release else "")
    text = repr((astuple(key), str(outcome), where))
    return hashlib.sha256(text.encode()).hexdigest()[:8]

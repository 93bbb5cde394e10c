"""Judge a whole history at once: observations in, one judged series per key out. Pure.

In this order: each series is searched for changes, and what became confirmed tonight is held against
all series of the night (`findings`); what trials in turns say of a change is added (`remeasurement`);
canaries and sentinels are read by the same detector (`drift`);
changes of one cause become incidents (`incidents`); each series gets its verdict (`verdicts`).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from analysis.detection.alerts import Alert
from analysis.detection.detection import ChangePoint, Detector, DetectorResult, Drift, SpreadChange
from analysis.detection.noise import Noise, noise_of_level
from analysis.detection.series import Series, build_series
from analysis.detection.verdict import Outcome, merge
from analysis.judging.change_locations import locate
from analysis.judging.drift import Watch, is_canary, is_sentinel, is_watch, read_watches
from analysis.judging.explanations import explain_by_price
from analysis.judging.findings import (
    SeriesFinding,
    can_alarm,
    expected_false_alarms,
    hold_against_each_other,
    newest_night,
    question,
    search,
)
from analysis.judging.hints import Hint
from analysis.judging.incidents import (
    Case,
    Incident,
    IncidentContext,
    build_incidents,
    find_fixes,
    is_put_down_to_testbed,
    remark,
)
from analysis.judging.remeasurement import Reply, SeriesAnswer, find_reply, settle
from analysis.judging.suspected_changes import SuspectedChange, find_suspected_changes
from analysis.judging.triage import came_back, match
from analysis.judging.verdicts import (
    ChangeRemark,
    Detectable,
    Verdict,
    VerdictBasis,
    detectable,
    stand,
)
from perf.model.columns import Observations, ObservedSeries, OccasionKind, gather
from perf.model.metrics import DIAGNOSTICS
from perf.model.results import Observation, SeriesKey, TrialId, TrialStatus
from perf.model.rules import Detection, TriageEntry

__all__ = ["Detectable", "JudgedSeries", "Judgement", "judge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSeries:
    """A series with its change points (ascending by index) and its verdict today.

    A series without points (its every trial is invalid or failed) is judged too: invalid. `noise`,
    `drifts` and `spreads` are what the detector saw beside the changes, `detectable` what could be seen
    after 1, 3 and 10 nights against the newest level and its own scatter. `alerts` are the changes of
    the last nights as each night saw them, those that were withdrawn among them.
    """

    series: Series
    change_points: tuple[ChangePoint, ...]
    verdict: Verdict
    noise: Noise | None = None
    detectable: tuple[Detectable, ...] = ()
    drifts: tuple[Drift, ...] = ()
    spreads: tuple[SpreadChange, ...] = ()
    alerts: tuple[Alert, ...] = ()

    @property
    def newest_noise(self) -> Noise | None:
        """Return the noise to report: that of the newest confirmed level, if it is the larger."""
        return _noise_of_newest(self.noise, self.series, self.drifts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """All series, ascending by key, the worst outcome, and what is known of them together.

    `incidents` join the changes by cause, news first, then the largest. `watched` are the canaries and
    sentinels, read by the same detector; no verdict of theirs counts. `expected_false_alarms` is how
    many confirmed changes noise alone brings about in one night of the `asked` series, which could
    confirm one tonight (what derives from another counts with it). `suspects` are the
    changes between two releases that are news tonight, the most relevant first. A series needs
    `minimum_points` to be judged; None where there is no history at all.
    """

    series: tuple[JudgedSeries, ...]
    outcome: Outcome = Outcome.UNDECIDED
    incidents: tuple[Incident, ...] = ()
    watched: tuple[JudgedSeries, ...] = ()
    expected_false_alarms: float = 0.0
    asked: int = 0
    suspects: tuple[SuspectedChange, ...] = ()
    minimum_points: int | None = None
    hints: tuple[Hint, ...] = ()
    """What grew by less than throughput can show; no verdict rests on it."""


Spread: TypeAlias = Callable[
    [Callable[[Series], SeriesFinding], Sequence[Series]], Iterable[SeriesFinding]
]
"""Does the work on each series and gives the findings in their order, like `map`."""
Facts: TypeAlias = Mapping[TrialId, Mapping[str, str]]
"""What was true of each trial beside its release, and may explain a change instead of it.

By trial and name, which says what and where: "kernel of node-1", "config default", "testbed local". The
value is what it was: a version, or the hash of a configuration file.
"""
_Replies: TypeAlias = Mapping[tuple[SeriesKey, int], Reply]


def judge(
    observations: Iterable[Observation],
    settings: Detection,
    detector: Detector,
    *,
    watched: Iterable[Observation] = (),
    environments: Facts = MappingProxyType({}),
    answers: Iterable[SeriesAnswer] = (),
    triage: Sequence[TriageEntry] = (),
    today: date | None = None,
    spread: Spread = map,
) -> Judgement:
    """Judge the series that `settings.judged` names. Raises ValueError as `build_series` does.

    Diagnostics explain a result, so no verdict rests on them. Any other metric that `judged` does not
    name is not left out in silence: its series are judged invalid. Canaries and sentinels are found
    among `observations` and `watched` alike. `answers` of trials in turns count beside them: they
    confirm a change, rule it out or leave it as it was. Entries of `triage` expire by `today`; without
    it, by the day of the newest trial. `spread` does the searching of all series, which takes longest:
    on many cores, if it likes.
    """
    observed = gather(observations)
    watching = _find_watching(observed, watched)
    watches = read_watches(watching, settings, detector)
    observed = _find_judged(observed, settings)
    unusable = _newest_unusable(observed.series)
    series = build_series(observed)
    tonight = newest_night(series)
    found = tuple(spread(partial(search, settings=settings, detector=detector), series))
    findings = hold_against_each_other(found, tonight)
    day = today or max((one.started_at.date() for one in observed), default=date.min)
    replies = _find_replies(findings, answers, environments)
    findings = tuple(_settle(one, replies) for one in findings)
    cases = tuple(
        case
        for one in findings
        for case in _cases(one, settings, triage, day, replies, facts=environments)
    )
    context = IncidentContext(watches=watches, environments=environments, settings=settings)
    incidents = build_incidents(cases, context)
    homes = _find_homes(incidents)
    remarks = _remark(cases, homes, context)
    judged = tuple(
        _judge_series(one, unusable.get(one.series.key), settings, remarks.get(one.series.key, {}))
        for one in findings
    )
    asked = len({question(one.series.key) for one in findings if can_alarm(one, tonight)})
    return Judgement(
        series=judged,
        outcome=merge(one.verdict.outcome for one in judged),
        incidents=incidents,
        watched=tuple(_judge_watch(watch, settings) for watch in watches),
        expected_false_alarms=expected_false_alarms(asked, settings),
        asked=asked,
        minimum_points=settings.minimum_points,
        suspects=find_suspected_changes(
            ((case, is_put_down_to_testbed(case, homes.get(case.at))) for case in cases), tonight
        ),
    )


def _find_watching(observed: Observations, watched: Iterable[Observation]) -> Observations:
    """Return what canaries and sentinels measured, each observation once.

    A sentinel's level is that of its release, so each release is a series of its own, whose line is
    that release alone.
    """
    canaries = [one for one in observed.series if is_canary(one.key)]
    sentinels = [one.where(is_sentinel) for one in observed.series]
    others = (*chain.from_iterable(sentinels), *filter(is_watch, watched))
    if not others:
        return Observations(tuple(canaries))
    once = dict.fromkeys((*chain.from_iterable(canaries), *others))
    return gather(
        replace(one, key=replace(one.key, line=one.release.version)) if is_sentinel(one) else one
        for one in once
    )


def _find_judged(observed: Observations, settings: Detection) -> Observations:
    found = [one.where(_is_no_sentinel) for one in observed.series if _is_judged(one.key, settings)]
    return Observations(tuple(one for one in found if len(one)))


def _is_no_sentinel(occasion: OccasionKind) -> bool:
    return not is_sentinel(occasion)


def _is_judged(key: SeriesKey, settings: Detection) -> bool:
    if key.metric in DIAGNOSTICS or is_canary(key):
        return False
    return key.metric not in settings.judged or key.statistic in settings.judged[key.metric]


def _newest_unusable(groups: Iterable[ObservedSeries]) -> dict[SeriesKey, Observation]:
    """Return, by key, the last observation in series order where its trial was not completed."""
    unusable = {}
    for one in groups:
        ranked = one.columns.occasions.ranks
        newest = int(np.argmax(ranked[np.asarray(one.columns.places)]))
        if one.columns.occasion(newest).status is not TrialStatus.COMPLETED:
            unusable[one.key] = one[newest]
    return unusable


def _find_replies(
    findings: Iterable[SeriesFinding],
    answers: Iterable[SeriesAnswer],
    facts: Mapping[TrialId, Mapping[str, str]],
) -> _Replies:
    """Find what trials in turns say, by series and index of the change."""
    of_series: defaultdict[SeriesKey, list[SeriesAnswer]] = defaultdict(list)
    for answer in answers:
        of_series[answer.key].append(answer)
    found = (
        ((one.series.key, change.index), find_reply(change, of_series[one.series.key], facts))
        for one in findings
        if one.series.key in of_series
        for change in one.changes
    )
    return {at: reply for at, reply in found if reply is not None}


def _settle(finding: SeriesFinding, replies: _Replies) -> SeriesFinding:
    key = finding.series.key
    changes = (settle(change, replies.get((key, change.index))) for change in finding.changes)
    return replace(finding, changes=tuple(changes))


def _cases(
    finding: SeriesFinding,
    settings: Detection,
    triage: Sequence[TriageEntry],
    day: date,
    replies: _Replies,
    *,
    facts: Mapping[TrialId, Mapping[str, str]],
) -> tuple[Case, ...]:
    """Put together what is known of each change by itself."""
    if not finding.changes:
        return ()
    relevant = settings.relevant_change[finding.series.key.metric]
    places = [(place, explain_by_price(place, facts, relevant)) for place in locate(finding.changes)]
    events = [place.change for place, priced in places if priced is None or priced.is_event]
    fixes = find_fixes(events, relevant)
    cases = []
    for place, priced in places:
        entry = match(place.change, triage, day)
        cases.append(
            Case(
                place=place,
                relevant=relevant,
                noise=finding.reading.noise,
                triage=entry,
                fixed_by=fixes.get(place.change.index),
                came_back_after=None if entry or priced else came_back(place.change, triage),
                reply=replies.get((finding.series.key, place.change.index)),
                priced=priced,
                by_chance=finding.by_chance if place.change.index in finding.unbelieved else None,
            )
        )
    return tuple(cases)


def _find_homes(incidents: Iterable[Incident]) -> Mapping[tuple[SeriesKey, int], Incident]:
    """Return the incident of each change that is part of one, by series and index."""
    return {
        (change.series.key, change.index): incident
        for incident in incidents
        for change in incident.changes
    }


def _remark(
    cases: Iterable[Case], homes: Mapping[tuple[SeriesKey, int], Incident], context: IncidentContext
) -> Mapping[SeriesKey, Mapping[int, ChangeRemark]]:
    """Return what is to be said beside each change, by series and index."""
    remarks: defaultdict[SeriesKey, dict[int, ChangeRemark]] = defaultdict(dict)
    for case in cases:
        key, index = case.at
        remarks[key][index] = remark(case, homes.get(case.at), context)
    return remarks


def _judge_series(
    finding: SeriesFinding,
    unusable: Observation | None,
    settings: Detection,
    remarks: Mapping[int, ChangeRemark],
) -> JudgedSeries:
    series, changes, reading = finding.series, finding.changes, finding.reading
    verdict = finding.refusal or stand(series, changes, settings, remarks, reading.noise)
    if unusable and verdict.outcome in (Outcome.IMPROVED, Outcome.UNCHANGED):
        verdict = Verdict(
            outcome=Outcome.UNDECIDED,
            basis=VerdictBasis.NEWEST_LOST,
            newest=unusable,
            so_far=verdict.outcome,
        )
    return replace(_put_together(series, changes, reading, verdict, settings), alerts=finding.alerts)


def _judge_watch(watch: Watch, settings: Detection) -> JudgedSeries:
    verdict = Verdict(outcome=Outcome.UNDECIDED, basis=VerdictBasis.WATCH)
    reading = watch.reading or DetectorResult()
    return _put_together(watch.series, watch.changes, reading, verdict, settings)


def _put_together(
    series: Series,
    changes: tuple[ChangePoint, ...],
    reading: DetectorResult,
    verdict: Verdict,
    settings: Detection,
) -> JudgedSeries:
    newest = _noise_of_newest(reading.noise, series, reading.drifts)
    return JudgedSeries(
        series=series,
        change_points=changes,
        verdict=verdict,
        noise=reading.noise,
        detectable=detectable(newest, settings),
        drifts=reading.drifts,
        spreads=reading.spreads,
    )


def _noise_of_newest(noise: Noise | None, series: Series, drifts: Sequence[Drift]) -> Noise | None:
    """Return the noise to tell a sensitivity by: the newest level may scatter more than all."""
    if noise is None or noise.points >= len(series.points):
        return noise
    first = len(series.points) - noise.points
    newest = series.points.values[first:]
    if not drifts:
        return noise_of_level(noise, tuple(newest))
    places = enumerate(newest, start=first)
    flat = (value - math.fsum(drift.moved(place) for drift in drifts) for place, value in places)
    return noise_of_level(noise, tuple(flat))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """How many series have too few points: so many nights measured them, about so many more cure it."""

    series: int
    minimum: int
    nights: int
    missing: int


def find_shortage(judged: Iterable[JudgedSeries], minimum: int) -> Shortage | None:
    """Return how many series have fewer points than the minimum, if any.

    A night measures each release of a suite once, so a series has been measured on about as many
    nights as its most-measured release has points, and gains a point per release each night.
    """
    short = [one.series for one in judged if 0 < len(one.series.points) < minimum]
    nights, missing = 0, 0
    for series in short:
        of_release = Counter(point.release for point in series.points)
        nights = max(nights, *of_release.values())
        missing = max(missing, math.ceil((minimum - len(series.points)) / len(of_release)))
    if not short:
        return None
    return Shortage(series=len(short), minimum=minimum, nights=nights, missing=missing)

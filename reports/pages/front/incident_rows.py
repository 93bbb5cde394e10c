"""Incidents as rows of the front page: what changed, how sure, whose it is, and what to do next."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from analysis.detection.detection import ChangePoint, ChangeState
from analysis.detection.effects import Effect
from analysis.detection.verdict import Outcome
from analysis.judging.incidents import Cause, Incident
from analysis.judging.judgement import JudgedSeries
from analysis.judging.remeasurement import RemeasurementQuestion, compare_command
from analysis.judging.suspects import traces
from analysis.judging.weight import Weight, find_interval, weigh
from perf.config.difference import Knob
from perf.model.results import SeriesKey, TrialHead
from perf.model.rules import TriageEntry
from reports.pages.releases.medians import variant_id
from reports.site.context import SiteContext
from reports.wording import links
from reports.wording.changes import explanation_words, name_beginning, name_gap
from reports.wording.echoes import split_changes
from reports.wording.incidents import triage_command
from reports.wording.reproducing import find_changed, find_suites
from reports.wording.wording import (
    at_least,
    night_name,
    number,
    percent,
    quantity,
    sentence,
    series_words,
)

_NO_BREAK = "\N{NO-BREAK SPACE}"
_MOST_COMMON = 2
_DIGEST = re.compile(r"[0-9a-f]{8,}")
_CAUSES = {
    Cause.DATABASE: "database",
    Cause.CONFIGURATION: "config change",
    Cause.TESTBED: "testbed",
    Cause.UNKNOWN: "cause unknown",
}
MOST_OTHERS = 6
"""Further series of an incident on the front page; its own page has them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLine:
    """One change of one series; `interval` is that of the change, None if its noise is not known."""

    change: ChangePoint
    weight: Weight
    interval: Effect | None

    @property
    def against_noise(self) -> str:
        """Write the change in multiples of the smallest visible one."""
        factor = self.weight.factor
        return "not known" if factor is None else f"{number(factor)}{_NO_BREAK}×"

    @property
    def visible(self) -> str:
        """Write the smallest visible change; empty where the noise is not known."""
        return "" if self.weight.visible is None else at_least(self.weight.visible)

    @property
    def is_size_open(self) -> bool:
        """Return whether a change is confirmed, but its interval holds none.

        The criteria hold both sides against one scatter, the interval each side by its own.
        """
        found = self.interval
        is_sure = self.change.state is ChangeState.CONFIRMED
        return is_sure and found is not None and found.low <= 0 <= found.high


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentLine:
    """One incident: its lead, the further series that moved with it, and where more is said.

    `others` are the first of `further` series; `links` have a name and a page each. `todo` says what to
    do next, `command` is what does it where there is one; `knobs` are settings that changed.
    """

    incident: Incident
    lead: ChangeLine
    others: tuple[ChangeLine, ...]
    further: int
    links: tuple[tuple[str, str], ...]
    todo: str
    command: str
    knobs: tuple[Knob, ...] = ()

    @property
    def owner(self) -> str:
        """Say whose it is."""
        entry = self.incident.triage or self.incident.came_back_after
        return entry.owner if entry else "nobody yet"

    @property
    def headline(self) -> str:
        """Say in one sentence what moved, how far, since when, and how sure that is."""
        change = self.lead.change
        key, is_sure = change.series.key, change.state is ChangeState.CONFIRMED
        values = f"from {number(change.before)} to {quantity(change.after, key.metric)}"
        return sentence(
            f"{key.system}: {series_words(key)} {'rose' if change.after > change.before else 'fell'} "
            f"{values} ({percent(change.relative_change)}) since {name_beginning(change)}, "
            f"{'confirmed' if is_sure else 'suspected'}"
        )

    @property
    def cause(self) -> str:
        """Say what made it; empty where that is not known."""
        incident = self.incident
        match incident.cause:
            case Cause.DATABASE:
                return sentence(f"attributed to the database, {name_gap(incident.lead)}")
            case Cause.CONFIGURATION:
                return sentence(f"attributed to a change of {_name_changed(incident, self.knobs)}")
            case Cause.TESTBED:
                return "Attributed to the testbed."
            case Cause.UNKNOWN:
                return ""

    @property
    def state(self) -> str:
        """Say in one line how sure it is, what made it, whether it is there, what was decided."""
        incident = self.incident
        return " · ".join(
            (
                "Confirmed" if incident.lead.state is ChangeState.CONFIRMED else "Suspected",
                _CAUSES[incident.cause],
                "fixed" if incident.mended_by else "still there",
                *((incident.triage.state.value,) if incident.triage else ()),
            )
        )


def _name_changed(incident: Incident, knobs: Sequence[Knob]) -> str:
    """Name what changed, with its values where a reader can tell them apart: hashes say nothing."""
    if knobs:
        one, *rest = knobs
        named = f"{one.steps[-1]}: {one.before or 'not set'} → {one.after or 'not set'}"
        return f"{named} and {len(rest):,} more" if rest else named
    first, *others = incident.explanations
    are_digests = any(_DIGEST.fullmatch(one) for one in (first.before, first.after))
    more = f" and {len(others):,} more" if others else ""
    return f"{first.name if are_digests else explanation_words(first)}{more}"


def say_common_moves(incidents: Iterable[Incident]) -> str:
    """Say in which of the newest nights several databases moved on one testbed; empty if in none."""
    moved: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for incident in incidents:
        for change in incident.changes if incident.is_news else ():
            key, after = change.series.key, change.first_after
            moved[after.night, key.testbed_class].add(key.system)
    nights = [
        (night_name(night), len(systems))
        for (night, _), systems in sorted(moved.items(), reverse=True)
        if night and len(systems) > 1
    ]
    if not nights:
        return ""
    (newest, many), *older = nights[:_MOST_COMMON]
    others = "".join(f", and {number} in {night}" for night, number in older)
    return f"{many} databases moved in the same night, {newest}{others}: look at the testbed first."


def rows_of_incidents(
    incidents: Sequence[Incident], scene: SiteContext, most: int
) -> tuple[IncidentLine, ...]:
    """Return the first incidents as somebody should look: confirmed ones, the heaviest lead first."""
    judged = {one.series.key: one for one in scene.judgement.series}
    ordered = sorted(
        incidents,
        key=lambda one: (
            one.lead.state is not ChangeState.CONFIRMED,
            _weigh(one.lead, judged).rank,
            one.name,
        ),
    )
    suites = find_suites(scene.heads.values(), scene.catalog, scene.nights)
    return tuple(_row(incident, judged, scene, suites) for incident in ordered[:most])


def _weigh(change: ChangePoint, judged: Mapping[SeriesKey, JudgedSeries]) -> Weight:
    return weigh(change.relative_change, judged[change.series.key].detectable)


def _row(
    incident: Incident,
    judged: Mapping[SeriesKey, JudgedSeries],
    scene: SiteContext,
    suites: Mapping[str, str],
) -> IncidentLine:
    first: dict[SeriesKey, ChangePoint] = {}  # of each further series, as the incident orders them
    for change in split_changes(incident)[0]:
        first.setdefault(change.series.key, change)
    first.pop(incident.lead.series.key, None)
    todo, command = _tell_next(incident, scene, suites)
    settings = scene.settings_around(incident.lead)
    return IncidentLine(
        incident=incident,
        lead=_line(incident.lead, judged),
        others=tuple(_line(one, judged) for one in [*first.values()][:MOST_OTHERS]),
        further=len(first),
        links=tuple(_link(incident, scene)),
        todo=todo,
        command=command,
        knobs=tuple(knob for one in incident.explanations for knob in find_changed(one, settings)),
    )


def _line(change: ChangePoint, judged: Mapping[SeriesKey, JudgedSeries]) -> ChangeLine:
    own = judged[change.series.key]
    start = max((one.index for one in own.change_points if one.index < change.index), default=0)
    return ChangeLine(
        change=change,
        weight=_weigh(change, judged),
        interval=find_interval(change, change.index - start, own.noise),
    )


def _first_with_it(incident: Incident, scene: SiteContext) -> TrialHead:
    return scene.heads[incident.lead.first_after.trial]


def _link(incident: Incident, scene: SiteContext) -> Iterator[tuple[str, str]]:
    """Link what says more: the incident, the release, what took turns, what looked for the release."""
    yield "Incident", links.incident_page(incident.name)
    after = _first_with_it(incident, scene)
    release = after.release
    yield f"Release {release.version}", links.release_page(release.system, release.version)
    sides = [
        variant_id(one.release.system, one.release.version, one.config.name, one.config.sha256)
        for one in (scene.heads[incident.lead.last_before.trial], after)
    ]
    if sides[0] != sides[1]:
        yield "Compare", f"{links.COMPARE_PAGE}#a={sides[0]}&b={sides[1]}"
    compared = dict.fromkeys(reply.answer.comparison for _, reply in incident.replies)
    for place, name in enumerate(compared, start=1):
        title = f"Comparison {place}" if len(compared) > 1 else "Comparison"
        yield title, links.comparison_page(name)
    asked = RemeasurementQuestion(changes=incident.changes)
    for record in scene.bisections:
        if traces(record, asked, after.experiment):
            yield "Bisection", links.bisection_page(record.id)


def _tell_next(incident: Incident, scene: SiteContext, suites: Mapping[str, str]) -> tuple[str, str]:
    """Say what to do next, and give the command that does it, if one does."""
    lead = incident.lead
    if incident.triage:
        return _tell_decided(incident.triage), ""
    if incident.question:
        first = _first_with_it(incident, scene)
        suite = suites[first.experiment]
        return (
            "Make sure: an interleaved comparison on the same hosts answers sooner than nights.",
            compare_command(incident.question, suite, first.experiment),
        )
    if incident.cause is Cause.TESTBED:
        return "Look at the testbed first: what watches it moved, too.", ""
    if lead.state is ChangeState.PROVISIONAL:
        return "Wait for the next nights: nothing but more points can tell.", ""
    if lead.outcome is Outcome.IMPROVED:
        return (
            "Nothing has to be done. If it was meant, write that down:",
            triage_command(incident.name, "expected"),
        )
    back = incident.came_back_after
    text = (
        f"It was fixed and came back: tell {back.owner}, and write down what was decided:"
        if back
        else "Open the incident, find an owner, and write down what was decided:"
    )
    return text, triage_command(incident.name)


def _tell_decided(entry: TriageEntry) -> str:
    until = f" until {entry.expires:%Y-%m-%d}" if entry.expires else ""
    return f"Nothing: {entry.state} by {entry.owner}{until}."

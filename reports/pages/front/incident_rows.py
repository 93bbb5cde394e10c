"""Incidents as rows of the front page: what changed, how sure, whose it is, and what to do next."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from analysis.bisecting.record import BisectionRecord
from analysis.detection.detection import ChangePoint, ChangeState
from analysis.detection.effects import Effect
from analysis.detection.verdict import Outcome
from analysis.judging.incidents import Cause, Incident
from analysis.judging.judgement import JudgedSeries
from analysis.judging.remeasurement import RemeasurementQuestion, compare_command
from analysis.judging.suspects import traces
from analysis.judging.weight import Weight, find_interval, weigh
from perf.model.results import SeriesKey, TrialHead, TrialId
from perf.model.rules import TriageEntry
from reports.pages.releases.medians import variant_id
from reports.wording import links
from reports.wording.incidents import triage_command, view_badges
from reports.wording.wording import Badge, count

_MOST_OTHERS = 6
"""Further series of an incident on the front page; its own page has them all."""
NOBODY = "nobody yet"


@dataclass(frozen=True, slots=True)
class Link:
    """Where more is said."""

    name: str
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLine:
    """One change of one series; `interval` is that of the change, None if its noise is not known."""

    change: ChangePoint
    weight: Weight
    interval: Effect | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentLine:
    """One incident: its lead, and the further series that moved with it.

    `todo` says what to do next, `command` is what does it where there is one; `rest` counts the
    further series that are not listed.
    """

    name: str
    page: str
    lead: ChangeLine
    badges: tuple[Badge, ...]
    owner: str
    links: tuple[Link, ...]
    todo: str
    command: str
    others: tuple[ChangeLine, ...]
    others_title: str
    rest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentLineContext:
    """What rows of incidents are made of beside them.

    `judged` holds all series, `heads` all trials, `suites` gives a suite of each experiment, and
    `bisections` are all that were begun.
    """

    judged: Mapping[SeriesKey, JudgedSeries]
    heads: Mapping[TrialId, TrialHead]
    suites: Mapping[str, str]
    bisections: Sequence[BisectionRecord] = ()


def order_by_weight(
    incidents: Iterable[Incident], judged: Mapping[SeriesKey, JudgedSeries]
) -> tuple[Incident, ...]:
    """Put incidents into the order in which somebody should look at them, the heaviest lead first."""
    return tuple(sorted(incidents, key=lambda one: (_weigh(one.lead, judged).rank, one.name)))


def _weigh(change: ChangePoint, judged: Mapping[SeriesKey, JudgedSeries]) -> Weight:
    return weigh(change.relative_change, judged[change.series.key].detectable)


def view_rows(incidents: Iterable[Incident], around: IncidentLineContext) -> tuple[IncidentLine, ...]:
    """Put incidents into rows, in the order in which they come."""
    return tuple(_view_row(incident, around) for incident in incidents)


def _view_row(incident: Incident, around: IncidentLineContext) -> IncidentLine:
    lead = incident.lead
    others = _find_others(incident)
    listed = tuple(_view_line(one, around.judged) for one in others[:_MOST_OTHERS])
    todo, command = _tell_next(incident, around)
    return IncidentLine(
        name=incident.name,
        page=links.incident_page(incident.name),
        lead=_view_line(lead, around.judged),
        badges=view_badges(incident),
        owner=_own(incident),
        links=tuple(_link(incident, around)),
        todo=todo,
        command=command,
        others=listed,
        others_title=f"{count(len(others), 'further series', 'further series')} moved with it",
        rest=f"and {len(others) - len(listed):,} more" if len(others) > len(listed) else "",
    )


def _experiment_of(incident: Incident, around: IncidentLineContext) -> str:
    return around.heads[incident.lead.first_after.trial].experiment


def _find_others(incident: Incident) -> list[ChangePoint]:
    """Give one change of each further series, as the incident orders them."""
    first: dict[SeriesKey, ChangePoint] = {}
    for change in incident.changes:
        first.setdefault(change.series.key, change)
    first.pop(incident.lead.series.key, None)
    return list(first.values())


def _view_line(change: ChangePoint, judged: Mapping[SeriesKey, JudgedSeries]) -> ChangeLine:
    own = judged[change.series.key]
    start = max((one.index for one in own.change_points if one.index < change.index), default=0)
    return ChangeLine(
        change=change,
        weight=_weigh(change, judged),
        interval=find_interval(change, change.index - start, own.noise),
    )


def _own(incident: Incident) -> str:
    entry = incident.triage or incident.came_back_after
    return entry.owner if entry else NOBODY


def _link(incident: Incident, around: IncidentLineContext) -> Iterator[Link]:
    """Link what says more: the incident, what took turns, what looked for the release."""
    yield Link("Incident", links.incident_page(incident.name))
    yield from _link_releases(incident.lead, around.heads)
    compared = dict.fromkeys(reply.answer.comparison for _, reply in incident.replies)
    for number_of, name in enumerate(compared, start=1):
        yield Link(
            f"Comparison {number_of}" if len(compared) > 1 else "Comparison",
            links.comparison_page(name),
        )
    asked, experiment = (
        RemeasurementQuestion(changes=incident.changes),
        _experiment_of(incident, around),
    )
    for record in around.bisections:
        if traces(record, asked, experiment):
            yield Link("Bisection", links.bisection_page(record.id))


def _link_releases(change: ChangePoint, heads: Mapping[TrialId, TrialHead]) -> Iterator[Link]:
    """Link the release at which it changed, and both sides of the change beside each other."""
    before, after = (heads[one.trial] for one in (change.last_before, change.first_after))
    release = after.release
    yield Link(f"Release {release.version}", links.release_page(release.system, release.version))
    sides = [
        variant_id(one.release.system, one.release.version, one.config.name, one.config.sha256)
        for one in (before, after)
    ]
    if sides[0] != sides[1]:
        yield Link("Compare", f"{links.COMPARE_PAGE}#a={sides[0]}&b={sides[1]}")


def _tell_next(incident: Incident, around: IncidentLineContext) -> tuple[str, str]:
    """Say what to do next, and give the command that does it, if one does."""
    lead = incident.lead
    if incident.triage:
        return _tell_decided(incident.triage), ""
    if incident.question:
        experiment = _experiment_of(incident, around)
        suite = around.suites.get(experiment, "")
        return (
            "Make sure: both releases in turns on the same hosts tell sooner than further nights.",
            compare_command(incident.question, suite, experiment),
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

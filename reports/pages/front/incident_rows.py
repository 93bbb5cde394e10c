"""Incidents as rows of the front page: what changed, how sure, whose it is, and what to do next."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from analysis.detection.detection import ChangePoint, ChangeState
from analysis.detection.effects import Effect
from analysis.judging.echoes import split_changes
from analysis.judging.incidents import Cause, Incident
from analysis.judging.judgement import JudgedSeries
from analysis.judging.rank_score import RankScore, find_interval, weigh
from analysis.judging.remeasurement import RemeasurementQuestion
from analysis.judging.suspected_changes import traces
from analysis.orchestration.setting_words import ChangedSettings
from perf.model.results import SeriesKey, TrialHead
from perf.model.sources import compare_commits
from reports.pages.releases.medians import variant_id
from reports.site.context import SiteContext
from reports.wording import links
from reports.wording.advice import Step, advise
from reports.wording.changes import name_gap, say_explanation
from reports.wording.headline import say_headline
from reports.wording.incidents import say_state
from reports.wording.reproducing import Contents, find_suites, read_contents
from reports.wording.wording import (
    at_least,
    number,
    sentence,
)

_NO_BREAK = "\N{NO-BREAK SPACE}"
MOST_OTHERS = 6
"""Further series of an incident on the front page; its own page has them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLine:
    """One change of one series; `interval` is that of the change, None if its noise is not known."""

    change: ChangePoint
    weight: RankScore
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

    `others` are the first of `further` series; `links` have a name and a page each. `steps` say
    what to do next, `headline` what moved and how sure that is, `state` how the incident stands;
    `settings` are those that changed.
    """

    incident: Incident
    lead: ChangeLine
    others: tuple[ChangeLine, ...]
    further: int
    links: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]
    headline: str
    state: str
    settings: ChangedSettings

    @property
    def owner(self) -> str:
        """Say whose it is."""
        entry = self.incident.triage or self.incident.came_back_after
        return entry.owner if entry else "nobody yet"

    @property
    def cause(self) -> str:
        """Describe what made it; empty where that is not known."""
        incident = self.incident
        match incident.cause:
            case Cause.DATABASE:
                return sentence(f"attributed to the database, {name_gap(incident.lead)}")
            case Cause.CONFIGURATION:
                first, *others = incident.explanations
                more = f" and {len(others):,} more" if others else ""
                return sentence(f"{say_explanation(first, incident, self.settings)}{more}")
            case Cause.TESTBED:
                return "Attributed to the testbed."
            case Cause.UNKNOWN:
                return ""


def rows_of_incidents(
    incidents: Sequence[Incident], context: SiteContext, most: int
) -> tuple[IncidentLine, ...]:
    """Return the first incidents as somebody should look: confirmed ones, the heaviest lead first."""
    judged = {one.series.key: one for one in context.judgement.series}
    ordered = sorted(
        incidents,
        key=lambda one: (
            one.lead.state is not ChangeState.CONFIRMED,
            _weigh(one.lead, judged).rank,
            one.name,
        ),
    )
    suites = find_suites(context.heads.values(), context.catalog, context.nights)
    contents = read_contents(context.catalog)
    return tuple(_row(incident, judged, context, suites, contents) for incident in ordered[:most])


def _weigh(change: ChangePoint, judged: Mapping[SeriesKey, JudgedSeries]) -> RankScore:
    return weigh(change.relative_change, judged[change.series.key].detectable)


def _row(
    incident: Incident,
    judged: Mapping[SeriesKey, JudgedSeries],
    context: SiteContext,
    suites: Mapping[str, str],
    contents: Contents,
) -> IncidentLine:
    first: dict[SeriesKey, ChangePoint] = {}  # of each further series, as the incident orders them
    for change in split_changes(incident)[0]:
        first.setdefault(change.series.key, change)
    first.pop(incident.lead.series.key, None)
    first_with_it = _first_with_it(incident, context)
    return IncidentLine(
        incident=incident,
        lead=_line(incident.lead, judged),
        others=tuple(_line(one, judged) for one in [*first.values()][:MOST_OTHERS]),
        further=len(first),
        links=tuple(_link(incident, context)),
        steps=advise(incident, first_with_it, suites[first_with_it.experiment], contents),
        headline=say_headline(incident),
        state=say_state(incident, context.heads),
        settings=context.settings,
    )


def _line(change: ChangePoint, judged: Mapping[SeriesKey, JudgedSeries]) -> ChangeLine:
    own = judged[change.series.key]
    start = max((one.index for one in own.change_points if one.index < change.index), default=0)
    return ChangeLine(
        change=change,
        weight=_weigh(change, judged),
        interval=find_interval(change, change.index - start, own.noise),
    )


def _first_with_it(incident: Incident, context: SiteContext) -> TrialHead:
    return context.heads[incident.lead.first_after.trial]


def _link(incident: Incident, context: SiteContext) -> Iterator[tuple[str, str]]:
    """Link what says more: the incident, the release, what took turns, what looked for the release."""
    yield "Incident", links.incident_page(incident.name)
    before, after = context.heads[incident.lead.last_before.trial], _first_with_it(incident, context)
    release = after.release
    yield f"Release {release.version}", links.release_page(release.system, release.version)
    sides = [
        variant_id(one.release.system, one.release.version, one.config.name, one.config.sha256)
        for one in (before, after)
    ]
    if url := compare_commits(context.catalog.sources.values(), before.release, release):
        yield "Commits", url
    if sides[0] != sides[1]:
        yield "Compare", f"{links.COMPARE_PAGE}#a={sides[0]}&b={sides[1]}"
    compared = dict.fromkeys(reply.answer.comparison for _, reply in incident.replies)
    for place, name in enumerate(compared, start=1):
        title = f"Comparison {place}" if len(compared) > 1 else "Comparison"
        yield title, links.comparison_page(name)
    asked = RemeasurementQuestion(changes=incident.changes)
    for record in context.bisections:
        if traces(record, asked, after.experiment):
            yield "Bisection", links.bisection_page(record.id)

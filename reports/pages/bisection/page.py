"""A page for each bisection."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from analysis.bisecting.description import chances_of, cost, lesson, rest_of
from analysis.bisecting.probing import ReleaseStatus
from analysis.bisecting.record import BisectionRecord
from analysis.bisecting.words import say_chance
from analysis.comparing.blocks import measure
from analysis.comparing.description import describe_why
from analysis.comparing.profiles import ProfileComparison
from analysis.comparing.results import ComparisonResult
from analysis.judging.incidents import Incident
from analysis.judging.remeasurement import RemeasurementQuestion
from analysis.judging.suspected_changes import traces
from reports.pages.bisection.view import draw_probes, view_bisection
from reports.site.context import SiteContext
from reports.site.rendering import render
from reports.site.writing import Batch, SiteFile, batch_of
from reports.wording.changes import name_incident
from reports.wording.markdown import clean
from reports.wording.measures import explains
from reports.wording.wording import Badge

_STANDINGS = {
    None: Badge(kind="calm", symbol="◎", word="The bad end"),
    ReleaseStatus.GOOD: Badge(kind="good", symbol="✓", word="Before the change"),
    ReleaseStatus.BAD: Badge(kind="bad", symbol="✕", word="Has the change"),
    ReleaseStatus.BETWEEN: Badge(kind="unsure", symbol="≈", word="Between"),
    ReleaseStatus.OPPOSITE: Badge(kind="unsure", symbol="↔", word="The other way"),
    ReleaseStatus.UNDECIDED: Badge(kind="unsure", symbol="?", word="Cannot tell"),
    ReleaseStatus.SKIPPED: Badge(kind="unsure", symbol="!", word="Skipped"),
}


def batches(context: SiteContext) -> Iterator[Batch]:
    """Yield the pages of all bisections."""
    comparisons = {one.id: one for one in context.comparisons}
    for record in context.bisections:
        asked = [one for one in context.judgement.incidents if _is_about(record, one, context)]
        profiled = [one for one in context.profiles if _shows_culprit(one, record)]
        yield batch_of(render_bisection(record, asked, comparisons, profiled))


def render_bisection(
    record: BisectionRecord,
    incidents: Iterable[Incident] = (),
    comparisons: Mapping[str, ComparisonResult | None] | None = None,
    profiled: Sequence[ProfileComparison] = (),
) -> SiteFile:
    """Return the page of a bisection; its trials are on the pages of its comparisons.

    `incidents` are those whose origin it looked for, `comparisons` those that have a page, by name;
    None means all of them. `profiled` are profiles of the release that it named and the one before it.
    """
    view = view_bisection(record)
    return render(
        "bisection.html",
        view.page,
        record=record,
        view=view,
        incidents=incidents,
        name_incident=name_incident,
        measure=measure(record.measure),
        comparisons={one.comparison for one in record.probes} if comparisons is None else comparisons,
        why=_say_why(record, comparisons or {}),
        chart=draw_probes(record),
        standings=_STANDINGS,
        lesson=lesson,
        chances=chances_of(record),
        rest=rest_of(record),
        say_chance=say_chance,
        cost=cost(record),
        profiled=profiled,
        explaining=f"knickpoint explain {record.id}" if record.culprit else "",
    )


def _is_about(record: BisectionRecord, incident: Incident, context: SiteContext) -> bool:
    experiment = context.heads[incident.lead.first_after.trial].experiment
    return traces(record, RemeasurementQuestion(changes=incident.changes), experiment)


def _say_why(record: BisectionRecord, comparisons: Mapping[str, ComparisonResult | None]) -> str:
    """Return what the servers of the release that it named did differently from the known good end."""
    step = record.culprit
    probes = [one for one in record.probes if step and one.probed.release == step.release]
    found = [known for one in probes if (known := comparisons.get(one.comparison)) and explains(known)]
    return f"Against {record.good.version}, {clean(describe_why(found[-1]))}" if found else ""


def _shows_culprit(profiled: ProfileComparison, record: BisectionRecord) -> bool:
    step = record.culprit
    return bool(step and profiled.compares(record.experiment, step.predecessor, step.release))

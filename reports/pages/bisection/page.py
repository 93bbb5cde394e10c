"""A page for each bisection."""

from collections.abc import Collection, Iterable, Iterator

from analysis.bisecting.record import BisectionRecord
from analysis.judging.incidents import Incident
from analysis.judging.remeasurement import RemeasurementQuestion
from analysis.judging.suspects import traces
from reports.pages.bisection.view import view_bisection
from reports.site.context import SiteContext
from reports.site.rendering import render
from reports.site.writing import Batch, SiteFile, batch_of


def batches(scene: SiteContext) -> Iterator[Batch]:
    """Give the pages of all bisections."""
    comparisons = {one.id for one in scene.comparisons}
    for record in scene.bisections:
        asked = [one for one in scene.judgement.incidents if _is_about(record, one, scene)]
        yield batch_of(render_bisection(record, asked, comparisons))


def render_bisection(
    record: BisectionRecord,
    incidents: Iterable[Incident] = (),
    comparisons: Collection[str] | None = None,
) -> SiteFile:
    """Give the page of a bisection: `incidents` asked for it, `comparisons` have pages of their own."""
    page = view_bisection(record, incidents, comparisons)
    return render("bisection.html", page.page, page=page)


def _is_about(record: BisectionRecord, incident: Incident, scene: SiteContext) -> bool:
    experiment = scene.heads[incident.lead.first_after.trial].experiment
    return traces(record, RemeasurementQuestion(changes=incident.changes), experiment)

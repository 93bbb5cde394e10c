"""A page for each incident."""

from collections.abc import Iterator

from reports.pages.incident.view import view_incident
from reports.site.context import SiteContext
from reports.site.rendering import render
from reports.site.writing import Batch, batch_of
from reports.wording.reproducing import find_suite, read_contents


def batches(scene: SiteContext) -> Iterator[Batch]:
    """Give the pages of all incidents."""
    judged = {one.series.key: one for one in (*scene.judgement.series, *scene.judgement.watched)}
    latest = {head.experiment: head for head in scene.heads.values()}
    suites = {name: find_suite(head, scene.catalog, scene.nights) for name, head in latest.items()}
    contents = read_contents(scene.catalog)
    for incident in scene.judgement.incidents:
        page = view_incident(
            incident,
            judged,
            scene.heads,
            scene.caveats,
            suites=suites,
            bisections=scene.bisections,
            contents=contents,
        )
        yield batch_of(render("incident.html", page.page, page=page))

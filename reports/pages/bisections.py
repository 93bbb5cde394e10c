"""A page for each bisection."""

from collections.abc import Iterator

from analysis.bisecting.record import BisectionRecord
from reports.rendering import render
from reports.scene import Scene
from reports.site import Batch, SiteFile, batch_of
from reports.view.bisection import view_bisection


def batches(scene: Scene) -> Iterator[Batch]:
    """Give the pages of all bisections."""
    yield batch_of(*map(render_bisection, scene.bisections))


def render_bisection(record: BisectionRecord) -> SiteFile:
    """Give the page of a bisection."""
    page = view_bisection(record)
    return render("bisection.html", page.page, page=page)

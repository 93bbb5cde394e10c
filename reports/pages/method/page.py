"""The page of the method: what each number means."""

from collections.abc import Iterator

from reports.pages.method.view import view_method
from reports.site.context import SiteContext
from reports.site.rendering import render
from reports.site.writing import Batch, batch_of


def batches(scene: SiteContext) -> Iterator[Batch]:
    """Give the page of the method."""
    page = view_method(scene.catalog)
    yield batch_of(render("method.html", page.page, page=page))

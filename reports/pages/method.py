"""The page of the method: what each number means."""

from collections.abc import Iterator

from reports.rendering import render
from reports.scene import Scene
from reports.site import Batch, batch_of
from reports.view.method import view_method


def batches(scene: Scene) -> Iterator[Batch]:
    """Give the page of the method."""
    page = view_method(scene.catalog)
    yield batch_of(render("method.html", page.page, page=page))

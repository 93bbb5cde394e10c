"""The page of the testbed."""

from collections.abc import Iterator

from reports.rendering import render
from reports.scene import Scene
from reports.site import Batch, batch_of
from reports.view.testbed import view_testbed


def batches(scene: Scene) -> Iterator[Batch]:
    """Give the page of the testbed."""
    page = view_testbed(scene.judgement, scene.heads, scene.catalog.detection, scene.caveats)
    yield batch_of(render("testbed.html", page.page, page=page))

"""A page for each side-by-side comparison."""

from collections.abc import Collection, Iterator

from analysis.comparing.results import ComparisonResult
from reports.rendering import render
from reports.scene import Scene
from reports.site import Batch, SiteFile, batch_of
from reports.view.comparison import view_comparison


def batches(scene: Scene) -> Iterator[Batch]:
    """Give the pages of all comparisons."""
    yield batch_of(*(render_comparison(one, scene.heads) for one in scene.comparisons))


def render_comparison(result: ComparisonResult, known: Collection[str]) -> SiteFile:
    """Give the page of a comparison; `known` are the trials that have a page."""
    page = view_comparison(result, known)
    return render("comparison.html", page.page, page=page)

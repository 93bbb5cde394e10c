"""A page for each side-by-side comparison."""

from collections.abc import Collection, Iterator

from analysis.comparing.results import ComparisonResult
from reports.pages.comparison.view import view_comparison
from reports.site.context import SiteContext
from reports.site.rendering import render
from reports.site.writing import Batch, SiteFile, batch_of


def batches(scene: SiteContext) -> Iterator[Batch]:
    """Give the pages of all comparisons."""
    yield batch_of(*(render_comparison(one, scene.heads) for one in scene.comparisons))


def render_comparison(result: ComparisonResult, known: Collection[str]) -> SiteFile:
    """Give the page of a comparison; `known` are the trials that have a page."""
    page = view_comparison(result, known)
    return render("comparison.html", page.page, page=page)

"""The index of the search, which every page loads when somebody begins to search."""

from collections.abc import Iterator

from reports.pages.search.view import index_all
from reports.site.context import SiteContext
from reports.site.rendering import to_script
from reports.site.writing import Batch
from reports.wording.links import data_path

_NAME = "search"


def batches(scene: SiteContext) -> Iterator[Batch]:
    """Give the index."""
    yield Batch(
        {data_path(_NAME): ""},
        lambda _: (
            to_script(
                _NAME,
                index_all(scene.judgement, scene.heads, scene.comparisons, scene.bisections),
            ),
        ),
    )

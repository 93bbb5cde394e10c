"""The index of the search, which every page loads when somebody begins to search."""

from collections.abc import Iterator

from reports.rendering import to_script
from reports.scene import Scene
from reports.site import Batch
from reports.view.links import data_path
from reports.view.search import index_all

_NAME = "search"


def batches(scene: Scene) -> Iterator[Batch]:
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

"""The pages of the site, one module per kind: each gives its files in batches, made from a scene."""

from collections.abc import Iterator

from reports.pages import (
    bisections,
    comparisons,
    elsewhere,
    front,
    incidents,
    method,
    nights,
    releases,
    search,
    series,
    testbed,
    trials,
)
from reports.rendering import static_batch
from reports.scene import Scene
from reports.site import Batch

_KINDS = (
    incidents.batches,
    releases.batches,
    bisections.batches,
    comparisons.batches,
    testbed.batches,
    method.batches,
    series.batches,
    trials.batches,
    search.batches,
    elsewhere.batches,
    nights.batches,
    front.batches,
)


def all_batches(scene: Scene) -> Iterator[Batch]:
    """Give all files of a site."""
    yield static_batch()
    for batches in _KINDS:
        yield from batches(scene)

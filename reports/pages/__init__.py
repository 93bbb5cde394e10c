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
    reproductions,
    search,
    series,
    testbed,
    trials,
)
from reports.rendering import static_batch
from reports.scene import Scene
from reports.site import Batch, Part

_KINDS = (
    front.batches,
    testbed.batches,
    elsewhere.batches,
    releases.batches,
    search.batches,
    incidents.batches,
    bisections.batches,
    comparisons.batches,
    reproductions.batches,
    method.batches,
    series.batches,
    trials.batches,
    nights.batches,
)
"""What takes longest alone comes first, so that at the end no core waits for another."""


def all_batches(scene: Scene) -> Iterator[Batch | Part]:
    """Give all files of a site."""
    yield static_batch()
    for batches in _KINDS:
        yield from batches(scene)

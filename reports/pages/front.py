"""The front page."""

from collections.abc import Iterator

from reports.rendering import render
from reports.scene import Scene
from reports.site import FRONT, Batch, SiteFile
from reports.view.bisection import view_bisection
from reports.view.comparison import view_recent
from reports.view.index import find_tonight, view_index


def batches(scene: Scene) -> Iterator[Batch]:
    """Give the front page."""
    yield Batch({FRONT: ""}, lambda _: (_make(scene),))


def _make(scene: Scene) -> SiteFile:
    heads = tuple(scene.heads.values())
    tonight = [head.id for head in find_tonight(heads)]
    page = view_index(
        heads,
        scene.judgement,
        tonight=scene.archive.trials(tonight),
        nights=scene.nights,
        left_out=scene.left_out,
        triage=scene.catalog.triage,
        caveats=scene.caveats,
        now=scene.now,
        bisections=tuple(map(view_bisection, scene.bisections)),
        comparisons=view_recent(scene.comparisons),
    )
    return render("index.html", FRONT, page=page)

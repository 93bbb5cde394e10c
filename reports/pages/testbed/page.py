"""The page of the testbed, or of each of several with one that lists them."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from perf.model.results import TrialHead, TrialId, TrialStatus
from reports.pages.testbed.hosts import join_moves, list_kind
from reports.pages.testbed.view import Hosts, TestbedView, list_testbeds, view_testbed
from reports.site.context import SiteContext
from reports.site.rendering import render
from reports.site.writing import Batch, SiteFile
from reports.wording.links import TESTBED_PAGE, testbed_page


def batches(scene: SiteContext) -> Iterator[Batch]:
    """Give the page of the testbed; of several, one for each and one that lists them."""
    by_testbed: dict[str, dict[TrialId, TrialHead]] = {}
    for head in scene.heads.values():
        by_testbed.setdefault(head.testbed.name, {})[head.id] = head
    pages = [testbed_page(name) for name in by_testbed] if len(by_testbed) > 1 else []
    yield Batch(dict.fromkeys((TESTBED_PAGE, *pages), ""), lambda _: _make(scene, by_testbed))


def _make(
    scene: SiteContext, by_testbed: Mapping[str, Mapping[TrialId, TrialHead]]
) -> Iterator[SiteFile]:
    if len(by_testbed) < 2:  # noqa: PLR2004  one needs no list
        yield _render(_view(scene, scene.heads))
        return
    views = [_view(scene, heads, name) for name, heads in sorted(by_testbed.items())]
    rows = list_testbeds(views, scene.heads.values())
    whole = view_testbed(scene.judgement, scene.heads, scene.catalog.detection, scene.caveats)
    yield _render(replace(whole, testbeds=rows))
    yield from map(_render, views)


def _render(page: TestbedView) -> SiteFile:
    return render("testbed.html", page.page, page=page)


def _view(scene: SiteContext, heads: Mapping[TrialId, TrialHead], name: str = "") -> TestbedView:
    return view_testbed(
        scene.judgement,
        heads,
        scene.catalog.detection,
        scene.caveats,
        name=name,
        hosts=_read_hosts(scene, heads),
    )


def _read_hosts(scene: SiteContext, heads: Mapping[TrialId, TrialHead]) -> Hosts:
    """Read the hosts as the newest trial saw them that did not fail, and what changed before it."""
    order = tuple(heads)
    ended = [head.id for head in heads.values() if head.status is not TrialStatus.FAILED]
    if not ended:
        return Hosts()
    (newest,) = scene.archive.trials(ended[-1:])
    kind = list_kind(newest, heads)
    of_all, of_kind = scene.archive.moves([order, kind])
    return Hosts(newest=newest, moves=join_moves(of_all, order, of_kind, kind), order=order)

"""The front page, and the pages that have its lists whole."""

from collections.abc import Iterator, Sequence

from reports.pages.bisection.view import view_bisection
from reports.pages.comparison.view import view_list
from reports.pages.front.view import count_troubles_in_turns, list_troubles, view_index
from reports.site.context import SiteContext
from reports.site.publishing import FRONT
from reports.site.rendering import render
from reports.site.writing import Batch, SiteFile
from reports.wording import links
from reports.wording.attention import view_incidents
from reports.wording.series_list import group_series, view_all
from reports.wording.wording import count

_PAGES = (
    FRONT,
    links.SERIES_PAGE,
    links.INCIDENTS_PAGE,
    links.TROUBLES_PAGE,
    links.COMPARISONS_PAGE,
    links.BISECTIONS_PAGE,
)
_INCIDENTS = (
    "An incident is all changes of one cause, with their mending. Pale ones ask nothing of anybody: "
    "decided about, mended, imported in bulk, or too small to matter."
)


def batches(scene: SiteContext) -> Iterator[Batch]:
    """Give the front page and the lists; they share what is costly to put into words."""
    yield Batch(dict.fromkeys(_PAGES, ""), lambda _: _make(scene))


def _make(scene: SiteContext) -> Iterator[SiteFile]:
    groups = group_series(scene.judgement.series, scene.heads)
    page = view_index(scene, groups)
    yield render("index.html", FRONT, page=page)
    everything = view_all(groups, page.caveats)
    yield render("all_series.html", links.SERIES_PAGE, page=everything)
    for title, path, rows, lead, note in _list_kinds(scene):
        yield render(
            "all_of_a_kind.html",
            path,
            kind=path.removesuffix(".html"),
            title=title,
            lead=lead,
            note=note,
            rows=rows,
            caveats=page.caveats,
        )


def _list_kinds(scene: SiteContext) -> Iterator[tuple[str, str, Sequence[object], str, str]]:
    """Give title, path, rows, a first sentence and a note of each list."""
    incidents = view_incidents(scene.judgement.incidents, scene.heads)
    news = sum(incident.is_news for incident in scene.judgement.incidents)
    yield (
        "Incidents",
        links.INCIDENTS_PAGE,
        incidents,
        f"{count(len(incidents), 'incident')} in the whole history, {news:,} of them news.",
        _INCIDENTS,
    )
    troubles = list_troubles(scene)
    yield (
        "Failed and invalid trials",
        links.TROUBLES_PAGE,
        troubles,
        f"{count(len(troubles), 'trial')} of {len(scene.heads):,} gave no result.",
        "They are kept and shown, but never enter a series. Newest first. "
        + count_troubles_in_turns(scene),
    )
    comparisons = view_list(scene.comparisons)
    yield (
        "Comparisons",
        links.COMPARISONS_PAGE,
        comparisons,
        f"{count(len(comparisons), 'comparison')} of two sides that took turns on the same hosts.",
        "Newest first. Those of a bisection are on its page.",
    )
    yield (
        "Bisections",
        links.BISECTIONS_PAGE,
        tuple(map(view_bisection, reversed(scene.bisections))),
        f"{count(len(scene.bisections), 'bisection')}: which release brought a change?",
        "Releases in between were measured in turns with the one before the change. Newest first.",
    )

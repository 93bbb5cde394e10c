"""The page of the testbed, or of each of several with one that lists them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from analysis.judging.incidents import Cause
from analysis.judging.judgement import JudgedSeries
from perf.model.results import Purpose, TrialHead, TrialId, TrialStatus
from reports.pages.testbed.hosts import join_moves, list_facts, list_kind
from reports.pages.testbed.strips import level_words, list_canaries
from reports.pages.testbed.utilisation import list_days, say_use
from reports.pages.testbed.verdict import judge_hosts
from reports.pages.testbed.view import (
    is_most_informative,
    list_movements,
    step_badge,
    summarize_testbed,
)
from reports.site.context import SiteContext
from reports.site.rendering import render
from reports.site.svg import Scale
from reports.site.writing import Batch, SiteFile
from reports.wording.attention import view_incidents
from reports.wording.links import TESTBED_PAGE, testbed_page
from reports.wording.series_list import group_series
from reports.wording.wording import MOVED_BADGE, SHORT_BADGE, STILL_BADGE, Badge, join_caveats


def batches(context: SiteContext) -> Iterator[Batch]:
    """Yield the page of the testbed; of several, one for each and one that lists them."""
    by_testbed: dict[str, dict[TrialId, TrialHead]] = {}
    for head in context.heads.values():
        by_testbed.setdefault(head.testbed.name, {})[head.id] = head
    pages = [testbed_page(name) for name in by_testbed] if len(by_testbed) > 1 else []
    yield Batch(dict.fromkeys((TESTBED_PAGE, *pages), ""), lambda _: _make(context, by_testbed))


def _make(
    context: SiteContext, by_testbed: Mapping[str, Mapping[TrialId, TrialHead]]
) -> Iterator[SiteFile]:
    if len(by_testbed) < 2:  # noqa: PLR2004  one needs no list
        yield render_testbed(context, context.heads)
        return
    ordered = dict(sorted(by_testbed.items()))
    yield render_testbed(context, context.heads, testbeds=ordered)
    for name, heads in ordered.items():
        yield render_testbed(context, heads, name)


def render_testbed(
    context: SiteContext,
    heads: Mapping[TrialId, TrialHead],
    name: str = "",
    testbeds: Mapping[str, Mapping[TrialId, TrialHead]] | None = None,
) -> SiteFile:
    """Return the page of a testbed, or without a `name` that of all together.

    `heads` are the trials of the testbed, by start; what was measured elsewhere is left out. With
    `testbeds` the page lists these: what is said of one alone is on the page of that one.
    """
    settings = context.catalog.detection
    own = list(_list_own(context, heads))
    watching = {trial for one in own for trial in one.series.points.trials if trial in heads}
    of_testbed = [
        one
        for one in context.judgement.incidents
        if one.cause is Cause.TESTBED and one.lead.first_after.trial in heads
    ]
    first = [one for one in own if is_most_informative(one.series.key, settings)]
    others = [one for one in own if not is_most_informative(one.series.key, settings)]
    return render(
        "testbed.html",
        testbed_page(name),
        name=name,
        verdict=judge_hosts(heads.values(), own, settings),
        summary=summarize_testbed(replace(context.judgement, watched=tuple(own)), settings),
        testbeds=[
            (each, list(trials.values()), _describe_moved(context, trials))
            for each, trials in (testbeds or {}).items()
        ],
        incidents=view_incidents(of_testbed, heads, context.settings),
        groups=group_series(first, heads),
        others=group_series(others, heads),
        steps={one.series.key: step_badge(one, settings) for one in own},
        first_count=len(first),
        first_moved=sum(bool(one.change_points) for one in first),
        others_count=len(others),
        others_moved=sum(bool(one.change_points) for one in others),
        caveat=join_caveats({heads[trial].testbed.name for trial in watching}, context.caveats),
        **({} if testbeds else _show_alone(context, heads, own)),
    )


def _list_own(context: SiteContext, heads: Mapping[TrialId, TrialHead]) -> Iterator[JudgedSeries]:
    """Yield the watching series whose newest point is one of some trials; one without points is not."""
    for one in context.judgement.watched:
        if one.series.points and one.series.points[-1].trial in heads:
            yield one


def _describe_moved(context: SiteContext, heads: Mapping[TrialId, TrialHead]) -> Badge:
    """Describe in a word whether canaries and sentinels of a testbed were seen to move."""
    own = list(_list_own(context, heads))
    if any(list_movements(own)):
        return MOVED_BADGE
    is_watched = any(is_most_informative(one.series.key, context.catalog.detection) for one in own)
    return STILL_BADGE if is_watched else SHORT_BADGE


def _show_alone(
    context: SiteContext, heads: Mapping[TrialId, TrialHead], own: Iterable[JudgedSeries]
) -> dict[str, object]:
    """Return what is said of one testbed: its hosts, its canaries over time, how much it measured.

    The hosts are as the newest trial saw them that did not fail.
    """
    order = tuple(heads)
    ended = [head.id for head in heads.values() if head.status is not TrialStatus.FAILED]
    newest, facts = None, []
    if ended:
        (newest,) = context.archive.trials(ended[-1:])
        kind = list_kind(newest, heads)
        of_all, of_kind = context.archive.moves([order, kind])
        facts = list_facts(newest, join_moves(of_all, order, of_kind, kind), order, heads)
    own = list(own)
    measured = [head for head in heads.values() if head.purpose is not Purpose.IMPORTED]
    return {
        "canaries": list_canaries(own),
        "level_words": level_words,
        "moved": list(list_movements(own)),
        "newest": newest,
        "facts": [one for one in facts if one.has_changed],
        "steady_facts": [one for one in facts if not one.has_changed],
        "days": (days := list_days(measured)),
        "used": say_use(days),
        "measured": measured,
        "hour": Scale(0, 24, 0, 120),
    }

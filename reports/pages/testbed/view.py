"""What the testbed's page shows: canaries and sentinels, read by the test that judges all series."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from analysis.detection.noise import can_confirm
from analysis.judging.drift import is_canary
from analysis.judging.incidents import Cause
from analysis.judging.judgement import JudgedSeries, Judgement
from perf.model.results import Move, SeriesKey, Trial, TrialHead, TrialId
from perf.model.rules import Detection
from reports.pages.testbed.canaries import CanaryChart, view_canary_charts
from reports.pages.testbed.hosts import HostFact, view_hosts
from reports.pages.testbed.utilisation import UtilisationView, view_utilisation
from reports.wording import links
from reports.wording.attention import Attention, view_incidents
from reports.wording.changes import (
    TYPICAL,
    name_gap,
    name_watch,
    view_scatter,
    view_slopes,
)
from reports.wording.series_list import ExperimentGroup, group_series
from reports.wording.wording import (
    MOVED_BADGE,
    SHORT_BADGE,
    STILL_BADGE,
    Badge,
    count,
    join_caveats,
    moment,
    number,
    percent,
    quantity,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TestbedRow:
    """One testbed of several; `page` is its own."""

    __test__ = False
    name: str
    page: str
    trials: str
    last: str
    moved: Badge


@dataclass(frozen=True, slots=True, kw_only=True)
class MovementRow:
    """A step, a drift or a change of scatter of a canary or a sentinel; `page` is its series."""

    name: str
    page: str
    badge: Badge
    between: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """What is known of the hosts: the newest trial that read them, and what changed between trials.

    The places of `moves` are those in `order`, all trials of the testbed by start.
    """

    newest: Trial | None = None
    moves: tuple[Move, ...] = ()
    order: tuple[TrialId, ...] = ()


_NO_HOSTS = Hosts()


@dataclass(frozen=True, slots=True, kw_only=True)
class TestbedView:
    """All that the testbed's page shows: first what tells most, then all other quantities."""

    __test__ = False
    page: str
    name: str
    title: str
    summary: str
    testbeds: tuple[TestbedRow, ...]
    incidents: tuple[Attention, ...]
    canaries: tuple[CanaryChart, ...]
    moved: tuple[MovementRow, ...]
    hosts: tuple[HostFact, ...]
    hosts_of: str
    hosts_page: str
    utilisation: UtilisationView
    groups: tuple[ExperimentGroup, ...]
    others: tuple[ExperimentGroup, ...]
    steps: Mapping[SeriesKey, Badge]
    others_title: str
    caveat: str


def view_testbed(
    judgement: Judgement,
    trials: Mapping[TrialId, TrialHead],
    settings: Detection,
    caveats: Mapping[str, str],
    *,
    name: str = "",
    hosts: Hosts = _NO_HOSTS,
) -> TestbedView:
    """Put what watches a testbed into words; without a `name`, all of them together.

    `trials` are those of the testbed, by start; what was measured elsewhere is left out.
    """
    own = [one for one in judgement.watched if _is_measured_here(one, trials)]
    watching = {trial for one in own for trial in one.series.points.trials if trial in trials}
    of_testbed = [
        one
        for one in judgement.incidents
        if one.cause is Cause.TESTBED and one.lead.first_after.trial in trials
    ]
    telling = [one for one in own if _tells_most(one.series.key, settings)]
    others = [one for one in own if not _tells_most(one.series.key, settings)]
    newest = hosts.newest
    return TestbedView(
        page=links.testbed_page(name),
        name=name,
        title=f"The testbed {name}" if name else "The testbed",
        summary=summarize_testbed(replace(judgement, watched=tuple(own)), settings),
        testbeds=(),
        incidents=view_incidents(of_testbed, trials),
        canaries=view_canary_charts(own),
        moved=tuple(_list_movements(own)),
        hosts=view_hosts(newest, hosts.moves, hosts.order, trials),
        hosts_of=f"{newest.release.version}, {moment(newest.started_at).text}" if newest else "",
        hosts_page=links.trial_page(newest.id) if newest else "",
        utilisation=view_utilisation(trials.values()),
        groups=group_series(telling, trials),
        others=group_series(others, trials),
        steps={one.series.key: _badge(one, settings) for one in own},
        others_title=f"{count(len(others), 'further series', 'further series')} of the same trials, "
        f"a step in {sum(bool(one.change_points) for one in others):,} of them",
        caveat=join_caveats({trials[trial].testbed.name for trial in watching}, caveats),
    )


def list_testbeds(views: Iterable[TestbedView], trials: Iterable[TrialHead]) -> tuple[TestbedRow, ...]:
    """Give a line for each testbed of several, in the order of the views."""
    heads: dict[str, list[TrialHead]] = {}
    for head in trials:
        heads.setdefault(head.testbed.name, []).append(head)
    return tuple(
        TestbedRow(
            name=view.name,
            page=view.page,
            trials=f"{len(heads[view.name]):,}",
            last=moment(max(head.finished_at for head in heads[view.name])).text,
            moved=MOVED_BADGE if view.moved else STILL_BADGE if view.groups else SHORT_BADGE,
        )
        for view in views
    )


def _is_measured_here(judged: JudgedSeries, trials: Collection[TrialId]) -> bool:
    """Tell whether the newest point of a series is of this testbed; a series without points is not."""
    points = judged.series.points
    return bool(points) and points[-1].trial in trials


def _list_movements(watched: Iterable[JudgedSeries]) -> Iterator[MovementRow]:
    """List what the test saw in canaries and sentinels: steps, then drifts, then changes of scatter."""
    for one in watched:
        key = one.series.key
        name, page = name_watch(key), links.series_page(key)
        for change in one.change_points:
            yield MovementRow(
                name=name,
                page=page,
                badge=MOVED_BADGE,
                between=name_gap(change),
                text=f"{percent(change.relative_change)}, {change.state.value}: "
                f"{number(change.before)} → {quantity(change.after, key.metric)}",
            )
        for slope in view_slopes(one):
            yield MovementRow(
                name=name,
                page=page,
                badge=slope.badge,
                between=slope.between,
                text=f"{slope.change}: {slope.text}",
            )
        for spread in view_scatter(one):
            yield MovementRow(
                name=name,
                page=page,
                badge=spread.badge,
                between=spread.between,
                text=f"{spread.label}: {spread.text}",
            )


def _tells_most(key: SeriesKey, settings: Detection) -> bool:
    if is_canary(key):
        return key.statistic == TYPICAL
    return key.statistic in settings.judged.get(key.metric, ())


def _is_short(judged: JudgedSeries, settings: Detection) -> bool:
    """Tell whether a series has too few points to show any step, were it half way through."""
    points = len(judged.series.points)
    half = points // 2
    is_searched = judged.noise is not None
    return not judged.change_points and not (is_searched and can_confirm(half, points - half, settings))


def _badge(judged: JudgedSeries, settings: Detection) -> Badge:
    """Say whether a step was seen in a watching series, in place of a verdict."""
    if judged.change_points:
        return MOVED_BADGE
    return SHORT_BADGE if _is_short(judged, settings) else STILL_BADGE


def summarize_testbed(judgement: Judgement, settings: Detection) -> str:
    """Say how many series watch the testbed, and in how many of them a step was seen."""
    watched = judgement.watched
    if not watched:
        return "No canary or sentinel has been measured yet: nothing tells the testbed's changes apart."
    moved = sum(bool(one.change_points) for one in watched)
    short = sum(_is_short(one, settings) for one in watched)
    has = "has" if short == 1 else "have"
    return (
        f"{count(len(watched), 'series', 'series')} of canaries and sentinels watch the testbed; "
        f"a step was seen in {moved:,} of them"
        f"{f', and {short:,} {has} too few points to tell' if short else ''}."
    )

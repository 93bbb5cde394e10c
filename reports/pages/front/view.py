"""What the front page shows, in the order in which somebody reads it in the morning.

The verdict; what could not be measured; what needs attention; what got better; what moved without being
a change; how fresh everything is. All lists are short and lead to the page that has them whole, so that
the page stays small however long the history is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from analysis.detection.verdict import Outcome
from analysis.judging.incidents import Cause, Incident
from analysis.judging.judgement import tell_shortage
from analysis.judging.movers import Mover
from perf.model.results import TrialHead
from reports.pages.bisection.view import BisectionView, view_bisection
from reports.pages.comparison.view import view_list
from reports.pages.front.experiments import ExperimentLine, view_experiments
from reports.pages.front.freshness import (
    Freshness,
    find_longest_pause,
    start_nights,
    view_freshness,
    view_recording,
)
from reports.pages.front.incident_rows import (
    IncidentLine,
    IncidentLineContext,
    order_by_weight,
    view_rows,
)
from reports.pages.front.movers import find_movers
from reports.pages.front.verdict import choose_badge, tell_false_alarms, tell_verdict
from reports.pages.nights.view import (
    MeasuredNight,
    NightRow,
    NightTrialRow,
    find_tonight,
    group_nights,
    list_by_itself,
    view_trial_row,
)
from reports.pages.nights.view import view_rows as view_night_rows
from reports.pages.reproduction.view import ReproductionRow, list_reproductions
from reports.pages.testbed.view import summarize_testbed
from reports.site.context import SiteContext
from reports.wording import links
from reports.wording.attention import (
    Attention,
    LeftOut,
    is_trouble,
    view_beginnings,
    view_expired,
    view_incidents,
    view_left_out,
    view_missing,
    view_troubles,
    view_withdrawals,
)
from reports.wording.reproducing import find_suite
from reports.wording.sensitivity import summarize_sensitivity
from reports.wording.series_list import ExperimentGroup, experiment_of
from reports.wording.wording import Badge, Moment, caveat_words, count, duration, moment, sentence

MOST_ROWS = 8
"""Troubles or decisions in one list of the front page: what comes behind them must be seen, too."""
MOST_INCIDENTS = 15
"""That need attention; half as many that got better."""
MOST_EXPERIMENTS = 100
_MOMENT = timedelta(minutes=2)
MOST_RECENT = 5
"""Comparisons, bisections, troubles and nights on the front page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The first of many things: `rest` says how many more there are, `page` has them all."""

    rows: tuple[Attention, ...]
    rest: str = ""
    page: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedIncidents:
    """The first of many incidents: `rest` says how many more there are."""

    rows: tuple[IncidentLine, ...]
    rest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What the judgement of tonight says, and what people have to do with it.

    `attention` are incidents that are news and got worse, `improvements` those that got better, both
    the heaviest first; `reminders` are decisions that no longer hold, `decided` changes that are still
    there and that somebody has decided about, or that the testbed made; `beginnings` are workloads that
    were changed, so that their series begin anew.
    """

    shortage: str
    sensitivity: str
    false_alarms: str
    attention: ListedIncidents
    reminders: Listed
    improvements: ListedIncidents
    decided: Listed
    withdrawn: Listed
    beginnings: Listed
    movers: Sequence[tuple[Mover, Incident | None]]
    experiments: tuple[ExperimentLine, ...]
    experiments_count: int
    unfresh: str
    testbed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lists:
    """The newest of each kind; the counts are of all."""

    nights: tuple[NightRow, ...]
    nights_count: int
    troubles: tuple[NightTrialRow, ...]
    troubles_count: int
    comparisons: tuple[Attention, ...]
    comparisons_count: int
    bisections: tuple[BisectionView, ...]
    bisections_count: int
    reproductions: tuple[ReproductionRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexView:
    """All that the front page shows.

    `stale_after_s` lets the open page notice its own age; `recorded` says that its history ended.
    """

    built: Moment
    is_empty: bool
    verdict: Badge
    sentence: str
    newest: Moment | None
    freshness: str
    is_stale: bool
    stale_after_s: int
    recorded: str
    rhythm: str
    left_out: str
    unmeasured: Listed
    caveats: tuple[str, ...]
    news: News
    lists: Lists


def view_index(scene: SiteContext, groups: Sequence[ExperimentGroup]) -> IndexView:
    """Put a whole history into words, as of when the page is built; `groups` are of all series."""
    heads = _by_time(scene)
    by_itself, tonight = list_by_itself(heads), find_tonight(heads)
    recent = [one for one in by_itself if tonight and one.started_at >= tonight[0].started_at]
    nights = group_nights(heads, scene.nights)
    missing = view_missing(nights[-1].plan, scene.heads) if nights else ()
    limit = find_longest_pause(start_nights(by_itself).values())
    newest = max((head.finished_at for head in heads), default=None)
    age = scene.now - newest if newest else timedelta(0)
    return IndexView(
        built=moment(scene.now),
        is_empty=not heads,
        verdict=choose_badge(scene.judgement, is_empty=not heads),
        sentence=tell_verdict(scene.judgement, by_itself, recent, len(missing)) if heads else "",
        newest=moment(newest) if newest else None,
        freshness=_tell_age(age) if newest else "",
        is_stale=age > limit and not scene.is_recording,
        stale_after_s=int(limit.total_seconds()),
        recorded=f"A recorded history of {newest:%Y-%m-%d}: it does not grow."
        if newest and scene.is_recording
        else "",
        rhythm=f"By the rhythm of the nights so far, the next one is late after {duration(limit)}.",
        left_out=_count_left_out(scene.left_out),
        unmeasured=_list(
            (*view_left_out(scene.left_out), *view_troubles(recent), *missing),
            links.night_page(nights[-1].name) if nights else "",
            ", on the page of the night",
        ),
        caveats=_tell_caveats(heads, scene.caveats),
        news=_view_news(scene, by_itself, groups, tonight[0].night if tonight else ""),
        lists=_view_lists(scene, by_itself, nights),
    )


def list_troubles(scene: SiteContext) -> tuple[NightTrialRow, ...]:
    """Put all trials that gave no result into lines, the newest first, except those in turns."""
    troubles = (trial for trial in reversed(list_by_itself(_by_time(scene))) if is_trouble(trial))
    return tuple(map(view_trial_row, troubles))


def count_troubles_in_turns(scene: SiteContext) -> str:
    """Say how many trials that took turns gave no result; empty where none did."""
    heads = _by_time(scene)
    troubled = sum(map(is_trouble, heads)) - sum(map(is_trouble, list_by_itself(heads)))
    if not troubled:
        return ""
    be = "was" if troubled == 1 else "were"
    counted = count(troubled, "trial")
    return f"{counted} that took turns failed or {be} invalid as well; their comparison tells of them."


def _by_time(scene: SiteContext) -> tuple[TrialHead, ...]:
    return tuple(sorted(scene.heads.values(), key=lambda head: (head.started_at, head.id)))


def _view_news(
    scene: SiteContext, trials: Sequence[TrialHead], groups: Sequence[ExperimentGroup], night: str
) -> News:
    judgement, incidents = scene.judgement, scene.judgement.incidents
    news = [incident for incident in incidents if incident.is_news]
    worse = [one for one in news if one.lead.outcome is Outcome.REGRESSED]
    better = [one for one in news if one.lead.outcome is not Outcome.REGRESSED]
    around = _surround(news, scene)
    shortage = tell_shortage(judgement.series, scene.catalog.detection.minimum_points)
    freshness = view_freshness(
        trials, _list_planned(scene), scene.now, every_nights=_list_sentinels(scene)
    )
    if scene.is_recording:
        freshness = view_recording(freshness)
    watching = {experiment_of(judged, scene.heads) for judged in judgement.watched}
    experiments = view_experiments(groups, freshness, watching)
    return News(
        shortage=sentence(f"of these, {shortage}") if shortage else "",
        sensitivity=summarize_sensitivity(judgement.series) if judgement.series else "",
        false_alarms=tell_false_alarms(judgement),
        attention=_list_incidents(worse, around, MOST_INCIDENTS),
        reminders=_list(view_expired(scene.catalog.triage, scene.now.date())),
        improvements=_list_incidents(better, around, MOST_INCIDENTS // 2),
        decided=_list(
            view_incidents(filter(_is_decided, incidents), scene.heads), links.INCIDENTS_PAGE
        ),
        withdrawn=_list(view_withdrawals(judgement, scene.heads)),
        beginnings=_list(view_beginnings(judgement, find_tonight(trials))),
        movers=find_movers(judgement, night),
        experiments=experiments[:MOST_EXPERIMENTS],
        experiments_count=len(experiments),
        unfresh=_count_unfresh(freshness.values()),
        testbed=summarize_testbed(judgement, scene.catalog.detection),
    )


def _view_lists(
    scene: SiteContext, trials: Sequence[TrialHead], nights: Sequence[MeasuredNight[TrialHead]]
) -> Lists:
    rows = view_night_rows(nights, scene.judgement.series, scene.heads)
    troubled = [trial for trial in trials if is_trouble(trial)]
    comparisons = view_list(scene.comparisons)
    newest = scene.bisections[-MOST_RECENT:]
    return Lists(
        nights=tuple(reversed(rows[-MOST_RECENT:])),
        nights_count=len(rows),
        troubles=tuple(view_trial_row(trial) for trial in reversed(troubled[-MOST_RECENT:])),
        troubles_count=len(troubled),
        comparisons=comparisons[:MOST_RECENT],
        comparisons_count=len(comparisons),
        bisections=tuple(view_bisection(record) for record in reversed(newest)),
        bisections_count=len(scene.bisections),
        reproductions=list_reproductions(scene.catalog.reports, scene.heads.values()),
    )


def _surround(incidents: Iterable[Incident], scene: SiteContext) -> IncidentLineContext:
    first = {incident.lead.first_after.trial for incident in incidents}
    heads = [scene.heads[trial] for trial in first]
    return IncidentLineContext(
        judged={one.series.key: one for one in scene.judgement.series},
        heads=scene.heads,
        suites={head.experiment: find_suite(head, scene.catalog, scene.nights) for head in heads},
        bisections=scene.bisections,
    )


def _list(rows: Sequence[Attention], page: str = "", where: str = "") -> Listed:
    rest = len(rows) - MOST_ROWS
    return Listed(
        rows=tuple(rows[:MOST_ROWS]), rest=f"{rest:,} more{where}" if rest > 0 else "", page=page
    )


def _list_incidents(
    incidents: Sequence[Incident], around: IncidentLineContext, most: int
) -> ListedIncidents:
    ordered = order_by_weight(incidents, around.judged)
    rest = len(ordered) - most
    return ListedIncidents(
        rows=view_rows(ordered[:most], around),
        rest=f"{count(rest, 'lighter one')} more" if rest > 0 else "",
    )


def _is_decided(incident: Incident) -> bool:
    """Tell whether a change is still there, but was decided about or is the testbed's."""
    is_explained = incident.triage is not None or incident.cause is Cause.TESTBED
    return not incident.is_news and is_explained and not incident.mended_by


def _list_planned(scene: SiteContext) -> frozenset[str]:
    """Give the experiments of the newest night's plan."""
    newest = scene.nights[-1:]
    return frozenset(planned.experiment for plan in newest for planned in plan.trials)


def _list_sentinels(scene: SiteContext) -> Mapping[str, int]:
    """Give, by experiment, on which night of how many it is measured, where that is not every one."""
    return {
        experiment.name: experiment.sentinel_every_nights
        for suite in scene.catalog.suites.values()
        for experiment in suite.experiments
        if experiment.sentinel_every_nights
    }


def _count_unfresh(freshness: Iterable[Freshness]) -> str:
    unfresh = sum(not one.is_fresh for one in freshness)
    if not unfresh:
        return ""
    have = "has" if unfresh == 1 else "have"
    return (
        f"{count(unfresh, 'experiment')} {have} no fresh result: see that a suite still names "
        f"{'it' if unfresh == 1 else 'them'}, and that the nightly job still runs."
    )


def _tell_age(age: timedelta) -> str:
    return f"{duration(age)} before this page was built" if age >= _MOMENT else "as this page was built"


def _count_left_out(left_out: Sequence[LeftOut]) -> str:
    if not left_out:
        return ""
    be = "is" if len(left_out) == 1 else "are"
    return f"{count(len(left_out), 'bundle')} on disk {be} not in the history, so not judged either."


def _tell_caveats(trials: Sequence[TrialHead], caveats: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(
        f"{name}: {caveat}"
        for name in sorted({trial.testbed.name for trial in trials})
        if (caveat := caveat_words(name, caveats))
    )

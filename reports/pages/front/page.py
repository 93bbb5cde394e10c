"""The overview, in the order in which somebody reads it in the morning, and its lists whole.

The verdict with the worst incident and what the newest night brought; what needs attention; what got
better; trends at a glance; how fresh everything is. All lists are short and lead to the page that has
them whole, so that the page stays small however long the history is. What is empty is left out.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from analysis.detection.verdict import Outcome
from analysis.judging.description import echo_words
from analysis.judging.deviations import Deviation, find_deviation, rank
from analysis.judging.echoes import without_echoes
from analysis.judging.incidents import Cause, Incident
from analysis.judging.judgement import JudgedSeries, Judgement
from perf.model.results import TrialHead
from reports.pages.bisection.view import view_bisection
from reports.pages.comparison.view import view_list
from reports.pages.front.experiments import view_experiments
from reports.pages.front.first_look import (
    SideTable,
    choose_side_badge,
    find_release_comparisons,
    say_sides,
    view_comparison,
    view_first_look,
)
from reports.pages.front.freshness import (
    Freshness,
    find_longest_pause,
    start_nights,
    view_freshness,
    view_recording,
)
from reports.pages.front.incident_rows import rows_of_incidents
from reports.pages.front.trends import list_outcomes, sort_worst_first, view_trends
from reports.pages.front.verdict import (
    choose_badge,
    count_series,
    find_progress,
    has_no_verdict,
    say_false_alarms,
    say_troubles,
    say_verdict,
)
from reports.pages.nights.view import (
    MeasuredNight,
    count_barren,
    find_current_night,
    group_nights,
    list_by_itself,
    list_nights,
)
from reports.pages.reproduction.ratios import find_reproductions
from reports.pages.testbed.verdict import judge_hosts
from reports.site.context import SiteContext
from reports.site.publishing import FRONT
from reports.site.rendering import render
from reports.site.writing import Batch, SiteFile
from reports.wording import links
from reports.wording.attention import (
    is_trouble,
    view_expired,
    view_incidents,
    view_left_out,
    view_missing,
    view_series_resets,
    view_troubles,
    view_withdrawals,
)
from reports.wording.changes import by_change
from reports.wording.incidents import say_common_moves
from reports.wording.sensitivity import summarize_sensitivity
from reports.wording.series_list import ExperimentGroup, experiment_of, group_series
from reports.wording.wording import OUTCOME_BADGES, caveat_words, count

WHY_ECHOES = (
    "At saturation an operation is sent when it is meant to start, so its service time is its response "
    "time; at steady load the throughput is the load that was offered."
)
_PAGES = (
    FRONT,
    links.SERIES_PAGE,
    links.INCIDENTS_PAGE,
    links.TROUBLES_PAGE,
    links.COMPARISONS_PAGE,
    links.BISECTIONS_PAGE,
)
MOST_INCIDENTS = 15
"""That need attention; half as many that got better."""
_MOST_EXPERIMENTS = 100
_MOST_DEVIATIONS = 3
_LEAST_DEVIATIONS = 3.0
"""From here on a deviation is worth a look: less is noise on any night."""
_MOST_RECENT = 5
"""Comparisons, bisections, troubles and nights on the front page."""


def batches(context: SiteContext) -> Iterator[Batch]:
    """Yield the front page and the lists; they share what is costly to put into words."""
    yield Batch(dict.fromkeys(_PAGES, ""), lambda _: _make(context))


def _make(context: SiteContext) -> Iterator[SiteFile]:
    series = context.judgement.series
    own = without_echoes(series)
    groups = group_series(own, context.heads)
    yield render("index.html", FRONT, **show_front(context, own, groups))
    caveats = _describe_caveats(context)
    counted = {one.series.key for one in own}
    echoes = [one for one in series if one.series.key not in counted]
    yield render(
        "all_series.html", links.SERIES_PAGE, **show_all_series(groups, echoes), caveats=caveats
    )
    for title, path, rows, lead, note in _list_kinds(context):
        yield render(
            "all_of_a_kind.html",
            path,
            kind=path.removesuffix(".html"),
            title=title,
            lead=lead,
            note=note,
            rows=rows,
            caveats=caveats,
        )


def show_all_series(
    groups: Sequence[ExperimentGroup], echoes: Sequence[JudgedSeries] = ()
) -> dict[str, Any]:
    """Return what the list of all series shows: experiments and their series, the worst first.

    `echoes` are series that only repeat others, which are not counted with them.
    """
    # What series of an experiment have in common is said where it tells two groups of one name apart.
    named = Counter(group.name for group in groups)
    series = [judged for group in groups for judged in group.series]
    return {
        "groups": sort_worst_first(groups),
        "outcomes": [(OUTCOME_BADGES[outcome], many) for outcome, many in list_outcomes(series)],
        "series": len(series),
        "experiments": len(named),
        "ambiguous": {name for name, many in named.items() if many > 1},
        "echoes": echoes,
        "echo_words": echo_words(len(echoes)),
        "why_echoes": WHY_ECHOES,
    }


def _list_kinds(context: SiteContext) -> Iterator[tuple[str, str, Sequence[object], str, str]]:
    """Yield title, path, rows, a first sentence and a note of each list."""
    incidents = view_incidents(context.judgement.incidents, context.heads, context.settings)
    news = sum(incident.is_news for incident in context.judgement.incidents)
    common = say_common_moves(context.judgement.incidents)
    yield (
        "Incidents",
        links.INCIDENTS_PAGE,
        incidents,
        f"{count(len(incidents), 'incident')} so far, {news:,} of them open. {common}".rstrip()
        if incidents
        else "No incidents so far.",
        (
            "An incident is all changes of one cause, with what undid them. Greyed: nothing to do "
            "(decided, fixed, imported or too small)."
        ),
    )
    troubles = list_troubles(list_by_itself(tuple(context.heads.values())))
    yield (
        "Failed and invalid trials",
        links.TROUBLES_PAGE,
        troubles,
        f"{count(len(troubles), 'trial')} of {len(context.heads):,} gave no result.",
        "They are kept and shown, but never enter a series. Newest first. "
        + count_troubles_in_turns(tuple(context.heads.values())),
    )
    comparisons = view_list(context.comparisons)
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
        tuple(map(view_bisection, reversed(context.bisections))),
        f"{count(len(context.bisections), 'bisection')}: which release brought a change?",
        "Releases in between were interleaved with a known one. Newest first.",
    )


def show_front(
    context: SiteContext, series: Sequence[JudgedSeries], groups: Sequence[ExperimentGroup]
) -> dict[str, Any]:
    """Return what the front page shows, by the names of its template.

    `series` are all that do not only repeat others, `groups` are of them.
    `attention` are the incidents that are news and got worse, `improvements` those that got better,
    both the heaviest first; `reminders` are decisions that no longer hold, `decided` changes that are
    still there and that somebody has decided about, or that the testbed made; `series_resets` are
    workloads that were changed, so that their series begin anew.
    """
    heads, judgement = tuple(context.heads.values()), context.judgement
    by_itself = list_by_itself(heads)
    nights = group_nights(heads, context.nights)
    rows = list_nights(nights, series, context.heads)
    incidents = _show_incidents(context)
    top = next(iter(incidents["attention"]), None)
    first_look = _show_first_look(context, groups, nights)
    # While nights cannot tell, a comparison of the newest one is the verdict.
    is_open = judgement.outcome is Outcome.UNDECIDED and not top
    sides = first_look["sides"] if first_look["is_early"] or is_open else ()
    verdict = choose_badge(judgement, is_empty=not heads)
    early = say_verdict(judgement, top, by_itself) if heads else ""
    return {
        "built": context.now,
        "verdict": choose_side_badge(sides) or verdict,
        "top": top,
        "sentence": say_sides(sides) or early,
        "early": early,
        "counts": count_series(series),
        "echo_words": echo_words(len(judgement.series) - len(series)),
        "why_echoes": WHY_ECHOES,
        "tonight": rows[-1] if rows else None,
        "barren": count_barren(nights),
        "common_moves": say_common_moves(judgement.incidents),
        "is_recording": context.is_recording,
        "false_alarms": say_false_alarms(judgement),
        "sensitivity": summarize_sensitivity(series) if series else "",
        "left_out": view_left_out(context.left_out),
        "left_out_count": len(context.left_out),
        "reminders": view_expired(context.catalog.triage, context.now.date()),
        "series_resets": view_series_resets(judgement, find_current_night(by_itself)),
        "withdrawn": view_withdrawals(judgement, context.heads),
        "caveats": _describe_caveats(context),
        "trends": view_trends(groups),
        "nights": rows[: -_MOST_RECENT - 1 : -1],
        "nights_count": len(nights),
        "testbed": judge_hosts(
            context.heads.values(), judgement.watched, context.catalog.detection
        ).answer,
        **incidents,
        **_show_newest_night(context, by_itself, nights),
        "hints": judgement.hints,
        "deviations": _find_deviations(judgement, series, by_itself),
        **_show_freshness(context, groups, by_itself),
        **first_look,
        **_show_newest(context, by_itself),
    }


def _show_newest_night(
    context: SiteContext, trials: Sequence[TrialHead], nights: Sequence[MeasuredNight]
) -> dict[str, object]:
    """Return what of the newest night gave no result."""
    tonight = find_current_night(trials)
    recent = [one for one in trials if tonight and one.started_at >= tonight[0].started_at]
    missing = view_missing(nights[-1].plan, context.heads) if nights else ()
    return {
        "troubles_tonight": say_troubles(recent, len(missing)),
        "unmeasured": (*view_troubles(recent), *missing),
        "night_page": nights[-1].page if nights else "",
    }


def find_next_lateness(context: SiteContext) -> datetime | None:
    """Return when the next of what is fresh becomes late; None where nothing is fresh."""
    trials = list_by_itself(tuple(context.heads.values()))
    late = [one.late_from for one in _find_freshness(context, trials).values()]
    if newest := _find_newest_end(context):
        late.append(newest + find_longest_pause(start_nights(trials).values()))
    return min((one for one in late if one and one >= context.now), default=None)


def _find_newest_end(context: SiteContext) -> datetime | None:
    return max((head.finished_at for head in context.heads.values()), default=None)


def _find_freshness(context: SiteContext, trials: Sequence[TrialHead]) -> dict[str, Freshness]:
    freshness = view_freshness(
        trials, _list_planned(context), context.now, every_nights=_list_sentinels(context)
    )
    return view_recording(freshness) if context.is_recording else freshness


def _show_freshness(
    context: SiteContext, groups: Sequence[ExperimentGroup], trials: Sequence[TrialHead]
) -> dict[str, object]:
    """Return how old the newest trial is, over all and by experiment."""
    newest = _find_newest_end(context)
    freshness = _find_freshness(context, trials)
    watching = {experiment_of(judged, context.heads) for judged in context.judgement.watched}
    experiments = view_experiments(groups, freshness, watching)
    return {
        "newest": newest,
        "age": context.now - newest if newest else timedelta(0),
        "limit": find_longest_pause(start_nights(trials).values()),
        "experiments": experiments[:_MOST_EXPERIMENTS],
        "experiments_count": len(experiments),
        "unfresh": sum(not one.is_fresh for one in freshness.values()),
    }


def _show_first_look(
    context: SiteContext, groups: Sequence[ExperimentGroup], nights: Sequence[MeasuredNight]
) -> dict[str, Any]:
    """Return the releases of the newest night beside each other, and what comes next.

    Medians of one night stand there only until a first verdict, and where nothing was compared.
    """
    is_early = bool(context.heads) and has_no_verdict(context.judgement)
    since = nights[-1].began if nights else None
    sides = tuple(map(view_comparison, find_release_comparisons(context.comparisons, since)))
    if not sides and is_early and nights:
        sides = view_first_look(groups, nights[-1].name)
    suite = nights[-1].plan.suite if nights and nights[-1].plan else ""
    return {
        "sides": sides,
        "is_early": is_early,
        "progress": find_progress(context.judgement) if is_early and not context.is_recording else None,
        "next_night": shlex.join(("knickpoint", "nightly", *(("--suite", suite) if suite else ()))),
        "compare_now": _compare_now(sides[0], suite) if sides and is_early and suite else "",
    }


def _compare_now(side: SideTable, suite: str) -> str:
    """Return the command that compares two releases at once; empty where there is none to give."""
    if side.page or not side.before:
        return ""
    where = ("--suite", suite, "--experiment", side.experiment)
    return shlex.join(
        ("knickpoint", "compare", *where, "--baseline", side.before, "--candidate", side.after)
    )


def _show_incidents(context: SiteContext) -> dict[str, Any]:
    incidents = context.judgement.incidents
    news = [incident for incident in incidents if incident.is_news]
    worse = [one for one in news if one.lead.outcome is Outcome.REGRESSED]
    better = [one for one in news if one.lead.outcome is not Outcome.REGRESSED]
    return {
        "attention": rows_of_incidents(worse, context, MOST_INCIDENTS),
        "attention_count": len(worse),
        "improvements": rows_of_incidents(better, context, MOST_INCIDENTS // 2),
        "improvements_count": len(better),
        "decided": view_incidents(filter(_is_decided, incidents), context.heads, context.settings),
    }


def _show_newest(context: SiteContext, trials: Iterable[TrialHead]) -> dict[str, object]:
    """Return the newest of each kind beside the count of all."""
    troubles, comparisons = list_troubles(trials), view_list(context.comparisons)
    return {
        "comparisons": comparisons[:_MOST_RECENT],
        "comparisons_count": len(comparisons),
        "bisections": tuple(map(view_bisection, context.bisections[: -_MOST_RECENT - 1 : -1])),
        "bisections_count": len(context.bisections),
        "reproductions": find_reproductions(context.catalog.reports, context.heads.values()),
        "troubles": troubles[:_MOST_RECENT],
        "troubles_count": len(troubles),
    }


def list_troubles(trials: Iterable[TrialHead]) -> list[TrialHead]:
    """Return the trials that gave no result, the newest first; they come in the order of time."""
    return [trial for trial in trials if is_trouble(trial)][::-1]


def count_troubles_in_turns(heads: Sequence[TrialHead]) -> str:
    """Describe how many trials that took turns gave no result; empty where none did."""
    troubled = sum(map(is_trouble, heads)) - sum(map(is_trouble, list_by_itself(heads)))
    if not troubled:
        return ""
    be = "was" if troubled == 1 else "were"
    counted = count(troubled, "trial")
    return f"{counted} that took turns failed or {be} invalid as well; their comparison lists them."


def _is_decided(incident: Incident) -> bool:
    """Return whether a change is still there, but was decided about or is the testbed's."""
    is_explained = incident.triage is not None or incident.cause is Cause.TESTBED
    return not incident.is_news and is_explained and not incident.fixed_by


def _find_deviations(
    judgement: Judgement, series: Sequence[JudgedSeries], trials: Sequence[TrialHead]
) -> list[tuple[Deviation, Incident | None]]:
    """Return the largest deviations of the newest night, the furthest first, with their incidents."""
    tonight = find_current_night(trials)
    night = tonight[0].night if tonight else ""
    found = rank(
        (
            find_deviation(judged.series, judged.change_points, judged.newest_noise, night)
            for judged in series
        ),
        _MOST_DEVIATIONS,
    )
    found = tuple(one for one in found if one.deviations >= _LEAST_DEVIATIONS)
    reported = by_change(reversed(judgement.incidents))  # where two tell of a place, the first does
    return [
        (
            deviation,
            reported.get((deviation.series.key, deviation.series.points.index(deviation.point))),
        )
        for deviation in found
    ]


def _list_planned(context: SiteContext) -> frozenset[str]:
    """Return the experiments of the newest night's plan."""
    newest = context.nights[-1:]
    return frozenset(planned.experiment for plan in newest for planned in plan.trials)


def _list_sentinels(context: SiteContext) -> Mapping[str, int]:
    """Return, by experiment, on which night of how many it is measured, where that is not every one."""
    return {
        experiment.name: experiment.sentinel_every_nights
        for suite in context.catalog.suites.values()
        for experiment in suite.experiments
        if experiment.sentinel_every_nights
    }


def _describe_caveats(context: SiteContext) -> tuple[str, ...]:
    return tuple(
        f"{name}: {caveat}"
        for name in sorted({head.testbed.name for head in context.heads.values()})
        if (caveat := caveat_words(name, context.caveats))
    )

"""A page for each incident: what changed, how sure that is, which release it was, and what to do."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import isfinite
from typing import Any

from analysis.bisecting.bisection import Culprit
from analysis.bisecting.description import chances_of, rest_of
from analysis.bisecting.record import BisectionRecord
from analysis.bisecting.words import say_chance
from analysis.comparing.description import describe_why
from analysis.comparing.results import ComparisonResult
from analysis.detection.detection import ChangePoint
from analysis.detection.series import Point
from analysis.judging.description import echo_words
from analysis.judging.drift import WatchEvidence, WatchState, is_canary
from analysis.judging.echoes import split_changes
from analysis.judging.incidents import Cause, Incident
from analysis.judging.judgement import JudgedSeries
from analysis.judging.remeasurement import CONFIG, RemeasurementQuestion, compare_command
from analysis.judging.suspected_changes import traces
from analysis.orchestration.setting_words import NO_SETTINGS, ChangedSettings
from perf.config.difference import Knob
from perf.model.results import SeriesKey, TrialHead, TrialId
from perf.model.rules import Detection
from reports.pages.incident.explaining import explain_otherwise
from reports.pages.incident.story import describe_story, say_gap
from reports.site.context import SiteContext
from reports.site.rendering import render
from reports.site.svg import Scale, fit
from reports.site.writing import Batch, LazyBatches, batch_of
from reports.wording.advice import advise, compare_settings, say_question
from reports.wording.changes import (
    count_silent,
    say_probability,
    triage_words,
    view_change_briefly,
)
from reports.wording.incidents import (
    describe_missing,
    describe_movement,
    say_common_moves,
    triage_command,
    view_state,
)
from reports.wording.links import incident_page
from reports.wording.markdown import clean
from reports.wording.measures import explains
from reports.wording.reproducing import (
    NOTHING_KNOWN,
    Contents,
    find_suites,
    list_changed,
    read_contents,
    view_reproduction,
)
from reports.wording.sensitivity import view_sensitivity
from reports.wording.wording import (
    Badge,
    count,
    direction_words,
    heading,
    join_caveats,
    night_words,
    number,
    percent,
    probability,
    sentence,
    series_words,
    unit_words,
)

_MOST_CHANCES = 5
_NO_SUITES: Mapping[str, str] = {}
_WIDTH, _HEIGHT, _MARGIN = 900.0, 240.0, 14.0
_AROUND = 40
"""Points on each side of the change: more would be dust, and the series page has them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeChart:
    """What is drawn of the points `first` to `last`, by their numbers from 0 on, and where.

    A still picture, so that the page shows its evidence where no script runs, and in print; the page of
    the series has the chart that can be zoomed. `levels` are the means between neighbouring
    changes, each from one number to another.
    """

    x: Scale
    y: Scale
    width: float
    height: float
    first: int
    last: int
    points: tuple[tuple[int, Point], ...]
    levels: tuple[tuple[int, int, float], ...]


def batches(context: SiteContext) -> Iterator[LazyBatches]:
    """Yield the pages of all incidents."""
    judged = {one.series.key: one for one in (*context.judgement.series, *context.judgement.watched)}
    suites = find_suites(context.heads.values(), context.catalog, context.nights)
    contents = read_contents(context.catalog)
    incidents = context.judgement.incidents

    def show(incident: Incident, before: str, after: str) -> Iterator[Batch]:
        shown = show_incident(
            incident,
            judged,
            context.heads,
            context.caveats,
            suites=suites,
            bisections=context.bisections,
            comparisons=context.comparisons,
            contents=contents,
            settings=context.settings,
            common=say_common_moves(incidents, incident),
            rules=context.catalog.detection,
        )
        first, last = incident.lead.last_before.release, incident.lead.first_after.release
        steps = [record.culprit for record, *_ in shown["origins"] if record.culprit]
        pairs = [(first, last), *((step.predecessor, step.release) for step in steps)]
        profiled = [
            one
            for one in context.profiles
            if any(one.compares(shown["experiment"], *pair) for pair in pairs)
        ]
        yield batch_of(
            render(
                "incident.html",
                incident_page(incident.name),
                **shown | {"before": before, "after": after, "profiled": profiled},
            )
        )

    pages = ["", *(incident_page(one.name) for one in incidents), ""]
    for incident, before, after in zip(incidents, pages, pages[2:], strict=False):
        yield LazyBatches(1, partial(show, incident, before, after))


def show_incident(
    incident: Incident,
    judged: Mapping[SeriesKey, JudgedSeries],
    trials: Mapping[TrialId, TrialHead],
    caveats: Mapping[str, str],
    *,
    suites: Mapping[str, str] = _NO_SUITES,
    bisections: Sequence[BisectionRecord] = (),
    comparisons: Sequence[ComparisonResult] = (),
    contents: Contents = NOTHING_KNOWN,
    settings: ChangedSettings = NO_SETTINGS,
    common: str = "",
    rules: Detection | None = None,
) -> dict[str, Any]:
    """Return what the page of an incident shows, by the names of its template.

    `judged` holds all series, `trials` all trials, `suites` one suite for each experiment,
    `bisections` all that were begun, `comparisons` all that were made, `contents` what the
    configuration holds now, `settings` those that changed; `common` says that other databases moved,
    too, and `rules` what decides. `missing` says why there is nothing more to see side by side; it is
    empty where nothing is, as are the incidents `before` and `after` it, and the `profiled` sides.
    """
    lead = incident.lead
    own, first_with_it = judged[lead.series.key], trials[lead.first_after.trial]
    experiment = first_with_it.experiment
    suite = suites.get(experiment, "")
    still = [one for one in incident.evidence if is_canary(one.key) and not one.follows]
    asked = RemeasurementQuestion(changes=incident.changes)
    origins = [one for one in bisections if traces(one, asked, experiment)]
    chart = draw_change(lead, own.change_points)
    likely = partial(_say_probability, judged, rules)
    testbeds = {trials[lead.last_before.trial].testbed.name, first_with_it.testbed.name}
    return {
        "incident": incident,
        "state": view_state(incident, trials),
        "common": common,
        "experiment": experiment,
        "summary": " ".join(map(sentence, describe_movement(incident))),
        "gap": say_gap(lead, trials),
        "sensitivity": view_sensitivity(own).text,
        **_view_tables(incident, trials, likely),
        "evidence": [one for one in incident.evidence if one not in still],
        "watched": {one.key: _say_watched(one, lead, judged) for one in incident.evidence},
        "still": still,
        "still_title": f"Canaries: {count_silent(still)}",
        "explanations": explain_otherwise(incident, experiment, settings, comparisons),
        "attributed": _list_attributed(incident, settings),
        "timeline": describe_story(incident, own, origins),
        "triage": sentence(triage_words(incident.triage)) if incident.triage else "",
        "from_nights": _describe_nights(lead, own, likely(lead)),
        "missing": describe_missing(incident),
        "chart": chart,
        "chart_text": _describe_chart(lead, chart) if chart else "",
        **_view_search(incident, origins),
        **_view_steps(incident, first_with_it, suite, contents, origins),
        "caveat": join_caveats(testbeds, caveats),
        "why": _say_why(incident, comparisons),
        "explaining": _explain_command(incident),
        **dict.fromkeys(("before", "after", "profiled"), ""),
    }


def _say_why(incident: Incident, comparisons: Sequence[ComparisonResult]) -> str:
    """Return what the servers did differently, by the newest comparison that agrees with a change."""
    agreeing = {reply.answer.comparison for _, reply in incident.replies if reply.agrees}
    found = [one for one in comparisons if one.id in agreeing and explains(one)]
    return clean(describe_why(found[-1], found[-1].code)) if found else ""


def _view_steps(
    incident: Incident,
    first: TrialHead,
    suite: str,
    contents: Contents,
    origins: Sequence[BisectionRecord],
) -> dict[str, Any]:
    """Return what to do; what a step gives a command for is not said once more further down."""
    is_traced = any(isinstance(one.found, Culprit) for one in origins)
    steps = advise(incident, first, suite, contents, is_traced=is_traced)
    commands = {command for one in steps for command in one.commands.splitlines()}
    question, deciding = incident.question, triage_command(incident.name)
    settling = compare_command(question, suite, first.experiment) if question else ""
    searching = _bisect_command(incident) if say_question(incident)[1] and not is_traced else ""
    configs = [
        compare_settings(one, incident, first.experiment, suite, contents)
        for one in incident.explanations
        if one.name.startswith(CONFIG)
    ]
    again = _list_commands(incident, suite, first.experiment)
    return {
        "steps": steps,
        "deciding": "" if any("triage add" in one for one in commands) else deciding,
        "settling": "" if settling in commands else settling,
        "searching": "" if searching in commands else searching,
        "configs": [one for one in configs if one not in steps],
        "reproduction": view_reproduction(
            list_changed(first, contents), *(one for one in again if one not in commands)
        ),
    }


def _bisect_command(incident: Incident) -> str:
    return shlex.join(("knickpoint", "bisect", "--change", incident.name))


def _explain_command(incident: Incident) -> str:
    lead = incident.lead
    is_between = lead.last_before.release != lead.first_after.release
    return shlex.join(("knickpoint", "explain", incident.name)) if is_between else ""


def _list_attributed(incident: Incident, settings: ChangedSettings) -> list[Knob]:
    """Return the settings that a change is attributed to."""
    if incident.cause is not Cause.CONFIGURATION:
        return []
    return [knob for one in incident.explanations for knob in settings.get(one, ())]


def _view_search(incident: Incident, origins: Sequence[BisectionRecord]) -> dict[str, Any]:
    """Return what is known of the release that brought a change, and whether it can be searched."""
    is_found = any(isinstance(one.found, Culprit) for one in origins)
    return {
        "origins": [(one, _state(one), _list_chances(one)) for one in origins],
        "in_question": "" if is_found else say_question(incident)[0],
    }


def _describe_chart(lead: ChangePoint, chart: ChangeChart) -> str:
    """Describe in words what the chart shows."""
    key = lead.series.key
    number = chart.last - chart.first + 1
    whole = len(lead.series.points)
    of_all = f"{count(number, 'point')} of {whole:,}" if number < whole else count(number, "point")
    return (
        f"{heading(series_words(key))}, {direction_words(key.metric)}: {of_all}; "
        f"{view_change_briefly(lead)}"
    )


def _list_commands(incident: Incident, suite: str, experiment: str) -> Iterator[str]:
    """Yield the commands that show a change once more: each end, both in turns, the release."""
    lead = incident.lead
    old, new = lead.last_before.release, lead.first_after.release
    of_suite = ("--suite", suite) if suite else ()
    for release in dict.fromkeys((old.version, new.version)):
        ends = ("--experiment", experiment, "--release", release)
        yield shlex.join(("knickpoint", "measure", *of_suite, *ends))
    if old != new:
        yield compare_command(RemeasurementQuestion(changes=(lead,)), suite, experiment)
        yield _bisect_command(incident)


def _view_tables(
    incident: Incident,
    trials: Mapping[TrialId, TrialHead],
    likely: Callable[[ChangePoint], str],
) -> dict[str, Any]:
    """Return the changes of an incident, those that only repeat them, and those that undid it."""
    own, echoes = split_changes(incident)
    return {
        "members": _view_members(own, trials, likely),
        "series": len({one.series.key for one in own}),
        "echoes": _view_members(echoes, trials, likely),
        "echo_words": echo_words(len({one.series.key for one in echoes})),
        "fixed_by": _view_members(incident.fixed_by, trials, likely),
    }


def _say_watched(
    one: WatchEvidence, lead: ChangePoint, judged: Mapping[SeriesKey, JudgedSeries]
) -> str:
    """Say what a watch with too few points measured on both sides of a change, for a reader to see.

    Empty where it can tell, and where its points do not part by time as the evidence counted them.
    """
    if one.state is not WatchState.SHORT or one.key not in judged:
        return ""
    points, began = judged[one.key].series.points, lead.first_after.started_at
    sides = (
        [point.value for point in points if point.started_at < began],
        [point.value for point in points if point.started_at >= began],
    )
    if tuple(map(len, sides)) != (one.before, one.after) or not all(sides):
        return ""
    before, after = (f"{number(min(side))} to {number(max(side))}" for side in sides)
    return sentence(f"{before} before, {after} {unit_words(one.key.metric)} after".replace("  ", " "))


def _view_members(
    changes: Sequence[ChangePoint],
    trials: Mapping[TrialId, TrialHead],
    likely: Callable[[ChangePoint], str],
) -> tuple[tuple[ChangePoint, str, str], ...]:
    return tuple(
        (change, trials[change.first_after.trial].experiment, likely(change)) for change in changes
    )


def _say_probability(
    judged: Mapping[SeriesKey, JudgedSeries], rules: Detection | None, change: ChangePoint
) -> str:
    own = judged.get(change.series.key)
    if rules is None or own is None:
        return probability(change.p_value)
    return say_probability(change, own.change_points, rules)


def _describe_nights(lead: ChangePoint, own: JudgedSeries, likely: str) -> str:
    start = max((one.index for one in own.change_points if one.index < lead.index), default=0)
    nights = lead.series.points.nights_in_order
    return sentence(
        f"{percent(lead.relative_change)} ({likely}) from"
        f" {count(lead.index - start, 'point')} before and {count(lead.points_after, 'point')} after,"
        f" the newest of {night_words(nights[-1])}"
    )


def _state(record: BisectionRecord) -> Badge:
    if record.found is None:
        return Badge(kind="unsure", symbol="…", word="Not finished")
    if isinstance(record.found, Culprit):
        return Badge(kind="calm", symbol="◎", word="Found")
    return Badge(kind="unsure", symbol="?", word="Not found")


def _list_chances(record: BisectionRecord) -> list[tuple[str, str]]:
    """Return the most probable releases with their probability, then that it was none of all."""
    ranked = sorted(chances_of(record), key=lambda one: -one.probability)[:_MOST_CHANCES]
    listed = [(one.release.version, say_chance(one.probability)) for one in ranked]
    rest = rest_of(record)
    return listed if rest is None else [*listed, ("no single release", say_chance(rest))]


def draw_change(change: ChangePoint, changes: Sequence[ChangePoint]) -> ChangeChart | None:
    """Draw the points around one of the changes of a series; None where there is nothing to draw."""
    points = change.series.points
    first, last = max(0, change.index - _AROUND), min(len(points), change.index + _AROUND)
    drawn = [(at, points[at]) for at in range(first, last) if isfinite(points[at].value)]
    if not drawn:
        return None
    edges = sorted({first, last, *(one.index for one in changes if first < one.index < last)})
    levels = [
        (one, other, _level_from(one, changes))
        for one, other in pairwise(edges)
        if any(one <= at < other for at, _ in drawn)
    ]
    values = (*(point.value for _, point in drawn), *(level for *_, level in levels))
    return ChangeChart(
        x=Scale(first - 0.5, last - 0.5, 0.0, _WIDTH),
        y=fit(values, _HEIGHT - _MARGIN, _MARGIN),
        width=_WIDTH,
        height=_HEIGHT,
        first=first,
        last=last - 1,
        points=tuple(drawn),
        levels=tuple(levels),
    )


def _level_from(start: int, changes: Sequence[ChangePoint]) -> float:
    """Return the level from a point on as the changes beside it tell it: with outliers pulled in."""
    ordered = sorted(changes, key=lambda one: one.index)
    before = [one for one in ordered if one.index <= start]
    return before[-1].after if before else ordered[0].before

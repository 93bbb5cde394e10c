"""What is told of an incident: one row on the front page, and a page with all that is known of it."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from analysis.bisecting.record import BisectionRecord
from analysis.detection.detection import ChangePoint
from analysis.detection.series import nights_of
from analysis.judging.drift import WatchEvidence, is_canary
from analysis.judging.incidents import Incident
from analysis.judging.judgement import JudgedSeries
from analysis.judging.remeasurement import RemeasurementQuestion, Reply, compare_command
from analysis.judging.suspects import traces
from perf.model.results import SeriesKey, TrialHead, TrialId
from reports.pages.incident.chart import ChangeChart, draw_change
from reports.pages.incident.culprit import CulpritView, view_culprit
from reports.pages.incident.explaining import ExplanationRow, compare_configs, explain_otherwise
from reports.pages.incident.story import StoryStep, tell_story
from reports.wording import links
from reports.wording.changes import (
    TYPICAL,
    count_silent,
    evidence_words,
    name_gap,
    name_incident,
    name_watch,
    triage_words,
    view_change_briefly,
)
from reports.wording.incidents import (
    _tell_movement,
    _tell_price,
    tell_missing,
    triage_command,
    view_badges,
)
from reports.wording.reproducing import (
    NOTHING_KNOWN,
    Contents,
    ReproductionCommands,
    list_changed,
    view_reproduction,
)
from reports.wording.sensitivity import view_sensitivity
from reports.wording.wording import (
    NOTHING,
    OUTCOME_BADGES,
    Badge,
    count,
    direction_words,
    heading,
    join_caveats,
    night_words,
    percent,
    probability,
    sentence,
    series_words,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRow:
    """What one canary or sentinel says; `page` leads to its series."""

    name: str
    page: str
    moved: Badge
    change: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentView:
    """All that is told of an incident.

    Changes stand beside their experiment, replies of comparisons beside their meaning. `missing` says
    why there is nothing more to see side by side, or what would settle it; `settling` is the command
    that does. Both are empty where nothing is missing.
    """

    page: str
    name: str
    lead: ChangePoint
    title: str
    experiment: str
    summary: str
    sensitivity: str
    badges: tuple[Badge, ...]
    outcome: Badge
    series: str
    between: str
    members: tuple[tuple[ChangePoint, str], ...]
    mended_by: tuple[tuple[ChangePoint, str], ...]
    evidence: tuple[EvidenceRow, ...]
    others: tuple[EvidenceRow, ...]
    others_title: str
    explanations: tuple[ExplanationRow, ...]
    timeline: tuple[StoryStep, ...]
    triage: str
    nights: str
    turns: tuple[tuple[ChangePoint, Reply, Badge], ...]
    missing: str
    settling: str
    chart: ChangeChart | None
    chart_text: str
    chart_page: str
    culprit: CulpritView
    reproduction: ReproductionCommands
    command: str
    caveat: str


_NO_SUITES: Mapping[str, str] = {}
_MEANINGS = {
    True: Badge(kind="calm", symbol="●", word="Agrees"),
    False: Badge(kind="good", symbol="=", word="Rules it out"),
    None: Badge(kind="unsure", symbol="?", word="Cannot tell"),
}
_MOVED = Badge(kind="unsure", symbol="≠", word="Moved with it")
_CALM = Badge(kind="calm", symbol="=", word="Did not move that far")
_SILENT = Badge(kind="calm", symbol="?", word="Cannot tell yet")


def view_incident(
    incident: Incident,
    judged: Mapping[SeriesKey, JudgedSeries],
    trials: Mapping[TrialId, TrialHead],
    caveats: Mapping[str, str],
    *,
    suites: Mapping[str, str] = _NO_SUITES,
    bisections: Sequence[BisectionRecord] = (),
    contents: Contents = NOTHING_KNOWN,
) -> IncidentView:
    """Put an incident into words.

    `judged` holds all series, `trials` all trials, `suites` one suite for each experiment,
    `bisections` all that were begun, and `contents` what the configuration holds now.
    """
    lead = incident.lead
    ends = (lead.last_before.trial, lead.first_after.trial)
    own = judged[lead.series.key]
    experiment = trials[lead.first_after.trial].experiment
    suite = suites.get(experiment, "")
    others = [one for one in incident.evidence if not _tells_most(one)]
    asked = RemeasurementQuestion(changes=incident.changes)
    origins = [one for one in bisections if traces(one, asked, experiment)]
    chart = draw_change(lead, own.change_points)
    return IncidentView(
        page=links.incident_page(incident.name),
        name=incident.name,
        lead=lead,
        title=name_incident(incident),
        experiment=experiment,
        summary=" ".join(map(sentence, (_tell_movement(incident), *_tell_price(incident)))),
        sensitivity=view_sensitivity(own).text,
        badges=view_badges(incident),
        outcome=OUTCOME_BADGES[lead.outcome],
        series=count(len({one.series.key for one in incident.changes}), "series", "series"),
        between=name_gap(lead),
        members=_with_experiments(incident.changes, trials),
        mended_by=_with_experiments(incident.mended_by, trials),
        evidence=tuple(_view_evidence(one) for one in incident.evidence if _tells_most(one)),
        others=tuple(_view_evidence(one) for one in others),
        others_title=f"Other statistics of the canaries: {count_silent(others)}",
        explanations=explain_otherwise(incident, experiment),
        timeline=tell_story(incident, own, origins),
        triage=sentence(triage_words(incident.triage)) if incident.triage else "",
        nights=_tell_nights(lead, own),
        turns=tuple((change, reply, _MEANINGS[reply.agrees]) for change, reply in incident.replies),
        missing=tell_missing(incident),
        settling=compare_command(incident.question, suite, experiment) if incident.question else "",
        chart=chart,
        chart_text=_tell_chart(lead, chart) if chart else "",
        chart_page=links.series_page(lead.series.key),
        culprit=view_culprit(incident, origins),
        reproduction=view_reproduction(
            list_changed(trials[lead.first_after.trial], contents),
            *_list_commands(incident, suite, experiment),
        ),
        command=triage_command(incident.name),
        caveat=join_caveats({trials[trial].testbed.name for trial in ends}, caveats),
    )


def _tell_chart(lead: ChangePoint, chart: ChangeChart) -> str:
    """Say in words what the chart shows."""
    key = lead.series.key
    shown = count(chart.last - chart.first + 1, "point")
    whole = len(lead.series.points)
    of_all = f"{shown} of {whole:,}" if chart.last - chart.first + 1 < whole else shown
    return (
        f"{heading(series_words(key))}, {direction_words(key.metric)}: {of_all}; "
        f"{view_change_briefly(lead)}"
    )


def _list_commands(incident: Incident, suite: str, experiment: str) -> Iterator[str]:
    """Give the commands that show a change once more: each end, both in turns, the release."""
    lead = incident.lead
    old, new = lead.last_before.release, lead.first_after.release
    of_suite = ("--suite", suite) if suite else ()
    for release in dict.fromkeys((old.version, new.version)):
        ends = ("--experiment", experiment, "--release", release)
        yield shlex.join(("knickpoint", "measure", *of_suite, *ends))
    if old != new:
        yield compare_command(RemeasurementQuestion(changes=(lead,)), suite, experiment)
        yield shlex.join(("knickpoint", "bisect", "--change", incident.name))
    yield from compare_configs(incident, experiment, suite)


def _tells_most(evidence: WatchEvidence) -> bool:
    is_typical = not is_canary(evidence.key) or evidence.key.statistic == TYPICAL
    return is_typical or evidence.follows


def _view_evidence(evidence: WatchEvidence) -> EvidenceRow:
    moved = _MOVED if evidence.follows else _CALM if evidence.can_tell else _SILENT
    return EvidenceRow(
        name=name_watch(evidence.key),
        page=links.series_page(evidence.key),
        moved=moved,
        change=percent(evidence.relative_change) if evidence.relative_change else NOTHING,
        text=sentence(evidence_words(evidence)),
    )


def _with_experiments(
    changes: Sequence[ChangePoint], trials: Mapping[TrialId, TrialHead]
) -> tuple[tuple[ChangePoint, str], ...]:
    return tuple((change, trials[change.first_after.trial].experiment) for change in changes)


def _tell_nights(lead: ChangePoint, own: JudgedSeries) -> str:
    start = max((one.index for one in own.change_points if one.index < lead.index), default=0)
    nights = nights_of(lead.series)
    return sentence(
        f"{percent(lead.relative_change)} ({probability(lead.p_value)}) from"
        f" {count(lead.index - start, 'point')} before and {count(lead.points_after, 'point')} after,"
        f" the newest of {night_words(nights[-1])}"
    )

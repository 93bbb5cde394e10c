"""The story of an incident: when it was reported, by whom it was decided about, what came of it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from analysis.bisecting.description import answer
from analysis.bisecting.record import BisectionRecord
from analysis.detection.alerts import Alert, may_be
from analysis.detection.detection import ChangePoint
from analysis.judging.description import say_reply
from analysis.judging.findings import may_be_older
from analysis.judging.incidents import Incident
from analysis.judging.judgement import JudgedSeries
from perf.model.night_names import name_both, night_span
from perf.model.results import TrialHead, TrialId, TrialStatus
from reports.wording import links
from reports.wording.changes import name_night, triage_words
from reports.wording.wording import OUTCOME_BADGES, moment, night_words, percent, sentence, series_words

_NO_DATE = "date not recorded"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryStep:
    """One step of an incident's story; `page` is empty where no page says more."""

    when: str
    what: str
    page: str = ""


def describe_story(
    incident: Incident, lead: JudgedSeries, bisections: Iterable[BisectionRecord]
) -> tuple[StoryStep, ...]:
    """Return an incident as a story, from the last point without it to its fix.

    `lead` is the series of its lead, `bisections` those that looked for its origin.
    """
    change = incident.lead
    return (
        *_describe_beginning(change),
        *_describe_alerts(incident, lead),
        *_describe_triage(incident),
        *(
            StoryStep(
                when=moment(reply.answer.finished_at).text,
                what=sentence(say_reply(reply)),
                page=links.comparison_page(reply.answer.comparison),
            )
            for reported, reply in incident.replies
            if reported == change
        ),
        *(
            StoryStep(
                when=moment(one.started_at).text,
                what=f"Bisection begun. {sentence(answer(one))}",
                page=links.bisection_page(one.id),
            )
            for one in bisections
        ),
        *(
            StoryStep(
                when=name_night(one.first_after),
                what=f"{OUTCOME_BADGES[one.outcome].word} {percent(one.relative_change)}: "
                f"{series_words(one.series.key)}, {one.first_after.release.version}",
                page=links.trial_page(one.first_after.trial),
            )
            for one in incident.fixed_by
        ),
    )


def say_gap(change: ChangePoint, trials: Mapping[TrialId, TrialHead]) -> str:
    """State that nights between the last without a change and the first with it gave no valid trial.

    Where trials of these nights had the new configuration already, it says since when. Empty between
    releases, and where no night lies between.
    """
    before, after = trials[change.last_before.trial], trials[change.first_after.trial]
    if before.release != after.release:
        return ""
    between = sorted(
        (
            one
            for one in trials.values()
            if before.started_at < one.started_at < after.started_at
            and (one.experiment, one.release) == (after.experiment, after.release)
            and one.night not in {"", before.night, after.night}
        ),
        key=lambda one: (one.started_at, one.id),
    )
    if not between or any(one.status is TrialStatus.COMPLETED for one in between):
        return ""
    first, last = between[0].night, between[-1].night
    named = night_words(first) if first == last else f"nights {night_span(first, last, 'to')}"
    changed = next((one for one in between if one.config == after.config != before.config), None)
    since = f"; {name_both(first, changed.night)[1]} had the new configuration first" if changed else ""
    return sentence(f"{named} gave no valid trial of {after.experiment}{since}")


def _describe_beginning(change: ChangePoint) -> Iterator[StoryStep]:
    """Describe of the last point without a change and the first with it.

    Where the nights measured both releases, the first with it may well be older: no night brought it.
    """
    before, after = change.last_before, change.first_after
    points = change.series.points
    nights = sorted(
        (points.nights_of(before.release) & points.nights_of(after.release)) - {""}
        if before.release != after.release
        else ()
    )
    if nights:
        many = (
            "in the same night"
            if len(nights) == 1
            else f"in each of the {len(nights):,} nights of both"
        )
        yield StoryStep(
            when=night_words(nights[0])
            if len(nights) == 1
            else f"nights {night_span(nights[0], nights[-1], 'to')}",
            what=f"{before.release.version} without it, {after.release.version} with it, {many}",
            page=links.trial_page(after.trial),
        )
        return
    for point, what in ((before, "Last point without it"), (after, "First point with it")):
        yield StoryStep(
            when=name_night(point),
            what=f"{what}, {point.release.version}",
            page=links.trial_page(point.trial),
        )


def _describe_triage(incident: Incident) -> Iterator[StoryStep]:
    """Tell what somebody decided; an entry says by whom and until when, but not when it was made."""
    back = incident.came_back_after
    if back is not None:
        yield StoryStep(
            when=_NO_DATE,
            what=f"Once fixed in {back.fixed_in} ({back.name}, {back.owner}); it came back",
        )
    if incident.triage is not None:
        yield StoryStep(when=_NO_DATE, what=f"Triaged: {triage_words(incident.triage)}")


def _describe_alerts(incident: Incident, lead: JudgedSeries) -> Iterator[StoryStep]:
    """Tell on which nights the change of the lead was seen, as far back as the nights were replayed."""
    change = incident.lead
    at = {"earliest": change.earliest, "latest": change.latest}
    rises = change.after > change.before
    found = [one for one in lead.alerts if may_be(one, rises=rises, **at)]
    nights = lead.series.points.nights_in_order
    reported = sorted(event for alert in found for event in _list_nights(alert, lead))
    yield from (StoryStep(when=night_words(nights[night]), what=what) for night, what in reported)


def _list_nights(alert: Alert, lead: JudgedSeries) -> Iterator[tuple[int, str]]:
    for night, what in (
        (alert.provisional_at, "Reported as suspected"),
        (alert.confirmed_at, "Reported as confirmed"),
    ):
        if night is not None and not may_be_older(lead.series, night):
            yield night, what
    if alert.withdrawn_at is not None:
        yield alert.withdrawn_at, "Retracted: later points did not confirm it"

"""How an incident is said on more than one page: its state, its settings, its headline."""

from dataclasses import replace
from datetime import timedelta

from made_up_nights import KEY, Nights, judge_nights

from analysis.detection.series import Points
from analysis.judging.explanations import Explanation
from analysis.judging.incidents import Cause, Incident
from analysis.orchestration.setting_words import find_changed
from perf.model.results import SeriesKey, TrialHead, TrialId, TrialStatus
from reports.notifications.events import EventKind, IncidentEvent
from reports.notifications.notification import view_notifications
from reports.notifications.slack import render_message
from reports.pages.feeds.feed import name_notification
from reports.pages.incident.story import say_gap
from reports.wording.changes import name_gap, say_explanation
from reports.wording.headline import say_headline
from reports.wording.incidents import describe_briefly, list_news, say_state, view_state
from reports.wording.wording import night_name

NBSP = "\N{NO-BREAK SPACE}"
CONFIG = Explanation(name="config default", before="9596b7985b31", after="83160b5d8237")


def regressed() -> tuple[Nights, Incident]:
    nights = judge_nights(24)
    return nights, nights.judgement.incidents[0]


def with_later(nights: Nights, status: TrialStatus) -> dict[TrialId, TrialHead]:
    """Return all trials and one more in a later night."""
    newest = max(nights.heads.values(), key=lambda one: one.started_at)
    later = replace(
        newest,
        id=TrialId("later"),
        night="2026-02-20-1",
        started_at=newest.started_at + timedelta(days=1),
        status=status,
    )
    return {**nights.heads, later.id: later}


def test_a_state_says_how_old_it_is_where_newer_nights_gave_no_valid_trial() -> None:
    nights, incident = regressed()
    assert say_state(incident, nights.heads).endswith(" · still there")
    last = night_name(incident.lead.series.points[-1].night)
    for status in (TrialStatus.INVALID, TrialStatus.FAILED):
        said = say_state(incident, with_later(nights, status))
        assert said.endswith(f" · still there on {last}, the last valid night")
    assert say_state(incident, with_later(nights, TrialStatus.COMPLETED)).endswith("still there")
    badge = view_state(incident, nights.heads)
    assert badge.word.startswith("Confirmed · ")
    assert badge.symbol == "●"


def test_settings_stand_in_place_of_hashes_wherever_an_incident_is_reported() -> None:
    nights, incident = regressed()
    reported = replace(incident, cause=Cause.CONFIGURATION, explanations=(CONFIG,))
    knobs = find_changed(CONFIG, ({"config": {"a": 1}}, {"config": {"a": "batch"}}))
    settings = {CONFIG: knobs}
    for said in (
        describe_briefly(reported, settings),
        "".join(list_news([reported], nights.heads, settings)),
        say_explanation(CONFIG, reported, settings),
    ):
        assert "ttributed to a change of a: 1 → batch" in said
        assert "9596" not in said
    # Where nothing is known of them, a hash tells nobody anything.
    assert say_explanation(CONFIG, reported) == "attributed to a change of config default"


def test_a_headline_is_what_a_user_would_say() -> None:
    _, incident = regressed()
    lead = incident.lead

    def say(key: SeriesKey, before: float, after: float, *others: SeriesKey) -> str:
        change = replace(
            lead,
            series=replace(lead.series, key=key),
            before=before,
            after=after,
            relative_change=after / before - 1,
        )
        further = tuple(replace(lead, series=replace(lead.series, key=one)) for one in others)
        return say_headline(replace(incident, lead=change, changes=(change, *further)))

    time = replace(KEY, metric="response_time", statistic="p50")
    slower = say(time, 1.72, 4.27, KEY)
    assert slower.startswith(
        f"Cassandra writes are slower: p50 response time at saturation 1.72 → 4.27{NBSP}ms "
        f"(+148{NBSP}%), throughput "
    )
    assert "since night" in slower
    assert slower.endswith("; confirmed.")
    assert say(time, 2.0, 1.9).startswith("Cassandra writes are faster: p50")
    assert f"(−5.0{NBSP}%)" in say(time, 2.0, 1.9)
    other = replace(KEY, operation="read-latest")
    assert say(other, 100.0, 80.0, KEY).startswith("Cassandra read-latest operations are slower: ")
    assert "3,4" not in say(other, 100.0, 80.0, KEY)  # of another operation
    assert say(replace(time, system="mongodb"), 2.0, 1.9).startswith("MongoDB writes are faster: ")
    of_server = replace(KEY, metric="server_cpu")
    assert say(of_server, 1.0, 2.0).startswith("Cassandra: server CPU of write at saturation 1.00 → ")


def test_one_page_and_the_next_say_the_same_since_when() -> None:
    _, incident = regressed()
    since = f"since night {night_name(incident.lead.first_after.night)}"
    assert since in say_headline(incident)
    assert name_gap(incident.lead) == f"within 5.0.4, {since}"


def brought_by(incident: Incident, version: str, nights: int) -> Incident:
    """Return an incident whose lead is a step to a release that the last so many nights measured."""
    lead = incident.lead
    known = list(lead.series.points)[: lead.index + nights]
    release = replace(lead.first_after.release, version=version)
    points = Points.of(
        (*known[: lead.index], *(replace(one, release=release) for one in known[lead.index :]))
    )
    moved = replace(
        lead,
        series=replace(lead.series, points=points),
        last_before=points[lead.index - 1],
        first_after=points[lead.index],
    )
    return replace(incident, lead=moved, changes=(moved,))


def test_a_release_is_said_to_be_new_on_the_night_that_measured_it_first_and_on_no_later_one() -> None:
    nights, incident = regressed()
    for how_many, said in ((1, "5.0.4 → 5.0.10 (new)"), (2, "5.0.4 → 5.0.10")):
        new = brought_by(incident, "5.0.10", how_many)
        assert name_gap(new.lead) == said
        (told,) = view_notifications(replace(nights.judgement, incidents=(new,)), nights.heads)
        assert told.between == said
        assert name_notification(told).endswith(said)
        _, since = said.split(" → ")
        assert f"since {since};" in say_headline(new)
        event = IncidentEvent(kind=EventKind.NEW, title=told.title, notice=told)
        assert f"{said};" in str(render_message(event))
        assert any(said in line for line in list_news((new,), nights.heads))


def test_nights_between_without_a_valid_trial_are_said_with_the_new_configuration() -> None:
    nights, incident = regressed()
    lead = incident.lead
    before, after = nights.heads[lead.last_before.trial], nights.heads[lead.first_after.trial]
    new = replace(after, config=replace(after.config, sha256="83160b5d8237"))
    between = replace(
        new,
        id=TrialId("lost"),
        night="2026-01-16-2",
        started_at=after.started_at - timedelta(hours=1),
        status=TrialStatus.INVALID,
    )
    heads = {**nights.heads, after.id: new, between.id: between}
    name = night_name("2026-01-16-2")
    assert say_gap(lead, nights.heads) == ""
    assert say_gap(lead, heads) == (
        f"Night {name} gave no valid trial of {after.experiment}; #2 had the new configuration first."
    )
    same = {**heads, between.id: replace(between, config=before.config)}
    assert say_gap(lead, same) == f"Night {name} gave no valid trial of {after.experiment}."
    valid = {**heads, between.id: replace(between, status=TrialStatus.COMPLETED)}
    assert say_gap(lead, valid) == ""

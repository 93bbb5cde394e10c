"""Events: each once, whatever the nights do to the name, the lead and the state of an incident."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from datetime import date

import pytest
from made_up_nights import KEY, Course, Nights, judge_nights

from perf.model.rules import TriageEntry, TriageState
from reports.notifications.events import EventKind, NotificationPlan, ReportedIncident, plan_events
from reports.notifications.fingerprints import find_all_fingerprints, find_fingerprints, match_names
from reports.notifications.notification import NotificationStatus, stand


class Channel:
    """Somebody who is reported, and remembers."""

    def __init__(self) -> None:
        self.sent: dict[str, ReportedIncident] = {}
        self.heard: list[tuple[EventKind, str]] = []

    def hear(self, nights: Nights) -> NotificationPlan:
        plan = plan_events(nights.notices, self.sent, know(nights))
        for update in plan.updates:
            self.sent.pop(update.before, None)
            self.sent[update.name] = update.sent
            if update.event:
                self.heard.append((update.event.kind, update.name))
        return plan

    @property
    def kinds(self) -> list[EventKind]:
        return [kind for kind, _ in self.heard]


def know(nights: Nights) -> Callable[[], Collection[str]]:
    return lambda: find_all_fingerprints(one.series for one in nights.judgement.series)


def live(course: Course, nights: Iterable[int]) -> Channel:
    """Let a channel hear of a course night by night, each night twice."""
    channel = Channel()
    for count in nights:
        for _ in range(2):
            channel.hear(judge_nights(count, (course,)))
    return channel


def triaged(state: TriageState) -> TriageEntry:
    return TriageEntry(
        name="seen", state=state, system="cassandra", line="5.0", sign="drop", owner="ops",
        note="known", fixed_in="5.0.4" if state is TriageState.FIXED else None,
        expires=date(2026, 4, 1),
    )  # fmt: skip


def test_a_regression_is_reported_when_it_shows_is_confirmed_and_is_mended() -> None:
    channel = live(Course(at=16, back=22), range(14, 30))
    assert channel.kinds == [EventKind.NEW, EventKind.CONFIRMED, EventKind.RESOLVED]
    assert len({name for _, name in channel.heard}) == 1


def test_what_does_not_last_is_withdrawn_once_and_stays_so_when_nobody_knows_it_any_more() -> None:
    channel = live(Course(at=30, back=32, drop=0.93), range(28, 44))
    assert channel.kinds == [EventKind.NEW, EventKind.WITHDRAWN]
    assert judge_nights(43, (Course(at=30, back=32, drop=0.93),)).notices == ()


def test_what_is_gone_before_anybody_looked_is_withdrawn_all_the_same() -> None:
    channel = Channel()
    course = Course(at=30, back=32, drop=0.93)
    channel.hear(judge_nights(31, (course,)))
    channel.hear(judge_nights(43, (course,)))
    channel.hear(judge_nights(43, (course,)))
    assert channel.kinds == [EventKind.NEW, EventKind.WITHDRAWN]


def test_of_what_is_over_when_one_first_looks_nothing_is_reported() -> None:
    assert live(Course(at=16, back=22), (29,)).heard == []
    assert live(Course(at=30, back=32, drop=0.93), (34,)).heard == []
    assert live(Course(at=16), (25,)).kinds == [EventKind.CONFIRMED]


def test_another_history_withdraws_nothing() -> None:
    channel = Channel()
    channel.hear(judge_nights(20))
    before = dict(channel.sent)
    other = judge_nights(12, (Course(key=replace(KEY, system="mongodb"), at=10**6),))
    plan = channel.hear(other)
    assert plan.updates == ()
    assert plan.unknown == ("Throughput of write at saturation, −14.2\N{NO-BREAK SPACE}%",)
    assert channel.sent == before


def test_an_incident_whose_name_moved_is_the_same_one() -> None:
    nights = judge_nights(20)
    (incident,) = nights.judgement.incidents
    moved = replace(incident.lead, index=incident.lead.index + 1, earliest=incident.lead.index)
    assert set(find_fingerprints(replace(incident, lead=moved, changes=(moved,)))) & set(
        find_fingerprints(incident)
    )
    channel = Channel()
    channel.hear(nights)
    (name,) = channel.sent
    channel.sent = {"former": channel.sent[name]}
    channel.hear(nights)
    assert channel.kinds == [EventKind.CONFIRMED]
    assert list(channel.sent) == [name]


def test_another_lead_is_no_other_incident() -> None:
    courses = tuple(Course(key=replace(KEY, operation=f"op-{one}")) for one in range(4))
    nights = judge_nights(20, courses)
    (incident,) = nights.judgement.incidents
    channel = Channel()
    channel.hear(nights)
    lead, *others = incident.changes
    turned = replace(incident, name="other", lead=others[-1], changes=(*reversed(others), lead))
    judgement = replace(nights.judgement, incidents=(turned,))
    channel.hear(replace(nights, judgement=judgement))
    assert channel.kinds == [EventKind.CONFIRMED]
    assert list(channel.sent) == ["other"]


def test_a_part_that_joins_another_incident_is_not_called_withdrawn() -> None:
    courses = tuple(Course(key=replace(KEY, operation=f"op-{one}")) for one in range(2))
    nights = judge_nights(20, courses)
    (incident,) = nights.judgement.incidents
    parts = tuple(
        replace(incident, name=f"part-{number}", lead=one, changes=(one,))
        for number, one in enumerate(incident.changes)
    )
    channel = Channel()
    channel.hear(replace(nights, judgement=replace(nights.judgement, incidents=parts)))
    channel.hear(nights)
    channel.hear(nights)
    assert channel.kinds == [EventKind.CONFIRMED, EventKind.CONFIRMED]


@pytest.mark.parametrize("state", [one for one in TriageState if one is not TriageState.ACKNOWLEDGED])
def test_a_decision_is_no_message_and_its_end_is_one(state: TriageState) -> None:
    channel = Channel()
    channel.hear(judge_nights(20))
    decided = judge_nights(21, triage=(triaged(state),))
    if state is not TriageState.FIXED:  # that one is news again at the release of the fix
        assert stand(decided.judgement.incidents[0]) is NotificationStatus.DECIDED
    channel.hear(decided)
    channel.hear(judge_nights(22))
    expected = (
        [EventKind.CONFIRMED]
        if state is TriageState.FIXED
        else [EventKind.CONFIRMED, EventKind.CONFIRMED]
    )
    assert channel.kinds == expected


def test_what_is_acknowledged_goes_on_being_looked_at() -> None:
    nights = judge_nights(20, triage=(triaged(TriageState.ACKNOWLEDGED),))
    (notice,) = nights.notices
    assert notice.standing is NotificationStatus.CONFIRMED
    assert "by ops" in notice.advice


def test_a_doubt_does_not_make_the_confirmed_new_again() -> None:
    channel = Channel()
    confirmed = judge_nights(20)
    channel.hear(confirmed)
    doubted = judge_nights(17)
    assert doubted.notices[0].standing is NotificationStatus.PROVISIONAL
    channel.hear(doubted)
    channel.hear(confirmed)
    assert channel.kinds == [EventKind.CONFIRMED]


def test_names_are_matched_by_name_then_by_the_most_handles_each_once() -> None:
    reported = {"a": ("1", "2"), "b": ("3",), "c": ("4", "5")}
    current = [("a", ("9",)), ("x", ("3", "4", "5")), ("y", ("3",)), ("z", ("3",))]
    assert match_names(reported, current) == {"a": "a", "x": "c", "y": "b"}

"""Messages within Slack's limits, whatever stands in a name."""

import json
from dataclasses import replace
from typing import Any

import pytest
from made_up_nights import HALF, HOSTILE, Course, judge_nights

from reports.notifications.events import EventKind, IncidentEvent
from reports.notifications.notification import Notification, NotificationStatus, StepOfStory
from reports.notifications.slack import escape, render_digest, render_message

SITE = "https://example.org/perf/"


def check(message: dict[str, Any]) -> str:
    """Hold a message against the limits of Slack; give all its texts."""
    json.dumps(message).encode()
    assert message["text"]
    assert 1 <= len(message["blocks"]) <= 50
    texts = [message["text"]]
    for block in message["blocks"]:
        match block["type"]:
            case "header":
                assert block["text"]["type"] == "plain_text"
                assert 1 <= len(block["text"]["text"]) <= 150
                texts.append(block["text"]["text"])
            case "section":
                assert 1 <= len(block["text"]["text"]) <= 3000
                texts.append(block["text"]["text"])
                # Markup is read in what is ours alone: the link.
                is_link = block["text"]["text"].startswith(f"<{SITE}")
                assert block["text"]["type"] == ("mrkdwn" if is_link else "plain_text")
            case "context":
                assert 1 <= len(block["elements"]) <= 10
                assert all(one["type"] == "plain_text" for one in block["elements"])
                assert all(1 <= len(one["text"]) <= 3000 for one in block["elements"])
                texts += [one["text"] for one in block["elements"]]
            case other:
                raise AssertionError(other)
    return "\n".join(texts)


def notice(nights: int = 20, back: int = 10**6) -> Notification:
    return judge_nights(nights, (Course(at=16, back=back),)).notices[0]


@pytest.mark.parametrize("kind", EventKind)
def test_a_message_says_what_happened_how_sure_and_what_to_do(kind: EventKind) -> None:
    one = notice()
    text = check(render_message(IncidentEvent(kind=kind, title=one.title, notice=one), site_url=SITE))
    assert one.title.replace("\N{NO-BREAK SPACE}", " ") in text
    assert "✕ Regressed: cassandra-sensor-write, cause not known" in text
    assert "knickpoint triage add" in text
    assert f"<{SITE}incidents/{one.name}.html|Page of the incident>" in text
    assert "First point with it: 5.0.4" in text
    assert "://" not in check(render_message(IncidentEvent(kind=kind, title=one.title, notice=one)))


def test_what_is_gone_is_no_proof_of_anything() -> None:
    text = check(
        render_message(IncidentEvent(kind=EventKind.WITHDRAWN, title="It", notice=None), site_url=SITE)
    )
    assert text.startswith("↶ Retracted: It")
    assert "no proof that nothing changed" in text


def test_hostile_and_endless_names_stay_within_limits_and_do_nothing() -> None:
    step = StepOfStory(at=notice().began_at, text=200 * HOSTILE)
    hostile = replace(
        notice(), title=HOSTILE + HALF, system=HOSTILE, experiment=300 * HOSTILE,
        summary=400 * "<!channel> &", advice=400 * HOSTILE, between=HOSTILE, steps=30 * (step,),
    )  # fmt: skip
    event = IncidentEvent(kind=EventKind.NEW, title=50 * "&<>" + HOSTILE, notice=hostile)
    text = check(render_message(event, site_url=SITE))
    check(render_digest(600 * [event], site_url=SITE))
    assert "<!channel>" not in text
    assert "<script" not in text
    assert "&lt;!channel&gt;" in text


def test_a_digest_shows_as_many_as_it_can_and_counts_the_rest() -> None:
    one = IncidentEvent(kind=EventKind.NEW, title="It", notice=notice())
    text = check(render_digest(352 * [one], site_url=SITE))
    assert "352 incidents with news" in text
    assert "…and 312 more, which the site lists." in text
    assert "more" not in check(render_digest(40 * [one]))


@pytest.mark.parametrize("most", range(1, 30))
def test_a_cut_keeps_entities_whole(most: int) -> None:
    text = escape("a&b<c>d" * 5, most)
    assert len(text) <= most
    assert text.endswith("…")
    shown = text.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "")
    assert "&" not in shown


def test_how_it_stands_is_said_by_its_own_word() -> None:
    mended = notice(29, 22)
    assert mended.standing is NotificationStatus.RESOLVED
    event = IncidentEvent(kind=EventKind.RESOLVED, title=mended.title, notice=mended)
    assert check(render_message(event)).startswith("✓ Resolved: ")
    cleared = replace(mended, standing=NotificationStatus.CLEARED)
    event = IncidentEvent(kind=EventKind.WITHDRAWN, title=mended.title, notice=cleared)
    assert check(render_message(event)).startswith("○ Nothing to look at: ")

"""The feed by the rules of RFC 4287: what must be there, once, and in which form."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from xml.etree import ElementTree as ET

import pytest
from made_up_nights import HALF, HOSTILE, KEY, Course, Nights, hostile_course, judge_nights

from reports.notifications.notification import Notification
from reports.pages.feeds.feed import render_feed

ATOM = "{http://www.w3.org/2005/Atom}"
XHTML = "{http://www.w3.org/1999/xhtml}"
RFC_3339 = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})")
IRI = re.compile(r"urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
TEXTS = {"title", "subtitle", "summary", "rights"}
OF_FEED = {
    "author", "category", "contributor", "generator", "icon", "id", "link", "logo", "rights",
    "subtitle", "title", "updated", "entry",
}  # fmt: skip
OF_ENTRY = {
    "author", "category", "content", "contributor", "id", "link", "published", "rights", "source",
    "summary", "title", "updated",
}  # fmt: skip


@pytest.fixture(scope="module")
def nights() -> Nights:
    read = replace(KEY, operation="read", testbed_class="other")
    return judge_nights(27, (Course(at=18, back=23), Course(key=read, at=22), hostile_course()))


def check_feed(content: bytes) -> ET.Element:
    """Hold a feed against sections 4.1 and 4.2 of the RFC."""
    assert content.startswith(b"<?xml version='1.0' encoding='utf-8'?>")
    feed = ET.fromstring(content)  # noqa: S314  our own
    assert feed.tag == f"{ATOM}feed"
    names = [child.tag.removeprefix(ATOM) for child in feed]
    assert set(names) <= OF_FEED
    for name in ("id", "title", "updated"):
        assert names.count(name) == 1, name
    for name in ("generator", "icon", "logo", "rights", "subtitle"):
        assert names.count(name) <= 1, name
    assert names.count("author") >= 1  # so that no entry needs one
    assert feed.findtext(f"{ATOM}author/{ATOM}name")
    check_links(feed)
    assert any(one.get("rel") == "self" for one in feed.iter(f"{ATOM}link"))
    entries = feed.findall(f"{ATOM}entry")
    for entry in entries:
        check_entry(entry)
    ids = [one.text for one in feed.iter(f"{ATOM}id")]
    assert len(ids) == len(set(ids))
    assert all(IRI.fullmatch(one or "") for one in ids)
    for name in ("updated", "published"):
        for one in feed.iter(f"{ATOM}{name}"):
            assert RFC_3339.fullmatch(one.text or ""), one.text
            datetime.fromisoformat(one.text or "")
    return feed


def check_entry(entry: ET.Element) -> None:
    names = [child.tag.removeprefix(ATOM) for child in entry]
    assert set(names) <= OF_ENTRY
    for name in ("id", "title", "updated"):
        assert names.count(name) == 1, name
    for name in ("content", "published", "rights", "source", "summary"):
        assert names.count(name) <= 1, name
    check_links(entry)
    assert all(child.get("term") for child in entry.findall(f"{ATOM}category"))
    (content,) = entry.findall(f"{ATOM}content")
    assert content.get("type") == "xhtml"
    (division,) = content
    assert division.tag == f"{XHTML}div"
    for child in entry:
        if child.tag.removeprefix(ATOM) in TEXTS:
            assert child.get("type", "text") == "text"
            assert not list(child)


def check_links(parent: ET.Element) -> None:
    links = parent.findall(f"{ATOM}link")
    assert all(one.get("href") for one in links)
    alternates = [
        (one.get("type"), one.get("hreflang")) for one in links if one.get("rel") == "alternate"
    ]
    assert len(alternates) == len(set(alternates))


def test_each_incident_is_an_entry_with_its_story(nights: Nights) -> None:
    feed = check_feed(render_feed(nights.notices))
    entries = feed.findall(f"{ATOM}entry")
    assert len(entries) == len(nights.notices) > 1
    times = [one.findtext(f"{ATOM}updated") or "" for one in entries]
    assert times == sorted(times, reverse=True)
    assert feed.findtext(f"{ATOM}updated") == times[0]
    mended = next(one for one in nights.notices if one.standing == "mended")
    (entry,) = [one for one in entries if mended.page in str(ET.tostring(one))]
    steps = [one.text or "" for one in entry.iter(f"{XHTML}li")]
    assert len(steps) == len(mended.steps) >= 3
    assert "First point with it" in steps[0]
    assert "Reported as confirmed" in " ".join(steps)
    assert "Improved" in steps[-1]


def test_equal_incidents_make_equal_bytes_in_any_order_and_at_any_time(nights: Nights) -> None:
    assert render_feed(nights.notices) == render_feed(tuple(reversed(nights.notices)))


def test_no_address_says_where_the_site_is(nights: Nights) -> None:
    feed = check_feed(render_feed(nights.notices))
    assert not any("://" in (one.get("href") or "") for one in feed.iter(f"{ATOM}link"))


def test_an_entry_keeps_its_id_when_its_state_changes() -> None:
    def ids(count: int) -> Sequence[tuple[str | None, str | None]]:
        feed = check_feed(render_feed(judge_nights(count, (Course(back=26),)).notices))
        return [
            (one.findtext(f"{ATOM}id"), one.findtext(f"{ATOM}updated"))
            for one in feed.findall(f"{ATOM}entry")
        ]

    (new,), (confirmed,), (mended,) = ids(17), ids(19), ids(30)
    assert new[0] == confirmed[0] == mended[0]
    assert len({new[1], confirmed[1], mended[1]}) == 3


def test_a_feed_without_an_incident_is_valid_and_says_what_that_means(nights: Nights) -> None:
    measured = nights.notices[0].began_at
    feed = check_feed(render_feed((), measured_at=measured))
    assert feed.findtext(f"{ATOM}updated") == measured.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert "does not say that nothing changed" in (feed.findtext(f"{ATOM}subtitle") or "")
    check_feed(render_feed(()))


def test_hostile_names_stay_text(nights: Nights) -> None:
    reported = [replace(one, title=HOSTILE + HALF, summary=200 * HOSTILE) for one in nights.notices]
    content = render_feed(reported)
    feed = check_feed(content)
    assert b"<script" not in content
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\u202e]", "".join(feed.itertext()))
    assert any("<script>alert" in (one.text or "") for one in feed.iter(f"{ATOM}title"))


def test_of_very_many_the_newest_are_reported_and_the_rest_counted(nights: Nights) -> None:
    def shift(one: Notification, days: int) -> Notification:
        steps = tuple(replace(step, at=step.at + timedelta(days=days)) for step in one.steps)
        return replace(one, name=f"{days:08x}", steps=steps)

    many = [shift(nights.notices[0], days) for days in range(512)]
    feed = check_feed(render_feed(many))
    assert len(feed.findall(f"{ATOM}entry")) == 200
    assert "The newest 200 of 512 incidents" in (feed.findtext(f"{ATOM}subtitle") or "")

"""The feed: incidents as Atom 1.0 (RFC 4287). Pure: the same incidents give the same bytes anywhere.

The id of an entry follows from the name of its incident alone (urn:uuid by name, RFC 4122), never from
a host, so that a site may move and a reader shows nothing twice. Addresses are relative to the feed.
"""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from reports.notifications.notification import Notification
from reports.wording.markdown import line
from reports.wording.wording import count, moment

PATH = "feed.xml"
"""Relative to the root of the site."""
MEDIA_TYPE = "application/atom+xml"
_ATOM = "http://www.w3.org/2005/Atom"
_XHTML = "http://www.w3.org/1999/xhtml"
_IDS = uuid.UUID("6f1f2a3c-6d0f-5d0b-9a52-0d2a3b0f6a11")
"""Namespace of all our ids; any other one would tell every subscriber of everything once more."""
_MOST_ENTRIES = 200
_MOST_TITLE = 300
_MOST_TEXT = 4000
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def render_feed(notices: Sequence[Notification], *, measured_at: datetime | None = None) -> bytes:
    """Write the feed, the incident to which something happened last first.

    `measured_at` is when anything was measured last: the time of a feed without an entry.
    """
    newest = sorted(notices, key=lambda one: (-one.changed_at.timestamp(), one.name))
    shown = newest[:_MOST_ENTRIES]
    updated = max((one.changed_at for one in shown), default=measured_at or _NEVER)
    feed = ET.Element("feed", {"xmlns": _ATOM, "xml:lang": "en"})
    _add(feed, "id", _name("feed"))
    _add(feed, "title", "Knickpoint: incidents")
    _add(feed, "subtitle", _describe_extent(len(shown), len(newest)))
    _add(feed, "updated", _time(updated))
    _add(ET.SubElement(feed, "author"), "name", "Knickpoint")
    _add(feed, "generator", "Knickpoint")
    _link(feed, "self", PATH, MEDIA_TYPE)
    _link(feed, "alternate", "index.html", "text/html")
    for notice in shown:
        _add_entry(feed, notice)
    ET.indent(feed)
    text: bytes = ET.tostring(feed, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _describe_extent(shown: int, known: int) -> str:
    if not known:
        return "No incident is known. That nothing was found does not say that nothing changed."
    if shown == known:
        return f"{count(known, 'incident')}, and what happened to each"
    return f"The newest {shown:,} of {known:,} incidents, and what happened to each"


def _add_entry(feed: ET.Element, notice: Notification) -> None:
    entry = ET.SubElement(feed, "entry")
    _add(entry, "id", _name(f"incident {notice.name}"))
    _add(entry, "title", line(name_notification(notice), _MOST_TITLE))
    _add(entry, "published", _time(notice.began_at))
    _add(entry, "updated", _time(notice.changed_at))
    for term in (notice.standing.value, notice.outcome.word.lower(), notice.system):
        ET.SubElement(entry, "category", {"term": line(term, _MOST_TITLE)})
    _link(entry, "alternate", notice.page, "text/html")
    _add(entry, "summary", line(notice.summary, _MOST_TEXT))
    content = ET.SubElement(entry, "content", {"type": "xhtml"})
    division = ET.SubElement(content, "div", {"xmlns": _XHTML})
    for text in (
        f"{notice.outcome.symbol} {notice.outcome.word}, {notice.badge.word.lower()}. {notice.summary}",
        notice.advice,
        notice.command,
    ):
        if text:
            _add(division, "p", line(text, _MOST_TEXT))
    steps = ET.SubElement(division, "ol")
    for step in notice.steps:
        _add(steps, "li", line(f"{moment(step.at).text}: {step.text}", _MOST_TEXT))


def name_notification(notice: Notification) -> str:
    """Name a notice in one line: how it stands, what moved, of which system, where."""
    return (
        f"{notice.outcome.word} ({notice.badge.word.lower()}): {notice.title}"
        f" – {notice.system}, {notice.experiment}, {notice.between}"
    )


def _add(parent: ET.Element, tag: str, text: str) -> None:
    ET.SubElement(parent, tag).text = text


def _link(parent: ET.Element, relation: str, path: str, media_type: str) -> None:
    ET.SubElement(parent, "link", {"rel": relation, "type": media_type, "href": path})


def _name(text: str) -> str:
    return f"urn:uuid:{uuid.uuid5(_IDS, text)}"


def _time(when: datetime) -> str:
    """Write a time as RFC 3339 wants it."""
    return when.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")

"""Messages for a chat channel: Block Kit, as Slack's incoming webhooks take it. Pure.

Limits of Slack: 50 blocks a message, 150 characters a header, 3,000 a text, each after escaping. Data
go into plain text objects, which read no markup; `&`, `<` and `>` are escaped everywhere, so that
nothing in a name can call a channel together or begin a link.
"""

from collections.abc import Sequence
from typing import Any

from reports.notifications.events import EventKind, IncidentEvent
from reports.notifications.notification import (
    GONE,
    STANDING_BADGES,
    NotificationStatus,
    cause_words,
)
from reports.wording.markdown import clean
from reports.wording.wording import count, moment

MOST_TEXT = 3000
MOST_HEADER = 150
MOST_ALONE = 10
"""More events than this at once are reported in one message: nobody reads forty."""
_MOST_FALLBACK = 1000
_MOST_STEPS = 8
_MOST_LINE = 240
_LISTED = 40
_CUT = "…"
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_WORDS = {
    EventKind.NEW: "New",
    EventKind.CONFIRMED: "Confirmed",
    EventKind.RESOLVED: "Resolved",
    EventKind.WITHDRAWN: "Retracted",
}

Message = dict[str, Any]
"""A JSON object."""


def render_message(event: IncidentEvent, *, site_url: str = "") -> Message:
    """Write the message about one event."""
    title = _title(event)
    blocks = [_header(title)]
    notice = event.notice
    if notice is None:
        blocks.append(_section(GONE))
    else:
        words = filter(None, (notice.experiment, cause_words(notice)))
        blocks += (
            _section(f"{notice.outcome.symbol} {notice.outcome.word}: {', '.join(words)}"),
            _section(notice.summary),
            _section(f"{notice.advice} {notice.command}"),
        )
        steps = [f"{moment(one.at).text}: {one.text}" for one in notice.steps[-_MOST_STEPS:]]
        blocks.append({"type": "context", "elements": [_plain(step, _MOST_LINE) for step in steps]})
        if site_url:
            blocks.append(_link(f"{site_url.rstrip('/')}/{notice.page}", "Page of the incident"))
    return {"text": escape(title, _MOST_FALLBACK), "blocks": blocks}


def render_digest(events: Sequence[IncidentEvent], *, site_url: str = "") -> Message:
    """Write one message about many events: a line for each, as many as a message may have."""
    title = f"Knickpoint: {count(len(events), 'incident')} with news"
    blocks = [_header(title)]
    blocks += (_section(_title(event), _MOST_LINE) for event in events[:_LISTED])
    more = len(events) - _LISTED
    if more > 0:
        blocks.append(_section(f"…and {more:,} more, which the site lists."))
    if site_url:
        blocks.append(_link(f"{site_url.rstrip('/')}/index.html", "All pages"))
    return {"text": escape(title, _MOST_FALLBACK), "blocks": blocks}


def _title(event: IncidentEvent) -> str:
    badge = event.notice.badge if event.notice else STANDING_BADGES[NotificationStatus.WITHDRAWN]
    word = badge.word if event.kind is EventKind.WITHDRAWN else _WORDS[event.kind]
    where = f" ({event.notice.system})" if event.notice else ""
    return f"{badge.symbol} {word}: {event.title}{where}"


def _header(text: str) -> Message:
    return {"type": "header", "text": _plain(text, MOST_HEADER)}


def _section(text: str, most: int = MOST_TEXT) -> Message:
    return {"type": "section", "text": _plain(text, most)}


def _plain(text: str, most: int) -> Message:
    return {"type": "plain_text", "text": escape(text, most) or "–", "emoji": False}


def _link(address: str, words: str) -> Message:
    safe = address.replace("|", "%7C").replace("<", "%3C").replace(">", "%3E").replace("&", "&amp;")
    return {"type": "section", "text": {"type": "mrkdwn", "text": f"<{safe}|{words}>"}}


def escape(text: str, most: int) -> str:
    """Give one visible line, escaped, of at most `most` characters; a cut shows, and cuts no entity."""
    signs = [_ESCAPES.get(sign, sign) for sign in clean(text)]
    if sum(map(len, signs)) <= most:
        return "".join(signs)
    kept, left = [], most - len(_CUT)
    for sign in signs:
        left -= len(sign)
        if left < 0:
            break
        kept.append(sign)
    return "".join(kept).rstrip() + _CUT

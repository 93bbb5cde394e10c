"""What the summary of a job on GitHub Actions says of a judgement, and how much it leaves out."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from analysis.detection.verdict import WORST_FIRST
from analysis.judging.description import say_judgement
from analysis.judging.judgement import Judgement
from reports.notifications.summary_file import MOST_BYTES, append_summary
from reports.wording.attention import Attention
from reports.wording.markdown import escape
from reports.wording.wording import EMPTY_BADGE, OUTCOME_BADGES, sentence

_MOST_TEXT = 2000
_MOST_SUBJECT = 300
_MORE = "\n…and {more} that this summary has no room for; the site lists all of them.\n"
_ROOM_FOR_MORE = 200
_FULL = "\nKnickpoint: this summary has no more room; the site says all.\n"


def render_step_summary(
    judgement: Judgement,
    attention: Sequence[Attention],
    *,
    site_url: str = "",
    most_bytes: int = MOST_BYTES,
) -> str:
    """Write the verdict in a sentence, then what needs attention, the worst first, then the counts.

    `attention` is in the order of the front page. The text is at most `most_bytes` long in UTF-8.
    """
    badge = OUTCOME_BADGES[judgement.outcome] if judgement.series else EMPTY_BADGE
    head = f"## {badge.symbol} {escape(sentence(say_judgement(judgement)), _MOST_TEXT)}\n"
    if site_url:
        head += f"\n[All pages]({site_url.rstrip('/')}/index.html)\n"
    foot = "".join(_describe_counts(judgement))
    room = most_bytes - _length(head) - _length(foot)
    if room < _ROOM_FOR_MORE:
        return next((one for one in (head, _FULL) if _length(one) <= most_bytes), "")
    return f"{head}{_list(attention, site_url, room)}{foot}"


def _list(attention: Sequence[Attention], site_url: str, room: int) -> str:
    """Write as many lines as there is room for, and say how many are left out."""
    if not attention:
        return "\nNothing needs attention.\n"
    title = f"\n### Needs attention: {len(attention):,}\n\n"
    lines: list[str] = []
    left = room - _length(title) - _ROOM_FOR_MORE
    for one in attention:
        line = _line(one, site_url)
        left -= _length(line)
        if left < 0:
            break
        lines.append(line)
    more = len(attention) - len(lines)
    return "".join((title, *lines, _MORE.format(more=f"{more:,} more") if more else ""))


def _line(one: Attention, site_url: str) -> str:
    subject = escape(one.subject, _MOST_SUBJECT)
    if site_url and one.page:
        subject = f"[{subject}]({site_url.rstrip('/')}/{one.page})"
    words = ", ".join(badge.word.lower() for badge in one.more)
    said = f" ({words})" if words else ""
    text = escape(one.text, _MOST_TEXT)
    return f"- {one.badge.symbol} **{one.badge.word}**{said} – {subject}: {text}\n"


def _describe_counts(judgement: Judgement) -> Iterator[str]:
    if not judgement.series:
        return
    outcomes = [one.verdict.outcome for one in judgement.series]
    yield "\n| verdict | series |\n|---|---:|\n"
    for outcome in WORST_FIRST:
        badge = OUTCOME_BADGES[outcome]
        yield f"| {badge.symbol} {badge.word} | {outcomes.count(outcome):,} |\n"


def _length(text: str) -> int:
    return len(text.encode())


def append_step_summary(
    judgement: Judgement,
    attention: Sequence[Attention],
    *,
    site_url: str = "",
    environment: Mapping[str, str] = os.environ,
) -> Path | None:
    """Append the summary to the file of the variable; give its path, None where it is not set.

    Raises:
        SiteError: the file cannot be written.

    """
    return append_summary(
        lambda most_bytes: render_step_summary(
            judgement, attention, site_url=site_url, most_bytes=most_bytes
        ),
        environment,
    )

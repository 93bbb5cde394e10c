"""Messages as they are sent: a golden file of each, which the docs show letter by letter.

`KNICKPOINT_WRITE_GOLDEN=1 pytest` of this file writes them and the docs anew: read the diff.
"""

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from made_up_nights import Course, judge_nights

from reports.notifications.events import EventKind, IncidentEvent
from reports.notifications.issue_plan import render_issue
from reports.notifications.notification import Notification, cause_words
from reports.notifications.slack import render_message
from reports.notifications.step_summary import render_step_summary
from reports.wording.attention import view_incidents
from reports.wording.wording import CAUSE_BADGES

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden"
SITE = "https://example.org/perf"


def notice() -> Notification:
    return judge_nights(20, (Course(at=16, back=10**6),)).notices[0]


def say_message() -> str:
    """Return the texts of a message to a channel, a line each."""
    one = notice()
    event = IncidentEvent(kind=EventKind.CONFIRMED, title=one.title, notice=one)
    lines = []
    for block in render_message(event, site_url=SITE)["blocks"]:
        parts = block.get("elements") or [block["text"]]
        lines += [part["text"] for part in parts]
    return "\n".join(lines) + "\n"


def say_issue() -> str:
    """Return an issue as GitHub shows it: without the marker in its first line."""
    return render_issue(notice(), scope="nightly", site_url=SITE).partition("\n")[2]


def say_summary() -> str:
    judged = judge_nights(20, (Course(at=16, back=10**6),))
    rows = view_incidents(judged.judgement.incidents, judged.heads)
    return render_step_summary(judged.judgement, rows, site_url=SITE)


EXAMPLES: dict[str, Callable[[], str]] = {
    "slack.txt": say_message,
    "issue.md": say_issue,
    "step-summary.md": say_summary,
}


def check_docs(page: str, name: str, text: str) -> None:
    """Hold the block below the comment that names a golden file against its text."""
    path = ROOT / "docs" / page
    shown = f"<!-- golden file: {name} -->\n````markdown\n{text.strip()}\n````\n"
    if os.environ.get("KNICKPOINT_WRITE_GOLDEN"):
        block = re.compile(
            rf"<!-- golden file: {re.escape(name)} -->\n````markdown\n.*?\n````\n", re.DOTALL
        )
        path.write_text(block.sub(lambda _: shown, path.read_text()))
    assert shown in path.read_text()


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_message_is_as_it_was_reviewed_and_as_the_docs_show_it(name: str) -> None:
    path, text = GOLDEN / "notifications" / name, EXAMPLES[name]()
    if os.environ.get("KNICKPOINT_WRITE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()
    check_docs("notifications.md", name, text)


@pytest.mark.parametrize("name", ["regressed.md", "failed.md"])
def test_the_docs_show_the_comment_that_is_sent(name: str) -> None:
    """What is folded, and the last line, would double the page."""
    seen = (GOLDEN / "comments" / name).read_text().partition("<details>")[0]
    check_docs("pull-requests.md", name, seen)


def test_a_cause_is_said_in_one_way() -> None:
    said = {cause_words(replace(notice(), cause=one.word)) for one in CAUSE_BADGES.values()}
    assert said == {
        "attributed to the database",
        "attributed to the configuration",
        "attributed to the testbed",
        "cause not known",
    }

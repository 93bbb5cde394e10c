"""The file between judging and notifying: one machine writes it, another sends what it holds.

The machine that holds the history should hold no token that writes to GitHub, and the one that holds
the token need not have the history. Whoever tells did not judge, so the file is read as hostile: by
shape and size, and what goes into an issue unescaped has the one form that Knickpoint itself gives it.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from perf.local.plain_files import read_input, read_json
from perf.model.errors import InputError
from perf.model.scalars import STRICT
from perf.model.shown import printable
from reports.notifications.notification import Notification
from reports.wording.incidents import triage_command
from reports.wording.wording import OUTCOME_BADGES

MOST_BYTES = 32 * 1024 * 1024
"""A history of 300 series with 1,000 points each has 600,000 handles: 8 MB."""
_MOST_NOTICES = 500
_MOST_STEPS = 1000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HANDLE = re.compile(r"[0-9a-f]{10}")
_PAGE = re.compile(
    r"(?:[A-Za-z0-9][A-Za-z0-9._-]{0,199}/){0,3}[A-Za-z0-9][A-Za-z0-9._-]{0,199}(?:#[a-z]+)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationsFile:
    """All notices, and every handle that a change in their history can have."""

    __pydantic_config__ = STRICT
    format: Literal[1] = 1
    notices: tuple[Notification, ...]
    known: frozenset[str]


_FILE = TypeAdapter(NotificationsFile)


def write_notifications(notices: Sequence[Notification], known: Collection[str]) -> bytes:
    """Return the content of the file, as JSON."""
    return _FILE.dump_json(NotificationsFile(notices=tuple(notices), known=frozenset(known)))


def read_notifications(path: Path) -> NotificationsFile:
    """Read the file, and refuse it as a whole if anything in it is not as Knickpoint writes it.

    Raises:
        InputError: it cannot be read, is too large, or is none of ours; carries what is wrong.

    """
    content = read_input(path, MOST_BYTES, read_json)
    try:
        found = _FILE.validate_json(content)
    except ValidationError as error:
        problems = [
            f"{printable('.'.join(map(str, one['loc']))) or 'the file'}: {one['msg']}"
            for one in error.errors(include_input=False, include_url=False)
        ]
        raise InputError(path, problems) from error
    if problems := list(_find_problems(found)):
        raise InputError(path, problems)
    return found


def _find_problems(found: NotificationsFile) -> Iterator[str]:
    if len(found.notices) > _MOST_NOTICES:
        yield f"{len(found.notices):,} notices, at most {_MOST_NOTICES} are allowed"
        return
    if any(not _HANDLE.fullmatch(one) for one in found.known):
        yield "known: a handle is ten hex digits"
    for index, notice in enumerate(found.notices):
        for problem in _find_faults(notice):
            yield f"notices.{index}: {problem}"


def _find_faults(notice: Notification) -> Iterator[str]:
    if not _NAME.fullmatch(notice.name):
        yield "name: no name of an incident"
        return
    if notice.outcome not in OUTCOME_BADGES.values():
        yield "outcome: none that a verdict has"
    if notice.page and not _PAGE.fullmatch(notice.page):
        yield "page: no page of a site"
    # It stands under our name for somebody to paste into a shell.
    if notice.command not in {"", triage_command(notice.name)}:
        yield "command: not the one that is about this incident"
    if any(not _HANDLE.fullmatch(one) for one in notice.handles):
        yield "handles: a handle is ten hex digits"
    if not 0 < len(notice.steps) <= _MOST_STEPS or any(one.at.tzinfo is None for one in notice.steps):
        yield f"steps: from 1 to {_MOST_STEPS}, each with a time and its zone"

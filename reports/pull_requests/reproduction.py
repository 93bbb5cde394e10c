"""How to measure a comparison again: its commands, and what both sides ran by content."""

import shlex
from collections.abc import Sequence

from analysis.comparing.results import ComparisonFile, ComparisonResult, SideRecord
from perf.model.results import SIDES
from reports.wording.markdown import block, code, escape
from reports.wording.summary import side_words
from reports.wording.wording import named

_MEASURING = ("candidate", "compare", "bisect")
_MOST_COMMAND = 1000
_MOST_NAME = 80


def describe_reproduction(content: ComparisonFile, results: Sequence[ComparisonResult]) -> list[str]:
    """Give the commands that measure the same again, and the hashes that make it the same, as Markdown.

    A command is text of the file as well, and stands under our name: only one of ours is shown.
    """
    given = dict.fromkeys(one.command for one in results if one.command)
    commands = [one for one in given if is_own_command(one)]
    lines = [block("\n".join(commands)), ""] if commands else []
    if len(commands) < len(given):
        lines += ["- A command is left out: it is not one of Knickpoint's, or too long."]
    return [*lines, *dict.fromkeys(_describe_sides(one, content) for one in results)]


def is_own_command(text: str) -> bool:
    """Return whether a command line is nothing but one of ours, with nothing for a shell to do."""
    try:
        words = shlex.split(text)
    except ValueError:
        return False
    is_ours = words[:1] == ["knickpoint"] and words[1:2] in ([one] for one in _MEASURING)
    is_plain = text.isascii() and text.isprintable() and len(text) <= _MOST_COMMAND
    return is_ours and is_plain and shlex.join(words) == text


def _describe_sides(result: ComparisonResult, content: ComparisonFile) -> str:
    """Name what both sides ran by content, what differs first."""
    before, after = _list_parts(result.baseline), _list_parts(result.candidate)
    sides = " → ".join(escape(side_words(content, result, side), _MOST_NAME) for side in SIDES)
    pairs = list(zip(before, after, strict=True))
    differing = ", ".join(f"{one} → {other}" for one, other in pairs if one != other)
    shared = ", ".join(one for one, other in pairs if one == other and one)
    reported = (
        f"{sides}: {differing}" if differing else "",
        f"on both sides: {shared}" if shared else "",
    )
    return f"- {'; '.join(filter(None, reported))}"


def _list_parts(side: SideRecord) -> tuple[str, ...]:
    files = (side.config, side.topology, side.testbed, side.workload)
    artifact = code(side.artifact_sha256, _MOST_NAME)
    return (
        code(side.version, _MOST_NAME),
        *(code(named(one), _MOST_NAME) for one in files),
        f"artifact {artifact}" if artifact else "",
    )

"""Warnings and errors that the servers of one side log, and the other's not or much less. Pure.

A line stands for all that differ from it in numbers, quoted texts, paths and identifiers only. (Drain3,
which learns such templates, had its last release in 2022; the masks here are enough for messages that
are written by programs, and need no state between trials.)
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from analysis.comparing.results import LogDifference, LogLevel
from perf.model.results import SIDES, SideName
from perf.model.shown import printable

LEAST_TRIALS = 4
"""Of each side: of fewer, chance alone parts the sides too often."""
_FACTOR = 2
"""A line that is more frequent by less than that is none to look at."""
_MOST_LINES = 20
_MOST_READ, _MOST_TEXT = 2000, 300
"""Characters of a message."""
_ENTRY = re.compile(r"^(?:\[[^\]]*\])?\W{0,2}(WARN|WARNING|ERROR|FATAL|SEVERE)\b:?\s*\]?\s*")
_BEFORE_MESSAGE = re.compile(r"^(?:\[[^\]]*\] ?)*(?:[\d:.,T+Z-]+ ?)*(?:\[[^\]]*\] ?)*(?:\S+ +- )?")
"""Thread, time, node and logger, in the order of Cassandra, ScyllaDB or CrateDB."""
_MASKS = (
    (re.compile(r"'[^']*'|\"[^\"]*\""), "…"),
    (re.compile(r"(?<![\w.])/[\w.@+-]+(?:/[\w.@+-]*)+"), "…"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}\b|\b0x[0-9a-f]+\b|\b[0-9a-f]{12,}\b"), "…"),
    (re.compile(r"\d+(?:[.,:]\d+)*"), "#"),
)
_LEVELS: Mapping[str, LogLevel] = {"WARN": "warning", "WARNING": "warning", "W": "warning"}

Lines: TypeAlias = Counter[tuple[LogLevel, str]]
"""How often a trial's servers logged each kind of line."""


def count_lines(lines: Iterable[str]) -> Lines:
    """Return the warnings and errors of a trial's servers, by level and masked message."""
    found: Lines = Counter()
    for line in lines:
        level, message = _read_json(line) if line.startswith("{") else _read_text(line)
        if message:
            message = message[:_MOST_READ]
            for mask, instead in _MASKS:
                message = mask.sub(instead, message)
            found[_LEVELS.get(level, "error"), printable(" ".join(message.split()), _MOST_TEXT)] += 1
    return found


def _read_text(line: str) -> tuple[str, str]:
    entry = _ENTRY.match(line)
    return (entry[1], _BEFORE_MESSAGE.sub("", line[entry.end() :], count=1)) if entry else ("", "")


def _read_json(line: str) -> tuple[str, str]:
    """Return what mongod logs: its message is the same for all, and what varies stands beside it."""
    try:
        entry = json.loads(line)
        return (entry["s"], str(entry.get("msg", ""))) if entry["s"] in ("W", "E", "F") else ("", "")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return "", ""


def compare_logs(trials: Mapping[SideName, Sequence[Lines]]) -> tuple[LogDifference, ...] | None:
    """Return the lines that part the sides, errors and what moved most first; None of too few trials.

    Each trial of one side has at least twice as many as any of the other, and at least one. Lines that
    come by chance part two sides of four trials in one of 35 cases at most.
    """
    if min(len(trials[side]) for side in SIDES) < LEAST_TRIALS:
        return None
    parted = []
    for level, text in {line for side in SIDES for counts in trials[side] for line in counts}:
        ends = [
            (min(found), max(found))
            for side in SIDES
            for found in [[counts[level, text] for counts in trials[side]]]
        ]
        (least, most), (least_after, most_after) = ends
        if least >= max(1, _FACTOR * most_after) or least_after >= max(1, _FACTOR * most):
            parted.append(LogDifference(level=level, text=text, before=ends[0], after=ends[1]))
    parted.sort(key=lambda one: (one.level, -abs(sum(one.after) - sum(one.before)), one.text))
    return tuple(parted[:_MOST_LINES])

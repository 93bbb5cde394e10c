"""What every importer gives and takes: a run, as a foreign file tells it; how what is wrong is said.

Numbers are strict (a bad one refuses the file), names are free: what no importer understands is kept as
a fact. Settings (chosen before the run) may explain a change; findings (they came out of it) may not.
"""

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from perf.model.metrics import DURATION, RESPONSE_TIME, SERVICE_TIME
from perf.model.results import Fact, Interval, Sample
from perf.model.shown import printable

EVERYTHING = "all"
"""The operation of a figure that is about all operations together."""
PHASE = "run"
"""The phase of formats that know only one."""
TIMES = (RESPONSE_TIME.name, SERVICE_TIME.name, DURATION.name)
"""What a foreign time can be."""
PER_MS = {"ns": 1e6, "us": 1e3, "µs": 1e3, "ms": 1.0, "s": 1e-3}
"""How many of each unit are a millisecond; to divide by it keeps the digits that were printed."""

_SECRET = re.compile(
    r"passw|passphrase|\bpass$|pwd|secret|token|credential|\buser(name)?$", re.IGNORECASE
)
_LONGEST_FACT = 4000
_LINE = re.compile(r"([^\r\n]*+)(?:\r\n?|\n|\Z)")
_NUMBER = re.compile(r"[+-]?+(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+")
_MOST_PROBLEMS = 1000
"""Of one file: who has more has another file in hand than was meant, and would read no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A foreign file that was read; `name` is how the user named it."""

    name: str
    text: str

    def lines(self) -> Iterator[tuple[int, str]]:
        """Give each line with its number, from 1, without white space at its ends."""
        for number, line in enumerate(_LINE.finditer(self.text), start=1):
            yield number, line[1].strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportHints:
    """What a user says of all files where their format cannot: what times are, and in which unit."""

    times: str | None = None
    unit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignRun:
    """One run of a foreign program. None and empty: the file does not tell.

    `identity` is the SHA-256 of all that the run was read from: two runs with equal identity are the
    same one. `place` says where it stands, for messages.
    """

    place: str
    identity: str
    samples: tuple[Sample, ...]
    intervals: tuple[Interval, ...] = ()
    settings: tuple[Fact, ...] = ()
    findings: tuple[Fact, ...] = ()
    started_at: datetime | None = None
    finished_at: datetime | None = None
    system: str | None = None
    release: str | None = None
    line: str | None = None
    ordinal: int | None = None
    workload: str | None = None
    testbed: str | None = None
    config: str | None = None


class Unreadable(Exception):  # noqa: N818  a claim about the file; it ends in `importing`, as one sentence each
    """A foreign file cannot be imported; `problems` holds all that is wrong with it."""

    def __init__(self, *problems: str) -> None:
        """Keep the problems, one sentence each, with file and line."""
        self.problems = problems
        super().__init__("; ".join(problems))


def end_if_many(problems: Sequence[str], where: str) -> None:
    """Read no further where nearly nothing is as it should be; raise `Unreadable` then."""
    if len(problems) > _MOST_PROBLEMS:
        raise Unreadable(*problems[:_MOST_PROBLEMS], f"{where}: the rest was not read")


def show(value: object) -> str:
    """Write a value of a file for a message: in quotes, nothing that a terminal obeys, not too long."""
    return printable(repr(value)) if isinstance(value, str | int | float) else "a list or an object"


def digest(text: str) -> str:
    """Give the identity of a run that was read from this text."""
    return hashlib.sha256(text.encode()).hexdigest()


def parse_number(text: str) -> float | None:
    """Read a finite number as programs print it, with commas between thousands; None if it is none."""
    plain = text.strip()
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", plain):
        plain = plain.replace(",", "")
    if not _NUMBER.fullmatch(plain):
        return None
    number = float(plain)
    return number if math.isfinite(number) else None


def name_percentile(rank: str | float) -> str | None:
    """Name a percentile as statistics are named, p99.9; None if there is none of that rank."""
    number = parse_number(str(rank))
    return f"p{number:.12g}" if number is not None and 0 <= number <= 100 else None  # noqa: PLR2004


def facts(items: Iterable[tuple[str, object]]) -> tuple[Fact, ...]:
    """Give facts of a run as a whole, sorted by name; without empty ones and without secrets.

    A site is read by many. What may be a user's name, password or token is left out, by its name.
    """
    found = {
        name: str(value)[:_LONGEST_FACT]
        for name, value in items
        if value not in (None, "", (), []) and not _SECRET.search(name)
    }
    return tuple(Fact(host="", name=name, value=found[name]) for name in sorted(found))


def flatten(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Give the leaves of nested mappings, with dots between the names; a list is one leaf."""
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from flatten(inner, f"{prefix}{name}.")
        elif isinstance(inner, list | tuple):
            yield f"{prefix}{name}", ", ".join(map(str, inner))
        else:
            yield f"{prefix}{name}", inner


def explain(where: str, error: ValidationError) -> tuple[str, ...]:
    """Say all that pydantic found wrong, one sentence per field."""
    return tuple(
        f"{where}: {printable('.'.join(map(str, problem['loc']))) or 'the whole'}: "
        + problem["msg"].removeprefix("Value error, ")
        # A file that is none of this format is the input as a whole; it may hold passwords, too.
        + (f", not {show(problem['input'])}" if problem["loc"] and _is_plain(problem["input"]) else "")
        for problem in error.errors(include_url=False)[:_MOST_PROBLEMS]
    )


def _is_plain(found: object) -> bool:
    return isinstance(found, str | int | float)


def without_repetition(operations: Sequence[str], whole: str = EVERYTHING) -> tuple[str, ...]:
    """Leave out what is about all operations where there is only one: two series would say the same."""
    single = [name for name in operations if name != whole]
    return tuple(single) if len(single) == 1 else tuple(operations)

"""What every importer gives and takes: a run, as a foreign file tells it; how what is wrong is said.

Numbers are strict (a bad one refuses the file), names are free: what no importer understands is kept as
a fact. Settings (chosen before the run) may explain a change; findings (they came out of it) may not.
"""

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from perf.model.metrics import DURATION, RESPONSE_TIME, SERVICE_TIME, Metric
from perf.model.results import Fact, Interval, Sample
from perf.model.shown import printable

T = TypeVar("T")
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
class Naming:
    """What a run is, as its file or the user tells, whose word wins. None: nothing is said."""

    system: str | None = None
    release: str | None = None
    line: str | None = None
    ordinal: int | None = None
    workload: str | None = None
    experiment: str | None = None
    testbed: str | None = None
    config: str | None = None
    night: str | None = None
    started_at: datetime | None = None
    times: str | None = None
    """What times are, where the format cannot tell or is wrong."""
    unit: str | None = None
    """The unit of times, where the format cannot tell."""
    is_news: bool = False
    """They were measured on schedule, like trials of a suite, so a change in them alerts."""


@dataclass(frozen=True, slots=True)
class Done:
    """How many operations of one kind a run completed, and how many failed; None: it does not tell."""

    operation: str
    completed: int
    failed: int | None = None


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
    done: tuple[Done, ...] = ()
    """Of formats that a program of `engine: command` may write."""
    settings: tuple[Fact, ...] = ()
    findings: tuple[Fact, ...] = ()
    finished_at: datetime | None = None
    stated: Naming = Naming()


class Unreadable(Exception):  # noqa: N818  a claim about the file; it ends in `importing`, as one sentence each
    """A foreign file cannot be imported; `problems` holds all that is wrong with it."""

    def __init__(self, *problems: str) -> None:
        """Keep the problems, one sentence each, with file and line."""
        self.problems = problems
        super().__init__("; ".join(problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A foreign file: its text, what the user says of it, and all that was found wrong with it.

    `name` is how the user named it.
    """

    name: str
    text: str
    said: Naming = Naming()
    problems: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield each line with its number, from 1, without white space at its ends."""
        for number, line in enumerate(_LINE.finditer(self.text), start=1):
            yield number, line[1].strip()

    def blame(self, line: int | None, *what: str) -> None:
        """Note what is wrong, in a line or as a whole; raise it where nearly nothing is right."""
        place = self.name if line is None else f"{self.name}, line {line}"
        self.problems.extend(f"{place}: {one}" for one in what)
        if len(self.problems) > _MOST_PROBLEMS:
            raise Unreadable(*self.problems[:_MOST_PROBLEMS], f"{self.name}: the rest was not read")

    def refuse_if_wrong(self, *whole: str) -> None:
        """Raise all that was found wrong, or else what is wrong with the file as a whole."""
        problems = self.problems or [f"{self.name}: {one}" for one in whole]
        if problems:
            raise Unreadable(*dict.fromkeys(problems))

    def number(self, line: int, printed: str, of: str = "") -> float | None:
        """Read a finite number; blame the line and give None if it is none."""
        number = parse_number(printed)
        if number is None:
            self.blame(line, f"{of}{show(printed)} is not a finite number")
        return number

    def validate(self, form: TypeAdapter[T], what: str) -> T:
        """Read the text as JSON of a form; raise all that does not fit, a sentence per field."""
        try:
            return form.validate_json(self.text)
        except ValidationError as error:
            raise Unreadable(*(f"{self.name}: {what}: {one}" for one in explain(error))) from error

    def run(
        self,
        samples: Iterable[Sample],
        *,
        intervals: tuple[Interval, ...] = (),
        done: Iterable[Done] = (),
        settings: Iterable[tuple[str, object]] = (),
        findings: Iterable[tuple[str, object]] = (),
        finished_at: datetime | None = None,
        **stated: Any,  # noqa: ANN401  fields of Naming
    ) -> tuple[ForeignRun]:
        """Return the only run of the file; raise all that was found wrong until its last sample."""
        taken = tuple(samples)
        self.refuse_if_wrong()
        return (
            ForeignRun(
                place=self.name,
                identity=digest(self.text),
                samples=taken,
                intervals=intervals,
                done=tuple(done),
                settings=facts(settings),
                findings=facts(findings),
                finished_at=finished_at,
                stated=Naming(**stated),
            ),
        )


def sample(
    operation: str, metric: Metric | str, statistic: str, value: float, phase: str = PHASE
) -> Sample:
    """Return a value over all iterations."""
    name = metric if isinstance(metric, str) else metric.name
    return Sample(phase=phase, operation=operation, metric=name, statistic=statistic, value=value)


def show(value: object) -> str:
    """Write a value of a file for a message: in quotes, nothing that a terminal obeys, not too long."""
    return printable(repr(value)) if isinstance(value, str | int | float) else "a list or an object"


def digest(text: str) -> str:
    """Return the identity of a run that was read from this text."""
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
    """Return facts of a run as a whole, sorted by name; without empty ones and without secrets.

    A site is read by many. What may be a user's name, password or token is left out, by its name.
    """
    found = {
        name: str(value)[:_LONGEST_FACT]
        for name, value in items
        if value not in (None, "", (), []) and not _SECRET.search(name)
    }
    return tuple(Fact(host="", name=name, value=found[name]) for name in sorted(found))


def flatten(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield the leaves of nested mappings, with dots between the names; a list is one leaf."""
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from flatten(inner, f"{prefix}{name}.")
        elif isinstance(inner, list | tuple):
            yield f"{prefix}{name}", ", ".join(map(str, inner))
        else:
            yield f"{prefix}{name}", inner


def explain(error: ValidationError) -> Iterator[str]:
    """List all that pydantic found wrong, one sentence per field."""
    for problem in error.errors(include_url=False)[:_MOST_PROBLEMS]:
        found = problem["input"]
        where = printable(".".join(map(str, problem["loc"]))) or "the whole"
        # A file that is none of this format is the input as a whole; it may hold passwords, too.
        is_shown = problem["loc"] and isinstance(found, str | int | float)
        said = problem["msg"].removeprefix("Value error, ")
        yield f"{where}: {said}" + (f", not {show(found)}" if is_shown else "")


def without_repetition(operations: Sequence[str], whole: str = EVERYTHING) -> tuple[str, ...]:
    """Leave out what is about all operations where there is only one: two series would say the same."""
    single = [name for name in operations if name != whole]
    return tuple(single) if len(single) == 1 else tuple(operations)

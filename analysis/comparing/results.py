"""Comparisons in a JSON file: what was compared, trial by trial, and what it came to. Pure.

The file crosses from the job that measures to the job that comments. To the second it is hostile data:
read by `read_comparisons` it is of this shape and of bounded size, and none of its text may be trusted.
"""

import math
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from annotated_types import MaxLen
from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from analysis.comparing.blocks import Measure, TrialValue
from analysis.detection.effects import Effect
from analysis.detection.verdict import Outcome, merge
from perf.model.errors import InputError
from perf.model.results import Named, Purpose, Reason, SideName, TrialStatus
from perf.model.shown import printable

SCHEMA_VERSION = 1
MOST_BYTES = 20_000_000
_MOST_PARTS = 2_000_000
_STRICT = ConfigDict(extra="forbid")
LONGEST = 2000
"""Characters of a text."""
MOST_DEFAULTS = 500
_Line = Annotated[str, StringConstraints(max_length=LONGEST)]
_MOST = 1e15
_Count = Annotated[int, Field(ge=0, le=1_000_000)]
_Number = Annotated[float, Field(ge=-_MOST, le=_MOST, allow_inf_nan=False)]
_Figure = Annotated[float, Field(ge=-_MOST, le=_MOST, allow_inf_nan=False)]
_Share = Annotated[float, Field(allow_inf_nan=False)]
"""A relative change: that of very few trials may lie beyond all reason."""


CostKind: TypeAlias = Literal["cpu", "alloc"]
"""CPU time, or what was allocated: `analysis.comparing.profiles.KINDS` has the units."""


LogLevel: TypeAlias = Literal["error", "warning"]


def _check_effect(effect: Effect | None) -> Effect | None:
    if effect is not None:
        parts = (effect.relative_change, effect.low, effect.high, effect.confidence)
        if not all(map(math.isfinite, parts)):
            raise ValueError("a change and its interval are finite numbers")
    return effect


def _check_values(values: tuple[TrialValue, ...]) -> tuple[TrialValue, ...]:
    for one in values:
        if not all(abs(value) <= _MOST for value in (one.value, *one.iterations)):
            raise ValueError(f"a value is a number, and at most {_MOST:g}")
    return values


_Values = Annotated[tuple[TrialValue, ...], MaxLen(1000), AfterValidator(_check_values)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SideRecord:
    """What one side was, by name and hash."""

    __pydantic_config__ = _STRICT
    label: _Line
    version: _Line
    config: Named
    topology: Named
    testbed: Named
    workload: Named
    artifact_sha256: _Line = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord:
    """A trial that took its turn, how it ended, and how long it took."""

    __pydantic_config__ = _STRICT
    id: _Line
    side: SideName
    block: _Count
    status: TrialStatus
    duration_s: _Number
    reasons: Annotated[tuple[Reason, ...], MaxLen(100)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureResult:
    """What one measure came to.

    `before` and `after` are medians over the completed trials of each side. The interval of `effect`
    holds over all looks together. `detectable` is the smallest relative change that could have been
    seen. Verdicts rest on trusted measures only.
    """

    __pydantic_config__ = _STRICT
    measure: Measure
    is_trusted: bool
    outcome: Outcome
    reason: _Line
    relevant_change: _Share
    before: _Number | None = None
    after: _Number | None = None
    effect: Annotated[Effect | None, AfterValidator(_check_effect)] = None
    detectable: _Share | None = None
    baseline: _Values = ()
    candidate: _Values = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosticResult:
    """What servers did on both sides: the means over the trials, in the unit of the metric.

    `low` and `high` are the ends of the interval of the difference after − before. The intervals of all
    diagnostics of a comparison hold together.
    """

    __pydantic_config__ = _STRICT
    measure: Measure
    before: _Figure
    after: _Figure
    low: _Figure
    high: _Figure

    @property
    def is_sure(self) -> bool:
        """Return whether it moved more than its own noise."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeDifference:
    """A method whose cost per operation moved more than its noise, by profiles of both sides."""

    __pydantic_config__ = _STRICT
    phase: _Line
    kind: CostKind
    method: _Line
    before: _Figure
    after: _Figure
    low: _Figure
    high: _Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDifference:
    """A line that the servers of one side log much more often: the fewest and the most of a trial."""

    __pydantic_config__ = _STRICT
    level: LogLevel
    text: _Line
    before: tuple[_Count, _Count]
    after: tuple[_Count, _Count]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnobValues:
    """One setting that differs between two sides, with both values as JSON; empty where absent.

    `path` is the way to it with its file, `key` what its database calls it; older files have no key.
    """

    __pydantic_config__ = _STRICT
    path: _Line
    key: _Line = ""
    before: _Line
    after: _Line


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonResult:
    """One comparison. `reason` is its verdict in a sentence, `ended` why no further block was measured.

    `command` measures it again. `remarks` are those of its trials, each once: a reader must know them.
    `diagnostics` are those that moved most first, `defaults` what both artifacts set in files of their
    own, and differently; older files have neither. `code` has what moved most of each kind of cost,
    where both sides were profiled, and `method` what Knickpoint did differently, where another
    installation of it measured the baseline. `logs` are warnings and errors that part the sides; None
    of too few trials to say.
    """

    __pydantic_config__ = _STRICT
    id: _Line
    purpose: Purpose
    suite: _Line
    experiment: _Line
    system: _Line
    baseline: SideRecord
    candidate: SideRecord
    seed: Annotated[int, Field(ge=0, le=2**128)]
    question_sha256: _Line
    outcome: Outcome
    reason: _Line
    ended: _Line
    measures: Annotated[tuple[MeasureResult, ...], MaxLen(500)]
    trials: Annotated[tuple[TrialRecord, ...], MaxLen(2000)]
    started_at: datetime
    finished_at: datetime
    command: _Line = ""
    caveat: _Line = ""
    remarks: Annotated[tuple[_Line, ...], MaxLen(100)] = ()
    diagnostics: Annotated[tuple[DiagnosticResult, ...], MaxLen(500)] = ()
    defaults: Annotated[tuple[KnobValues, ...], MaxLen(MOST_DEFAULTS)] = ()
    code: Annotated[tuple[CodeDifference, ...], MaxLen(10)] = ()
    method: Annotated[tuple[KnobValues, ...], MaxLen(100)] = ()
    logs: Annotated[tuple[LogDifference, ...], MaxLen(20)] | None = None

    @property
    def own_trials(self) -> tuple[TrialRecord, ...]:
        """Those that were measured for it, by their ids; others count that were there before it."""
        return tuple(trial for trial in self.trials if trial.id.startswith(f"{self.id}."))


NEW = " (new)"
"""How the label of a release ends that no night before had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One side: a revision of the repository, and the commit it is; or a build, and its checksum."""

    __pydantic_config__ = _STRICT
    ref: _Line
    sha: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{7,64}$")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentChange:
    """An experiment whose resolved configuration differs. `text` says why it was not measured, if so.

    Where it is not empty, no comparison belongs to this change. So many settings are not listed in
    `knobs`, which holds the first of them: `unlisted`.
    """

    __pydantic_config__ = _STRICT
    suite: _Line
    experiment: _Line
    knobs: Annotated[tuple[KnobValues, ...], MaxLen(500)]
    unlisted: int = 0
    text: _Line = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """Head without one of its changes against head: what that knob does, the others in place."""

    __pydantic_config__ = _STRICT
    knob: KnobValues
    comparison: ComparisonResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonFile:
    """What a candidate or a comparison came to. `problems` are errors of ours, in a sentence each.

    `base` and `head` are None where no revisions were compared. `notes` are no errors of anybody, but
    worth knowing: what differs without changing a measurement, which knob was not attributed.
    """

    __pydantic_config__ = _STRICT
    schema_version: int
    created_at: datetime
    knickpoint: _Line
    base: Revision | None = None
    head: Revision | None = None
    changes: Annotated[tuple[ExperimentChange, ...], MaxLen(500)] = ()
    comparisons: Annotated[tuple[ComparisonResult, ...], MaxLen(200)] = ()
    attributions: Annotated[tuple[Attribution, ...], MaxLen(200)] = ()
    problems: Annotated[tuple[_Line, ...], MaxLen(100)] = ()
    notes: Annotated[tuple[_Line, ...], MaxLen(100)] = ()

    @property
    def outcome(self) -> Outcome:
        """Return the worst outcome; unchanged where nothing differed, invalid where we failed.

        What changed and could not be compared is undecided, however well the rest compares.
        """
        found = [one.outcome for one in self.comparisons]
        if self.problems:
            found.append(Outcome.INVALID)
        if any(change.text for change in self.changes):
            found.append(Outcome.UNDECIDED)
        if not found:
            # Without its revisions, a file that holds nothing shows nothing.
            return Outcome.UNCHANGED if self.base and self.head else Outcome.INVALID
        return merge(found)


_FILE = TypeAdapter(ComparisonFile)
_RESULT = TypeAdapter(ComparisonResult)


def write_comparisons(content: ComparisonFile) -> bytes:
    """Write the file, readable."""
    return _FILE.dump_json(content, indent=1) + b"\n"


def read_comparisons(content: bytes, path: Path) -> ComparisonFile:
    """Read a file that nobody vouches for; `path` is said in errors.

    Raises:
        InputError: it is too large, no JSON, or not of this shape.

    """
    if len(content) > MOST_BYTES:
        raise InputError(path, [f"{len(content)} bytes; a comparison has at most {MOST_BYTES}"])
    # A fault takes hundreds of bytes to tell, and each part may be one.
    if (parts := sum(map(content.count, (b",", b"[", b"{")))) > _MOST_PARTS:
        raise InputError(path, [f"{parts} parts; a comparison has at most {_MOST_PARTS}"])
    try:
        found = _FILE.validate_json(content)
    except ValidationError as error:
        raise InputError(path, find_faults(error)) from error
    if found.schema_version != SCHEMA_VERSION:
        version = found.schema_version
        raise InputError(path, [f"schema_version {version}; this Knickpoint reads {SCHEMA_VERSION}"])
    return found


def write_result(content: ComparisonResult) -> bytes:
    """Write one comparison, as it lies beside its plan."""
    return _RESULT.dump_json(content, indent=1) + b"\n"


def read_result(content: bytes, path: Path) -> ComparisonResult:
    """Read one comparison of our own; raise InputError where it is none."""
    try:
        return _RESULT.validate_json(content)
    except ValidationError as error:
        raise InputError(path, find_faults(error)) from error


def find_faults(error: ValidationError) -> list[str]:
    """Put the first of what is wrong into a line each; names of keys are text of the file as well."""
    return [
        f"{'.'.join(printable(str(part)) for part in each['loc']) or 'the whole file'}: {each['msg']}"
        for each in error.errors(include_url=False, include_input=False)[:20]
    ]

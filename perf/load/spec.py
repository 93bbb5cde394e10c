"""All that an engine process is given, as one JSON file, and all that it answers.

The contract between the harness and any engine (Python today, native later), all in
`LoadSpec.output_dir`: the engine reads its `LoadSpec`, connects, and writes READY. Once GO is there
it starts at the Unix time that GO holds, so that a slow start never eats into a phase. While a stage
warms up it looks for MEASURE, which holds the Unix time at which the stage's iterations begin for all
engines. It appends to INTERVALS and PROGRESS as it measures, each second, and writes RESULT last: no
result means that it failed.

`target.access` holds names of secrets, never a secret. An engine reads them when it connects, by the
rules and with the sentences of `perf.systems.credentials`: what is wrong is the last line on its
standard error. On another host than the harness's, where a variable `password_env` is not, the harness
puts the password into the file PASSWORD (mode 0600) before it starts the engine, and the spec names
that as its `password_file`. An engine removes PASSWORD, and no other `password_file`, as soon as it has
read it.

A line of PROGRESS is `stage,second,completed,service_s`: the place of the stage from 0, the second
since the stage began, the operations that ended in it, and the sum of their service times.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from perf.local.plain_files import read_json
from perf.model.records import OperationName, Records
from perf.model.results import Counter
from perf.model.scalars import STRICT, Finite, Positive, PositiveFloat
from perf.model.shown import printable
from perf.systems.contract import Target
from perf.workloads.stages import Stage

READY = "ready"
GO = "go"
MEASURE = "measure-{stage}"
PROGRESS = "progress.csv"
INTERVALS = "intervals.hlog"
RESULT = "result.json"
PASSWORD = "password"  # noqa: S105  the name of a file


MOST_RESULT_BYTES = 16 * 1024**2
_MOST = 2**53
_EXAMPLE, _EXAMPLES = 1000, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Preload:
    """Rows [0, rows), written with `in_flight` operations per engine process."""

    __pydantic_config__ = STRICT
    rows: Positive
    in_flight: Positive


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Operations [0, operations) of one kind, each once, with `in_flight` of them per engine process.

    They are measured as iteration 1 of `phase`, and none is tried again.
    """

    __pydantic_config__ = STRICT
    phase: str
    operations: Positive
    in_flight: Positive


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSpec:
    """What one engine process does: a preload, or so many operations, or stages.

    A preload writes the engine's share of its rows and ends. Stages run back to back. Engine
    `engine_index` of `engine_count` takes every `engine_count`-th operation number, so shares are
    disjoint; numbers go on from stage to stage. `mix` holds the operations and the weight of each;
    which one number n is depends on the seed and n alone. Operation n of the sensor workload writes
    batch number n of `batch_rows` rows each, from row `first_row` on. The engine waits `go_within_s`
    for GO, then gives up.
    """

    __pydantic_config__ = STRICT
    target: Target
    records: Records
    mix: Mapping[OperationName, PositiveFloat]
    seed: int
    engine_index: int
    engine_count: int
    preload: Preload | None = None
    counted: Counted | None = None
    stages: tuple[Stage, ...] = ()
    readable_rows: int = 0
    """Rows that are known to be stored, which reads verify against."""
    first_row: int = 0
    """The first row that this run of engines may write; no other run writes it or one near after it."""
    value_seed: int = 0
    """What the put/get workload's values are, or are to be, drawn from."""
    run: int = 0
    """Which of a trial's runs of engines this is: Poisson arrivals are drawn anew in each."""
    batch_rows: Positive = 1
    go_within_s: PositiveFloat = 120.0
    output_dir: str
    cores: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one engine process used in one iteration of a phase (0: all warm-ups of the phase).

    `cpu_s` is user and system time of all its threads, `waited_s` the time its threads were ready to
    run and had no core, `wall_s` the time that passed.
    """

    __pydantic_config__ = STRICT
    phase: str
    iteration: int
    wall_s: Finite
    cpu_s: Finite
    waited_s: Finite


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineResult:
    """What one engine process counted.

    `examples` holds the first message of each kind of error; `counted_s` how long it took to the end of
    the last operation, where so many were to be done.
    """

    __pydantic_config__ = STRICT
    engine_index: int
    counters: tuple[Counter, ...]
    usages: tuple[Usage, ...]
    examples: tuple[str, ...] = ()
    counted_s: Finite | None = None


_SPEC = TypeAdapter(LoadSpec)
_RESULT = TypeAdapter(EngineResult)


def dump_spec(spec: LoadSpec) -> str:
    """Return a spec as JSON."""
    return _SPEC.dump_json(spec, indent=1).decode()


def read_spec(path: Path) -> LoadSpec:
    """Read a spec; raise pydantic.ValidationError if it is not one."""
    return _SPEC.validate_json(path.read_bytes())


def write_result(path: Path, result: EngineResult) -> None:
    """Write a result as JSON, in one step."""
    fresh = path.with_suffix(".new")
    fresh.write_bytes(_RESULT.dump_json(result, indent=1))
    fresh.rename(path)


def read_result(path: Path) -> EngineResult:
    """Read a result, whose texts are made fit for messages.

    Raises:
        ValueError: it is none, or no engine that counts can have written it.
        OSError: it cannot be read, is no plain file, or is larger than any result.

    """
    found = _RESULT.validate_json(read_json(path, MOST_RESULT_BYTES))
    for one in found.counters:
        if not (0 <= one.value <= _MOST and 0 <= one.iteration <= _MOST):
            what = f"{one.name} of {one.operation} in {one.phase}"
            raise ValueError(f"{printable(what, 200)} is no count: {printable(str(one.value))}")
    few = tuple(printable(text, _EXAMPLE) for text in found.examples[:_EXAMPLES])
    return replace(found, examples=few)

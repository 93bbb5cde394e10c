"""All that an engine process is told, as one JSON file, and all that it answers.

The contract between the harness and any engine (Python today, native later), all in
`LoadSpec.output_dir`: the engine reads its `LoadSpec`, connects, and writes READY. Once GO is there
it starts its phases at the Unix time that GO holds, so that a slow start never eats into a phase.
It appends to INTERVALS as it measures and writes RESULT last: no result means that it failed.
"""

from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from perf.design import STRICT, Load, Operation, PositiveFloat, Sensor
from perf.model import Counter
from perf.systems.contract import Target

WARM_UP = "warm-up"
PRELOAD = "preload"

READY = "ready"
GO = "go"
INTERVALS = "intervals.hlog"
RESULT = "result.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedPhase:
    """One phase that lasts a fixed time. `iteration` is 0 for a warm-up."""

    __pydantic_config__ = STRICT
    name: str
    iteration: int
    duration_s: PositiveFloat


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSpec:
    """What one engine process does.

    With `preload_rows` it writes its share of the rows [0, preload_rows), with as many in flight as
    `load` says, and ends. Otherwise it runs `phases` back to back under `load`. Engine `engine_index`
    of `engine_count` takes every `engine_count`-th operation number, so shares are disjoint; timed
    phases write the rows from `first_row` on. The engine waits `go_within_s` for GO, then gives up.
    """

    __pydantic_config__ = STRICT
    target: Target
    records: Sensor
    operation: Operation
    load: Load
    seed: int
    engine_index: int
    engine_count: int
    preload_rows: int = 0
    readable_rows: int = 0
    """Rows that are known to be stored, which reads verify against."""
    first_row: int = 0
    phases: tuple[TimedPhase, ...] = ()
    go_within_s: PositiveFloat = 120.0
    output_dir: str
    cores: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineResult:
    """What one engine process counted.

    `cpu_s` is its own user and system time, `wall_s` the time that passed, both from the start of
    its first phase to the end of its last operation. `ended_s` holds, per phase in order, the seconds
    from the phase's start to the end of its last completed operation, 0 if there was none.
    `examples` holds the first message of each kind of error.
    """

    __pydantic_config__ = STRICT
    engine_index: int
    counters: tuple[Counter, ...]
    cpu_s: float
    wall_s: float
    ended_s: tuple[float, ...] = ()
    examples: tuple[str, ...] = ()


_SPEC = TypeAdapter(LoadSpec)
_RESULT = TypeAdapter(EngineResult)


def dump_spec(spec: LoadSpec) -> str:
    """Give a spec as JSON."""
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
    """Read a result; raise pydantic.ValidationError if it is not one."""
    return _RESULT.validate_json(path.read_bytes())

"""All that an engine process is told, as one JSON file, and all that it answers.

The contract between the harness and any engine (Python today, native later): one `LoadSpec` in;
`intervals.hlog` and `result.json` out, both in `LoadSpec.output_dir`.
"""

from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from perf.design import STRICT, Load, Operation, Sensor
from perf.model import Counter
from perf.systems.contract import Target

WARM_UP = "warm-up"
PRELOAD = "preload"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedPhase:
    """One phase that lasts a fixed time. `iteration` is 0 for a warm-up."""

    __pydantic_config__ = STRICT
    name: str
    iteration: int
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSpec:
    """What one engine process does.

    With `preload_rows` it writes its share of the rows [0, preload_rows) and ends. Otherwise it runs
    `phases` back to back under `load`, from `start_at_s` (Unix time) on. Engine `engine_index` of
    `engine_count` takes every `engine_count`-th row, so shares are disjoint; rows written by timed
    phases are numbered from `first_row`.
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
    start_at_s: float = 0.0
    output_dir: str
    cores: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineResult:
    """What one engine process counted. `cpu_s` is its own user and system time.

    `ended_s` holds, per phase in order, the seconds from the phase's intended start to the end of
    its last operation. `examples` holds the first message of each kind of error.
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


def write_spec(path: Path, spec: LoadSpec) -> None:
    """Write a spec as JSON."""
    path.write_bytes(_SPEC.dump_json(spec, indent=1))


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

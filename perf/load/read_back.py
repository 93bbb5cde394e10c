"""What an engine process wrote, read back with suspicion: a broken engine fails its trial, no more.

What passes here is whole, finite, and about nothing but what the engine was asked to do.
"""

from collections.abc import Iterable, Mapping
from math import inf
from pathlib import Path

from perf.load.spec import INTERVALS, RESULT, EngineResult, LoadSpec, read_result
from perf.local.hlog import MOST_BYTES, read_hlog
from perf.local.plain_files import read_plain
from perf.model.errors import BundleError
from perf.model.results import Interval
from perf.model.shown import printable
from perf.workloads.stages import PRELOAD, WARM_UP

# How exactly a log keeps Unix time, and a little for adding up.
_EXACT_S = 1e-5


def read_back(
    directory: Path, spec: LoadSpec, starts: Mapping[tuple[str, int], float]
) -> tuple[EngineResult, tuple[Interval, ...]]:
    """Read the files of an engine out of a directory here.

    `starts` has the Unix time at which each iteration of each phase began.

    Raises:
        ValueError: the engine did not do what it was asked; the message goes on from its name.

    """
    try:
        found, intervals = read_result(directory / RESULT), read_hlog(directory / INTERVALS)
        _check_phases(spec, found, intervals)
    except (BundleError, OSError, ValueError) as error:
        raise ValueError(f"wrote what no engine should: {printable(str(error), 500)}") from error
    _check_starts(intervals, starts)
    return found, intervals


def read_cut(log: Path) -> tuple[Interval, ...]:
    """Read an interval log whose last line may have been cut off in the middle.

    Raises:
        BundleError: another line is wrong.
        OSError: it cannot be read.

    """
    log.write_bytes(read_plain(log, MOST_BYTES).rpartition(b"\n")[0] + b"\n")
    return read_hlog(log)


def _check_phases(spec: LoadSpec, found: EngineResult, intervals: Iterable[Interval]) -> None:
    if found.engine_index != spec.engine_index:
        raise ValueError(f"the result of engine {found.engine_index}")
    asked = {WARM_UP, PRELOAD, *(stage.phase for stage in spec.stages)}
    asked |= {spec.counted.phase} if spec.counted else set()
    spoken = {one.phase for one in found.counters} | {one.phase for one in found.usages}
    if strange := sorted((spoken | {one.phase for one in intervals}) - asked):
        raise ValueError(f"phase {printable(strange[0])}, which is not in its plan")


def _check_starts(intervals: Iterable[Interval], starts: Mapping[tuple[str, int], float]) -> None:
    """Refuse an interval that does not lie by whole seconds from where its iteration began."""
    for interval in intervals:
        if interval.iteration:
            since_s = interval.start_s - starts.get((interval.phase, interval.iteration), inf)
            if since_s < -_EXACT_S or abs(since_s - round(since_s)) > _EXACT_S:
                where = f"iteration {interval.iteration} of {interval.phase}"
                raise ValueError(f"did not begin {where} together with the others")

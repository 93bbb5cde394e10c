"""Vectors of schedules: what any engine must intend to start when, to the nanosecond.

`python tests/perf/load/schedule_vectors.py` writes them anew.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal, TypeAlias

from vector_files import DIRECTORY, write_vectors

from perf.load.engine.schedule import Share, plan_starts
from perf.model.design import OpenLoop

_Arrivals: TypeAlias = Literal["poisson"] | None

PATH = DIRECTORY / "schedule.json"
# Poisson gaps are added up in blocks of 65,536: the last case has more than two of them.
_CASES: tuple[tuple[_Arrivals, float, float, tuple[int, int, int, int, int]], ...] = (
    (None, 5000.0, 2.5, (1, 0, 0, 0, 1)),
    (None, 333.3, 7.0, (1, 0, 2, 3, 7)),
    (None, 0.7, 3.0, (1, 0, 0, 1, 2)),
    ("poisson", 1000.0, 3.0, (0, 0, 0, 0, 1)),
    ("poisson", 1000.0, 3.0, (20_261_122, 2, 1, 3, 4)),
    ("poisson", 50.0, 10.0, (2**63 + 5, 1, 0, 0, 1)),
    ("poisson", 20_000.0, 9.0, (2**32, 0, 5, 1, 1)),
)


def make_vectors() -> Mapping[str, Any]:
    """Return the vectors."""
    return {"cases": [_make_case(*case) for case in _CASES]}


def _make_case(
    arrivals: _Arrivals,
    load_ops_per_s: float,
    duration_s: float,
    key: tuple[int, int, int, int, int],
) -> Mapping[str, Any]:
    load = OpenLoop(kind="open", offered_load_ops_per_s=load_ops_per_s, in_flight=1, arrivals=arrivals)
    names = ("seed", "run", "stage_place", "engine_index", "engine_count")
    share = Share(**dict(zip(names, key, strict=True)))
    starts = plan_starts(load, share, duration_s)
    places = sorted({*range(min(20, len(starts))), *range(0, len(starts), 4099), len(starts) - 1})
    return {
        "arrivals": arrivals,
        "offered_load_ops_per_s": load_ops_per_s,
        "duration_s": duration_s,
        "share": asdict(share),
        "count": len(starts),
        "starts": {str(place): float(starts[place]) for place in places},
    }


if __name__ == "__main__":
    PATH.write_text(write_vectors(make_vectors()))

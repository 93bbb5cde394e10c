"""When each operation of an open loop should start: fixed before the load begins, and pure.

Waiting and sending belong to `loops`; other arrival patterns belong here. All times are seconds from
the start of a stage.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from perf.model.design import OpenLoop

Starts: TypeAlias = NDArray[np.floating[Any]]

_BLOCK = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Which part of a load one engine offers: the seed, the place of the stage, which engine of all."""

    seed: int
    run: int
    stage_place: int
    engine_index: int
    engine_count: int


def plan_starts(load: OpenLoop, share: Share, duration_s: float) -> Starts:
    """Return the intended starts of one engine's operations in [0, duration_s), in order."""
    if load.arrivals == "poisson":
        return _poisson(load.offered_load_ops_per_s / share.engine_count, share, duration_s)
    return _uniform(load.offered_load_ops_per_s, share, duration_s)


def _uniform(load_ops_per_s: float, share: Share, duration_s: float) -> Starts:
    """Start operation n of the stage at n / load; an engine takes engine_index + k · engine_count."""
    # One more than the product says: it may round across an integer, the division below decides.
    last = int(duration_s * load_ops_per_s) + 2
    starts = np.arange(share.engine_index, last, share.engine_count, dtype=np.float64) / load_ops_per_s
    return starts[starts < duration_s]


def _poisson(rate_ops_per_s: float, share: Share, duration_s: float) -> Starts:
    """Draw a Poisson process of this engine's own, with exponential gaps by inversion.

    Independent Poisson processes of rate λ/m, one per engine, are together one of rate λ (the
    superposition theorem; J. F. C. Kingman, Poisson Processes, 1993, section 2.2), so that engines
    need to agree on nothing but the seed.
    """
    key = (share.seed, share.run, share.stage_place, share.engine_index)
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))
    blocks: list[Starts] = []
    reached_s = 0.0
    while reached_s < duration_s:
        gaps_s = -np.log1p(-generator.random(_BLOCK)) / rate_ops_per_s
        blocks.append(reached_s + np.cumsum(gaps_s))
        reached_s = float(blocks[-1][-1])
    starts = np.concatenate(blocks)
    return starts[starts < duration_s]

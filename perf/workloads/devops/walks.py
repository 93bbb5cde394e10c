"""The random walks behind the devops workload, computed for all hosts at once, in order of time.

TSBS-like, not TSBS: the walks have its starts, bounds, means and deviations, but their steps come from
SplitMix64 by counter, and are normal only as nearly as a sum of four uniform numbers is (Irwin–Hall; no
step is further than 3.46 deviations from the mean). Nothing but whole-number arithmetic and IEEE sums,
products and comparisons is used, so each machine computes the same values to the last bit.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from perf.model.records import Devops
from perf.workloads.devops.tables import MEMORY_BYTES, WALKS, Walk
from perf.workloads.splitmix import GAMMA, UNIT, stream, word

ALL_WALKS: tuple[Walk, ...] = tuple(walk for walks in WALKS.values() for walk in walks)
"""The walks of all tables, one after the other: those of cpu come first."""

_START_STREAM, _STEP_STREAM, _MEMORY_STREAM = 11, 12, 13
# Steps are drawn for so many (moment, host, walk) at a time: 2 MB of words, which caches hold.
_DRAWN_AT_ONCE = 1 << 18
_LANES = np.uint64(0x0000_FFFF_0000_FFFF)
_LANE_MEAN = 4 * (2**16 - 1) / 2
_LANE_SCALE = 1 / (4 * (2.0**32 - 1) / 12) ** 0.5


def moments(records: Devops) -> int:
    """Count the moments at which every host reports: from the begin on, the end not included."""
    return records.span_s // records.interval_s


def memory_bytes(records: Devops, seed: int) -> NDArray[np.int64]:
    """Return the memory of each host, in bytes."""
    source = stream(seed, _MEMORY_STREAM)
    sizes = [MEMORY_BYTES[word(source, host) % len(MEMORY_BYTES)] for host in range(records.hosts)]
    return np.array(sizes, dtype=np.int64)


def walk_states(
    records: Devops, seed: int, walks: Sequence[int]
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield the states of some walks of all hosts, block by block in order of time, without an end.

    Each block is the number of its first moment, and states by (moment, host, walk). `walks` are places
    in `ALL_WALKS`; what else is asked for changes no state.
    """
    chosen = [ALL_WALKS[place] for place in walks]
    scale = np.ones((records.hosts, len(chosen)))
    scale[:, [walk.scales for walk in chosen]] = memory_bytes(records, seed)[:, np.newaxis]
    low, high, mean, deviation = (
        np.array([getattr(walk, name) for walk in chosen], dtype=np.float64)
        for name in ("low", "high", "mean", "deviation")
    )
    low, high, deviation = (np.multiply(scale, one) for one in (low, high, deviation))
    grows = np.array([walk.grows for walk in chosen])
    state = _start(records, seed, walks, high)
    length = max(1, _DRAWN_AT_ONCE // state.size)
    first = 0
    while True:
        steps = _draw(records, seed, range(first, first + length), walks)
        steps *= deviation
        steps += mean
        np.abs(steps, out=steps, where=grows)
        for place in range(length):
            if first + place:  # at the first moment, each walk is where it starts
                state = np.clip(state + steps[place], low, high)
            steps[place] = state
        yield first, steps
        first += length


def _start(
    records: Devops, seed: int, walks: Sequence[int], high: NDArray[np.float64]
) -> NDArray[np.float64]:
    hosts = np.arange(records.hosts, dtype=np.uint64)[:, np.newaxis]
    words = _words(stream(seed, _START_STREAM), hosts * np.uint64(len(ALL_WALKS)) + _columns(walks))
    # The lowest state of each walk that starts anywhere is zero.
    drawn = (words >> np.uint64(11)).astype(np.float64) * UNIT
    starts = [ALL_WALKS[place].start for place in walks]
    fixed = np.array([start is not None for start in starts])
    state = np.broadcast_to([start or 0.0 for start in starts], high.shape).copy()
    np.multiply(drawn, high, out=state, where=~fixed)
    return state


def _draw(records: Devops, seed: int, epochs: range, walks: Sequence[int]) -> NDArray[np.float64]:
    """Draw steps with mean 0 and deviation 1, by (moment, host, walk)."""
    when = np.arange(epochs.start, epochs.stop, dtype=np.uint64)[:, np.newaxis, np.newaxis]
    hosts = np.arange(records.hosts, dtype=np.uint64)[:, np.newaxis]
    row = when * np.uint64(records.hosts) + hosts
    words = _words(stream(seed, _STEP_STREAM), row * np.uint64(len(ALL_WALKS)) + _columns(walks))
    pairs = (words & _LANES) + ((words >> np.uint64(16)) & _LANES)
    sums = (pairs & np.uint64(0xFFFF_FFFF)) + (pairs >> np.uint64(32))
    steps = sums.astype(np.float64)
    steps -= _LANE_MEAN
    steps *= _LANE_SCALE
    return steps


def _columns(walks: Sequence[int]) -> NDArray[np.uint64]:
    return np.array(walks, dtype=np.uint64)


def _words(source: int, places: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return word number `places` of a stream, as `splitmix.word` does for one."""
    state = np.uint64(source) + (places + np.uint64(1)) * np.uint64(GAMMA)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))

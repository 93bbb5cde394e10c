"""Which code the servers of two sides ran differently, per operation, from profiles of both. Pure.

A profile is a list of stacks with what each cost. A frame's *own* cost is that of the stacks in which
it is the innermost frame of the database's code: what it calls of the language and of the kernel is
counted as its own. Its *inclusive* cost is that of all stacks that it is in.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import fmean, median, variance
from typing import Annotated, Self

from annotated_types import MaxLen
from pydantic import TypeAdapter, ValidationError
from scipy.special import chdtri, ndtri, stdtrit

from analysis.comparing.results import (
    CodeDifference,
    ComparisonResult,
    CostKind,
    SideRecord,
    find_faults,
)
from perf.model.errors import InputError
from perf.model.results import SIDES, Release, SideName
from perf.model.scalars import STRICT
from perf.model.stacks import RUNTIME, UNSEEN, Stacks, own_frames, short_name

CONFIDENCE = 0.99
KINDS: Mapping[CostKind, str] = {
    "cpu": "CPU, µs per operation",
    "alloc": "allocated, bytes per operation",
}
"""What is compared, with its unit. Waits for locks are kept in bundles, and read by people."""
_LEAST_TRIALS = 2
"""Of each side: one alone does not say how it scatters."""
_OFTEN = 10
"""Looks in a trial, on the mean: frames that were seen as often say how trials scatter."""
_SCATTERS_AS_OTHERS = 0.1
"""The share of frames that are held for burstier than all others though they are not."""
_MOST_FRAMES = 12
_LEAST_SHARE = 0.01
"""Of all that a side costs: frames below it on both sides are not asked."""
_LEAST_DRAWN = 0.002
"""Of all: stacks below it are not drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What one trial's servers did in one phase: stacks in samples or bytes, and what they stand for.

    `unit` is the cost per operation that one of them stands for, `grain` that of one look of the
    profiler.
    """

    side: SideName
    stacks: Stacks
    unit: float
    grain: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameDifference:
    """A frame whose cost per operation moved more than its noise; `low` and `high` bound by how much.

    `own` is its own difference, without what it calls of the database's code.
    """

    __pydantic_config__ = STRICT
    name: str
    before: float
    after: float
    low: float
    high: float
    own: float

    @property
    def short_name(self) -> str:
        """Return class and method: CommitLog.add."""
        return short_name(self.name)

    @property
    def difference(self) -> float:
        """Return by how much it moved."""
        return self.after - self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileDifference:
    """What differs in one phase, by one kind of cost (`KINDS`).

    `nodes` is the tree of stacks, in an order in which a caller comes first: its place among them, the
    place of its name in `names`, and the cost of both sides; the root is called by itself.
    """

    __pydantic_config__ = STRICT
    phase: str
    kind: CostKind
    before: float
    after: float
    frames: tuple[FrameDifference, ...]
    names: tuple[str, ...]
    nodes: tuple[tuple[int, int, float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileComparison:
    """What profiles of two sides say; `trials` had a profiler, and took turns. `gaps`: what lacks."""

    __pydantic_config__ = STRICT
    id: str
    experiment: str
    baseline: SideRecord
    candidate: SideRecord
    measured_at: datetime
    trials: tuple[str, ...]
    differences: tuple[ProfileDifference, ...]
    gaps: Annotated[tuple[str, ...], MaxLen(100)] = ()

    def compares(self, experiment: str, before: Release, after: Release) -> bool:
        """Return whether it is about these two releases."""
        sides = self.baseline.version, self.candidate.version
        return self.experiment == experiment and sides == (before.version, after.version)

    def is_of(self, result: ComparisonResult) -> bool:
        """Return whether it is about what a comparison compared."""
        return self.experiment == result.experiment and all(
            (mine.version, mine.config, mine.workload, mine.topology)
            == (other.version, other.config, other.workload, other.topology)
            for mine, other in ((self.baseline, result.baseline), (self.candidate, result.candidate))
        )


def find_code(profiled: ProfileComparison) -> tuple[CodeDifference, ...]:
    """Return the code that moved most, for each kind of cost, over all phases."""
    found: dict[str, CodeDifference] = {}
    for one in profiled.differences:
        for frame in one.frames:
            known = found.get(one.kind)
            if frame.name in UNSEEN:
                continue
            if known is None or abs(frame.difference) > abs(known.after - known.before):
                found[one.kind] = CodeDifference(
                    phase=one.phase,
                    kind=one.kind,
                    method=frame.short_name,
                    before=frame.before,
                    after=frame.after,
                    low=frame.low,
                    high=frame.high,
                )
    return tuple(found.values())


_COMPARISON = TypeAdapter(ProfileComparison)


def write_profile_comparison(content: ProfileComparison) -> bytes:
    """Write it, as it lies beside the plan of its trials."""
    return _COMPARISON.dump_json(content) + b"\n"


def read_profile_comparison(content: bytes, path: Path) -> ProfileComparison:
    """Read one of our own; raise InputError where it is none."""
    try:
        return _COMPARISON.validate_json(content)
    except ValidationError as error:
        raise InputError(path, find_faults(error)) from error


@dataclass(slots=True)
class _Costs:
    """The costs per operation in one trial, by frame and by stack."""

    grain: float
    total: float = 0.0
    inclusive: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    own: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    stacks: list[tuple[tuple[str, ...], float]] = field(default_factory=list)

    def without(self, callees: AbstractSet[str], caller: str) -> float:
        """Return what a frame cost where it called none of these, directly or through others."""
        return sum(
            cost
            for frames, cost in self.stacks
            if caller in frames and not callees & set(frames[frames.index(caller) + 1 :])
        )


def _count(profile: Profile) -> _Costs:
    costs = _Costs(profile.grain)
    for stack, found in profile.stacks.items():
        cost, frames = found * profile.unit, own_frames(stack)
        costs.total += cost
        costs.own[frames[-1]] += cost
        for frame in set(frames):
            costs.inclusive[frame] += cost
        costs.stacks.append((frames, cost))
    return costs


@dataclass(frozen=True, slots=True)
class _Noise:
    """How far the means of both sides may lie apart by chance.

    For all frames together (Bonferroni: `level`). The variance of a cost x is g·x + (r·x)²: few looks
    (Poisson, each of which stands for g), and trials that differ by more. r is pooled: the median over
    the own costs of all frames that were looked at often. What comes in bursts, such as compaction and
    garbage collection, scatters by more than the others: a frame that does has Student's t, by how it
    scattered itself, and so has what is no code of the database.
    """

    grains: tuple[float, float]
    share: float
    level: float

    @classmethod
    def of(cls, before: Sequence[_Costs], after: Sequence[_Costs], asked: int) -> Self:
        old, new = (fmean(one.grain for one in side) for side in (before, after))
        excess = []
        for side, grain in ((before, old), (after, new)):
            freedom = len(side) - 1
            middle = (1 - 2 / (9 * freedom)) ** 3  # of chi² / freedom, after Wilson and Hilferty
            for frame in {name for one in side for name in one.own}:
                values = [one.own[frame] for one in side]
                if (mean := fmean(values)) >= _OFTEN * grain:
                    excess.append((variance(values) / middle - grain * mean) / mean**2)
        share = math.sqrt(max(0.0, median(excess))) if excess else 0.0
        return cls((old, new), share, (1 - CONFIDENCE) / 2 / max(1, asked))

    def reach(self, old: Sequence[float], new: Sequence[float], frame: str) -> float:
        """Return the half width of the interval of the difference of two means of a frame."""
        expected = seen = 0.0
        for grain, values in zip(self.grains, (old, new), strict=True):
            mean = fmean(values)
            expected += (grain * mean + (self.share * mean) ** 2) / len(values)
            seen += variance(values) / len(values)
        freedom = len(old) + len(new) - 2
        most = expected * float(chdtri(freedom, _SCATTERS_AS_OTHERS)) / freedom
        if seen > most or frame.startswith(RUNTIME) or frame in UNSEEN:
            return -float(stdtrit(freedom, self.level)) * math.sqrt(seen)
        return -float(ndtri(self.level)) * math.sqrt(expected)


def compare_profiles(
    phase: str, kind: CostKind, profiles: Sequence[Profile]
) -> ProfileDifference | None:
    """Return what the servers of both sides did differently; None with fewer than two of a side.

    The frames are those that moved most and more than their noise. One that moved because of what it
    calls is left out.
    """
    sides = {side: [one for one in profiles if one.side == side] for side in SIDES}
    if min(map(len, sides.values())) < _LEAST_TRIALS:
        return None
    before, after = ([_count(one) for one in sides[side]] for side in SIDES)
    most = max(fmean(one.total for one in side) for side in (before, after))
    asked = sorted(
        {
            frame
            for side in (before, after)
            for frame in {name for one in side for name in one.inclusive}
            if fmean(one.inclusive[frame] for one in side) >= _LEAST_SHARE * most
        }
    )
    noise = _Noise.of(before, after, len(asked))
    names, nodes = _draw(sides)
    return ProfileDifference(
        phase=phase,
        kind=kind,
        before=fmean(one.total for one in before),
        after=fmean(one.total for one in after),
        frames=tuple(_choose(before, after, asked, noise))[:_MOST_FRAMES],
        names=names,
        nodes=nodes,
    )


def _choose(
    before: Sequence[_Costs], after: Sequence[_Costs], asked: Sequence[str], noise: _Noise
) -> list[FrameDifference]:
    """Return the frames that moved for sure and not because of what they call, most first."""
    moved: dict[str, FrameDifference] = {}
    for frame in asked:
        old, new = ([one.inclusive[frame] for one in side] for side in (before, after))
        middle, reach = fmean(new) - fmean(old), noise.reach(old, new, frame)
        if abs(middle) > reach:
            own = (fmean(one.own[frame] for one in side) for side in (after, before))
            moved[frame] = FrameDifference(
                name=frame,
                before=fmean(old),
                after=fmean(new),
                low=middle - reach,
                high=middle + reach,
                own=next(own) - next(own),
            )

    def is_explained(caller: str) -> bool:
        """Return whether nothing is left of it that moved for sure, without the calls that did."""
        others = moved.keys() - {caller}
        old, new = ([one.without(others, caller) for one in side] for side in (before, after))
        return abs(fmean(new) - fmean(old)) <= noise.reach(old, new, caller)

    left = [one for frame, one in moved.items() if not is_explained(frame)]
    return sorted(left, key=lambda one: -abs(one.difference))


def _draw(
    sides: Mapping[SideName, Sequence[Profile]],
) -> tuple[tuple[str, ...], tuple[tuple[int, int, float, float], ...]]:
    """Return names and nodes of the tree of stacks, without the branches that are too thin to see."""
    costs: defaultdict[tuple[str, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for place, side in enumerate(SIDES):
        for one in sides[side]:
            for stack, found in one.stacks.items():
                for depth in range(len(stack) + 1):
                    costs[stack[:depth]][place] += found * one.unit / len(sides[side])
    least = _LEAST_DRAWN * max(costs[()])
    drawn = sorted(stack for stack, cost in costs.items() if max(cost) >= least)
    places = {stack: place for place, stack in enumerate(drawn)}
    names = sorted({stack[-1] for stack in drawn if stack})
    numbers = {name: number for number, name in enumerate(names)}
    return tuple(names), tuple(
        (
            places[stack[:-1]] if stack else 0,
            numbers[stack[-1]] if stack else 0,
            float(f"{costs[stack][0]:.4g}"),
            float(f"{costs[stack][1]:.4g}"),
        )
        for stack in drawn
    )

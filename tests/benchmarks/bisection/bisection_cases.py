"""Situations of a bisection with a known truth, and how an answer is held against it."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator
from scipy.special import nctdtr, stdtrit
from simulated_bisection import (
    SIGMA,
    Line,
    Means,
    Noise,
    bimodal,
    bisect,
    gauss,
    heavy,
    outliers,
)

from analysis.bisecting.bisection import Culprit, Inconclusive

RELEASES = 16
RIGHT = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """A line with its truth: the places that brought a step, and its size in noise floors."""

    line: Line
    steps: tuple[int, ...]
    size: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One situation: how its lines are drawn, how many, and what is asked of it."""

    name: str
    draw: Callable[[Generator], Draw]
    n: int = 1000
    size: float | None = None
    """Of the reference that it is held against."""
    means: Means = field(default_factory=Means)
    least_right: float | None = None
    most_wrong: float | None = None


def single(size: float, noise: Noise = gauss, broken: int = 0) -> Callable[[Generator], Draw]:
    """Draw one step up or down at a random release; `broken` of those between the ends do not start."""

    def draw(rng: Generator) -> Draw:
        place, sign = int(rng.integers(1, RELEASES)), (-1) ** int(rng.integers(2))
        levels = tuple(sign * size * (one >= place) for one in range(RELEASES))
        which = rng.choice(np.arange(1, RELEASES - 1), broken, replace=False)
        line = Line(levels=levels, noise=noise, broken=frozenset(int(one) for one in which))
        return Draw(line=line, steps=(place,) if size else (), size=sign * size)

    return draw


def double(size: float, share: float) -> Callable[[Generator], Draw]:
    """Draw two steps in one direction, the first with this share of the whole."""

    def draw(rng: Generator) -> Draw:
        first, second = sorted(int(p) for p in rng.choice(np.arange(1, RELEASES), 2, replace=False))
        levels = tuple(
            size * (share * (one >= first) + (1 - share) * (one >= second)) for one in range(RELEASES)
        )
        return Draw(line=Line(levels=levels), steps=(first, second), size=size)

    return draw


def drift(size: float) -> Callable[[Generator], Draw]:
    """Draw a change that comes in equal parts with every release."""
    levels = tuple(size * one / (RELEASES - 1) for one in range(RELEASES))
    return lambda _: Draw(line=Line(levels=levels), steps=(), size=size)


CASES = (
    Case(name="one step of 1 σ", draw=single(1), size=1),
    Case(name="one step of 2 σ", draw=single(2), n=2000, size=2, least_right=RIGHT),
    Case(
        name="the same, by the real estimate", draw=single(2), n=300, size=2, means=Means(is_exact=True)
    ),
    Case(name="one step of 3 σ", draw=single(3), size=3),
    Case(name="one step of 5 σ", draw=single(5), size=5),
    Case(name="2 σ, at most 80 trials", draw=single(2), size=2, means=Means(trials=80)),
    Case(name="2 σ, heavy tails (t, 3 degrees)", draw=single(2, heavy), size=2),
    Case(
        name="the same, by the real estimate",
        draw=single(2, heavy),
        n=300,
        size=2,
        means=Means(is_exact=True),
    ),
    Case(name="2 σ, two modes", draw=single(2, bimodal), size=2),
    Case(
        name="the same, by the real estimate",
        draw=single(2, bimodal),
        n=300,
        size=2,
        means=Means(is_exact=True),
    ),
    Case(
        name="2 σ, 5 % outliers of 6 σ, by the real estimate",
        draw=single(2, outliers),
        n=300,
        size=2,
        means=Means(is_exact=True),
    ),
    Case(name="2 σ, three releases broken", draw=single(2, broken=3), size=2, least_right=RIGHT),
    Case(name="nothing changed", draw=single(0), n=2000, most_wrong=0.02),
    Case(name="nothing changed, heavy tails", draw=single(0, heavy), most_wrong=0.02),
    Case(name="nothing changed, two modes", draw=single(0, bimodal), most_wrong=0.02),
    Case(
        name="nothing changed, by the real estimate",
        draw=single(0),
        n=500,
        most_wrong=0.02,
        means=Means(is_exact=True),
    ),
    Case(name="two steps of 1 σ each", draw=double(2, 0.5), n=500),
    Case(name="two steps of 2.5 σ each", draw=double(5, 0.5), n=500),
    Case(name="two steps of 4 σ each", draw=double(8, 0.5), n=500),
    Case(name="steps of 6 σ and 2 σ", draw=double(8, 0.75), n=500),
    Case(name="slow, 2 σ in 15 parts", draw=drift(2), n=500),
    Case(name="slow, 5 σ in 15 parts", draw=drift(5), n=500),
    Case(name="slow, 8 σ in 15 parts", draw=drift(8), n=500),
)


def reference_trials(size: float) -> float:
    """Return the trials of a binary search that knows beforehand how many it needs, and spends no more.

    log₂(15) probes, rounded up, tell the 15 releases after the good end apart. Each compares a release
    with the good end, n fresh trials of each side, by a one-sided t test, and calls it bad if that is
    significant. For all to be right with a probability of 0.95, each may err at most 1 - 0.95^(1/4) of
    the time, to either side: n is the smallest with a level and a miss (noncentral t, 2n - 2 degrees of
    freedom, δ = size · √(n/2)) of no more.
    """
    probes = math.ceil(math.log2(RELEASES - 1))
    error = 1 - RIGHT ** (1 / probes)
    each = 2
    while True:
        quantile = stdtrit(2 * each - 2, 1 - error)
        if nctdtr(2 * each - 2, size * math.sqrt(each / 2), quantile) <= error:
            return 2.0 * each * probes
        each += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What one bisection came to, held against the truth."""

    kind: str
    trials: int
    covers: bool | None = None


def score(draw: Draw, found: Culprit | Inconclusive) -> Score:
    """Hold an answer against the truth. A culprit is right if its range holds a step."""
    if not isinstance(found, Culprit):
        return Score(kind=found.ending.value, trials=found.trials)

    def holds(low: int, high: int) -> bool:
        return any(low < step <= high for step in draw.steps)

    named = found.step
    is_right = holds(named.predecessor.ordinal, named.release.ordinal)
    all_right = all(holds(one.predecessor.ordinal, one.release.ordinal) for one in found.other_steps)
    kind = "wrong"
    if is_right and found.is_improvement == (draw.size > 0):
        count = 1 + len(found.other_steps)
        kind = "right" if count == len(draw.steps) and all_right else "right, others not"
    effect = found.step.effect
    truth = math.expm1(SIGMA * draw.size)
    return Score(kind=kind, trials=found.trials, covers=effect.low <= truth <= effect.high)


def play(case: Case, seed: tuple[int, ...]) -> Score:
    """Bisect one line of a case; the same seed gives the same."""
    rng = np.random.default_rng(seed)
    drawn = case.draw(rng)
    return score(drawn, bisect(drawn.line, case.means, rng))

"""Trials that take turns, drawn from noise whose kind, scatter and truth are known.

The noise of `detection/data.py` runs along the turns as they were taken, ABBA or BAAB, so that what
depends on time (a drift, neighbours alike) meets the order of turns as it would on real hosts.
"""

import math
from dataclasses import dataclass

import numpy as np
import recorded
from data import NOISES, make_generator
from data import noise as draw_noise
from numpy.random import Generator
from numpy.typing import NDArray

from analysis.comparing.blocks import Block, TrialValue

Array = NDArray[np.float64]
Sides = NDArray[np.bool_]

_ABBA = np.array([False, True, True, False])
OWN = {
    "outliers_many": "10 % of trials move by ±8",
    "two_values": "two exact values, half each: no scatter inside of a mode",
    "unequal": "the candidate scatters three times as much",
    "one_sided": "the candidate scatters fourteen times as much",
    "drift": "the hosts grow slower by half a standard deviation each trial",
    "walk": "the hosts wander as much from trial to trial as trials scatter",
}
"""Kinds beside those of `data.NOISES`, in standard deviations (of the clean part, with outliers)."""
KINDS = (*NOISES, *(("recorded",) if recorded.RECORDED.exists() else ()), *OWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What comparisons are drawn from.

    `deviation` is that of the logarithm of a trial's value, `change` the true log ratio. With
    `iterations`, `shared` is the part of the variance of one iteration that its whole trial shares; a
    trial's value is then the mean, and its deviation follows.
    """

    kind: str
    blocks: int
    deviation: float
    change: float
    iterations: int = 0
    shared: float = 0.0

    def draw(self, seed: int, number: int) -> list[Block]:
        """Draw one comparison; equal numbers share their noise whatever the change."""
        generator = make_generator(seed, self.kind, self.blocks, self.iterations, self.shared, number)
        flips = generator.integers(2, size=self.blocks)
        sides = np.concatenate([_ABBA ^ bool(flip) for flip in flips])
        if self.iterations:
            values, iterations = self._nested(sides, generator)
        else:
            values = self.deviation * _noise(self.kind, sides, generator) + self.change * sides
            iterations = np.empty((len(sides), 0))
        trials = [
            TrialValue(value=100 * math.exp(value), iterations=tuple(100 * np.exp(inner)))
            for value, inner in zip(values, iterations, strict=True)
        ]
        return [_block(trials[at : at + 4], sides[at : at + 4]) for at in range(0, len(trials), 4)]

    def _nested(self, sides: Sides, generator: Generator) -> tuple[Array, Array]:
        whole = math.sqrt(self.shared) * _noise(self.kind, sides, generator)
        inner = math.sqrt(1 - self.shared) * generator.standard_normal((len(sides), self.iterations))
        scale = self.deviation / math.sqrt(self.shared + (1 - self.shared) / self.iterations)
        iterations = scale * (whole[:, None] + inner) + self.change * sides[:, None]
        return iterations.mean(axis=1), iterations


def _block(trials: list[TrialValue], sides: Sides) -> Block:
    return Block(
        baseline=tuple(trial for trial, side in zip(trials, sides, strict=True) if not side),
        candidate=tuple(trial for trial, side in zip(trials, sides, strict=True) if side),
    )


def _noise(kind: str, sides: Sides, generator: Generator) -> Array:
    n = len(sides)
    if kind in NOISES or kind == "recorded":
        return draw_noise(kind, n, generator)
    normal = generator.standard_normal(n)
    if kind == "outliers_many":
        return normal + 8 * generator.choice([-1.0, 1.0], n) * (generator.random(n) < 0.1)
    if kind == "two_values":
        return 2.0 * (generator.random(n) < 0.5)
    if kind in {"unequal", "one_sided"}:
        ratio = 3.0 if kind == "unequal" else 14.0
        return normal * np.where(sides, ratio, 1.0) / math.sqrt((1 + ratio**2) / 2)
    if kind == "drift":
        return normal + 0.5 * np.arange(n)
    return math.sqrt(0.5) * (normal + np.cumsum(generator.standard_normal(n)))

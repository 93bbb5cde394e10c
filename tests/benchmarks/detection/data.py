"""Series whose truth is known: seeded noise of many kinds, and what is planted into it.

Noise has mean zero and standard deviation one, except where its docstring gives another unit. The
same seed gives the same series to every detector.
"""

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import recorded
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.signal import lfilter

Array = NDArray[np.float64]

LEVEL = 100.0
LEAST_GAP = 30
"""Points between two planted steps, and between a step and an end."""
_BURN_IN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A series, and the indexes of the first points after each planted step."""

    values: list[float]
    places: tuple[int, ...]


def make_generator(seed: int, *words: object) -> Generator:
    """Return the generator of one series, independent of all others and of the order of work."""
    return np.random.default_rng([seed, *(zlib.crc32(str(word).encode()) for word in words)])


def gauss(n: int, generator: Generator) -> Array:
    """Draw normal noise."""
    return generator.standard_normal(n)


def lognormal(n: int, generator: Generator, sigma: float = 0.5) -> Array:
    """Draw exp(N(0, σ)), centred on its mean and divided by its standard deviation."""
    mean = math.exp(sigma**2 / 2)
    deviation = mean * math.sqrt(math.expm1(sigma**2))
    return np.asarray((generator.lognormal(0, sigma, n) - mean) / deviation, dtype=np.float64)


def lognormal_wide(n: int, generator: Generator) -> Array:
    """Draw log-normal noise of σ = 1: a skewness of 6."""
    return lognormal(n, generator, 1.0)


def autoregressive(n: int, generator: Generator, persistence: float) -> Array:
    """Draw x(t) = r·x(t-1) + √(1-r²)·N(0, 1), with the persistence r."""
    shocks = math.sqrt(1 - persistence**2) * generator.standard_normal(n + _BURN_IN)
    return np.asarray(lfilter([1.0], [1.0, -persistence], shocks), dtype=np.float64)[_BURN_IN:]


def outliers(n: int, generator: Generator) -> Array:
    """Draw normal noise; a point moves by ±8 with a chance of 2 %. Unit: that of the clean part."""
    signs = generator.choice([-1.0, 1.0], n)
    return generator.standard_normal(n) + 8 * signs * (generator.random(n) < 0.02)


def outliers_up(n: int, generator: Generator) -> Array:
    """Draw normal noise; 2 % of points become 8 times their size. Unit: of the clean part."""
    clean = generator.standard_normal(n)
    return np.where(generator.random(n) < 0.02, 8 * np.abs(clean), clean)


def bimodal(n: int, generator: Generator, upper_share: float = 0.5) -> Array:
    """Draw each point from one of two modes, four of their standard deviations apart."""
    upper: NDArray[np.bool_] = generator.random(n) < upper_share
    return _modes(upper, upper_share, generator)


def bimodal_rare(n: int, generator: Generator) -> Array:
    """Draw one point in five from the upper mode."""
    return bimodal(n, generator, 0.2)


def sticky_bimodal(n: int, generator: Generator) -> Array:
    """Draw from two equal modes like `bimodal`, that change with a chance of 0.1 a point."""
    changes = np.cumsum(generator.random(n) < 0.1) + generator.integers(2)
    return _modes(changes % 2 == 1, 0.5, generator)


def heavy(n: int, generator: Generator) -> Array:
    """Draw Student's t of three degrees of freedom, divided by its standard deviation √3."""
    return np.asarray(generator.standard_t(3, n) / math.sqrt(3), dtype=np.float64)


def heavier(n: int, generator: Generator) -> Array:
    """Draw Student's t of two degrees of freedom, whose variance has no end; half of it within 0.8."""
    return np.asarray(generator.standard_t(2, n), dtype=np.float64)


def weekends(n: int, generator: Generator) -> Array:
    """Draw normal noise that is 2 σ higher on two days of seven. Unit: that of the noise."""
    day = (np.arange(n) + generator.integers(7)) % 7
    return generator.standard_normal(n) + 2.0 * (day >= 5)


def coarse(n: int, generator: Generator) -> Array:
    """Draw normal noise in whole numbers of standard deviations: many points are equal."""
    return np.round(generator.standard_normal(n))


def weekly(n: int, generator: Generator, swing: float = 1.5) -> Array:
    """Draw normal noise on a wave of a week, from any day on. Unit: that of the noise alone."""
    wave = np.sin(2 * np.pi * np.arange(n) / 7 + generator.uniform(0, 2 * np.pi))
    return generator.standard_normal(n) + swing * wave


def season90(n: int, generator: Generator) -> Array:
    """Draw normal noise on a wave of 90 points and 2 σ, from any point on. Unit: that of the noise."""
    return generator.standard_normal(n) + 2 * np.sin(
        2 * np.pi * (np.arange(n) / 90 + generator.random())
    )


def walk3(n: int, generator: Generator) -> Array:
    """Draw normal noise on a level that walks at random, 0.3 σ a point. Unit: that of the noise."""
    return generator.standard_normal(n) + 0.3 * np.cumsum(generator.standard_normal(n))


def drift6(n: int, generator: Generator) -> Array:
    """Draw normal noise on a level that moves by 6 σ within 60 points, from a point of 60 to 119 on."""
    first = generator.integers(60, 120)
    moved = np.clip((np.arange(n) - first) / 60, 0, 1) * generator.choice([-6.0, 6.0])
    return np.asarray(generator.standard_normal(n) + moved, dtype=np.float64)


def scatter4(n: int, generator: Generator) -> Array:
    """Draw normal noise that scatters four times as much from the middle on. Unit: that before."""
    noisy = generator.standard_normal(n)
    noisy[n // 2 :] *= 4
    return noisy


def _modes(upper: NDArray[np.bool_], upper_share: float, generator: Generator) -> Array:
    modes = 4 * (upper.astype(np.float64) - upper_share)
    variance = 1 + 16 * upper_share * (1 - upper_share)
    about_modes = generator.standard_normal(len(upper)) + modes
    return np.asarray(about_modes / math.sqrt(variance), dtype=np.float64)


NOISES: dict[str, Callable[[int, Generator], Array]] = {
    "gauss": gauss,
    "lognormal": lognormal,
    "lognormal_wide": lognormal_wide,
    "ar3": lambda n, generator: autoregressive(n, generator, 0.3),
    "ar6": lambda n, generator: autoregressive(n, generator, 0.6),
    "outliers": outliers,
    "outliers_up": outliers_up,
    "bimodal": bimodal,
    "bimodal_rare": bimodal_rare,
    "sticky_bimodal": sticky_bimodal,
    "heavy": heavy,
    "coarse": coarse,
}
"""Made up, each from a formula; `recorded` has a real one."""
SLOW: dict[str, Callable[[int, Generator], Array]] = {
    "weekly": weekly,
    "weekends": weekends,
    "heavier": heavier,
    "season90": season90,
    "walk3": walk3,
    "ar9": lambda n, generator: autoregressive(n, generator, 0.9),
    "drift6": drift6,
    "scatter4": scatter4,
}
"""Hosts that change, and no step."""


def noise(kind: str, n: int, generator: Generator) -> Array:
    """Draw noise of a kind of `NOISES` or `SLOW`, or "recorded"."""
    kinds = NOISES | SLOW | {"recorded": recorded.draw}
    return kinds[kind](n, generator)


def at_level(noisy: Array, generator: Generator) -> list[float]:
    """Put noise and steps on a level of 100, with a unit of 1 to 2: relative changes make sense."""
    return [float(value) for value in LEVEL + generator.uniform(1, 2) * noisy]


def steps(kind: str, size: float, generator: Generator, *, n: int = 200, count: int = 3) -> Planted:
    """Plant steps of ±size at random places, `LEAST_GAP` from each other and from the ends.

    Raises ValueError if so many do not fit.
    """
    slack = n - LEAST_GAP * (count + 1)
    if slack < 0:
        raise ValueError(f"{count} steps, {LEAST_GAP} points apart, do not fit into {n} points")
    offsets = np.sort(generator.integers(0, slack + 1, count))
    places = tuple(int(offset) + LEAST_GAP * number for number, offset in enumerate(offsets, 1))
    noisy = noise(kind, n, generator)
    for place in places:
        noisy[place:] += size * generator.choice([-1.0, 1.0])
    return Planted(values=at_level(noisy, generator), places=places)


def pure(kind: str, generator: Generator, *, n: int = 200) -> list[float]:
    """Return a series in which nothing happens."""
    return at_level(noise(kind, n, generator), generator)


def step_at(kind: str, size: float, generator: Generator, *, place: int = 100, n: int = 200) -> Planted:
    """Plant one step, up or down."""
    noisy = noise(kind, n, generator)
    noisy[place:] += size * generator.choice([-1.0, 1.0])
    return Planted(values=at_level(noisy, generator), places=(place,))


def bump(kind: str, size: float, generator: Generator, *, n: int = 200, length: int = 10) -> Planted:
    """Plant a step that is taken back after `length` points."""
    place = int(generator.integers(LEAST_GAP, n - LEAST_GAP - length + 1))
    noisy = noise(kind, n, generator)
    noisy[place : place + length] += size * generator.choice([-1.0, 1.0])
    return Planted(values=at_level(noisy, generator), places=(place, place + length))


def spike(kind: str, size: float, generator: Generator, *, after: int = 10) -> Planted:
    """Move one point up or down by `size` after 30 to 150 others, noise on top; `after` more follow."""
    place = int(generator.integers(30, 151))
    noisy = noise(kind, place + 1 + after, generator)
    noisy[place] += size * generator.choice([-1.0, 1.0])
    return Planted(values=at_level(noisy, generator), places=(place,))


def ramp(generator: Generator, *, n: int = 200, rise: float = 8.0) -> list[float]:
    """Rise evenly by `rise` standard deviations over the whole series: a drift, no step."""
    return at_level(gauss(n, generator) + np.linspace(0, rise, n), generator)


def wider(generator: Generator, *, n: int = 200, factor: float = 3.0) -> list[float]:
    """Let normal noise scatter `factor` times as much from the middle on: no step."""
    noisy = gauss(n, generator)
    noisy[n // 2 :] *= factor
    return at_level(noisy, generator)


def season(generator: Generator, *, n: int = 200, swing: float = 1.0, period: int = 7) -> list[float]:
    """Add a wave of an amplitude of `swing` standard deviations, a week long: no step."""
    wave = swing * np.sin(2 * np.pi * np.arange(n) / period)
    return at_level(gauss(n, generator) + wave, generator)


def wandering(generator: Generator, *, n: int = 200, pace: float = 0.1) -> list[float]:
    """Let the level walk at random, `pace` standard deviations of the noise a point: no step."""
    return at_level(gauss(n, generator) + pace * np.cumsum(gauss(n, generator)), generator)


SHAPES: dict[str, Callable[[Generator], list[float]]] = {
    "ramp of 8σ": ramp,
    "scatter × 3": wider,
    "weekly wave of 1σ": season,
    "random walk of 0.1σ": wandering,
}
"""What is no step but may look like some."""

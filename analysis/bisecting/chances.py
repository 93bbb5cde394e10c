"""With which release did a single change come? Probabilities, from all that was measured. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

NO_SINGLE_CHANGE, NO_SINGLE_AGAIN = 0.1, 0.5
"""How probable it is beforehand that a range holds no single change, but several or a slow one; the
second where the whole range is known to hold none."""
Array: TypeAlias = NDArray[np.floating[Any]]
_LEVELS = np.linspace(-4, 4, 33)
_ANYWHERE = np.linspace(-0.5, 1.5, 201)
_NARROWEST = 0.02
"""No measurement is taken for more exact than this share of the change: it must fall on the grid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseLevel:
    """How far a release is from the known good end: a log ratio, its standard error, and their freedom.

    `half_width` is half the interval that holds over all looks. The good end is its own zero, without
    an error.
    """

    log_ratio: float = 0.0
    standard_error: float = 0.0
    half_width: float = 0.0
    degrees_of_freedom: float = math.inf


def weigh(
    count: int,
    measured: Sequence[tuple[int, ReleaseLevel]],
    lower: ReleaseLevel,
    upper: ReleaseLevel,
    no_single: float,
) -> tuple[float, ...]:
    """Give for each of `count` releases how probable it is that the change came with it.

    They follow one at the level `lower` (L); the last is at `upper` (U). `measured` are others of them,
    by their place from 0. What the probabilities lack to one is that of no single change, which was
    `no_single` (q) before. With x_j, s_j, f_j a measured log ratio, its standard error and freedom, and
    t the density of Student's distribution,

        P(i) ∝ (1 - q)/count · ∫ t((U - E)/s_U; f_U) · Π_j t((x_j - m_ij)/s_j; f_j) dE,
        m_ij = L for j < i, else E

    and for no single change, each release with a level of its own, flat from half a change below L to
    half a change above U:

        P(none) ∝ q · Π_j ∫ t((x_j - μ)/s_j; f_j) dμ / (2 |U - L|)
    """
    size = upper.log_ratio - lower.log_ratio
    narrowest = _NARROWEST * abs(size)
    spread = max(upper.standard_error, narrowest)
    grid = upper.log_ratio + spread * _LEVELS
    of_level = _log_t(_LEVELS, upper.degrees_of_freedom)
    of_level -= _log_sum(of_level)
    single = np.zeros((count, len(grid))) + of_level
    free = 0.0
    for place, one in measured:
        error = max(math.hypot(one.standard_error, lower.standard_error), narrowest)
        freedom = one.degrees_of_freedom
        below = float(_log_t(np.array([one.log_ratio - lower.log_ratio]) / error, freedom)[0])
        single[: place + 1] += _log_t((one.log_ratio - grid) / error, freedom)
        single[place + 1 :] += below
        anywhere = lower.log_ratio + size * _ANYWHERE
        free += _log_sum(_log_t((one.log_ratio - anywhere) / error, freedom)) - math.log(len(anywhere))
    each = math.log((1 - no_single) / count) + np.logaddexp.reduce(single, axis=1)
    none = math.log(no_single) + free
    whole = np.logaddexp(_log_sum(each), none)
    return tuple(float(one) for one in np.exp(each - whole))


def _log_t(deviates: Array, freedom: float) -> Array:
    # Without the constant of the density, which is the same for all that is compared.
    if math.isinf(freedom):
        return np.asarray(-(deviates**2) / 2)
    return np.asarray(-(freedom + 1) / 2 * np.log1p(deviates**2 / freedom))


def _log_sum(logarithms: Array) -> float:
    return float(np.logaddexp.reduce(logarithms))

"""The opponent: one look at a number of trials that was fixed beforehand, by Student's t.

It decides as our rule does (the interval within the relevant change, or without zero and nearer to
relevant than to none), with normal noise of known error rates, so that its size can be computed.
"""

from itertools import count
from operator import ge
from typing import TypeAlias

import numpy as np
from scipy.stats import chi2, norm
from scipy.stats import t as student

Shares: TypeAlias = tuple[float, float]
"""How often it reports a change of equal sides, and a relevant change as unchanged, on one side."""
_NODES = 2000
_CERTAIN = 0.999
"""More than it is nobody's goal, and no number of simulated comparisons shows it."""


def chances(each: int, effect: float, shares: Shares) -> tuple[float, float]:
    """Return how often a true effect is reported, and no effect as unchanged; `effect` in deviations.

    Two groups of `each` trials, 2·each - 2 degrees of freedom: no block costs it any.
    """
    freedom = 2 * each - 2
    error = np.sqrt(2 / each)
    # Over the quantiles of the estimated deviation, the estimate itself is normal and independent.
    scatter = np.sqrt(chi2.ppf((np.arange(_NODES) + 0.5) / _NODES, freedom) / freedom)
    strict, width = (student.ppf(1 - share, freedom) * error * scatter for share in shares)
    reported = norm.sf((np.maximum(strict, effect - width) - effect) / error)
    unchanged = np.maximum(0.0, 2 * norm.cdf((effect - width) / error) - 1)
    return float(reported.mean()), float(unchanged.mean())


def trials_for(effect: float, shares: Shares, reported: float, unchanged: float = 0.0) -> int:
    """Return the fewest trials of both sides together with at least these chances.

    However many there are, an effect just as large as the relevant one is found no more often than its
    interval holds it: a higher goal is taken for one just below that.
    """
    goals = min(reported, _CERTAIN * (1 - shares[1])), min(unchanged, _CERTAIN)
    return next(2 * each for each in count(2) if all(map(ge, chances(each, effect, shares), goals)))

"""False-discovery control: which of a night's changes may be called confirmed. Pure.

Each series asks anew every night whether it has changed. Among hundreds of series, chance alone answers
yes somewhere; so what is new tonight must stand against all the series that were asked tonight.
"""

from collections.abc import Sequence

from scipy.stats import false_discovery_control

from perf.model.rules import Detection

FALSE_SHARE = 0.1
"""Of the changes that one night's test lets through, the share that chance may have made. One in ten is
worth following up; a smaller share would let a true change of a single series wait for more nights.

What waits is confirmed on the next night without another test. So the control delays, and gives chance
a night to fade; it does not bound the share among all that is ever confirmed."""


def adjust(p_values: Sequence[float]) -> tuple[float, ...]:
    """Give each p-value as it stands among all of them; it survives up to `FALSE_SHARE`.

    The p-value of the newest change of each series, 1 where there is none, adjusted by Benjamini and
    Hochberg (Journal of the Royal Statistical Society B 57, 1995, 289-300):

        p'(i) = min over j ≥ i of p(j) · m / j,   p(1) ≤ … ≤ p(m)

    It is proven also for series that move together by one common cause, whatever their signs (Benjamini
    and Yekutieli, Annals of Statistics 29, 2001, 1165-1188), and no violation is known for correlated
    two-sided tests. Their own adjustment for any dependence at all would divide by ln m, and hide true
    changes.
    """
    if not p_values:
        return ()
    return tuple(float(value) for value in false_discovery_control(p_values, method="bh"))


def expected_false_alarms(series: int, settings: Detection) -> float:
    """Give how many confirmed changes noise alone brings about in one night of so many series.

    The rate is measured, on noise of many kinds: see docs/statistics.md.
    """
    return series * settings.false_alarms_per_1000_series_nights / 1000

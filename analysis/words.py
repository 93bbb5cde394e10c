"""Words: how numbers, changes and places are said in reasons and on the terminal."""

import math
from collections.abc import Sequence

from analysis.detection import ChangePoint
from analysis.series import Point

_SMALLEST_P_VALUE = 1e-16
"""Below the rounding of the arithmetic behind it, a p-value has no digits to show."""


def movement(change: ChangePoint) -> str:
    """Say which way a series moved and how far."""
    word = "rise" if change.after > change.before else "drop"
    if math.isinf(change.relative_change):
        return f"a {word} from zero"
    return f"a {word} of {percent(abs(change.relative_change))}"


def place(change: ChangePoint) -> str:
    """Say between which releases a change lies, or within which one."""
    before, after = change.last_before.release, change.first_after.release
    if before == after:
        return f"within {after.version}"
    return f"between {before.version} and {after.version}"


def releases(of: Sequence[Point]) -> str:
    """Say which releases a run of points covers."""
    first, last = of[0].release.version, of[-1].release.version
    return last if first == last else f"{first} to {last}"


def points(count: int) -> str:
    """Count points."""
    return counted(count, "point", "points")


def counted(count: int, one: str, many: str) -> str:
    """Put a count before its noun."""
    return f"{count} {one if count == 1 else many}"


def percent(share: float) -> str:
    """Write a share as a percentage of three digits."""
    return f"{100 * share:.3g} %"


def signed_percent(share: float) -> str:
    """Write a relative change as a percentage with its sign, to one decimal."""
    return f"{100 * share:+.1f} %".replace("-", "−")


def p_value(value: float) -> str:
    """Write a p-value to one digit, or its bound where it has none."""
    return f"p = {value:.0e}" if value >= _SMALLEST_P_VALUE else f"p < {_SMALLEST_P_VALUE:.0e}"

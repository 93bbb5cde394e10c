"""Words: how numbers, changes and places are said in reasons and on the terminal."""

import math
from collections.abc import Sequence

from analysis.detection.detection import ChangePoint
from analysis.detection.series import Point, Series
from perf.model.metrics import DIAGNOSTICS, METRICS
from perf.model.night_names import night_name, night_span
from perf.model.results import SeriesKey
from perf.model.series_names import series_words

_SMALLEST_P_VALUE = 1e-4
"""Below it, the digits of a p-value are of no use to anybody."""


def series(key: SeriesKey) -> str:
    """Name a series by all that makes it one."""
    where = f"{key.topology}, {key.testbed_class}, {key.config}, {key.engine}"
    return f"{key.system} {key.line}  {series_words(key)}  {key.workload}  ({where})"


def movement(change: ChangePoint) -> str:
    """Describe which way a series moved and how far."""
    word = "rise" if change.after > change.before else "drop"
    if math.isinf(change.relative_change):
        return f"a {word} from zero"
    return f"a {word} of {percent(abs(change.relative_change))}"


def place(change: ChangePoint) -> str:
    """Describe between which releases a change lies; within one release, between which nights."""
    before, after = change.last_before, change.first_after
    if before.release != after.release:
        return f"between {before.release.version} and {after.release.version}"
    nights = f"between the nights {night_span(night(before), night(after), 'and')}"
    return nights if is_of_one_release(change.series) else f"within {after.release.version}, {nights}"


def beginning(change: ChangePoint) -> str:
    """Describe since when a change is there."""
    after = change.first_after
    if change.last_before.release == after.release:
        return f"the night {name_night(after)}"
    return after.release.version


def night(point: Point) -> str:
    """Return the id of the night that measured a point; of one measured in none, its date."""
    return point.night or f"{point.started_at:%Y-%m-%d}"


def name_night(point: Point) -> str:
    """Name the night that measured a point for people."""
    return night_name(night(point))


def is_of_one_release(series: Series) -> bool:
    """Return whether only the nights tell the points of a series apart."""
    numbers = series.points.releases
    return len(numbers) > 0 and bool((numbers == numbers[0]).all())


def releases(of: Sequence[Point], series: Series) -> str:
    """Describe which releases a run of points covers; where a series has only one, which nights."""
    if is_of_one_release(series):
        first, last = night(of[0]), night(of[-1])
        return (
            f"night {night_name(last)}" if first == last else f"nights {night_span(first, last, 'to')}"
        )
    first, last = of[0].release.version, of[-1].release.version
    return last if first == last else f"{first} to {last}"


def points(count: int) -> str:
    """Count points."""
    return counted(count, "point", "points")


def counted(count: int, one: str, many: str) -> str:
    """Put a count before its noun."""
    return f"{count} {one if count == 1 else many}"


def value(number: float) -> str:
    """Write a measured value with three digits, or all digits before the point where it has more."""
    return f"{number:,.0f}" if abs(number) >= 999.5 else f"{number:.3g}"  # noqa: PLR2004  rounds to 1,000


def unit(change: ChangePoint) -> str:
    """Return the unit of the values of a change."""
    return (METRICS | DIAGNOSTICS)[change.series.key.metric].unit


def percent(share: float) -> str:
    """Write a share as a percentage of three digits."""
    return f"{100 * share:.3g} %"


def signed_percent(share: float) -> str:
    """Write a relative change as a percentage with its sign, to one decimal."""
    if math.isinf(share):
        return "from zero"
    return f"{100 * share:+.1f} %".replace("-", "−")


def p_value(value: float) -> str:
    """Write a p-value to one digit, or that it is smaller than any that is written."""
    return f"p = {value:.1g}" if value >= _SMALLEST_P_VALUE else f"p < {_SMALLEST_P_VALUE:.1g}"

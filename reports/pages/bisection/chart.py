"""The chart of a bisection: what the probe of each release measured against the good end."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

_HEIGHT, _MARGIN, _SLOT, _LABEL = 180.0, 12.0, 64.0, 22.0
_LEAST = 0.02
_LONGEST = 9
_BOUND = 10.0
"""A bound beyond this factor says that nothing is known: it is drawn to the edge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stake:
    """A probed release: its change at `y`, and the interval of it from `low` to `high`."""

    x: float
    y: float
    low: float
    high: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeChart:
    """Stakes in a box; `names` are all releases of the range with their places, `zero` is no change.

    `top` and `bottom` are the relative changes at the upper and the lower edge.
    """

    width: float
    height: float
    stakes: tuple[Stake, ...]
    names: tuple[tuple[float, str], ...]
    zero: float
    top: float
    bottom: float


def draw_probes(
    releases: Sequence[str], probes: Sequence[tuple[str, float, float, float, str]]
) -> ProbeChart | None:
    """Draw release, change, both ends of its interval and what is told of it; None without any.

    Of a release that was probed more than once the last is drawn, which holds all its trials.
    """
    last = {probe[0]: probe for probe in probes if isfinite(probe[1]) and probe[0] in releases}
    if not last:
        return None
    ends = [
        min(max(value, -_BOUND), _BOUND)
        for _, change, low, high, _ in last.values()
        for value in (change, low, high)
    ]
    top, bottom = max(_LEAST, *ends), min(-_LEAST, *ends)

    def height(value: float) -> float:
        inside = min(max(value, bottom), top)
        return round(_MARGIN + (_HEIGHT - 2 * _MARGIN) * (top - inside) / (top - bottom), 1)

    places = {name: round(_SLOT * (place + 0.5), 1) for place, name in enumerate(releases)}
    return ProbeChart(
        width=_SLOT * len(releases),
        height=_HEIGHT + _LABEL,
        stakes=tuple(
            Stake(x=places[name], y=height(change), low=height(low), high=height(high), text=text)
            for name, change, low, high, text in last.values()
        ),
        names=tuple((place, _shorten(name)) for name, place in places.items()),
        zero=height(0.0),
        top=top,
        bottom=bottom,
    )


def _shorten(name: str) -> str:
    """Cut a name that would run into the next; the table has it whole."""
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"

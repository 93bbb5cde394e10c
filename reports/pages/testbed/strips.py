"""Canaries over time, as small pictures side by side: each host and each kind of fixed work once.

The same work is done before and after every trial whatever is measured, so the pictures hold all
trials of a testbed, while each series holds those of one experiment.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from math import isfinite
from statistics import median
from typing import TypeAlias

from analysis.judging.drift import is_canary
from analysis.judging.judgement import JudgedSeries
from perf.model.metrics import CANARY_PHASES, DIAGNOSTICS
from reports.site.svg import Scale, fit
from reports.wording.changes import TYPICAL
from reports.wording.wording import percent, quantity, rank

_WIDTH, _HEIGHT, _MARGIN = 320, 96, 8
_MOST = 400
"""Values that are drawn, the newest: more would be a smear in so small a box."""
_LONG_GAP, _LEAST_GAP = 6.0, 24.0
"""A gap this many times as wide as most, and so many units of the box, breaks a line."""
_WORTH = 20
"""Trials between which "now" and "before" are told apart: a fifth of them is now, at least three."""
Line: TypeAlias = Sequence[tuple[datetime, float]]
Place: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """Lines in a box; a path is broken where nothing was measured, and ends in its place of `ends`."""

    paths: tuple[str, ...]
    ends: tuple[Place, ...]
    y: Scale
    first: datetime
    last: datetime
    width: float = _WIDTH
    height: float = _HEIGHT


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryStrip:
    """One canary of one host over time: what was measured before trials, and after them."""

    host: str
    metric: str
    before: Line
    after: Line
    strip: Strip


def list_canaries(watched: Iterable[JudgedSeries]) -> list[CanaryStrip]:
    """Return the medians of all canaries, by host and kind."""
    found: dict[tuple[str, str], dict[str, list[tuple[datetime, float]]]] = {}
    for one in watched:
        key = one.series.key
        if is_canary(key) and key.statistic == TYPICAL:
            of_phase = found.setdefault((key.host, key.metric), {}).setdefault(key.phase, [])
            of_phase += [(point.started_at, point.value) for point in one.series.points]
    known = tuple(DIAGNOSTICS)
    strips = []
    for host, metric in sorted(found, key=lambda at: (at[0], rank(at[1], known), at[1])):
        before, after = (sorted(found[host, metric].get(phase, [])) for phase in CANARY_PHASES)
        if strip := draw_strip((before, after)):
            strips.append(
                CanaryStrip(host=host, metric=metric, before=before, after=after, strip=strip)
            )
    return strips


def draw_strip(lines: Sequence[Line]) -> Strip | None:
    """Draw lines of values over time into one box; None where there is nothing to draw."""
    drawn = [[(at, value) for at, value in line if isfinite(value)][-_MOST:] for line in lines]
    found = [one for line in drawn for one in line]
    if not found:
        return None
    first, last = min(at for at, _ in found), max(at for at, _ in found)
    length_s = (last - first).total_seconds()
    x = Scale(0, length_s, _MARGIN, _WIDTH - _MARGIN) if length_s else Scale(-1, 1, 0, _WIDTH)
    y = fit((value for _, value in found), _HEIGHT - _MARGIN, _MARGIN)
    placed = [
        [(x((at - first).total_seconds()), y(value)) for at, value in one] for one in drawn if one
    ]
    return Strip(
        paths=tuple(map(_trace, placed)),
        ends=tuple(line[-1] for line in placed),
        y=y,
        first=first,
        last=last,
    )


def _trace(line: Sequence[Place]) -> str:
    """Return the path of a line, broken at gaps: what lies between was not measured."""
    gaps = [after[0] - before[0] for before, after in pairwise(line)]
    longest = max(_LONG_GAP * median(gaps), _LEAST_GAP) if gaps else 0.0
    # A point alone is a line of no length, which round ends make a dot.
    parts = [f"M{line[0][0]:g},{line[0][1]:g}h0"]
    for gap, (x, y) in zip(gaps, line[1:], strict=True):
        parts.append(f"L{x:g},{y:g}" if gap <= longest else f"M{x:g},{y:g}h0")
    return "".join(parts)


def level_words(line: Line, metric: str) -> str:
    """Describe what values were of late, and before."""
    values = [value for _, value in line]
    newest = max(3, len(values) // 5)
    whole = median(values)
    if len(values) < _WORTH or not whole:
        return f"Median {quantity(whole, metric)}."
    now, earlier = median(values[-newest:]), median(values[:-newest])
    change = f" ({percent(now / earlier - 1)})" if earlier else ""
    was = f"before {quantity(earlier, metric)}{change}"
    return f"Newest {newest:,}: median {quantity(now, metric)}, {was}."

"""The detector that judges: steps of the level, told apart from spikes, drift, dependence and scatter.

0. Take out a weekly pattern, where one is sure (`weeks`).
1. Estimate the noise from differences (`noise`), and pull in outliers (`candidates`).
2. Collect candidates generously: moving sums of several widths, and Otava's e-divisive (`candidates`,
   `otava_detector`).
3. Remove the smallest candidate and test its neighbours again, until each left passes both tests; put
   each where it fits best (`criteria`, `selection`).
4. Where a slow movement explains a staircase better, take it away and look for steps again (`ramps`).
5. Search the distances from the levels in the same way: a change of the scatter.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from analysis.detection.candidates import END_POINTS, clip_outliers, find_by_moving_sums
from analysis.detection.criteria import PreparedSequence, prepare
from analysis.detection.detection import DetectorResult, Drift, Shift, SpreadChange
from analysis.detection.noise import ROUNDING, Noise, Values, estimate_noise, median
from analysis.detection.otava_detector import find_by_divisive
from analysis.detection.ramps import find_drifts, subtract
from analysis.detection.selection import Selection
from analysis.detection.weeks import Days, find_week, without_week
from perf.model.rules import Detection

_MOST_ROUNDS = 3
"""Of looking for drifts: under the largest another may be hidden."""
_LEAST_SPREAD_SEGMENT = 12
"""A scatter of fewer points is hardly known."""
_NORMAL_MEAN_ROOT = 0.822
"""The mean of √|z| of a standard normal z: Γ(3/4) · 2^(1/4) / √π."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDetector:
    """Finds steps, drifts and changes of scatter. Deterministic."""

    settings: Detection

    @property
    def name(self) -> str:
        """Name the method."""
        return "steps"

    def read(self, values: Sequence[float] | Values, days: Days = ()) -> DetectorResult:
        """Describe what is to be seen; of days that are not known, no weekly pattern.

        Raises ValueError on values that are not finite.
        """
        array = np.array(values, dtype=float)
        if not np.isfinite(array).all():
            raise ValueError("changes cannot be found among values that are not finite numbers")
        if len(array) < self.settings.minimum_points:
            return DetectorResult()
        week = find_week(array, days) if len(days) else ()
        array = without_week(array, days, week)
        # A power of two takes nothing from the digits, and squares of tiny or huge values are numbers.
        unit = float(np.ldexp(1.0, min(max(int(np.frexp(np.abs(array).max())[1]), -1000), 1000)))
        return replace(_in_units(self._read(array / unit), unit), week=week)

    def _read(self, array: Values) -> DetectorResult:
        drifts: list[Drift] = []
        selection = self._select(array)
        for _ in range(_MOST_ROUNDS):
            found = find_drifts(selection.evidence, selection.places)
            if not found:
                break
            drifts.extend(found)
            selection = self._select(subtract(selection.evidence.values, found))
        shifts = selection.describe()
        return DetectorResult(
            shifts=shifts,
            drifts=tuple(sorted(drifts, key=lambda drift: (drift.first, drift.last))),
            spreads=self._find_spreads(selection),
            noise=_noise(array, selection.evidence, shifts),
        )

    def _select(self, values: Values) -> Selection:
        evidence = self._prepare(values)
        count = len(values)
        candidates = set(range(count - END_POINTS, count))
        if evidence.deviation:
            candidates |= find_by_moving_sums(
                evidence.clipped, evidence.deviation, evidence.persistence
            )
        candidates |= find_by_divisive(evidence, self.settings.window_points)
        return Selection.of(evidence, self.settings, candidates)

    def _prepare(self, values: Values) -> PreparedSequence:
        deviation, persistence = estimate_noise(values)
        is_exact = deviation <= ROUNDING * np.abs(values).max()
        clipped = values if is_exact else clip_outliers(values, deviation)
        return prepare(values, clipped, deviation, persistence, self.settings.window_points)

    def _find_spreads(self, selection: Selection) -> tuple[SpreadChange, ...]:
        """Search the roots of the distances from the levels, which scatter almost normally.

        As the test of Brown and Forsythe (JASA 69, 1974, 364-367) compares absolute distances from
        medians; the root makes them less skewed.
        """
        values = selection.evidence.values
        bounds = (0, *selection.places, len(values))
        levels = np.concatenate(
            [np.full(end - start, median(values[start:end])) for start, end in pairwise(bounds)]
        )
        roots = np.sqrt(np.abs(values - levels))
        evidence = self._prepare(roots)
        if not evidence.deviation:
            return ()
        candidates = find_by_moving_sums(evidence.clipped, evidence.deviation, evidence.persistence)
        found = Selection.of(
            evidence, self.settings, candidates, least_segment=_LEAST_SPREAD_SEGMENT, is_open=False
        )
        scatter = [(part.mean() / _NORMAL_MEAN_ROOT) ** 2 for part in np.split(roots, found.places)]
        return tuple(
            SpreadChange(
                index=shift.index, before=float(before), after=float(after), p_value=shift.p_value
            )
            for shift, (before, after) in zip(found.describe(), pairwise(scatter), strict=True)
        )


def _in_units(reading: DetectorResult, unit: float) -> DetectorResult:
    """Return a reading of values that were divided by a unit, in their own units."""
    noise = reading.noise
    return replace(
        reading,
        drifts=tuple(
            replace(one, before=one.before * unit, after=one.after * unit) for one in reading.drifts
        ),
        spreads=tuple(
            replace(one, before=one.before * unit, after=one.after * unit) for one in reading.spreads
        ),
        noise=noise and replace(noise, deviation=noise.deviation * unit, level=noise.level * unit),
    )


def _noise(values: Values, evidence: PreparedSequence, shifts: Sequence[Shift]) -> Noise:
    # A level that may be a spike is none that a change could be seen against.
    newest = values[max((shift.index for shift in shifts if shift.is_confirmed), default=0) :]
    return Noise(
        deviation=evidence.deviation,
        persistence=evidence.persistence,
        level=median(newest),
        points=len(newest),
        all_points=len(values),
    )

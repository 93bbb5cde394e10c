"""Judge a whole history at once: observations in, one judged series per key out. Pure."""

from dataclasses import dataclass

from analysis.detection import ChangePoint
from analysis.series import Series
from analysis.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSeries:
    """A series with its change points (ascending by index) and its verdict today."""

    series: Series
    change_points: tuple[ChangePoint, ...]
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """All series, and the verdict over them in words."""

    series: tuple[JudgedSeries, ...]
    verdict: Verdict

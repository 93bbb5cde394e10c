"""Judge a whole history at once: observations in, one judged series per key out. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from analysis.detection import ChangePoint, Detector
from analysis.series import Series
from analysis.verdict import Verdict
from perf.design import Detection
from perf.model import Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSeries:
    """A series with its change points (ascending by index) and its verdict today.

    A series without points (its every trial is invalid or failed) is judged too: invalid.
    """

    series: Series
    change_points: tuple[ChangePoint, ...]
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """All series, ascending by key, and the verdict over them in words."""

    series: tuple[JudgedSeries, ...]
    verdict: Verdict


def judge(observations: Iterable[Observation], settings: Detection, detector: Detector) -> Judgement:
    """Judge every series of a history."""
    raise NotImplementedError

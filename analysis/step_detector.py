"""The detector that judges: steps of the level, told apart from spikes, drift and scatter."""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.detection import Reading
from analysis.otava_detector import OtavaDetector
from perf.design import Detection


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDetector:
    """Finds steps. Deterministic."""

    settings: Detection

    @property
    def name(self) -> str:
        """Name the method."""
        return "steps"

    def read(self, values: Sequence[float]) -> Reading:
        """Tell what is to be seen. Raises ValueError on values that are not finite."""
        inner = OtavaDetector(
            max_p_value=self.settings.max_p_value,
            window_points=self.settings.window_points,
            confirming_points=self.settings.confirming_points,
        )
        return inner.read(values)

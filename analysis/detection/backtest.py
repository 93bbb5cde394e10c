"""Judge series of any origin: as they stand, and as they stood after each of their points. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from analysis.detection.alerts import Sighting, follow, sight
from analysis.detection.detection import ChangeState, Detector, levels, outcome_of
from analysis.detection.effects import relative_change
from analysis.detection.long_series import for_length
from analysis.detection.noise import Noise, visible_effects
from analysis.detection.series_file import FileFindings, ForeignSeries, FoundChange, ReplayedSeries
from perf.model.rules import Detection


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Describes what is to be seen in a series today. A call of it can be sent to another process."""

    settings: Detection
    detector: Detector

    def __call__(self, series: ForeignSeries) -> FileFindings:
        """Search the values that are there; too few to judge give no changes and no noise."""
        known = series.known
        if len(known) < self.settings.minimum_points:
            return FileFindings(name=series.name)
        values = _values(series)
        reading = for_length(self.detector, len(values)).read(values, known)
        return FileFindings(
            name=series.name,
            changes=tuple(
                FoundChange(
                    index=known[shift.index],
                    state=ChangeState.CONFIRMED if shift.is_confirmed else ChangeState.PROVISIONAL,
                    before=before,
                    after=after,
                    relative_change=relative_change(before, after),
                    p_value=shift.p_value,
                    outcome=outcome_of(series.better, before, after),
                )
                for shift, before, after, _ in levels(values, reading, known)
            ),
            noise_floor=reading.noise.floor if reading.noise and reading.noise.deviation else None,
            minimum_detectable_effect=self._detectable(reading.noise),
            drifts=tuple(
                replace(drift, first=known[drift.first], last=known[drift.last])
                for drift in reading.drifts
            ),
            spreads=tuple(replace(spread, index=known[spread.index]) for spread in reading.spreads),
        )

    def _detectable(self, noise: Noise | None) -> float | None:
        effects = visible_effects(noise, self.settings)
        return next((effects[nights] for nights in effects if nights > 1), None)

    def cost(self, series: ForeignSeries) -> int:
        """Return how many values are to be searched."""
        return len(series.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest:
    """Judges a series anew after each of its values, from the `first`-th known one on.

    A night is called by the index of the last value known then; a missing trial adds no night.
    """

    settings: Detection
    detector: Detector
    first: int

    def __call__(self, series: ForeignSeries) -> ReplayedSeries:
        """Follow the changes through all nights."""
        return ReplayedSeries(name=series.name, alerts=follow(self._nights(series)))

    def cost(self, series: ForeignSeries) -> int:
        """Return how many values are to be searched, over all nights."""
        nights = max(0, len(series.values) - self._least + 1)
        return nights * (len(series.values) + self._least) // 2

    @property
    def _least(self) -> int:
        return max(self.first, self.settings.minimum_points)

    def _nights(self, series: ForeignSeries) -> Iterator[tuple[int, Sequence[Sighting]]]:
        known, values = series.known, _values(series)
        for count in range(self._least, len(values) + 1):
            so_far, days = values[:count], known[:count]
            yield known[count - 1], sight(so_far, self.detector.read(so_far, days), days, days)


def _values(series: ForeignSeries) -> list[float]:
    return [value for value in series.values if value is not None]

"""Histograms for the pages: some seconds of a trial, one with a spike; 5.0.3 is half as fast."""

from hdrh.histogram import HdrHistogram

from perf.history.distributions import Recording
from perf.model.results import Interval, TrialId

SECONDS = 10
"""So many as a course needs to be drawn."""
SPIKE_US = 400_000
_FIRST_S = 1_772_330_400.0


def record(trial: TrialId) -> Recording:
    """Return what a trial measured of writes at saturation."""
    slower = 2 if trial.endswith("5.0.3") else 1
    values = [slower * (1000 + 10 * number) for number in range(100)]
    return Recording(
        trial=trial,
        phase="saturation",
        operation="write",
        kind="response_time",
        intervals=tuple(
            _fold([*values, SPIKE_US] if second == 1 else values, second) for second in range(SECONDS)
        ),
    )


def _fold(values: list[int], second: int) -> Interval:
    histogram = HdrHistogram(1, 60_000_000, 3)
    for value in values:
        histogram.record_value(value)
    return Interval(
        phase="saturation",
        operation="write",
        kind="response_time",
        iteration=1,
        start_s=_FIRST_S + second,
        length_s=1.0,
        max_us=max(values),
        encoded=histogram.encode().decode(),
    )

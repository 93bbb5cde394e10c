"""Where a trial's time goes: one part at a time, by a clock that nobody sets."""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from perf.model.metrics import TIME_SPENT
from perf.model.results import Sample, Trial
from perf.model.shown import format_duration

TRIAL = "trial"
"""The phase of these samples; their operation is the part."""
MEASURED = "measured"
BESIDES = "between trials"
"""What a job does besides its trials: it fetches, seals, judges and reports."""


@dataclass(slots=True)
class Spent:
    """How many seconds each part of a trial took."""

    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    _part: str = "prepare"
    _since_s: float = field(default_factory=time.monotonic)

    def enter(self, part: str) -> None:
        """Begin a part, and end the one before it."""
        now_s = time.monotonic()
        self.seconds[self._part] += now_s - self._since_s
        self._part, self._since_s = part, now_s

    def samples(self) -> Iterator[Sample]:
        """Yield what each part took so far, in the order in which they began."""
        self.enter(self._part)
        for part, seconds in self.seconds.items():
            yield Sample(
                phase=TRIAL,
                operation=part,
                metric=TIME_SPENT.name,
                statistic="total",
                value=seconds,
            )


def describe_spent(trials: Iterable[Trial], whole_s: float = 0.0) -> str:
    """Return how long trials took, and which share of it each part; "" where none was timed.

    Of a job that took `whole_s` seconds with all that it did besides, that is a part as well.
    """
    found = defaultdict[str, float](float)
    for trial in trials:
        for sample in trial.samples:
            if sample.metric == TIME_SPENT.name:
                found[sample.operation] += sample.value
    whole = sum(found.values())
    if not whole:
        return ""
    if whole_s > whole:
        found[BESIDES] = whole_s - whole
        whole = whole_s
    measured = found.pop(MEASURED, 0.0)
    parts = (
        f"{part} {seconds / whole:.0%}"
        for part, seconds in sorted(found.items(), key=lambda one: -one[1])
    )
    said = f"{format_duration(whole)}, {measured / whole:.0%} of it measured; {', '.join(parts)}"
    return said.replace("%", " %")

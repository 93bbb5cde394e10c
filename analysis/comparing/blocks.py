"""Blocks: trials of two sides that took turns on the same hosts, and what a measure came to in each."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Measure:
    """What is compared: one statistic of one metric of one operation in one phase."""

    phase: str
    operation: str
    metric: str
    statistic: str

    def __str__(self) -> str:
        """Give it as people type it: steady/write/response_time/p99."""
        return f"{self.phase}/{self.operation}/{self.metric}/{self.statistic}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialValue:
    """One trial's value of one measure: over all iterations, and of each; `block` is where it ran."""

    value: float
    iterations: tuple[float, ...] = ()
    block: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Trials that ran close together, both sides in turns; each side has at least one.

    A whole block is ABBA or BAAB. One of whose pairs is not valid counts with the other pair, and so do
    the trials of one night, one of each side.
    """

    baseline: tuple[TrialValue, ...]
    candidate: tuple[TrialValue, ...]


def measure(one: Measure) -> str:
    """Name a measure: p99 response time of write, steady."""
    phase = one.phase.removeprefix(f"{one.operation}-")
    return f"{name_kind(one)} of {one.operation}, {phase}"


def name_kind(one: Measure) -> str:
    """Name what a measure is, of whatever it was measured: p99 response time."""
    metric = one.metric.replace("_", " ")
    return metric if one.statistic in {"mean", "estimate"} else f"{one.statistic} {metric}"

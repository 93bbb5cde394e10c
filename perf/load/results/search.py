"""The highest offered load whose p99 of response time meets an objective: which load comes next? Pure.

The search bisects between the highest load that held and the lowest that did not. It halves the
*ratio* of the two, not the difference (the next load is their geometric mean), because what is asked
for is a ratio: the resolution is a share of the lower end, as the goal width of Multiple Loss Ratio
Search is (RFC 9971). So each step halves the number of resolutions left, wherever the answer lies.

One run of a load near the capacity says little: there, the same load holds at times and misses at
times. Hence:

- A miss in a load's first run may have been a disturbance, and would hide everything above it. It is
  repeated; if the second run holds, a third decides. A miss after a run that held is one for good:
  the search goes on below.
- The lower end of the answer must hold in `confirmations` further runs.
- The upper end of the answer must miss in as many. A load that held and missed in turn is neither end
  but lies between them: so the answer is as wide as the noise where that exceeds the resolution.
- A load at which the client was the limit counts as not held, and the answer says whose limit it was.

The highest load is offered only when all below have held: overload leaves queues and compaction
behind, which would weigh on later steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, log, log2, sqrt

from perf.model.design import SearchLoad
from perf.model.results import LoadStep, StepOutcome

# A system without noise needs `_least_steps`; one with noise gets this many times as many. With noise
# as wide as the resolution, fewer than 1 in 1000 simulated searches ended without an answer.
_PATIENCE = 3
# Loads are floats: a bracket as wide as the resolution but for their rounding is narrow enough.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search came to, in operations per second.

    `lower` is the highest load that held with all its confirmations, `upper` the lowest above it that
    never held in as many runs. `estimate` is the middle, by ratio, of the bracket in which the search
    ended: between `lower` and the lowest load that did not hold reliably. An end that is not known is
    None, and then so is the estimate.
    """

    estimate: float | None
    lower: float | None
    upper: float | None
    text: str


@dataclass(frozen=True, slots=True)
class _Tried:
    """A load with the outcomes of its runs, oldest first."""

    load: float
    runs: tuple[StepOutcome, ...]

    @property
    def held_last(self) -> int:
        """How many runs held since the last that did not."""
        count = 0
        for run in reversed(self.runs):
            if run is not StepOutcome.HELD:
                break
            count += 1
        return count

    @property
    def is_missed_for_good(self) -> bool:
        """It missed twice, or after it had held."""
        misses = sum(run is not StepOutcome.HELD for run in self.runs)
        fell = any(
            one is StepOutcome.HELD and later is not StepOutcome.HELD
            for one, later in pairwise(self.runs)
        )
        return misses > 1 or fell

    @property
    def has_held(self) -> bool:
        """It counts as held by now: at once, or in two runs after a first that missed."""
        needed = 1 if self.runs[0] is StepOutcome.HELD else 2
        return not self.is_missed_for_good and self.held_last >= needed

    @property
    def is_client_limited(self) -> bool:
        """Whenever it did not hold, it was for the client."""
        return StepOutcome.MISSED not in self.runs

    @property
    def never_held(self) -> bool:
        """It did not hold in any run."""
        return StepOutcome.HELD not in self.runs


def next_load(search: SearchLoad, steps: Sequence[LoadStep]) -> float | Found:
    """Return the load to offer after `steps`, or the answer. The same steps give the same load.

    Never more than `most_steps(search)` loads are asked for.
    """
    tried = _collect(steps)
    result = _decide(search, tried)
    if isinstance(result, float) and len(steps) >= most_steps(search):
        return _give_up(search, tried, len(steps))
    return result


def most_steps(search: SearchLoad) -> int:
    """Return the number of steps after which a search ends without an answer at the latest."""
    return _PATIENCE * _least_steps(search)


def _least_steps(search: SearchLoad) -> int:
    """Return the most steps that a system needs whose every load always holds or always misses.

    They are the lowest load and the highest; a halving of the bracket for each binary digit of the
    number of resolutions in it; and the confirmations of both ends.
    """
    widths = log(search.highest_ops_per_s / search.lowest_ops_per_s) / log(1 + search.resolution)
    halvings = max(0, ceil(log2(widths)))
    return 2 + halvings + 2 * search.confirmations


def _collect(steps: Sequence[LoadStep]) -> tuple[_Tried, ...]:
    """Return the loads that were tried, from the lowest up."""
    runs: dict[float, tuple[StepOutcome, ...]] = {}
    for step in steps:
        load = step.offered_load_ops_per_s
        runs[load] = (*runs.get(load, ()), step.outcome)
    return tuple(_Tried(load, runs[load]) for load in sorted(runs))


def _bracket(tried: Sequence[_Tried]) -> tuple[_Tried | None, _Tried | None]:
    """Return the lowest load that has not held, and the highest below it that has, upper end last."""
    upper = next((one for one in tried if not one.has_held), None)
    below = [one for one in tried if upper is None or one.load < upper.load]
    return (below[-1] if below else None), upper


def _decide(search: SearchLoad, tried: Sequence[_Tried]) -> float | Found:
    if not tried:
        return search.lowest_ops_per_s
    lower, upper = _bracket(tried)
    load = _narrow(search, lower, upper)
    if load is None and lower and upper and not upper.is_client_limited:
        missed = next((one for one in tried if one.load > lower.load and one.never_held), None)
        if missed is None and tried[-1].load < search.highest_ops_per_s:
            load = search.highest_ops_per_s
        elif missed is not None and len(missed.runs) <= search.confirmations:
            load = missed.load
        else:
            return _conclude(search, lower, upper, missed)
    return _conclude(search, lower, upper, upper) if load is None else load


def _narrow(search: SearchLoad, lower: _Tried | None, upper: _Tried | None) -> float | None:
    """Return the load that narrows the bracket or makes an end of it sure; None if none would."""
    if lower is not None:
        top = upper.load if upper else search.highest_ops_per_s
        if top / lower.load > (1 + search.resolution) * (1 + _ROUNDING):
            return sqrt(lower.load * top)
        if upper is None and lower.load < top:
            return top
    if upper is not None and not upper.is_missed_for_good:
        return upper.load
    if lower is not None and lower.held_last <= search.confirmations:
        return lower.load
    return None


def _conclude(
    search: SearchLoad, lower: _Tried | None, unreliable: _Tried | None, missed: _Tried | None
) -> Found:
    """Say what is known: a load that held, the lowest that did not reliably, one that never did."""
    goal = f"a p99 of at most {search.response_time_p99_objective_ms:g} ms"
    least = lower.load if lower else None
    limited = next((one for one in (unreliable, missed) if one and one.is_client_limited), None)
    most = missed.load if missed and not limited else None
    estimate = None
    if least is not None and unreliable is not None and most is not None:
        estimate = sqrt(least * unreliable.load)
        text = (
            f"the highest load with {goal} is {estimate:.4g} ops/s: {least:.4g} held and "
            f"{most:.4g} missed, each in {search.confirmations + 1} runs"
        )
    elif limited is not None:
        known = f"at least {least:.4g} ops/s" if least is not None else "not known"
        text = f"the highest load with {goal} is {known}: the client cannot offer {limited.load:.4g}"
    elif least is not None:
        text = (
            f"the highest load with {goal} is at least {least:.4g} ops/s: the highest of the search, "
            f"{search.highest_ops_per_s:g}, was not missed reliably; raise highest_ops_per_s"
        )
    else:
        text = (
            f"the highest load with {goal} is below {search.lowest_ops_per_s:g} ops/s, the lowest of "
            "the search; lower lowest_ops_per_s"
        )
    return Found(
        estimate=estimate,
        lower=least,
        upper=most,
        text=text,
    )


def _give_up(search: SearchLoad, tried: Sequence[_Tried], count: int) -> Found:
    """Return what is certain, without an estimate."""
    missed = [one.load for one in tried if one.never_held and not one.is_client_limited]
    upper = min(missed, default=None)
    held = [one.load for one in tried if one.has_held and one.held_last > search.confirmations]
    lower = max((load for load in held if upper is None or load < upper), default=None)
    least = "no load held" if lower is None else f"{lower:.4g} ops/s held"
    return Found(
        estimate=None,
        lower=lower,
        upper=upper,
        text=(
            f"no answer after {count} steps, because the same loads held and missed in turn; {least} "
            f"in {search.confirmations + 1} runs"
        ),
    )

"""Re-measurement: what to measure again, side by side, so that a suspicion need not wait for nights.

The two releases on both sides of a change take turns on the same hosts. Between such trials neither a
drift of the hosts nor the order of nights passes for a difference; what is left is how trials scatter.
"""

import math
from dataclasses import dataclass, replace

from scipy.special import nctdtr, stdtrit

from analysis import words
from analysis.comparison import Effect
from analysis.detection import ChangePoint, State
from analysis.noise import POWER, Noise
from perf.model import Release, SeriesKey

CONFIDENCE = 0.99
"""Of the interval that answers. One question is asked, not one for each of a night's series, so this
is enough; "unchanged" asks for as much."""
FEWEST, MOST = 2, 20
"""Trials of each release. Two are the least that have a scatter. Forty trials of five minutes fill half
a night; from there on, the next night's point comes sooner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remeasurement:
    """A question to put to the hosts: which series, which two releases, how many trials of each.

    System, topology, config, workload and engine of `key` are the experiment. `reason` says why so many
    trials, and whether they are enough.
    """

    key: SeriesKey
    baseline: Release
    candidate: Release
    trials_each: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a re-measurement came to.

    `agrees` is True if the releases differ in the direction of the change, False if a difference of its
    size is ruled out, None if the trials cannot tell.
    """

    agrees: bool | None
    effect: Effect
    trials_each: int


def propose(change: ChangePoint, noise: Noise | None) -> Remeasurement | None:
    """Say how to ask about a change again; None within one release: there are no two to compare."""
    baseline, candidate = change.last_before.release, change.first_after.release
    if baseline == candidate:
        return None
    trials_each, reason = _choose(abs(change.relative_change), noise)
    return Remeasurement(
        key=change.series.key,
        baseline=baseline,
        candidate=candidate,
        trials_each=trials_each,
        reason=reason,
    )


def _choose(effect: float, noise: Noise | None) -> tuple[int, str]:
    """Choose how many trials of each release there should be, within the bounds, and say why."""
    if noise is None or not math.isfinite(noise.floor):
        return MOST, f"{MOST} of each, since the noise of the series is not known"
    asked = (
        f"a difference of {words.percent(effect)} against a noise floor of {words.percent(noise.floor)}"
    )
    for trials in range(FEWEST, MOST + 1):
        if power(effect, noise.floor, trials) >= POWER:
            return trials, f"{trials} of each show {asked} four times in five"
    return MOST, f"{asked} would need more than {MOST} of each to show four times in five"


def power(effect: float, floor: float, trials_each: int) -> float:
    """Give how often so many trials show a difference; `effect` and `floor` are shares of the level.

        1 - T(t; 2n - 2, δ),   δ = effect / floor · √(n / 2)

    with T the noncentral t distribution and t the quantile that `compare_means` asks for, Student's
    with n - 1 degrees of freedom (Chow, Shao, Wang, Sample Size Calculations in Clinical Research,
    2008, 3.2.1, with that stricter quantile). The noise's persistence is left out: it is one of nights
    in a row.
    """
    if not floor:
        return 1.0
    quantile = stdtrit(trials_each - 1, (1 + CONFIDENCE) / 2)
    return 1 - float(nctdtr(2 * trials_each - 2, effect / floor * math.sqrt(trials_each / 2), quantile))


def answer(change: ChangePoint, effect: Effect, trials_each: int) -> Answer:
    """Read off the interval of a side-by-side comparison whether it agrees with a change."""
    rose = change.relative_change > 0
    low, high = (effect.low, effect.high) if rose else (-effect.high, -effect.low)
    agrees = True if low > 0 else False if high < abs(change.relative_change) else None
    return Answer(agrees=agrees, effect=effect, trials_each=trials_each)


def confirm(change: ChangePoint, answer: Answer) -> ChangePoint:
    """Give the change as it stands after an answer: confirmed, no longer confirmed, or as it was."""
    if answer.agrees is None:
        return change
    return replace(change, state=State.CONFIRMED if answer.agrees else State.PROVISIONAL)

"""Bisection: which release brought a change? What to probe next, or what was found. Pure.

`next_step` is asked after each probe with all that is known; it keeps nothing, so a bisection that was
killed goes on where its saved verdicts end.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from analysis.comparison import Effect
from analysis.paired import Estimate
from analysis.probing import Probed, Standing, classify
from perf.model import Release

TURNS = 4
"""Trials of a block: the least that a probe takes."""


class Ending(StrEnum):
    """Why a bisection ended without a culprit."""

    NOTHING_CHANGED = "nothing-changed"
    """The bad end is shown to be like the good one, or shows no change within its trials."""
    END_NOT_MEASURED = "end-not-measured"
    """The bad end could not be measured."""
    NOT_MONOTONE = "not-monotone"
    """A release like the bad end lies before one like the good end, or one changed the other way."""
    GRADUAL = "gradual"
    """The change came in several steps, none of which is most of it."""
    UNDECIDED = "undecided"
    """The trials of a probe cannot tell on which side of it the change lies."""
    BUDGET = "budget"
    """The budget was used up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """How probable it is that the change came with a release."""

    release: Release
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change found between two measured releases.

    `skipped` are the releases between them that could not be measured: the change came with one of
    those or with `release`. `effect` is the change from `predecessor` to `release`.
    """

    predecessor: Release
    release: Release
    skipped: tuple[Release, ...]
    effect: Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Compare this release side by side with the known good end, next.

    `reason` says in a sentence why this one. `full_change` belongs into `probe_look`; None is the probe
    of the bad end. `expected_trials` are about how many trials, of both sides together, are left until
    the end of the bisection, this probe included.
    """

    release: Release
    reason: str
    full_change: Estimate | None
    expected_trials: int
    chances: tuple[Chance, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """The change was found: `step` has the release and its predecessor.

    `probability` that it is this one of all releases of the range. `other_steps` are further changes
    in the range, in the order of releases. `sentence` says it all to people. `trials` were used.
    """

    step: Step
    is_improvement: bool
    probability: float
    other_steps: tuple[Step, ...]
    chances: tuple[Chance, ...]
    trials: int
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inconclusive:
    """No culprit can be named. The change, if any, came after `good` and up to `bad`.

    `chances` for each release of the range; what they lack to one is the chance that it was no single
    change. `cost_to_finish` is about how many more trials would do; None where more would not help.
    `steps` are changes found on the way.
    """

    ending: Ending
    good: Release
    bad: Release
    skipped: tuple[Release, ...]
    chances: tuple[Chance, ...]
    steps: tuple[Step, ...]
    cost_to_finish: int | None
    trials: int
    sentence: str


NextStep: TypeAlias = Probe | Culprit | Inconclusive


def next_step(
    releases: Sequence[Release],
    verdicts: Sequence[Probed],
    *,
    higher_is_better: bool,
    trials_per_probe: int,
    trials_left: int | None = None,
) -> NextStep:
    """Say which release to probe next, or what the bisection came to.

    `releases` are of one line, in order; the first is the known good end, the last the bad one.
    `verdicts` are all that is known, in any order, from this bisection or from before; of a release
    with several the last counts. `trials_per_probe` is the most that one probe may take (both sides
    together), `trials_left` the most that all further ones may; None is no bound.

    Raises:
        ValueError: there are fewer than two releases, or a verdict is of a release not among them.

    """
    if len(releases) < 2:  # noqa: PLR2004  two ends
        raise ValueError("a bisection needs a good end and a bad one")
    known = {one.release: one for one in verdicts}
    if not set(known) <= set(releases):
        raise ValueError("a verdict is of a release that is not among those of the bisection")
    trials = sum(one.trials for one in verdicts)
    end = known.get(releases[-1])
    if end is None:
        return Probe(
            release=releases[-1],
            reason="first, whether the two ends differ at all",
            full_change=None,
            expected_trials=trials_per_probe,
        )
    if end.estimate is None or end.effect is None or end.effect.low <= 0 <= end.effect.high:
        ending = Ending.END_NOT_MEASURED if end.estimate is None else Ending.NOTHING_CHANGED
        return _inconclusive(ending, releases, trials, "nothing changed between the ends")
    full = end.estimate
    standings = {
        one.release: classify(one.estimate, one.effect, full)
        if one.estimate and one.effect
        else Standing.SKIPPED
        for one in verdicts
    }
    bad = min(i for i, one in enumerate(releases) if standings.get(one) is Standing.BAD)
    good = max((i for i in range(bad) if standings.get(releases[i]) is Standing.GOOD), default=0)
    open_ones = [i for i in range(good + 1, bad) if releases[i] not in known]
    if not open_ones:
        step = Step(
            predecessor=releases[good],
            release=releases[bad],
            skipped=tuple(releases[good + 1 : bad]),
            effect=end.effect,
        )
        return Culprit(
            step=step,
            is_improvement=(full.log_ratio > 0) == higher_is_better,
            probability=1.0,
            other_steps=(),
            chances=(),
            trials=trials,
            sentence=f"the change came with {releases[bad].version}",
        )
    if trials_left is not None and trials_left < TURNS:
        return _inconclusive(Ending.BUDGET, releases[good : bad + 1], trials, "the budget is used up")
    middle = min(open_ones, key=lambda i: abs(2 * i - good - bad))
    return Probe(
        release=releases[middle],
        reason="the middle of what is left",
        full_change=full,
        expected_trials=trials_per_probe * math.ceil(math.log2(bad - good)),
    )


def _inconclusive(ending: Ending, left: Sequence[Release], trials: int, sentence: str) -> Inconclusive:
    return Inconclusive(
        ending=ending,
        good=left[0],
        bad=left[-1],
        skipped=(),
        chances=(),
        steps=(),
        cost_to_finish=None,
        trials=trials,
        sentence=sentence,
    )

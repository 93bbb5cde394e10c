"""Bisection: which release brought a change? What to probe next, or what was found. Pure.

`next_step` is asked after each probe with all that is known; it keeps nothing, so a bisection that was
killed goes on where its saved verdicts end.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias

from scipy.special import stdtrit

from analysis.bisecting import words as say
from analysis.bisecting.probing import LevelSpan, Probed, level
from analysis.bisecting.search import (
    Gap,
    Search,
    rounds,
    search,
    trials_needed,
    trials_of_probe,
)
from analysis.detection.effects import Effect
from perf.model.results import TURNS, Release

LEAST = 2 * TURNS
"""Trials, of both sides together: below, no comparison has a scatter."""
PLAIN, DOUBTFUL = 0.5, 0.8
"""How probable a culprit must be to be named, without and with releases in doubt around it."""
SURE = 0.9
"""A culprit less probable than this has its neighbours probed again before it is named."""
_CONFIDENCE = 0.95
SEVERAL = 2
"""So many steps are reported as such; where there are more, the largest must be most of the change."""
_MOST_OF_IT = 0.5


class Ending(StrEnum):
    """Why a bisection ended without a culprit."""

    NOTHING_CHANGED = "nothing-changed"
    """The bad end is shown to differ by less than what is worth acting on, if at all."""
    END_NOT_MEASURED = "end-not-measured"
    """The bad end could not be measured."""
    SEVERAL = "several"
    """More than one step is shown, and which releases brought them is not known."""
    GRADUAL = "gradual"
    """The change came in three steps or more, none of which is most of it."""
    UNDECIDED = "undecided"
    """The trials of a probe cannot tell on which side of the change it is, or whether there is one."""
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
    those or with `release`. So it is with those `unmeasured`, which nobody has tried: a step too small
    to narrow down has them. `effect` is the change from `predecessor` to `release`.
    """

    predecessor: Release
    release: Release
    skipped: tuple[Release, ...]
    unmeasured: tuple[Release, ...]
    effect: Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Compare this release side by side with the known good end, next.

    `reason` says in a sentence why this one. `full_change` belongs into `probe_look`; None is the probe
    of the bad end. `others` are releases that would teach something as well.
    """

    release: Release
    reason: str
    full_change: LevelSpan | None
    others: tuple[Release, ...] = ()


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
    """Describe which release to probe next, or what the bisection came to.

    `releases` are of one line, in order; the first is the known good end, the last the bad one.
    `verdicts` are all that is known, from this bisection or from before, in the order in which it
    became so. A release may be asked for a second time: the trials of its first probe count there,
    too, so of a release with several verdicts the last counts. `trials_per_probe` is the most that one
    probe may take (both sides together), `trials_left` the most that all further ones may; None is no
    bound.

    Raises:
        ValueError: there are fewer than two releases, or a verdict is of a release not among them.

    """
    state = _State(releases, verdicts)
    is_short = trials_left is not None and trials_left < LEAST
    end = state.known.get(state.last)
    if end is None:
        if is_short:
            most = trials_per_probe * (1 + math.ceil(math.log2(state.last)))
            return state.end(Ending.BUDGET, say.say_budget_before(*state.ends), cost=most)
        return Probe(release=releases[-1], reason=say.FIRST_PROBE, full_change=None)
    if end.estimate is None or end.effect is None:
        return state.end(Ending.END_NOT_MEASURED, say.say_end_not_measured(state.ends[1], end.reason))
    if end.is_same:
        why = say.say_nothing_changed(*state.ends, end.effect, end.relevant_change)
        return state.end(Ending.NOTHING_CHANGED, why)
    if end.effect.low <= 0 <= end.effect.high:
        ending = Ending.BUDGET if is_short else Ending.UNDECIDED
        why = say.say_end_unclear(*state.ends, end.effect, is_short=is_short)
        return state.end(ending, why, cost=trials_needed(end))
    return state.go_on(trials_per_probe, is_short=is_short, higher_is_better=higher_is_better)


class _State:
    """What is known of a bisection, by place."""

    def __init__(self, releases: Sequence[Release], verdicts: Sequence[Probed]) -> None:
        if len(releases) < 2:  # noqa: PLR2004  two ends
            raise ValueError("a bisection needs a good end and a bad one")
        places = {one: place for place, one in enumerate(releases)}
        foreign = [one.release.version for one in verdicts if one.release not in places]
        if foreign:
            raise ValueError(f"{foreign[0]} is not among the releases of the bisection")
        self.releases = releases
        self.last = len(releases) - 1
        self.known = {places[one.release]: one for one in verdicts}
        self.trials = sum(one.trials for one in self.known.values())
        times = Counter(places[one.release] for one in verdicts)
        self.firm = {place for place, count in times.items() if count > 1}
        self.ends = releases[0].version, releases[-1].version

    def go_on(self, trials_per_probe: int, *, is_short: bool, higher_is_better: bool) -> NextStep:
        """Describe how to go on, now that the ends are known to differ."""
        found = search(len(self.releases), self.known)
        if again := self.find_doubt(found):
            return self.stop(found, trials_per_probe) if is_short else again
        gaps = [gap for gap in found.gaps if gap.is_wide and gap.worth()]
        if not gaps:
            return self.conclude(found, higher_is_better=higher_is_better)
        if not is_short:
            return self.probe(gaps)
        end = self.known[self.last]
        cost = sum(rounds(gap) * trials_of_probe(end, gap.span.size, trials_per_probe) for gap in gaps)
        return self.stop(found, cost)

    def probe(self, gaps: Sequence[Gap]) -> Probe:
        """Ask for the release that parts the largest gap best."""
        gap = _largest(gaps)
        place, whole = gap.split(), gap.chance(gap.low, gap.high)
        good, bad = self._versions((gap.low, gap.high))
        # Where nothing fits at all, every chance may have vanished.
        chance = gap.chance(gap.low, place) / whole if whole else 0.5
        return Probe(
            release=self.releases[place],
            reason=say.say_split(good, bad, len(gap.worth()), chance),
            full_change=gap.span,
            others=tuple(self.releases[other] for other in gap.worth() if other != place),
        )

    def find_doubt(self, found: Search) -> Probe | None:
        """Ask again for a release that does not fit a single change; of each at most once.

        First what does not fit a single step. Then, where no gap is left to search and the culprit is
        not probable enough, the releases in doubt and those that fit worst. A change that came with the
        bad end itself rests on that one probe, as one that is none would: the bad end is asked again.
        """
        doubts = [(place, span) for place, span in found.odd if place not in self.firm]
        if not doubts and not any(gap.is_wide and gap.worth() for gap in found.gaps):
            doubts = [
                (place, gap.span)
                for gap in found.gaps
                if gap.is_wide and gap.best()[2] < SURE
                for place in (*gap.undecided, *gap.misfits)
                if place not in self.firm
            ]
            main = _largest(found.gaps)
            if main.best()[1] == self.last and self.last not in self.firm:
                doubts.append((self.last, main.span))
        if not doubts:
            return None
        place, span = doubts[0]
        return Probe(
            release=self.releases[place],
            reason=say.say_again(self.releases[place].version),
            full_change=replace(span, is_firm=True),
        )

    def conclude(self, found: Search, *, higher_is_better: bool) -> Culprit | Inconclusive:
        """Describe what was found when no probe is left that would teach anything."""
        main = _largest(found.gaps)
        if not main.is_wide or (len(found.gaps) > SEVERAL and main.share < _MOST_OF_IT):
            sentence = say.say_gradual([self._describe(self._step(gap)) for gap in found.gaps])
            return self.end(Ending.GRADUAL, sentence, found=found, gap=main)
        low, high, probability = main.best()
        if probability < (DOUBTFUL if main.undecided else PLAIN):
            return self._stay_undecided(found, main)
        step = self._step(main)
        others = tuple(self._step(gap) for gap in found.gaps if gap is not main)
        is_improvement = (step.effect.relative_change > 0) == higher_is_better
        kind = "improvement" if is_improvement else "regression"
        place = self._place(low, high)
        sentence = (
            say.say_culprit(kind, place, step.effect, probability)
            + say.say_others([self._describe(one) for one in others])
            + say.say_returned(
                [(bad, good) for bad, good in map(self._versions, found.returned)],
                self._versions(found.opposite),
                place,
            )
        )
        return Culprit(
            step=step,
            is_improvement=is_improvement,
            probability=probability,
            other_steps=others,
            chances=self._chances(main),
            trials=self.trials,
            sentence=sentence,
        )

    def _stay_undecided(self, found: Search, gap: Gap) -> Inconclusive:
        if len(found.gaps) > 1:
            sentence = say.say_several([self._describe(self._step(one)) for one in found.gaps])
            return self.end(Ending.SEVERAL, sentence, found=found, gap=gap)
        low, high, probability = gap.best()
        best = self._place(low, high)
        good, bad = self._versions((gap.low, gap.high))
        doubtful = self._versions(gap.undecided)
        sentence = say.say_undecided(good, bad, doubtful, best, probability)
        # As many again for each in doubt: the errors fall by a third, which mostly is enough.
        cost = sum(self.known[place].trials for place in gap.undecided) or None
        return self.end(Ending.UNDECIDED, sentence, cost=cost, found=found, gap=gap)

    def stop(self, found: Search, cost: int) -> Inconclusive:
        """Describe what is known where the budget ends the search."""
        gap = _largest(found.gaps)
        low, high, _ = gap.best()
        likely = max(range(low + 1, high + 1), key=lambda place: gap.chance(place - 1, place))
        probability = gap.chance(likely - 1, likely)
        good, bad = self._versions((gap.low, gap.high))
        others = [self._describe(self._step(one)) for one in found.gaps if one is not gap]
        sentence = say.say_budget(good, bad, self.releases[likely].version, probability)
        sentence += say.say_others(others)
        return self.end(Ending.BUDGET, sentence, cost=cost, found=found, gap=gap)

    def end(
        self,
        ending: Ending,
        sentence: str,
        *,
        cost: int | None = None,
        found: Search | None = None,
        gap: Gap | None = None,
    ) -> Inconclusive:
        """End without a culprit."""
        low, high = (gap.low, gap.high) if gap else (0, self.last)
        skipped = [p for p in range(low + 1, high) if p in self.known and not level(self.known[p])]
        return Inconclusive(
            ending=ending,
            good=self.releases[low],
            bad=self.releases[high],
            skipped=tuple(self.releases[place] for place in skipped),
            chances=self._chances(gap) if gap else (),
            steps=tuple(self._step(one) for one in found.gaps) if found else (),
            cost_to_finish=cost,
            trials=self.trials,
            sentence=sentence,
        )

    def _step(self, gap: Gap) -> Step:
        low, high, _ = gap.best()
        between = range(low + 1, high)
        upper, lower = gap.span.upper, gap.span.lower
        error = math.hypot(upper.standard_error, lower.standard_error)
        freedom = min(upper.degrees_of_freedom, lower.degrees_of_freedom)
        width = float(stdtrit(freedom, (1 + _CONFIDENCE) / 2)) * error
        return Step(
            predecessor=self.releases[low],
            release=self.releases[high],
            skipped=tuple(self.releases[p] for p in between if p in self.known),
            unmeasured=tuple(self.releases[p] for p in between if p not in self.known),
            effect=Effect(
                relative_change=math.expm1(gap.span.size),
                low=math.expm1(gap.span.size - width),
                high=math.expm1(gap.span.size + width),
                confidence=_CONFIDENCE,
            ),
        )

    def _place(self, low: int, high: int) -> str:
        good, bad = self._versions((low, high))
        return say.say_range(good, bad, self._versions(range(low + 1, high)))

    def _describe(self, step: Step) -> tuple[str, str, Effect]:
        return step.predecessor.version, step.release.version, step.effect

    def _versions(self, places: Sequence[int]) -> tuple[str, ...]:
        return tuple(self.releases[place].version for place in places)

    def _chances(self, gap: Gap) -> tuple[Chance, ...]:
        return tuple(
            Chance(release=self.releases[place], probability=chance)
            for place, chance in enumerate(gap.chances, gap.start)
        )


def _largest(gaps: Sequence[Gap]) -> Gap:
    return max(gaps, key=lambda gap: gap.share)

"""Words: how a bisection says what it does next and what it found. All its sentences are here."""

from collections.abc import Sequence

from analysis.detection import words
from analysis.detection.effects import Effect

_MANY = 6
"""So many names fit a sentence."""
_NEXT_TO_NOTHING = 0.005
"""A probability nearer to none or to a certainty is reported as near to it."""
_STANDINGS = {
    "good": "like the known good end",
    "bad": "like the known bad end",
    "between": "changed, but less than the known bad end",
    "opposite": "changed in the other direction than the known bad end",
    "undecided": "not distinguished from both ends yet",
}
FIRST_PROBE = "the two ends first: is there a change between them at all?"


def say_standing(standing: str) -> str:
    """Describe how a probed release stands."""
    return _STANDINGS[standing]


def say_effect(effect: Effect) -> str:
    """Write an effect with its interval."""
    low, high = words.signed_percent(effect.low), words.signed_percent(effect.high)
    return f"{words.signed_percent(effect.relative_change)} ({low} to {high})"


def say_split(good: str, bad: str, left: int, chance: float) -> str:
    """Describe why a probe parts what is left: `chance` that the change is before it or in it."""
    where = f"the change came after {good} and up to {bad}"
    if left == 1:
        return f"{where}; this is the only release between them that is worth a probe"
    much = f"{100 * chance:.0f} to {100 - 100 * chance:.0f}"
    return f"{where}; this one of {left} releases between them parts the chances best ({much})"


def say_again(version: str) -> str:
    """Describe why a release is probed again."""
    return f"what {version} showed does not fit a single change, or not clearly: more trials of it"


def say_range(good: str, bad: str, skipped: Sequence[str]) -> str:
    """Name what a change came with: one release, or one of several that were not measured."""
    if not skipped:
        return f"{bad} (after {good})"
    return (
        f"one of {', '.join(f'{one} (could not be measured)' for one in skipped)}, {bad} (after {good})"
    )


def say_culprit(kind: str, place: str, effect: Effect, probability: float) -> str:
    """Describe what was found; `kind` is regression or improvement."""
    return f"The {kind} came with {place}: {say_effect(effect)}, probability {say_chance(probability)}."


def say_others(steps: Sequence[tuple[str, str, Effect]]) -> str:
    """Describe of further steps beside the one that was named: from, to, how much."""
    if not steps:
        return ""
    count = words.counted(len(steps), "other change", "other changes")
    return f" There is more than one change in the range: {count} ({_list_steps(steps)})."


def say_returned(pairs: Sequence[tuple[str, str]], opposite: Sequence[str], place: str) -> str:
    """Describe of releases that were like the bad end too early, or that moved the other way.

    `place` is what the last step to the bad end came with.
    """
    parts = [
        f"{bad} was like the bad end already, and {good} like the good end again" for bad, good in pairs
    ]
    parts += [f"{one} had changed in the other direction" for one in opposite]
    if not parts:
        return ""
    listed = "; ".join(parts)
    return f" The range does not change only once: {listed}; the last step to the bad end is {place}."


def say_nothing_changed(good: str, bad: str, effect: Effect, relevant_change: float) -> str:
    """State that the ends are shown not to differ by as much as is worth acting on."""
    return (
        f"Nothing changed between {good} and {bad} that is worth acting on: {say_effect(effect)}, "
        f"within ±{words.percent(relevant_change)}."
    )


def say_end_unclear(good: str, bad: str, effect: Effect, *, is_short: bool) -> str:
    """Say that the probe of the bad end shows neither a change nor none, for want of budget or not."""
    doubt = f"It is unknown whether anything changed between {good} and {bad}"
    if is_short:
        return f"The budget is used up. {doubt} so far: {say_effect(effect)}."
    return f"{doubt} with the trials that a probe may take: {say_effect(effect)}."


def say_end_not_measured(bad: str, reason: str) -> str:
    """State that the bad end could not be measured."""
    why = f": {reason}" if reason else ""
    return (
        f"{bad}, the known bad end, could not be measured{why}. Name an earlier release as the bad end."
    )


def say_gradual(steps: Sequence[tuple[str, str, Effect]]) -> str:
    """State that no release brought most of the change."""
    return f"The change came little by little, and no release brought half of it: {_list_steps(steps)}."


def say_several(steps: Sequence[tuple[str, str, Effect]]) -> str:
    """State that there is more than one step, but not where exactly."""
    return (
        f"The change came in more than one step or little by little ({_list_steps(steps)}); "
        "which release brought each is unknown."
    )


def say_undecided(good: str, bad: str, doubtful: Sequence[str], best: str, probability: float) -> str:
    """State that the trials of some probes could not tell."""
    why = (
        f"the trials of {_names(doubtful)} cannot tell which side of the change they are on"
        if doubtful
        else "what was measured does not fit one single change"
    )
    return (
        f"The change came after {good} and up to {bad}, but {why}. "
        f"Most probable is {best} ({say_chance(probability)})."
    )


def say_budget(good: str, bad: str, best: str, probability: float) -> str:
    """Describe what is known when the budget is used up."""
    return (
        f"The budget is used up. The change came after {good} and up to {bad}; "
        f"most probable is {best} ({say_chance(probability)})."
    )


def say_budget_before(good: str, bad: str) -> str:
    """State that the budget did not even reach for the ends."""
    return f"The budget is too small to tell whether anything changed between {good} and {bad}."


def say_chance(probability: float) -> str:
    """Write a probability; never a certainty, and never none."""
    if probability > 1 - _NEXT_TO_NOTHING:
        return "above 99 %"
    return f"{100 * probability:.0f} %" if probability >= _NEXT_TO_NOTHING else "below 1 %"


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MANY])
    return shown if len(names) <= _MANY else f"{shown} and {len(names) - _MANY} more"


def _list_steps(steps: Sequence[tuple[str, str, Effect]]) -> str:
    return "; ".join(f"after {low}, up to {high}: {say_effect(effect)}" for low, high, effect in steps)

"""Explanations: what else was different where a series changed, and may explain it as well. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.judging.places import ChangeLocation
from analysis.judging.remeasurement import ARTIFACT
from perf.model.results import TrialId

_STEADY_SHARE = 0.9
"""A fact that holds in fewer of the trials on one side flickers, and so explains no lasting change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A circumstance of the trials that changed where the series did, and may explain it as well."""

    name: str
    before: str
    after: str


def explain(
    place: ChangeLocation, circumstances: Mapping[TrialId, Mapping[str, str]]
) -> tuple[Explanation, ...]:
    """Give the circumstances that held on one side of a change only, ascending by name.

    A value explains something if nine in ten of the trials on its side have it and none on the other.
    """
    sides = [
        [circumstances[point.trial] for point in side if point.trial in circumstances]
        for side in (place.before, place.after)
    ]
    names = sorted({name for side in sides for facts in side for name in facts})
    found = []
    for name in names:
        if name == ARTIFACT and not place.is_within:  # that is what is being measured
            continue
        before, after = ([facts[name] for facts in side if name in facts] for side in sides)
        old, new = _steady_value(before), _steady_value(after)
        if old is not None and new is not None and old not in after and new not in before:
            found.append(Explanation(name=name, before=old, after=new))
    return tuple(found)


def _steady_value(values: Sequence[str]) -> str | None:
    """Give the value that holds nearly always, if there is one."""
    for most, count in Counter(values).most_common(1):
        return most if count >= _STEADY_SHARE * len(values) else None
    return None

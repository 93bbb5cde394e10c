"""Explanations: what else was different where a series changed, and may explain it as well. Pure.

A series that is derived from another one moves with it; by itself it moves only if the price does, and
what that makes is no matter of chance and none of the database: it can be said exactly.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from analysis.detection.series import Points
from analysis.judging.change_locations import ChangeLocation
from analysis.judging.remeasurement import ARTIFACT
from perf.model.metrics import PRICE_PER_HOUR, origin
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
    place: ChangeLocation, environments: Mapping[TrialId, Mapping[str, str]]
) -> tuple[Explanation, ...]:
    """Return what held of the environment on one side of a change only, ascending by name.

    A value explains something if nine in ten of the trials on its side have it and none on the other.
    """
    sides = [_count_environments(side, environments) for side in (place.before, place.after)]
    names = sorted({name for side in sides for facts, _ in side for name in facts})
    found = []
    for name in names:
        if name == ARTIFACT and not place.is_within:  # that is what is being measured
            continue
        before, after = (_count_values(name, side) for side in sides)
        old, new = _steady_value(before), _steady_value(after)
        if old is not None and new is not None and old not in after and new not in before:
            found.append(Explanation(name=name, before=old, after=new))
    return tuple(found)


def _count_environments(
    side: Points, environments: Mapping[TrialId, Mapping[str, str]]
) -> list[tuple[Mapping[str, str], int]]:
    """Return the environments of the points, each with how many have it: most share one object."""
    trials = side.columns.occasions.trials
    known = (environments.get(trials[place]) for place in side.columns.places)
    found = [facts for facts in known if facts is not None]
    counts = Counter(map(id, found))
    once = {id(facts): facts for facts in found}
    return [(once[identity], count) for identity, count in counts.items()]


def _count_values(name: str, side: Iterable[tuple[Mapping[str, str], int]]) -> Counter[str]:
    """Return how many points have each value of a fact."""
    values = Counter[str]()
    for facts, count in side:
        if name in facts:
            values[facts[name]] += count
    return values


def _steady_value(values: Counter[str]) -> str | None:
    """Return the value that holds nearly always, if there is one."""
    for most, count in values.most_common(1):
        return most if count >= _STEADY_SHARE * values.total() else None
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceMove:
    """A change of the price that explains one of what is counted per dollar; prices as recorded.

    `is_event` is false where the prices only alternate, as releases do that were measured at both.
    """

    before: str
    after: str
    is_event: bool

    @property
    def prices(self) -> frozenset[str]:
        """Return both prices, in whichever order they come."""
        return frozenset((self.before, self.after))

    @property
    def makes(self) -> float:
        """Return the relative change that it makes by itself."""
        return float(self.before) / float(self.after) - 1


def explain_by_price(
    place: ChangeLocation, environments: Mapping[TrialId, Mapping[str, str]], relevant: float
) -> PriceMove | None:
    """Return how the price moved where a derived series did, if that explains the change.

    It does unless what is left of the change without it, (1 + Δ) · price after / price before − 1, is
    still a relevant one in the same direction: then the series from which it is derived has moved, too.
    """
    change = place.change
    metric = change.series.key.metric
    if origin(metric) == metric:
        return None
    for one in explain(place, environments):
        before, after = _price(one.before), _price(one.after)
        if one.name != PRICE_PER_HOUR or before is None or after is None:
            continue
        left = (1 + change.relative_change) * after / before - 1
        if math.copysign(1, change.relative_change) * left < relevant:
            return PriceMove(before=one.before, after=one.after, is_event=place.time is not None)
    return None


def _price(text: str) -> float | None:
    """Read a price as it was recorded; a fact that another program wrote may be any text."""
    try:
        price = float(text)
    except ValueError:
        return None
    return price if math.isfinite(price) and price > 0 else None

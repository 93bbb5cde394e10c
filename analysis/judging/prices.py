"""Prices: what a change of the price did to what is counted per dollar. Pure.

A series that is derived from another one moves with it; by itself it moves only if the price does, and
what that makes is no matter of chance and none of the database: it can be said exactly.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from analysis.detection import words
from analysis.judging.explanations import explain
from analysis.judging.places import ChangeLocation
from perf.model.metrics import PRICE_PER_HOUR, origin
from perf.model.results import TrialId


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceMove:
    """A change of the price that explains one of what is counted per dollar, in words.

    `is_event` is false where the prices only alternate, as releases do that were measured at both.
    """

    prices: frozenset[str]
    is_event: bool
    text: str


def explain_by_price(
    place: ChangeLocation, circumstances: Mapping[TrialId, Mapping[str, str]], relevant: float
) -> PriceMove | None:
    """Say how the price moved where a derived series did, if that explains the change.

    It does unless what is left of the change without it, (1 + Δ) · price after / price before − 1, is
    still a relevant one in the same direction: then the series from which it is derived has moved, too.
    """
    change = place.change
    metric = change.series.key.metric
    if origin(metric) == metric:
        return None
    for one in explain(place, circumstances):
        before, after = _price(one.before), _price(one.after)
        if one.name != PRICE_PER_HOUR or before is None or after is None:
            continue
        left = (1 + change.relative_change) * after / before - 1
        if math.copysign(1, change.relative_change) * left < relevant:
            is_event = place.time is not None
            verb = "rose" if after > before else "fell"
            how = (
                f"the price per hour {verb} from ${one.before} to ${one.after}"
                if is_event
                else f"an hour cost ${one.before} before it and ${one.after} after it, in the order of"
                " releases, not of time"
            )
            share = words.signed_percent(before / after - 1)
            return PriceMove(
                prices=frozenset((one.before, one.after)),
                is_event=is_event,
                text=f"{how}, which makes {share} by itself",
            )
    return None


def _price(text: str) -> float | None:
    """Read a price as it was recorded; a fact that another program wrote may be any text."""
    try:
        price = float(text)
    except ValueError:
        return None
    return price if math.isfinite(price) and price > 0 else None

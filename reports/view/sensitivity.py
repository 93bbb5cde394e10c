"""How small a change could have been seen: noise floor and minimum detectable effect, in words.

A verdict without it claims too much, so it stands wherever a verdict is.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from analysis.judgement import Detectable, JudgedSeries
from reports.view.wording import NOTHING, at_least, count, quantity, share

_TOLD_NIGHTS = 3
"""About as long as anybody waits before a change is acted on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectableRow:
    """The smallest change that so many nights see: relative, and in the unit of the series."""

    nights: str
    relative: str
    absolute: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """What a series can show. `brief` fits into a column, `text` is a sentence."""

    brief: str
    text: str
    floor: str
    rows: tuple[DetectableRow, ...]


def view_sensitivity(judged: JudgedSeries) -> Sensitivity:
    """Say how small a change could have been seen in a series."""
    noise, told = judged.noise, _find_told(judged.detectable)
    if noise is None or told is None:
        return Sensitivity(
            brief=NOTHING,
            text="How small a change could be seen is not known: too few points to know the noise.",
            floor=NOTHING,
            rows=(),
        )
    if not math.isfinite(told.relative_change):
        return Sensitivity(
            brief=NOTHING,
            text="The newest level is zero, so no relative change of it can be told.",
            floor=NOTHING,
            rows=(),
        )
    smallest = at_least(told.relative_change)
    floor = share(noise.floor)
    metric = judged.series.key.metric
    return Sensitivity(
        brief=smallest,
        text=f"One night scatters by {floor} around its level. With this noise, "
        f"{_list_nights(judged.detectable)}.",
        floor=floor,
        rows=tuple(
            DetectableRow(
                nights=count(one.nights, "night"),
                relative=at_least(one.relative_change),
                absolute=f"≥ {quantity(one.relative_change * abs(noise.level), metric)}",
            )
            for one in judged.detectable
        ),
    )


def summarize_sensitivity(series: Sequence[JudgedSeries]) -> str:
    """Say how small a change could have been seen in the best, the middle and the worst series."""
    known = sorted(
        told.relative_change
        for judged in series
        for told in [_find_told(judged.detectable)]
        if told is not None and math.isfinite(told.relative_change)
    )
    if not known:
        return "How small a change could be seen is not known yet: too few points to know the noise."
    nights = f"{count(_TOLD_NIGHTS, 'night')} see"
    if len(known) == 1:
        said = f"With this noise, {nights} {at_least(known[0])}"
    else:
        said = (
            f"With this noise, {nights} {at_least(known[0])} in the quietest series, "
            f"{at_least(median(known))} in half of them and {at_least(known[-1])} in the noisiest"
        )
    unknown = len(series) - len(known)
    return f"{said}; of {unknown:,} it is not known." if unknown else f"{said}."


def _list_nights(detectable: Sequence[Detectable]) -> str:
    first, *others = detectable
    verb = "sees" if first.nights == 1 else "see"
    return ", ".join(
        (
            f"{count(first.nights, 'night')} {verb} {at_least(first.relative_change)}",
            *(f"{count(one.nights, 'night')} {at_least(one.relative_change)}" for one in others),
        )
    )


def _find_told(detectable: Sequence[Detectable]) -> Detectable | None:
    return next((one for one in detectable if one.nights == _TOLD_NIGHTS), None)

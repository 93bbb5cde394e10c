"""How small a change could have been seen: noise floor and minimum detectable effect, in words.

A verdict without it claims too much, so it stands wherever a verdict is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from analysis.detection.noise import Noise
from analysis.judging.judgement import Detectable, JudgedSeries
from analysis.judging.verdicts import find_reported, list_confirmable
from reports.wording.wording import NOTHING, at_least, count, quantity, share

_FEWEST_NIGHTS = 3
"""That confirm a change where enough points lie before it; a column of pages is called by them."""

_MUCH = 1.5
"""Times the noise of the series: the scatter of a level from which on it is reported beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectableRow:
    """The smallest change that so many nights confirm: relative, and in the unit of the series."""

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
    """Describe how small a change could have been seen in a series."""
    noise, reported = judged.newest_noise, find_reported(judged.detectable)
    if noise is None or reported is None:
        return Sensitivity(
            brief=NOTHING,
            text="How small a change could be seen is not known: too few points, or no scatter at all.",
            floor=NOTHING,
            rows=(),
        )
    confirmable = list_confirmable(judged.detectable)
    floor = share(noise.floor)
    metric = judged.series.key.metric
    return Sensitivity(
        brief=_view_briefly(reported),
        text=f"{_describe_scatter(judged, noise)} Detectable: {_list_nights(confirmable)}.",
        floor=floor,
        rows=tuple(
            DetectableRow(
                nights=count(one.nights, "night"),
                relative=at_least(one.relative_change),
                absolute=f"≥ {quantity(one.relative_change * abs(noise.level), metric)}",
            )
            for one in confirmable
        ),
    )


def summarize_sensitivity(series: Sequence[JudgedSeries]) -> str:
    """Describe how small a change could have been seen in half of the series."""
    known = sorted(
        reported.relative_change
        for judged in series
        for reported in [find_reported(judged.detectable)]
        if reported is not None
    )
    if not known:
        return "How small a change would be noticed is not known yet: too few points to know the noise."
    said = f"In half of the series, only changes above about {share(median(known))} are found reliably"
    unknown = len(series) - len(known)
    return f"{said}; of {unknown:,} it is not known." if unknown else f"{said}."


def _describe_scatter(judged: JudgedSeries, newest: Noise) -> str:
    """Return how far one night lies off its level; and what all nights would say, if much less."""
    of_series = judged.noise
    if of_series is None or newest.deviation < _MUCH * of_series.deviation:
        return f"Nightly noise: ±{share(newest.floor)}."
    return (
        f"Nightly noise since the change, from {count(newest.points, 'point')}: ±{share(newest.floor)} "
        f"(the series: ±{share(of_series.floor)})."
    )


def _list_nights(detectable: Sequence[Detectable]) -> str:
    first, *others = detectable
    return ", ".join(
        (
            f"{at_least(first.relative_change)} after {count(first.nights, 'night')}",
            *(f"{at_least(one.relative_change)} after {one.nights}" for one in others),
        )
    )


def _view_briefly(reported: Detectable) -> str:
    effect = at_least(reported.relative_change)
    return (
        effect if reported.nights == _FEWEST_NIGHTS else f"{effect} ({count(reported.nights, 'night')})"
    )

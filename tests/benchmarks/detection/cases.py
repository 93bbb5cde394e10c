"""What is measured: the cases, how one series of each is scored, and the goals.

A case draws as many series as it is asked for, each from its own seed, and gives figures of them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import data
import numpy as np
import recorded
import scores
from detectors import Find
from numpy.random import Generator

FIVE = ("gauss", "lognormal", "ar3", "outliers", "bimodal")
"""The noises of the goals."""
MORE = ("lognormal_wide", "outliers_up", "bimodal_rare", "heavy", "coarse")
"""Variants of them: a goal that holds for one shape of a noise only is not reached."""
CALENDAR = ("weekly", "weekends")
DEPENDENT = ("ar6", "sticky_bimodal")
SLOW_GOALS = {"season90": 5, "walk3": 8, "ar9": 5, "drift6": 2, "scatter4": 2}
"""Most alerts that are confirmed where nothing steps, per 1,000 series-nights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured number with its 95 % interval (none for medians and times) and its goal."""

    name: str
    value: float
    interval: tuple[float, float] | None = None
    at_least: float | None = None
    at_most: float | None = None

    @property
    def is_met(self) -> bool | None:
        """Return whether the goal is met; None where there is none."""
        if self.at_least is None and self.at_most is None:
            return None
        low = -math.inf if self.at_least is None else self.at_least
        return low <= self.value <= (math.inf if self.at_most is None else self.at_most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One kind of series; `series` of them in a full run, `quick` in a quick one."""

    part: str
    name: str
    series: int
    quick: int
    score: Callable[[Find, Generator], Any]
    add_up: Callable[[Sequence[Any]], list[Figure]]


def steps_case(kind: str, size: float, goal: float | None = None, back_after: int = 0) -> Case:
    """Three steps in 200 points, or one that is taken back: F1 of all that is confirmed."""
    name = f"{size:g}σ steps in {kind}" + (f", back after {back_after} points" if back_after else "")

    def score(find: Find, generator: Generator) -> tuple[scores.Hits, scores.Hits]:
        planted = (
            data.bump(kind, size, generator, length=back_after)
            if back_after
            else data.steps(kind, size, generator)
        )
        found = find(planted.values)
        confirmed = (at for at, is_confirmed in found if is_confirmed)
        everything = scores.match(planted.places, [at for at, _ in found])
        return everything, scores.match(planted.places, confirmed)

    def add_up(results: Sequence[tuple[scores.Hits, scores.Hits]]) -> list[Figure]:
        return [
            Figure(
                name=f"F1, {name}, {what}",
                value=scores.f1(hits),
                interval=scores.f1_interval(hits),
                at_least=goal,
            )
            for what, hits in zip(
                ("all reported", "confirmed"), zip(*results, strict=True), strict=True
            )
        ]

    return Case(part="steps", name=name, series=150, quick=40, score=score, add_up=add_up)


def noise_case(kind: str) -> Case:
    """200 points in which nothing happens, judged once."""

    def score(find: Find, generator: Generator) -> tuple[int, int, int]:
        values = data.pure(kind, generator)
        found = find(values)
        return len(found), sum(is_confirmed for _, is_confirmed in found), len(values)

    def add_up(results: Sequence[tuple[int, int, int]]) -> list[Figure]:
        reported, confirmed, points = (sum(column) for column in zip(*results, strict=True))
        return [
            Figure(
                name=f"false places per 1000 points, {kind}, {what}",
                value=1000 * events / points,
                interval=scores.rate_interval(events, points / 1000),
            )
            for what, events in (("all reported", reported), ("confirmed", confirmed))
        ]

    return Case(part="noise", name=kind, series=150, quick=40, score=score, add_up=add_up)


def nights_case(kind: str, goal: float | None) -> Case:
    """The same, judged anew each night from point 50 to 200."""

    def score(find: Find, generator: Generator) -> scores.FalseAlerts:
        return scores.false_alerts(find, data.pure(kind, generator))

    def add_up(results: Sequence[scores.FalseAlerts]) -> list[Figure]:
        thousands = sum(one.nights for one in results) / 1000
        raised, confirmed = sum(one.raised for one in results), sum(one.confirmed for one in results)
        text = f"false alerts per 1000 series-nights, {kind}"
        return [
            Figure(
                name=f"{text}, confirmed",
                value=confirmed / thousands,
                interval=scores.rate_interval(confirmed, thousands),
                at_most=goal,
            ),
            Figure(
                name=f"{text}, all reported",
                value=raised / thousands,
                interval=scores.rate_interval(raised, thousands),
            ),
        ]

    return Case(part="nights", name=kind, series=60, quick=10, score=score, add_up=add_up)


def delay_case(
    kind: str,
    size: float,
    *,
    seen: float | None = None,
    confirmed: float | None = None,
    place: int = 100,
) -> Case:
    """One step at `place`, judged for the 40 nights after it. `seen`, `confirmed`: goals of medians."""
    name = f"{size:g}σ in {kind}" + ("" if place == 100 else f" after {place} points")

    def score(find: Find, generator: Generator) -> scores.Story:
        planted = data.step_at(kind, size, generator, place=place, n=place + 40)
        return scores.describe_story(find, planted.values, planted.places[0])

    def add_up(results: Sequence[scores.Story]) -> list[Figure]:
        waits = [one.confirmed_after for one in results]
        first = [one.seen_after for one in results]
        reported = sum(math.isfinite(wait) for wait in waits)
        vanished = sum(one.vanished for one in results)
        return [
            Figure(name=f"points until reported, {name}, median", value=_median(first), at_most=seen),
            Figure(
                name=f"points until confirmed, {name}, median", value=_median(waits), at_most=confirmed
            ),
            Figure(name=f"points until confirmed, {name}, 90 %", value=_quantile(waits, 0.9)),
            Figure(
                name=f"reported in the first night, {name}, %",
                value=100 * sum(wait <= 1 for wait in first) / len(first),
                interval=_percent(sum(wait <= 1 for wait in first), len(first)),
            ),
            Figure(
                name=f"confirmed within 40 points, {name}, %",
                value=100 * reported / len(waits),
                interval=_percent(reported, len(waits)),
            ),
            Figure(
                name=f"vanished after being confirmed, {name}, %",
                value=100 * vanished / max(reported, 1),
                interval=_percent(vanished, reported),
                at_most=5 if size >= 2 else None,
            ),
        ]

    return Case(part="delay", name=name, series=60, quick=20, score=score, add_up=add_up)


def history_case(kind: str, size: float) -> Case:
    """Three steps in 200 points, judged anew each night from point 50 on."""
    name = f"{size:g}σ steps in {kind}"

    def score(find: Find, generator: Generator) -> scores.History:
        planted = data.steps(kind, size, generator)
        return scores.tell_history(find, planted.values, planted.places)

    def add_up(results: Sequence[scores.History]) -> list[Figure]:
        thousands = sum(one.nights for one in results) / 1000
        extra, found = sum(one.extra for one in results), sum(one.found for one in results)
        vanished = sum(one.vanished for one in results)
        return [
            Figure(
                name=f"confirmed alerts beyond the true ones per 1000 series-nights, {name}",
                value=extra / thousands,
                interval=scores.rate_interval(extra, thousands),
            ),
            Figure(
                name=f"true places that vanished after being confirmed, {name}, %",
                value=100 * vanished / max(found, 1),
                interval=_percent(vanished, found),
                at_most=5,
            ),
        ]

    return Case(part="history", name=name, series=30, quick=8, score=score, add_up=add_up)


def spike_case(kind: str, size: float) -> Case:
    """One odd point after ordinary ones, then 10 more ordinary ones."""
    name = f"{size:g}σ spike at the end, {kind}"

    def score(find: Find, generator: Generator) -> scores.SpikeTold:
        planted = data.spike(kind, size, generator)
        return scores.tell_spike(find, planted.values, planted.places[0])

    def add_up(results: Sequence[scores.SpikeTold]) -> list[Figure]:
        n = len(results)
        seen, confirmed = sum(one.seen for one in results), sum(one.confirmed for one in results)
        return [
            Figure(name=f"{name}: told, %", value=100 * seen / n, interval=_percent(seen, n)),
            Figure(
                name=f"{name}: confirmed, %",
                value=100 * confirmed / n,
                interval=_percent(confirmed, n),
                at_most=0,
            ),
        ]

    return Case(part="spikes", name=name, series=150, quick=40, score=score, add_up=add_up)


def shape_case(name: str) -> Case:
    """What is no step: how many steps are reported a series."""

    def score(find: Find, generator: Generator) -> int:
        return len(find(data.SHAPES[name](generator)))

    def add_up(results: Sequence[int]) -> list[Figure]:
        reported = sum(count > 0 for count in results)
        return [
            Figure(name=f"steps reported, {name}, mean", value=float(np.mean(results))),
            Figure(
                name=f"series with any step, {name}, %",
                value=100 * reported / len(results),
                interval=_percent(reported, len(results)),
            ),
        ]

    return Case(part="shapes", name=name, series=100, quick=40, score=score, add_up=add_up)


def draw_long(generator: Generator) -> list[float]:
    """Draw a series of 1000 points with 15 steps, in one of the five noises."""
    kind = FIVE[int(generator.integers(len(FIVE)))]
    return data.steps(kind, 3, generator, n=1000, count=15).values


def speed_case() -> Case:
    """One long series."""

    def score(find: Find, generator: Generator) -> float:
        return scores.cpu_ms(find, draw_long(generator))

    def add_up(results: Sequence[float]) -> list[Figure]:
        # The first reading of a process pays for imports; medians do not see it.
        return [
            Figure(name="CPU ms per 1000-point series, median", value=_median(results), at_most=30),
            Figure(name="CPU ms per 1000-point series, 90 %", value=_quantile(results, 0.9)),
        ]

    return Case(part="speed", name="1000 points", series=100, quick=20, score=score, add_up=add_up)


RECORDED_CASES: tuple[Case, ...] = (
    steps_case("recorded", 3, 0.97),
    steps_case("recorded", 2),
    nights_case("recorded", 2),
    delay_case("recorded", 3, confirmed=3),
    history_case("recorded", 3),
)

CASES: tuple[Case, ...] = (
    *(steps_case(kind, 3, 0.97) for kind in (*FIVE, *MORE)),
    *(steps_case(kind, 3, 0.97) for kind in CALENDAR),
    steps_case("gauss", 2, 0.93),
    steps_case("gauss", 1, 0.6),
    *(steps_case(kind, 3) for kind in ("season90", "walk3", "ar9", "scatter4")),
    steps_case("gauss", 5),
    *(steps_case("gauss", 3, back_after=points) for points in (5, 10)),
    *(nights_case(kind, 2) for kind in (*FIVE, *MORE, "heavier", *CALENDAR)),
    *(nights_case(kind, goal) for kind, goal in SLOW_GOALS.items()),
    nights_case("ar6", 5),
    nights_case("sticky_bimodal", None),
    delay_case("gauss", 1),
    delay_case("gauss", 2, confirmed=6),
    delay_case("gauss", 3, confirmed=3),
    delay_case("gauss", 5, seen=1),
    *(delay_case(kind, 3, confirmed=3) for kind in FIVE[1:]),
    delay_case("gauss", 3, place=20),
    delay_case("weekly", 3, confirmed=3),
    history_case("gauss", 2),
    *(history_case(kind, 3) for kind in FIVE),
    *(spike_case("gauss", size) for size in (3, 4, 5, 10)),
    *(spike_case(kind, 5) for kind in ("lognormal", "ar3", "outliers")),
    *(noise_case(kind) for kind in (*FIVE, *MORE, *DEPENDENT)),
    *(shape_case(name) for name in data.SHAPES),
    speed_case(),
    *(RECORDED_CASES if recorded.RECORDED.exists() else ()),
)


def _median(values: Sequence[float]) -> float:
    return _quantile(values, 0.5)


def _quantile(values: Sequence[float], share: float) -> float:
    """Return an observed value, never one between two: some are infinite."""
    return float(np.quantile(values, share, method="higher"))


def _percent(hits: int, n: int) -> tuple[float, float]:
    low, high = scores.share_interval(hits, n)
    return 100 * low, 100 * high

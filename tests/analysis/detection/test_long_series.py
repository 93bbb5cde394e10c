import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from catalogs import shipped

from analysis.detection.alerts import follow, sight
from analysis.detection.detection import DetectorResult, Drift, Shift, SpreadChange
from analysis.detection.long_series import for_length
from analysis.detection.noise import Noise, Values
from analysis.detection.step_detector import StepDetector
from analysis.detection.weeks import Days

STEPS = StepDetector(settings=shipped().detection)
NOISE = Noise(deviation=1.0, persistence=0.0, level=5.0, points=3, all_points=512)


@dataclass(slots=True)
class Answering:
    """Notes how many values it was asked about, and gives the readings prepared for so many."""

    readings: dict[int, DetectorResult] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)

    @property
    def name(self) -> str:
        return "prepared"

    def read(self, values: Sequence[float] | Values, days: Days = ()) -> DetectorResult:
        assert len(days) in (0, len(values))
        self.asked.append(len(values))
        return self.readings.get(len(values), DetectorResult(noise=NOISE))


def noise(seed: int, count: int) -> list[float]:
    generator = random.Random(seed)  # noqa: S311  test data, not a secret
    return [generator.gauss(100, 1) for _ in range(count)]


def shift(index: int, *, is_confirmed: bool = True) -> Shift:
    return Shift(
        index=index, earliest=index - 1, latest=index + 1, p_value=1e-9, is_confirmed=is_confirmed
    )


def spread(index: int) -> SpreadChange:
    return SpreadChange(index=index, before=1, after=2, p_value=0.001)


def test_a_shorter_series_is_read_whole() -> None:
    detector = Answering()
    assert for_length(detector, 1023) is detector
    assert for_length(detector, 1024) is not detector


def test_nights_ask_about_the_newest_stretch_alone() -> None:
    detector = Answering()
    for count in (1024, 1025, 1535, 1536, 4000):
        for_length(detector, count).read([1.0] * count, range(count))
    fixed = [768]
    assert detector.asked == [
        *(*fixed, 512, *fixed, 513, *fixed, 1023),
        *(*fixed * 2, 512),
        *(*fixed * 6, 928),
    ]


@pytest.mark.parametrize(("known", "asked"), [(1030, [768, 518]), (768, [768]), (40, [40])])
def test_a_series_as_it_was_before_many_points_came_at_once_has_fewer_stretches(
    known: int, asked: list[int]
) -> None:
    detector = Answering()
    for_length(detector, 1600).read([1.0] * known, range(known))
    assert detector.asked == asked


def test_nights_that_are_replayed_ask_for_what_they_have_in_common_once() -> None:
    old = DetectorResult(noise=NOISE, shifts=(shift(300),))
    detector = Answering({768: old})
    reader = for_length(detector, 1100)
    values, days = np.ones(1100), np.arange(1100)
    readings = [reader.read(values[:count], days[:count]) for count in (1100, 1099, 1098)]
    assert detector.asked == [768, 588, 587, 586]
    assert [[one.index for one in reading.shifts] for reading in readings] == [[300]] * 3
    other = values.copy()
    other[10] = 2
    reader.read(other, days)
    reader.read(values, days + (days == 10))
    assert detector.asked[4:] == [768, 588, 768, 588]


@pytest.mark.parametrize("place", range(596, 684, 4))
def test_a_step_anywhere_about_the_border_is_found_once(place: int) -> None:
    values = noise(place, 1100)
    values[place:] = [value + 6 for value in values[place:]]
    reading = for_length(STEPS, len(values)).read(values, range(len(values)))
    (found,) = reading.shifts
    assert abs(found.index - place) <= 1
    assert found.is_confirmed


def test_the_border_is_in_the_middle_of_the_widest_gap() -> None:
    # Of 614 to 665, where it may be, that is from 620 to 644.
    old = DetectorResult(noise=NOISE, shifts=(shift(100), shift(620), shift(645), shift(700)))
    new = DetectorResult(noise=NOISE, shifts=(shift(620 - 512), shift(644 - 512), shift(900 - 512)))
    reading = for_length(Answering({768: old, 588: new}), 1100).read([1.0] * 1100)
    # What the older stretch sees behind it, and the newest in front of it, is left out.
    assert [one.index for one in reading.shifts] == [100, 620, 644, 900]


@pytest.mark.parametrize(("older", "newer", "kept"), [(630, 650, 650), (650, 630, 630)])
def test_a_change_that_two_stretches_see_at_two_places_is_one(
    older: int, newer: int, kept: int
) -> None:
    old = DetectorResult(noise=NOISE, shifts=(shift(older),), spreads=(spread(older),))
    new = DetectorResult(noise=NOISE, shifts=(shift(newer - 512),), spreads=(spread(newer - 512),))
    reading = for_length(Answering({768: old, 588: new}), 1100).read([1.0] * 1100)
    assert [one.index for one in reading.shifts] == [one.index for one in reading.spreads] == [kept]


def test_scatter_and_newest_level_are_those_of_the_newest_stretch() -> None:
    values = [5.0] * 300 + [7.0] * 800
    old = DetectorResult(
        shifts=(shift(300), shift(310, is_confirmed=False)),
        noise=replace(NOISE, deviation=3.0),
        spreads=(spread(200),),
        week=(1.0,) * 7,
    )
    new = DetectorResult(noise=NOISE, spreads=(spread(300),))
    reading = for_length(Answering({768: old, 588: new}), 1100).read(values)
    assert reading.noise == replace(NOISE, level=7.0, points=800)
    assert reading.week == ()
    assert [one.index for one in reading.spreads] == [200, 812]


def test_a_slow_movement_across_the_border_is_one() -> None:
    old = DetectorResult(
        noise=NOISE,
        drifts=(
            Drift(first=10, last=90, before=0, after=5),
            Drift(first=540, last=767, before=5, after=5 + 227),
        ),
    )
    new = DetectorResult(
        noise=NOISE,
        drifts=(
            Drift(first=0, last=288, before=100, after=100 + 288),
            Drift(first=300, last=400, before=388, after=300),
        ),
    )
    reading = for_length(Answering({768: old, 588: new}), 1100).read([1.0] * 1100)
    assert reading.drifts == (
        Drift(first=10, last=90, before=0, after=5),
        Drift(first=540, last=800, before=5, after=5 + 260),
        Drift(first=812, last=912, before=388, after=300),
    )


@pytest.mark.parametrize("seed", [408, 428])
def test_where_a_stretch_begins_nothing_old_is_news(seed: int) -> None:
    """Log-normal noise, of which these stretches show steps that others do not."""
    values, days = np.random.default_rng(seed).lognormal(0, 1, 1536), np.arange(1536)

    def find_news(length_of: Callable[[int], int]) -> list[int]:
        sightings = []
        for night in (1534, 1535, 1536):
            detector = for_length(STEPS, length_of(night))
            reading = detector.read(values[:night], days[:night])
            sightings.append((night, sight(values[:night], reading, range(1536), days[:night])))
        return [one.index for one in follow(sightings) if one.reported_at == 1536]

    assert find_news(lambda night: night)
    assert not find_news(lambda _: 1536)

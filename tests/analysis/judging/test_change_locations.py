from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from analysis.detection import words
from analysis.detection.detection import Detector
from analysis.judging.change_locations import ChangeLocation, locate, meet
from analysis.judging.judgement import Judgement
from perf.model.results import Observation

Planted = Callable[..., tuple[Observation, ...]]
JudgePlanted = Callable[..., Judgement]
STEP = [100.0] * 6 + [90.0] * 6


def plain(text: str) -> str:
    """Return a text without the spaces that keep the name of a night together."""
    return text.replace("\N{NO-BREAK SPACE}", " ")


@pytest.fixture
def place_of(judge_planted: JudgePlanted) -> Callable[..., ChangeLocation]:
    """Return `place_of(observations, detector=…)`: the place of their only change."""

    def make(observations: tuple[Observation, ...], detector: Detector | None = None) -> ChangeLocation:
        (judged,) = judge_planted(observations, detector=detector).series
        (place,) = locate(judged.change_points)
        return place

    return make


def test_a_place_spans_all_that_the_detector_doubts(
    planted: Planted, place_of: Callable[..., ChangeLocation], jumps: Callable[..., Detector]
) -> None:
    observations = planted(STEP, releases=range(1, 13))
    certain, doubtful = place_of(observations), place_of(observations, jumps(doubt=2))
    assert certain.releases == (6, 7)
    assert doubtful.releases == (4, 9)
    assert [len(certain.before), len(certain.after)] == [6, 6]
    assert [len(doubtful.before), len(doubtful.after)] == [4, 4]
    assert doubtful.time == (observations[3].started_at, observations[8].started_at)
    assert certain.nights == {"2026-11-07-1"}
    assert doubtful.nights == {f"2026-11-{day:02d}-1" for day in range(5, 10)}


def test_nights_of_one_release_have_a_time_only(
    planted: Planted, place_of: Callable[..., ChangeLocation]
) -> None:
    place = place_of(planted(STEP))
    assert place.releases is None
    assert place.time is not None
    assert plain(words.place(place.change)) == "between the nights 6 Nov 2026 #1 and 7 Nov 2026 #1"


def test_releases_that_take_turns_have_no_time(
    planted: Planted, place_of: Callable[..., ChangeLocation]
) -> None:
    turns = planted([100.0, 90.0] * 6, releases=[1, 2] * 6)
    place = place_of(turns)
    assert (place.releases, place.time) == ((1, 2), None)
    assert plain(words.place(place.change)) == "between 5.0.1 and 5.0.2"


def test_a_change_among_the_nights_of_one_of_several_releases_names_both(
    planted: Planted, place_of: Callable[..., ChangeLocation]
) -> None:
    place = place_of(planted(STEP, releases=[1, 1, 1, *[2] * 9]))
    assert plain(words.place(place.change)) == (
        "within 5.0.2, between the nights 6 Nov 2026 #1 and 7 Nov 2026 #1"
    )


def test_series_of_one_line_meet_by_release_whenever_they_were_measured(
    planted: Planted, place_of: Callable[..., ChangeLocation]
) -> None:
    one = place_of(planted(STEP, releases=range(1, 13)))
    fewer = planted([100.0] * 6 + [90.0] * 6, releases=[1, 2, 3, 4, 5, 5, 9, 9, 9, 10, 10, 10])
    # The same step, measured elsewhere and a year later.
    later = tuple(
        replace(point, started_at=point.started_at + timedelta(days=365), night="") for point in fewer
    )
    assert place_of(later).releases == (5, 9)
    assert meet(one, place_of(later))
    assert meet(place_of(later), one)
    before = place_of(planted([100.0] * 3 + [90.0] * 9, releases=range(1, 13)))
    assert not meet(one, before)


def test_different_systems_meet_by_night_and_on_one_testbed_only(
    planted: Planted, place_of: Callable[..., ChangeLocation]
) -> None:
    cassandra = place_of(planted(STEP))
    mongodb = {"system": "mongodb", "line": "8.0", "minute": 20}
    assert meet(cassandra, place_of(planted(STEP, **mongodb)))
    assert not meet(cassandra, place_of(planted(STEP, **mongodb, testbed_class="other")))
    assert not meet(cassandra, place_of(planted([100.0] * 7 + [90.0] * 5, **mongodb)))


def test_months_between_two_releases_are_no_common_night(
    planted: Planted, place_of: Callable[..., ChangeLocation]
) -> None:
    monthly = place_of(planted(STEP, releases=range(1, 13), every=30))
    nightly = place_of(planted([100.0] * 160 + [90.0] * 20, system="mongodb", line="8.0"))
    assert not meet(monthly, nightly)

"""The benchmark of the detector counts what it says: a wrong ruler would be tuned to."""

import math
from collections.abc import Callable
from itertools import pairwise

import data
import numpy as np
import pytest
import recorded
import scores
from detectors import Find
from scores import Hits

from analysis.detection.series import build_series
from perf.model.results import Observation

ReportedIncident = list[tuple[int, bool]]


@pytest.mark.parametrize(
    ("true", "found", "hits"),
    [
        ([50], [50], Hits(found=1, false=0, missed=0)),
        ([50], [53], Hits(found=1, false=0, missed=0)),
        ([50], [54], Hits(found=0, false=1, missed=1)),
        ([50], [49, 51], Hits(found=1, false=1, missed=0)),
        ([50, 52], [53, 49], Hits(found=2, false=0, missed=0)),
        ([50, 53], [50], Hits(found=1, false=0, missed=1)),
        ([], [7], Hits(found=0, false=1, missed=0)),
    ],
)
def test_a_true_place_is_found_once(true: list[int], found: list[int], hits: Hits) -> None:
    assert scores.match(true, found) == hits


def test_f1_is_the_harmonic_mean_of_precision_and_recall() -> None:
    hits = [Hits(found=2, false=1, missed=1), Hits(found=1, false=0, missed=2)]
    precision, recall = 3 / 4, 3 / 6
    assert scores.f1(hits) == pytest.approx(2 * precision * recall / (precision + recall))
    low, high = scores.f1_interval(hits)
    assert low <= scores.f1(hits) <= high


def test_intervals_are_those_of_the_books() -> None:
    """Wilson for 10 of 100, and Poisson for 0 and 10 events, as tables have them."""
    assert scores.share_interval(10, 100) == pytest.approx((0.0552, 0.1744), abs=1e-4)
    assert scores.share_interval(0, 100)[0] == 0
    assert scores.rate_interval(0, 2.0) == pytest.approx((0, 3.689 / 2), abs=1e-3)
    assert scores.rate_interval(10, 1.0) == pytest.approx((4.795, 18.390), abs=1e-3)


def night_by_night(script: dict[int, ReportedIncident]) -> Find:
    """Return a detector that says what is written for the number of points that it is shown."""
    return lambda values: script.get(len(values), [])


def test_an_alert_that_moves_a_little_stays_the_same_one() -> None:
    find = night_by_night({6: [(4, False)], 7: [(5, False)], 8: [(9, True), (5, True)], 9: [(5, True)]})
    first, second = scores.replay(find, [0.0] * 20, 5, 9)
    assert (first.born_at, first.place, first.first_seen, first.first_confirmed) == (4, 5, 6, 8)
    assert not first.has_faded
    assert (second.place, second.first_confirmed, second.has_faded) == (9, 8, True)


def test_an_alert_that_comes_back_is_the_same_one() -> None:
    find = night_by_night({6: [(4, True)], 8: [(4, True)]})
    (alert,) = scores.replay(find, [0.0] * 20, 5, 9)
    assert alert.has_faded


def test_the_story_of_a_step_counts_the_points_of_the_new_level() -> None:
    find = night_by_night({11: [(3, True)], 12: [(11, False)], 13: [(10, True)], 14: [(10, True)]})
    story = scores.describe_story(find, [0.0] * 14, 10)
    assert (story.seen_after, story.confirmed_after, story.vanished) == (2, 3, False)
    never = scores.describe_story(night_by_night({}), [0.0] * 14, 10)
    assert never.seen_after == never.confirmed_after == math.inf


def test_what_is_confirmed_beyond_the_true_places_is_extra() -> None:
    find = night_by_night(
        {8: [(3, True)], 9: [(3, True)], 10: [(3, True)], 11: [(3, True), (10, True)]}
    )
    reported = scores.tell_history(find, [0.0] * 11, [4], first=7)
    assert reported == scores.History(found=1, vanished=0, extra=1, nights=5)
    flickering = night_by_night({8: [(3, True)], 10: [(3, True)]})
    assert scores.tell_history(flickering, [0.0] * 10, [4], first=7).vanished == 1


def test_a_spike_is_reported_only_as_the_newest_point() -> None:
    find = night_by_night({9: [(8, False)], 11: [(9, True)]})
    assert scores.tell_spike(find, [0.0] * 11, 8) == scores.SpikeTold(seen=True, confirmed=True)
    late = night_by_night({10: [(8, False)]})
    assert scores.tell_spike(late, [0.0] * 11, 8) == scores.SpikeTold(seen=False, confirmed=False)


@pytest.mark.parametrize(
    "kind", sorted(set(data.NOISES) - {"outliers", "outliers_up", "heavy", "coarse"})
)
def test_the_unit_of_noise_is_its_standard_deviation(kind: str) -> None:
    drawn = data.noise(kind, 200_000, data.make_generator(1, kind))
    assert drawn.mean() == pytest.approx(0, abs=0.03)
    assert drawn.std() == pytest.approx(1, abs=0.03)


def test_the_unit_of_noise_with_outliers_is_that_of_its_clean_part() -> None:
    for kind in ("outliers", "outliers_up"):
        drawn = data.noise(kind, 200_000, data.make_generator(1, kind))
        assert np.mean(np.abs(drawn) < 1) == pytest.approx(0.683, abs=0.02)
        assert np.mean(np.abs(drawn) > 5) == pytest.approx(
            0.02 if kind == "outliers" else 0.011, abs=0.003
        )


def test_steps_keep_their_distance_and_their_size() -> None:
    for number in range(50):
        planted = data.steps("gauss", 1000, data.make_generator(1, number))
        assert min(np.diff([0, *planted.places, 200])) >= data.LEAST_GAP
        sizes = np.abs(np.diff(planted.values))
        assert sorted(np.argsort(sizes)[-3:] + 1) == sorted(planted.places)
    with pytest.raises(ValueError, match="do not fit"):
        data.steps("gauss", 3, data.make_generator(1), n=100)


def test_the_same_words_give_the_same_series_whatever_came_before() -> None:
    first = data.pure("ar6", data.make_generator(3, "ar6", 5))
    assert all(one != other for one, other in pairwise(first))
    assert data.pure("ar6", data.make_generator(3, "ar6", 5)) == first
    assert data.pure("ar6", data.make_generator(3, "ar6", 6)) != first


def test_what_is_left_of_a_recorded_series_scatters_about_the_level_of_each_config(
    make_observations: Callable[..., tuple[Observation, ...]],
) -> None:
    (series,) = build_series(make_observations([9.0, 11.0, 10.0, 31.0, 29.0, 30.0]))
    configs = {point.trial: str(number // 3) for number, point in enumerate(series.points)}
    scatter = recorded.scatter_about_levels(series, configs)
    assert scatter == pytest.approx([-1, 1, 0, 1, -1, 0])


def test_blocks_of_neighbours_stay_together() -> None:
    drawn = recorded.resample(np.arange(20, dtype=np.float64), 200, data.make_generator(1))
    assert len(drawn) == 200
    for block in drawn.reshape(50, 4):
        assert list(block) == [(block[0] + offset) % 20 for offset in range(4)]
    assert len(set(drawn)) == 20

"""The trend of a series in a line of a list."""

import re
from collections.abc import Callable

from analysis.detection.detection import DetectorResult, Shift, find_changes
from analysis.detection.series import Series, build_series
from perf.model.results import Observation
from reports.site.svg import course, trend

Observed = Callable[..., tuple[Observation, ...]]


def make(observed: Observed, values: list[float]) -> Series:
    (series,) = build_series(observed(values))
    return series


def heights(drawn: str) -> list[float]:
    (line,) = re.findall(r'points="([^"]+)"', drawn)
    return [float(place.split(",")[1]) for place in line.split()]


def test_a_trend_shows_a_change_that_is_older_than_the_newest_points(
    make_observations: Observed,
) -> None:
    series = make(make_observations, [100.0] * 40 + [50.0] * 200)
    shift = Shift(index=40, p_value=0.001, earliest=40, latest=40, is_confirmed=True)
    (change,) = find_changes(series, DetectorResult(shifts=(shift,)), "planted")
    assert len(set(heights(trend(series, "bad")))) == 1
    drawn = heights(trend(series, "bad", change))
    assert len(drawn) <= 60
    assert drawn[0] < drawn[-1]
    assert drawn.count(drawn[0]) == 10  # a fifth of what is shown, four by four


def test_a_trend_keeps_the_level_before_a_change_of_years_ago(make_observations: Observed) -> None:
    series = make(make_observations, [100.0] * 500 + [50.0] * 3000)
    shift = Shift(index=500, p_value=0.001, earliest=500, latest=500, is_confirmed=True)
    (change,) = find_changes(series, DetectorResult(shifts=(shift,)), "planted")
    drawn = heights(trend(series, "bad", change))
    assert drawn.count(drawn[0]) >= 5
    assert drawn[0] < drawn[-1]


def test_a_trend_without_a_change_is_of_the_newest_points(make_observations: Observed) -> None:
    series = make(make_observations, [float(value) for value in range(100)])
    assert len(heights(trend(series, "calm"))) == 60


def find_rules(drawn: str, named: str) -> list[float]:
    return [float(at) for at in re.findall(rf'<line class="{named}" x1="([\d.]+)"', drawn)]


def test_a_change_has_a_tick_between_its_points(make_observations: Observed) -> None:
    series = make(make_observations, [100.0] * 5 + [50.0] * 5)
    shift = Shift(index=5, p_value=0.001, earliest=5, latest=5, is_confirmed=True)
    (change,) = find_changes(series, DetectorResult(shifts=(shift,)), "planted")
    assert find_rules(trend(series, "bad", change), "at") == [48.0]  # the middle of 96
    assert find_rules(trend(series, "bad"), "at") == []


def test_a_course_marks_changes_by_kind_and_where_releases_begin(make_observations: Observed) -> None:
    series = make(make_observations, [100.0] * 100 + [50.0] * 100 + [100.0] * 100)
    shifts = (
        Shift(index=100, p_value=0.001, earliest=100, latest=100, is_confirmed=True),
        Shift(index=200, p_value=0.001, earliest=200, latest=200, is_confirmed=False),
    )
    changes = find_changes(series, DetectorResult(shifts=shifts), "planted")
    drawn = course(series, changes)
    kinds = [change.outcome.value for change in changes]
    named = {"regressed": "at bad", "improved": "at good"}
    (first,), (second,) = (
        find_rules(drawn, named[kinds[0]]),
        find_rules(drawn, f"{named[kinds[1]]} doubt"),
    )
    assert 80 < first < 95
    assert 165 < second < 180
    assert len(heights(drawn)) <= 80
    assert len(find_rules(course(series, ()), "border")) in (0, 299)

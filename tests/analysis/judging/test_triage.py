"""Which entry covers which change: place, direction, series, expiry; what comes back after a fix."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from analysis.detection.detection import ChangePoint, ChangeState
from analysis.detection.series import Point, Points, Series
from analysis.detection.verdict import Outcome
from analysis.judging.description import say_obstacle
from analysis.judging.triage import Decision, Obstacle, account, came_back, match, propose, sign
from perf.model.results import Release, SeriesKey, TrialId
from perf.model.rules import TriageEntry, TriageState, is_like

TODAY = date(2026, 6, 1)
FIRST_NIGHT = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
KEY = SeriesKey(
    system="cassandra",
    line="5.0",
    topology="local-three",
    testbed_class="desk",
    config="default",
    workload="sensor-write@0123456789ab",
    engine="python",
    phase="saturation",
    operation="write",
    metric="throughput",
    statistic="mean",
)
ENTRY = TriageEntry(
    name="slow-commit-log",
    state=TriageState.ACKNOWLEDGED,
    system="cassandra",
    line="5.0",
    sign="drop",
    from_release="5.0.1",
    to_release="5.0.2",
    owner="storage",
    note="Ticket 12.",
    expires=TODAY,
)


def make_series(nights: Sequence[int], key: SeriesKey = KEY) -> Series:
    """Make releases 5.0.0, 5.0.1, …, each measured on so many nights that follow each other."""
    points: list[Point] = []
    for ordinal, count in enumerate(nights):
        version = f"{key.line}.{ordinal}"
        release = Release(system=key.system, version=version, line=key.line, ordinal=ordinal)
        for _ in range(count):
            at = FIRST_NIGHT + timedelta(days=len(points))
            trial = TrialId(f"{key.system}-{len(points)}")
            night = f"{at:%Y-%m-%d}-1"
            points.append(Point(trial=trial, release=release, started_at=at, value=1.0, night=night))
    return Series(key=key, points=Points.of(points))


def change_at(series: Series, index: int, *, reach: int = 0, drops: bool = True) -> ChangePoint:
    after = 90.0 if drops else 110.0
    return ChangePoint(
        series=series,
        last_before=series.points[index - 1],
        first_after=series.points[index],
        index=index,
        earliest=index - reach,
        latest=index + reach,
        before=100.0,
        after=after,
        relative_change=after / 100 - 1,
        p_value=1e-9,
        points_after=3,
        detector="test",
        state=ChangeState.CONFIRMED,
        outcome=Outcome.REGRESSED if drops else Outcome.IMPROVED,
    )


SERIES = make_series([3, 3, 3, 3])
"""5.0.0 at 0 to 2, 5.0.1 at 3 to 5, 5.0.2 at 6 to 8, 5.0.3 at 9 to 11."""


def covered(entry: TriageEntry, series: Series = SERIES) -> list[int]:
    """Return the steps at which an exactly placed drop is covered."""
    return [i for i in range(1, len(series.points)) if match(change_at(series, i), [entry], TODAY)]


def test_an_entry_between_two_releases_covers_the_step_between_them_alone() -> None:
    assert covered(ENTRY) == [6]


def test_a_wider_place_covers_what_lies_inside_of_it() -> None:
    assert covered(replace(ENTRY, from_release="5.0.0")) == [3, 4, 5, 6]
    assert covered(replace(ENTRY, from_release=None)) == [1, 2, 3, 4, 5, 6]
    assert covered(replace(ENTRY, to_release=None)) == [6, 7, 8, 9, 10, 11]


def test_an_entry_within_a_release_covers_its_own_nights_alone() -> None:
    assert covered(replace(ENTRY, to_release="5.0.1")) == [4, 5]


def test_a_step_over_a_release_that_is_missing_in_between_is_covered() -> None:
    gap = Series(key=KEY, points=Points.of([*SERIES.points[:3], *SERIES.points[6:]]))
    assert covered(replace(ENTRY, from_release="5.0.0", to_release="5.0.3"), gap) == [3, 4, 5, 6]
    assert covered(ENTRY, gap) == []  # 5.0.1 was never measured here


def test_a_change_is_covered_where_its_location_interval_meets_the_place() -> None:
    assert match(change_at(SERIES, 8, reach=1), [ENTRY], TODAY) is None
    assert match(change_at(SERIES, 8, reach=2), [ENTRY], TODAY) == ENTRY


def test_nights_go_by_their_dates_and_a_night_belongs_to_the_day_it_began() -> None:
    entry = replace(ENTRY, from_release=None, to_release=None)
    by_night = replace(entry, from_night=date(2026, 3, 5), to_night=date(2026, 3, 6))
    assert covered(by_night) == [5]
    assert covered(replace(by_night, to_night=date(2026, 3, 5))) == [4, 5]
    assert covered(replace(by_night, from_night=None)) == [1, 2, 3, 4, 5]
    unnamed = [replace(point, night="") for point in SERIES.points]
    assert covered(by_night, Series(key=KEY, points=Points.of(unnamed))) == [5]


def test_nights_tell_nothing_where_a_series_steps_back_in_time() -> None:
    # Each release on the same three nights.
    points = [replace(point, night=f"2026-03-0{1 + i % 3}-1") for i, point in enumerate(SERIES.points)]
    series = Series(key=KEY, points=Points.of(points))
    nights = replace(ENTRY, from_night=date(2026, 3, 1), to_night=date(2026, 3, 3))
    assert covered(nights, series) == [6]
    assert covered(replace(nights, from_release=None, to_release=None), series) == [
        1, 2, 4, 5, 7, 8, 10, 11,
    ]  # fmt: skip


def test_two_nights_of_one_date_lie_inside_of_that_date() -> None:
    points = tuple(replace(point, night="2026-03-04-2") for point in SERIES.points[:3])
    day = replace(ENTRY, from_release=None, to_release=None, from_night=date(2026, 3, 4))
    assert covered(
        replace(day, to_night=date(2026, 3, 4)), Series(key=KEY, points=Points.of(points))
    ) == [1, 2]
    assert (
        covered(replace(day, from_night=date(2026, 3, 5)), Series(key=KEY, points=Points.of(points)))
        == []
    )


def test_the_other_direction_is_not_covered() -> None:
    rise = change_at(SERIES, 6, drops=False)
    assert sign(rise) == "rise"
    assert match(rise, [ENTRY], TODAY) is None
    assert match(rise, [replace(ENTRY, sign="rise")], TODAY)


@pytest.mark.parametrize(
    ("field", "pattern", "is_covered"),
    [
        ("system", "mongodb", False),
        ("line", "5.*", True),
        ("line", "5?0", False),
        ("workload", "sensor-write", True),
        ("workload", "sensor", False),
        ("workload", "sensor-*", True),
        ("metric", "*_time", False),
        ("host", "*", True),
        ("host", "node-1", False),
    ],
)
def test_patterns_choose_the_series(field: str, pattern: str, *, is_covered: bool) -> None:
    fields = {field: pattern}
    assert bool(covered(replace(ENTRY, **fields))) is is_covered  # type: ignore[arg-type]  # by name


def test_only_a_star_is_special_in_a_pattern() -> None:
    assert is_like("test_scan[1-16]", "test_scan[1-16]")
    assert not is_like("test_scan1", "test_scan[1-16]")
    assert is_like("a\nb", "a*b")


def test_an_entry_holds_through_its_last_day() -> None:
    change = change_at(SERIES, 6)
    assert match(change, [ENTRY], TODAY) == ENTRY
    assert match(change, [ENTRY], TODAY + timedelta(days=1)) is None
    assert match(change, [replace(ENTRY, expires=None)], date.max)


def test_of_several_entries_the_nearest_then_the_narrowest_covers() -> None:
    wide = replace(ENTRY, name="wide", from_release=None, to_release=None, to_night=date(2026, 12, 1))
    next_door = replace(ENTRY, name="next-door", from_release="5.0.0", to_release="5.0.1")
    change = change_at(SERIES, 6, reach=3)
    for entries in ([wide, next_door, ENTRY], [ENTRY, next_door, wide]):
        assert match(change, entries, TODAY) == ENTRY
    assert match(change, [next_door], TODAY) == next_door


FIXED = replace(ENTRY, state=TriageState.FIXED, fixed_in="5.0.3", expires=None)


def test_fixed_covers_its_own_place_and_what_comes_after_the_fix_is_news() -> None:
    old, again = change_at(SERIES, 6), change_at(SERIES, 10)
    assert match(old, [FIXED], TODAY) == FIXED
    assert came_back(old, [FIXED]) is None
    assert match(again, [FIXED], TODAY) is None
    assert came_back(again, [FIXED]) == FIXED
    assert came_back(change_at(SERIES, 9), [FIXED]) == FIXED  # by the release of the fix itself
    assert came_back(change_at(SERIES, 7), [FIXED]) is None  # before the fix
    assert came_back(change_at(SERIES, 10, drops=False), [FIXED]) is None


def test_an_open_place_ends_with_the_fix() -> None:
    assert covered(replace(FIXED, to_release=None)) == [6, 7, 8]
    assert covered(replace(FIXED, to_release=None, fixed_in="5.0.9")) == [6, 7, 8, 9, 10, 11]


def test_of_two_fixes_the_last_before_the_change_is_the_one_undone() -> None:
    early = replace(FIXED, name="early", from_release="5.0.0", to_release="5.0.1", fixed_in="5.0.2")
    assert came_back(change_at(SERIES, 10), [early, FIXED]) == FIXED
    assert came_back(change_at(SERIES, 7), [FIXED, early]) == early


def test_the_account_says_what_each_entry_covers_and_why_one_covers_nothing() -> None:
    changes = [change_at(SERIES, 6), change_at(SERIES, 9)]
    entries = [
        ENTRY,
        replace(ENTRY, name="over", expires=date(2026, 5, 31)),
        replace(ENTRY, name="typo", system="casandra"),
        replace(ENTRY, name="elsewhere", host="node-1"),
        replace(ENTRY, name="unmeasured", to_release="5.0.7"),
        replace(ENTRY, name="quiet", sign="rise"),
    ]
    reported = account(entries, [SERIES], changes, TODAY)
    assert [one.entry for one in reported] == entries
    assert [(one.covers, one.is_expired) for one in reported] == [
        ((changes[0],), False),
        ((changes[0],), True),
        *[((), False)] * 4,
    ]
    assert [one.obstacle for one in reported] == [
        None,
        None,
        Obstacle(name="system", known=("cassandra",)),
        Obstacle(name="host"),
        Obstacle(fitting=1, release="5.0.7"),
        Obstacle(fitting=1),
    ]
    assert [say_obstacle(one.entry, one.obstacle) for one in reported if one.obstacle] == [
        "no series has system casandra; the history has cassandra",
        "no series has host node-1; the history has none",
        "5.0.7 was measured in none of the 1 series that fit",
        "no rise there in any of the 1 series that fit",
    ]


DECISION = Decision(state=TriageState.EXPECTED, owner="storage", note="Safer by default.")


def test_entries_proposed_for_an_incident_cover_its_changes_and_no_others() -> None:
    times = make_series([3, 3, 3, 3], replace(KEY, metric="response_time", statistic="p99"))
    changes = [change_at(SERIES, 6), change_at(times, 6, drops=False)]
    drop, rise = propose("ab12", changes, DECISION)
    assert (drop.name, drop.sign, drop.metric) == ("ab12", "drop", "throughput")
    assert (rise.name, rise.sign, rise.metric) == ("ab12-rise", "rise", "response_time")
    assert (drop.from_release, drop.to_release, drop.from_night) == ("5.0.1", "5.0.2", None)
    assert (drop.workload, drop.host) == ("sensor-write", "*")
    assert [match(change, [drop, rise], TODAY) for change in changes] == [drop, rise]
    assert covered(drop) == [6]


def test_a_place_within_a_release_is_reported_by_its_nights() -> None:
    other = make_series([12], replace(KEY, line="4.1"))
    (entry,) = propose("ab12", [change_at(SERIES, 8)], DECISION)
    assert (entry.from_release, entry.to_release) == ("5.0.2", "5.0.2")
    assert (entry.from_night, entry.to_night) == (date(2026, 3, 8), date(2026, 3, 9))
    assert covered(entry) == [8]
    both = [change_at(SERIES, 8), change_at(other, 8)]
    (entry,) = propose("ab12", both, DECISION)
    assert (entry.line, entry.from_release) == ("*", None)
    assert all(match(change, [entry], TODAY) for change in both)


def test_a_place_between_releases_spans_the_changes_of_the_lead_s_line() -> None:
    reads = make_series([3, 3, 3, 3], replace(KEY, operation="read-latest"))
    changes = [change_at(SERIES, 6), change_at(reads, 9)]
    (entry,) = propose("ab12", changes, DECISION)
    assert (entry.operation, entry.from_release, entry.to_release) == ("*", "5.0.1", "5.0.3")
    assert all(match(change, [entry], TODAY) for change in changes)

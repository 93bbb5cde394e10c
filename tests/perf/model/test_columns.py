from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from perf.model.columns import Occasion, OccasionKind, Occasions
from perf.model.results import Purpose, Release, TrialId, TrialStatus

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
RELEASE = Release(system="fake", version="9.1.3", line="9.1", ordinal=3)
FIRST = Occasion(
    trial=TrialId("b"),
    release=RELEASE,
    started_at=NOON,
    status=TrialStatus.COMPLETED,
    night="2026-03-02",
    purpose=Purpose.SCHEDULED,
)
OLDER = replace(FIRST, trial=TrialId("a"), started_at=NOON - timedelta(microseconds=1))
NEXT_LINE = replace(OLDER, release=replace(RELEASE, version="10.0.1", line="10.0", ordinal=1))
NEXT = replace(OLDER, release=replace(RELEASE, version="9.1.4", ordinal=4))
SAME_TIME = replace(FIRST, trial=TrialId("a"))


def test_occasions_in_columns_are_those_that_were_put_there() -> None:
    kinds = [
        OccasionKind(release=one.release, status=one.status, purpose=one.purpose)
        for one in (FIRST, NEXT_LINE)
    ]
    moments = np.array(["2026-03-01T12:00", "2026-03-01T11:59:59.999999"], dtype="datetime64[us]")
    made = Occasions(["b", "a"], ["2026-03-02"] * 2, moments, kinds, np.array([0, 1]))  # type: ignore[list-item]
    for occasions in (made, Occasions.of([FIRST, NEXT_LINE])):
        assert tuple(occasions) == (FIRST, NEXT_LINE) == occasions[:]
        assert occasions[-1] == NEXT_LINE
        assert occasions[1] is occasions[1]
        # A night is of the day it ends on: one that begins at noon is of the next.
        assert np.diff(occasions.days).tolist() == [-1]
        assert date_of(occasions.days[0]) == "2026-03-02"
        assert occasions.years.tolist() == [2026, 2026]


def test_they_rank_by_line_release_time_and_trial() -> None:
    ordered = (OLDER, SAME_TIME, FIRST, NEXT, NEXT_LINE)
    shuffled = (NEXT, FIRST, NEXT_LINE, SAME_TIME, OLDER, FIRST)
    ranks = Occasions.of(shuffled).ranks
    assert [ordered[rank] for rank in ranks] == [*shuffled]


def test_nothing_is_ranked_where_nothing_is() -> None:
    assert Occasions.of(()).ranks.tolist() == []


def date_of(day: int) -> str:
    return datetime.fromordinal(int(day)).date().isoformat()

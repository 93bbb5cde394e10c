"""What servers log on one side only: lines of all products, masked; what chance does not part."""

from collections import Counter

import numpy as np
import pytest

from analysis.comparing.logs import LEAST_TRIALS, Lines, compare_logs, count_lines

SLOW = ("warning", "Query took # ms on …")
LOST = ("error", "Lost … at …")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (
            "WARN  [main] 2026-11-27 02:49:48,494 o.a.c.Checks:262 - Query took 12 ms on /10.0.0.1",
            "Query took # ms on /#",
        ),
        (
            "WARN  2026-11-27 02:49:48,494 [shard 0:main] raft - Query took 12 ms on 'a b'",
            "Query took # ms on …",
        ),
        (
            "[2026-11-27T02:49:48,494][WARN ][o.e.c.s.M] [node-1] Query took 12 ms on /var/lib/a.db",
            "Query took # ms on …",
        ),
        (
            '{"t":{"$date":"2026-11-27"},"s":"W","id":1,"msg":"Slow query","attr":{"ms":12}}',
            "Slow query",
        ),
        ("WARNING: Query took 12 ms on 0x1f", "Query took # ms on …"),
        ("INFO  [main] 2026-11-27 02:49:48,494 A:1 - an ERROR that is none", None),
        ('{"s":"I","msg":"fine"}', None),
        ('{"s":"W"', None),
        ("\tat java.base/java.lang.Thread.run(Thread.java:1)", None),
    ],
)
def test_lines_of_all_products_lose_what_varies(line: str, found: str | None) -> None:
    assert count_lines([line]) == ({("warning", found): 1} if found else {})


def test_an_error_is_one() -> None:
    lines = [
        "ERROR [x] 2026-01-01 00:00:00,000 A:7 - Lost 'n' at 00000000-0000-4000-8000-000000000000"
    ] * 2
    assert count_lines(lines) == {LOST: 2}


def sides(before: list[int], after: list[int]) -> dict[str, list[Lines]]:
    return {
        name: [Counter({SLOW: count, LOST: 3}) if count else Counter({LOST: 3}) for count in counts]
        for name, counts in (("baseline", before), ("candidate", after))
    }


@pytest.mark.parametrize(
    ("before", "after", "ends"),
    [
        ([0, 0, 0, 0], [1, 2, 1, 9], ((0, 0), (1, 9))),
        ([1, 2, 1, 1], [4, 7, 5, 4], ((1, 2), (4, 7))),
        ([4, 7, 5, 4], [0, 0, 0, 0], ((4, 7), (0, 0))),
        ([1, 2, 1, 1], [3, 7, 5, 4], None),  # less than twice as many
        ([0, 0, 0, 0], [1, 0, 1, 1], None),  # not in each
    ],
)
def test_a_line_parts_the_sides_where_each_trial_does(
    before: list[int], after: list[int], ends: tuple[tuple[int, int], tuple[int, int]] | None
) -> None:
    found = compare_logs(sides(before, after))
    assert found is not None
    assert [(one.text, (one.before, one.after)) for one in found] == ([(SLOW[1], ends)] if ends else [])


def test_too_few_trials_have_no_say() -> None:
    assert compare_logs(sides([0, 0, 0], [5, 5, 5, 5])) is None


def test_errors_come_first() -> None:
    trials = sides([0] * LEAST_TRIALS, [9] * LEAST_TRIALS)
    for counts in trials["baseline"]:
        del counts[LOST]
    found = compare_logs(trials)
    assert found is not None
    assert [one.level for one in found] == ["error", "warning"]


def test_lines_that_come_by_chance_seldom_part_equal_sides() -> None:
    draws = np.random.default_rng(7).poisson(1.0, size=(2000, 8))
    parted = sum(bool(compare_logs(sides(list(row[:4]), list(row[4:])))) for row in draws.tolist())
    assert parted <= 30  # 1.5 %; 2 of 70 if only their order counted

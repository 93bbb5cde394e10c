import statistics
from collections import defaultdict
from dataclasses import replace

import pytest

from perf.model.records import Answer, Devops, Operation
from perf.workloads.devops.batches import Batches
from perf.workloads.devops.queries import METRICS, QUERIES, CpuHistory, check_answer, make_query
from perf.workloads.devops.rows import DevopsRow, Group, Query
from perf.workloads.devops.tables import devops_rows

RECORDS = Devops(kind="devops", hosts=11, span_s=50_000, interval_s=60, queries=50)
SEED = 123
HISTORY = CpuHistory(RECORDS, SEED)
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def rows() -> list[DevopsRow]:
    batches = Batches(RECORDS, SEED, 10_000)
    numbers = range(-(-devops_rows(RECORDS) // 10_000))
    return [row for number in numbers for row in batches.batch(number) if row.table == "cpu"]


def answer_plainly(rows: list[DevopsRow], query: Query) -> list[Group]:
    """Answer from rows, as a database might."""
    found: defaultdict[tuple[int, str], list[tuple[float, ...]]] = defaultdict(list)
    for row in rows:
        if query.from_ms <= row.ts_ms < query.until_ms and (
            not query.hosts or row.tags[0] in query.hosts
        ):
            host = "" if query.hosts else row.tags[0]
            found[row.ts_ms // query.bucket_ms * query.bucket_ms, host].append(row.values)
    aggregate = max if query.aggregate == "max" else statistics.fmean
    return [
        Group(ts_ms, host, tuple(map(aggregate, zip(*together, strict=True)))[: len(query.metrics)])
        for (ts_ms, host), together in sorted(found.items())
    ]


@pytest.mark.parametrize("operation", QUERIES)
def test_the_expected_answer_is_that_of_the_rows(operation: Operation, rows: list[DevopsRow]) -> None:
    for number in range(5):
        query = make_query(RECORDS, SEED, operation, number)
        expected = HISTORY.answer(query)
        found = answer_plainly(rows, query)
        assert len(expected) > 11
        assert [(one.ts_ms, one.host) for one in expected] == [(one.ts_ms, one.host) for one in found]
        assert check_answer(query, expected, found) is Answer.COMPLETED


@pytest.mark.parametrize(
    ("operation", "metrics", "hosts", "hours", "bucket_ms", "aggregate"),
    [
        (Operation.SINGLE_GROUPBY_1_1_1, 1, 1, 1, 60_000, "max"),
        (Operation.SINGLE_GROUPBY_1_1_12, 1, 1, 12, 60_000, "max"),
        (Operation.SINGLE_GROUPBY_5_1_12, 5, 1, 12, 60_000, "max"),
        (Operation.SINGLE_GROUPBY_5_8_1, 5, 8, 1, 60_000, "max"),
        (Operation.DOUBLE_GROUPBY_1, 1, 0, 12, HOUR_MS, "mean"),
        (Operation.DOUBLE_GROUPBY_5, 5, 0, 12, HOUR_MS, "mean"),
        (Operation.DOUBLE_GROUPBY_ALL, 10, 0, 12, HOUR_MS, "mean"),
    ],
)
def test_queries_are_those_of_tsbs(
    operation: Operation, metrics: int, hosts: int, hours: int, bucket_ms: int, aggregate: str
) -> None:
    query = make_query(RECORDS, SEED, operation, 3)
    assert query.metrics == METRICS[:metrics]
    assert len(set(query.hosts)) == len(query.hosts) == hosts
    assert query.until_ms - query.from_ms == hours * HOUR_MS
    assert (query.bucket_ms, query.aggregate) == (bucket_ms, aggregate)


@pytest.mark.parametrize("operation", QUERIES)
def test_windows_lie_anywhere_in_the_data(operation: Operation) -> None:
    begin_ms = RECORDS.begin_s * 1000
    end_ms = begin_ms + RECORDS.span_s // 60 * 60_000 + 1000
    queries = [make_query(RECORDS, SEED, operation, number) for number in range(RECORDS.queries)]
    assert all(begin_ms <= one.from_ms and one.until_ms <= end_ms for one in queries)
    assert len({one.from_ms for one in queries}) == len(queries)
    assert make_query(RECORDS, SEED, operation, RECORDS.queries) == queries[0]
    assert make_query(RECORDS, SEED + 1, operation, 0) != queries[0]


def test_small_data_have_shorter_windows_and_fewer_hosts() -> None:
    small = replace(RECORDS, hosts=3, span_s=1800)
    query = make_query(small, SEED, Operation.SINGLE_GROUPBY_5_8_1, 0)
    assert sorted(query.hosts) == ["host_0", "host_1", "host_2"]
    assert query.until_ms - query.from_ms == 1_800_000


@pytest.mark.parametrize("operation", QUERIES)
def test_every_difference_in_an_answer_is_found(operation: Operation) -> None:
    query = make_query(RECORDS, SEED, operation, 1)
    expected = list(HISTORY.answer(query))

    def judge(answer: list[Group]) -> Answer:
        return check_answer(query, expected, answer)

    assert judge(expected) is Answer.COMPLETED
    assert judge(expected[:-1]) is Answer.NOT_FOUND
    assert judge(expected[1:]) is Answer.NOT_FOUND
    assert judge([]) is Answer.NOT_FOUND
    assert judge(expected[::-1]) is Answer.WRONG_DATA
    assert judge([*expected, expected[-1]]) is Answer.WRONG_DATA
    first, *rest = expected
    assert judge([replace(first, host="host_x"), *rest]) is Answer.WRONG_DATA
    assert judge([replace(first, ts_ms=first.ts_ms + 1), *rest]) is Answer.WRONG_DATA
    assert judge([replace(first, values=first.values[1:]), *rest]) is Answer.WRONG_DATA
    for place in range(len(first.values)):
        values = list(first.values)
        values[place] += 1e-4
        assert judge([replace(first, values=tuple(values)), *rest]) is Answer.WRONG_DATA
        assert judge([*rest[:-1], replace(rest[-1], values=tuple(values))]) is Answer.WRONG_DATA


@pytest.mark.parametrize("operation", QUERIES)
def test_a_corrupted_row_is_found_by_each_query_whose_window_holds_it(
    operation: Operation, rows: list[DevopsRow]
) -> None:
    query = make_query(RECORDS, SEED, operation, 2)
    hosts = query.hosts or ("host_4",)
    middle_ms = (query.from_ms + query.until_ms) // 2
    victim = next(row for row in rows if row.tags[0] == hosts[-1] and row.ts_ms >= middle_ms)
    # A maximum shows what is above it. A mean shows everything.
    change = 1000 if query.aggregate == "max" else 1
    corrupt = replace(victim, values=tuple(value + change for value in victim.values))
    answer = answer_plainly([corrupt if row is victim else row for row in rows], query)
    assert check_answer(query, HISTORY.answer(query), answer) is Answer.WRONG_DATA


def test_means_may_differ_by_rounding_and_maxima_may_not() -> None:
    mean = make_query(RECORDS, SEED, Operation.DOUBLE_GROUPBY_1, 0)
    best = make_query(RECORDS, SEED, Operation.SINGLE_GROUPBY_1_1_1, 0)
    for query, outcome in ((mean, Answer.COMPLETED), (best, Answer.WRONG_DATA)):
        expected = HISTORY.answer(query)
        found = [replace(one, values=tuple(v * (1 + 1e-12) for v in one.values)) for one in expected]
        assert check_answer(query, expected, found) is outcome


def test_a_window_without_rows_has_no_groups() -> None:
    query = make_query(RECORDS, SEED, Operation.SINGLE_GROUPBY_1_1_1, 0)
    before = replace(query, from_ms=0, until_ms=HOUR_MS)
    assert HISTORY.answer(before) == ()
    assert check_answer(before, (), ()) is Answer.COMPLETED


def test_a_mean_over_a_lost_field_is_wrong_data() -> None:
    query = Query(Operation.DOUBLE_GROUPBY_1, ("usage_user",), (), 0, 3_600_000, 3_600_000, "mean")
    lost = Group(0, "host_0", (None,))  # type: ignore[arg-type]  what a system gives for no value
    assert check_answer(query, [Group(0, "host_0", (1.0,))], [lost]) is Answer.WRONG_DATA

"""Keys and values of the put/get workload: the same for whoever computes them, and told from others."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from catalogs import shipped
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.model.records import Answer, PutGet
from perf.workloads.put_get import (
    check_value,
    choose_get,
    choose_put,
    key_name,
    make_value,
)

ROOT = Path(__file__).parents[3]
RECORDS = PutGet(kind="put-get", keys=1000)
SEED, FIRST, SECOND = 42, 1776, 1812


def test_keys_and_values_never_change_from_one_version_of_the_program_to_the_next() -> None:
    # A native engine must make the same of (seed 42, value seed 1776, index 5).
    assert key_name(RECORDS, SEED, 5) == "71b4a9259fbc3538e584848c3aecf6ea"
    value = make_value(RECORDS, SEED, FIRST, 5)
    assert (len(value), value[:24]) == (1221, b"NwP7G2mxaNBLgnecEGU3+DPQ")
    assert [choose_get(RECORDS, SEED, 3, number) for number in range(5)] == [471, 928, 978, 387, 757]


@pytest.mark.parametrize("key_bytes", [16, 31, 32, 33, 100])
def test_each_index_has_a_key_of_its_own_of_the_wanted_size(key_bytes: int) -> None:
    records = replace(RECORDS, key_bytes=key_bytes)
    keys = {key_name(records, SEED, index) for index in range(1000)}
    assert len(keys) == 1000
    assert {len(key) for key in keys} == {key_bytes}
    assert all(key.isascii() for key in keys)


def test_neighbours_by_index_are_strangers_in_the_order_of_keys() -> None:
    keys = [key_name(RECORDS, SEED, index) for index in range(1000)]
    rising = sum(first < second for first, second in pairwise(keys))
    assert 440 < rising < 560  # 500 ± 4 standard deviations of such a count


def test_sizes_are_uniform_over_the_whole_range_and_follow_the_value_seed() -> None:
    sizes = [len(make_value(RECORDS, SEED, FIRST, index)) for index in range(50_000)]
    assert (min(sizes), max(sizes)) == (100, 1899)
    assert abs(sum(sizes) / 50_000 - 999.5) < 10  # the mean of so many has a standard deviation of 2.3
    tenths = Counter((size - 100) // 180 for size in sizes)
    # χ² of nine degrees of freedom exceeds 27.9 once in a thousand seeds.
    assert sum((count - 5000) ** 2 / 5000 for count in tenths.values()) < 27.9
    others = [len(make_value(RECORDS, SEED, SECOND, index)) for index in range(50_000)]
    assert sum(map(int.__eq__, sizes, others)) < 100  # 28 by chance
    again = [len(make_value(RECORDS, SEED + 1, FIRST, index)) for index in range(1000)]
    assert again == sizes[:1000]


@settings(deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 50), st.integers(1, 500), st.integers(0, 2**32))
def test_what_was_put_is_found_and_nothing_else_is(
    index: int, least: int, spread: int, value_seed: int
) -> None:
    records = replace(RECORDS, least_value_bytes=least + 50, value_bytes_range=spread)
    value = make_value(records, SEED, value_seed, index)
    assert least + 50 <= len(value) < least + 50 + spread
    assert value.isascii()
    found = {
        check_value(records, SEED, value_seed, index, values)
        for values in (
            (make_value(records, SEED, value_seed + 1, index),),
            (make_value(records, SEED, value_seed, index + 1),),
            (value[:-1],),
            (value + b"A",),
            (value, value),
            (b"-" + value[1:],),
            (value[:-1] + b"-",),
            (),
        )
    }
    assert found == {Answer.WRONG_DATA}
    assert check_value(records, SEED, value_seed, index, (value,)) is Answer.COMPLETED
    assert check_value(records, SEED, value_seed, index, None) is Answer.NOT_FOUND


@pytest.mark.parametrize("keys", [1, 2, 3, 10, 64, 1000, 1025])
def test_each_pass_of_gets_asks_for_each_key_once(keys: int) -> None:
    records = replace(RECORDS, keys=keys)
    for first in (0, keys, 7 * keys):
        asked = [choose_get(records, SEED, 1, number) for number in range(first, first + keys)]
        assert sorted(asked) == list(range(keys))


def test_each_phase_and_each_pass_has_an_order_of_its_own_that_looks_like_none() -> None:
    passes = [
        [choose_get(RECORDS, SEED, run, number) for number in range(first, first + 1000)]
        for run, first in ((1, 0), (1, 1000), (2, 0))
    ]
    passes.append(list(range(1000)))
    for place, one in enumerate(passes):
        for other in passes[place + 1 :]:
            assert sum(map(int.__eq__, one, other)) < 10  # 1 by chance
    (one, *_) = passes
    steps = Counter((second - first) % 1000 for first, second in pairwise(one))
    assert max(steps.values()) < 10  # no stride; 1 by chance


def test_puts_take_the_keys_in_order_and_begin_again() -> None:
    assert [choose_put(RECORDS, number) for number in (0, 1, 999, 1000, 2001)] == [0, 1, 999, 0, 1]


def test_the_phases_are_the_rows_of_the_report_and_keep_their_threads_when_scaled_down() -> None:
    catalog = shipped()
    suite = catalog.suites["put-get-small"]
    workload = catalog.resolve(suite, suite.experiments[0]).workload
    assert workload.name == "put-get-by-1000"
    assert workload.records == replace(RECORDS, keys=10_000)
    # Its columns Test, Thr and ValSeed.
    assert [(one.operation.value, one.in_flight, one.value_seed) for one in workload.sequence] == [
        ("put", 20, 1776),
        ("get", 20, None),
        ("get", 20, None),
        ("get", 50, None),
        ("put", 20, 1812),
        ("put", 20, 1846),
        ("get", 20, None),
        ("get", 20, None),
        ("put-get", 20, 1861),
        ("get", 20, None),
        ("get", 20, None),
        ("get", 50, None),
    ]

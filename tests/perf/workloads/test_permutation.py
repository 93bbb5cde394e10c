"""Shuffled orders: each number once, and no two orders alike."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.model.records import Sensor
from perf.workloads.permutation import permute
from perf.workloads.sensor import STEP_MS, batch


@given(st.integers(1, 300), st.integers(0, 2**64 - 1))
def test_each_number_has_one_place(size: int, order: int) -> None:
    assert sorted(permute(place, size, order) for place in range(size)) == list(range(size))


def test_orders_differ_and_do_not_step() -> None:
    orders = [[permute(place, 1000, order) for place in range(1000)] for order in range(5)]
    assert len({tuple(order) for order in orders}) == 5
    for order in orders:
        steps = [after - before for before, after in pairwise(order)]
        assert max(steps.count(step) for step in set(steps)) < 40


@pytest.mark.parametrize("batch_rows", [1, 3])
def test_shuffled_writes_are_the_rows_of_those_in_turn(batch_rows: int) -> None:
    in_turn = Sensor(kind="sensor", devices=50, payload_bytes=200)
    shuffled = Sensor(kind="sensor", devices=50, payload_bytes=200, order="shuffled")
    numbers = range(4 * 50)
    straight = [batch(in_turn, 7, 100, batch_rows, number) for number in numbers]
    mixed = [batch(shuffled, 7, 100, batch_rows, number) for number in numbers]
    for turn in range(4):
        one_turn = slice(turn * 50, turn * 50 + 50)
        assert mixed[one_turn] != straight[one_turn]
        by_device = sorted(mixed[one_turn], key=lambda rows: rows[0].device_id)
        assert by_device == straight[one_turn]
    first, second = [rows[0].device_id for rows in mixed[:50]], [r[0].device_id for r in mixed[50:100]]
    assert first != second
    times = [row.ts_ms for rows in mixed for row in rows if row.device_id == first[0]]
    assert times == list(range(times[0], times[0] + len(times) * STEP_MS, STEP_MS))

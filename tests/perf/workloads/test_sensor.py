import zlib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.model.records import Answer, Sensor
from perf.workloads.sensor import (
    EPOCH_MS,
    STEP_MS,
    SensorReading,
    batch,
    check_latest,
    choose_device,
    device_ids,
    expected_latest,
    reading,
)
from perf.workloads.splitmix import mix

RECORDS = Sensor(kind="sensor", devices=7, payload_bytes=1000)
SEED = 42
ROWS = 7 * 20 + 3  # the first three devices have 21 readings, the others 20
DEVICE = 5
# A native engine must make the same row from (seed 42, row 1234).
GOLDEN_VALUES = (0.46628404632092546, 0.19710054017654022)
GOLDEN_METADATA = "3e8e9ab05675117d8823e3c3e0cbba27b9eac8c813e7406e03426cd9aa6901f4b682a9d03746af98"


def judge(*rows: SensorReading, count: int = 10) -> Answer:
    return check_latest(RECORDS, SEED, ROWS, DEVICE, count=count, answer=rows)


def expect(count: int = 10) -> list[SensorReading]:
    return list(expected_latest(RECORDS, SEED, ROWS, DEVICE, count))


def test_generator_gives_the_numbers_of_the_reference_code() -> None:
    gamma, seed = 0x9E3779B97F4A7C15, 1234567
    assert [mix((seed + n * gamma) % 2**64) for n in (1, 2, 3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_a_reading_never_changes_from_one_version_to_the_next() -> None:
    row = reading(Sensor(kind="sensor", devices=100, payload_bytes=128), 42, 1234)
    assert row.device_id == "sensor-000000034"
    assert row.ts_ms == EPOCH_MS + 12 * STEP_MS
    assert row.values[:2] == GOLDEN_VALUES
    assert row.metadata.hex() == GOLDEN_METADATA


@settings(deadline=None)
@given(st.integers(0, 10**12), st.integers(1, 10**6), st.integers(128, 4096))
def test_a_reading_has_the_size_that_was_asked_for(row: int, devices: int, size: int) -> None:
    made = reading(Sensor(kind="sensor", devices=devices, payload_bytes=size), SEED, row)
    assert len(made.device_id.encode()) == 16
    assert 16 + 8 + 8 * len(made.values) + len(made.metadata) == size
    assert all(0 <= value < 1 for value in made.values)


def test_rows_spread_over_devices_with_a_timestamp_of_their_own() -> None:
    rows = [reading(RECORDS, SEED, row) for row in range(700)]
    assert len({(row.device_id, row.ts_ms) for row in rows}) == 700
    assert len({row.values for row in rows}) == 700
    assert {row.device_id for row in rows[:7]} == set(device_ids(RECORDS))


@given(st.integers(0, 10**9), st.integers(0, 1000))
def test_a_batch_of_one_row_is_that_row(number: int, before: int) -> None:
    first_row = before * RECORDS.devices
    assert batch(RECORDS, SEED, first_row, 1, number) == (reading(RECORDS, SEED, first_row + number),)


@settings(deadline=None)
@given(st.integers(1, 8), st.integers(0, 10), st.integers(1, 40))
def test_batches_leave_out_no_row_and_write_none_twice(
    batch_rows: int, before: int, turns: int
) -> None:
    first_row = before * RECORDS.devices
    made = [
        batch(RECORDS, SEED, first_row, batch_rows, number) for number in range(turns * RECORDS.devices)
    ]
    assert all(len(rows) == batch_rows for rows in made)
    assert all(len({row.device_id for row in rows}) == 1 for rows in made)
    expected = range(first_row, first_row + turns * batch_rows * RECORDS.devices)
    found = sorted((row.ts_ms, row.device_id) for rows in made for row in rows)
    wanted = (reading(RECORDS, SEED, row) for row in expected)
    assert found == sorted((row.ts_ms, row.device_id) for row in wanted)
    # The batches of one device follow each other.
    times = [row.ts_ms for rows in made[3 :: RECORDS.devices] for row in rows]
    assert times == list(range(times[0], times[-1] + 1, STEP_MS))


def test_seeds_give_different_data() -> None:
    one, other = reading(RECORDS, 1, 0), reading(RECORDS, 2, 0)
    assert one.values != other.values
    assert one.metadata != other.metadata


def test_neighbouring_rows_do_not_compress() -> None:
    block = b"".join(reading(RECORDS, SEED, row).metadata for row in range(64))
    assert len(zlib.compress(block, 9)) > 0.98 * len(block)


def test_devices_are_chosen_evenly_and_again_the_same() -> None:
    chosen = [choose_device(RECORDS, SEED, number) for number in range(7000)]
    assert chosen == [choose_device(RECORDS, SEED, number) for number in range(7000)]
    assert all(900 < chosen.count(device) < 1100 for device in range(7))
    assert chosen != [choose_device(RECORDS, SEED + 1, number) for number in range(7000)]


@settings(deadline=None)
@given(st.integers(0, 200), st.integers(0, 6), st.integers(1, 15))
def test_expected_rows_are_the_newest_of_those_stored(rows: int, device: int, count: int) -> None:
    stored = [reading(RECORDS, SEED, row) for row in range(rows) if row % 7 == device]
    newest = tuple(sorted(stored, key=lambda one: -one.ts_ms)[:count])
    assert expected_latest(RECORDS, SEED, rows, device, count) == newest


def test_the_right_answer_is_complete() -> None:
    assert judge(*expect()) is Answer.COMPLETED
    assert judge(*expect(50), count=50) is Answer.COMPLETED


@pytest.mark.parametrize("missing", range(10))
def test_a_missing_row_is_not_found(missing: int) -> None:
    rows = expect()
    del rows[missing]
    assert judge(*rows) is Answer.NOT_FOUND


def test_an_older_row_in_place_of_a_missing_one_is_not_found() -> None:
    assert judge(*expect(11)[1:]) is Answer.NOT_FOUND


def test_no_rows_are_not_found() -> None:
    assert judge() is Answer.NOT_FOUND


def _wrong_answers() -> dict[str, list[SensorReading]]:
    rows = expect()
    newest, foreign = rows[0], reading(RECORDS, SEED, DEVICE + 1)
    return {
        "wrong order": rows[::-1],
        "a row twice": [newest, *rows[:9]],
        "too many rows": expect(11),
        "a row of another device": [*rows[:9], foreign],
        "a changed value": [replace(newest, values=(0.5, *newest.values[1:])), *rows[1:]],
        "changed metadata": [replace(newest, metadata=newest.metadata[::-1]), *rows[1:]],
        "shortened metadata": [replace(newest, metadata=newest.metadata[:-1]), *rows[1:]],
        "a time between two": [replace(newest, ts_ms=newest.ts_ms + 1), *rows[1:]],
        "a time yet to come": [replace(newest, ts_ms=newest.ts_ms + STEP_MS), *rows[1:]],
        "a time before the first": [replace(newest, ts_ms=EPOCH_MS - STEP_MS), *rows[1:]],
    }


@pytest.mark.parametrize("fault", sorted(_wrong_answers()))
def test_anything_else_is_wrong_data(fault: str) -> None:
    assert judge(*_wrong_answers()[fault]) is Answer.WRONG_DATA

import zlib
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.model.records import Answer, Ycsb
from perf.workloads.keys import Uniform
from perf.workloads.ycsb import (
    Ends,
    check_record,
    check_scan,
    choose_field,
    choose_length,
    choose_record,
    key_name,
    make_field,
    make_record,
    updated_version,
)

RECORDS = Ycsb(kind="ycsb", record_count=100, request_distribution="uniform", max_scan_length=20)
SEED = 42
KEY = key_name(RECORDS, 5)


def judge(values: list[bytes] | None, key: str = KEY) -> Answer:
    return check_record(RECORDS, SEED, key, values)


def scanned(*numbers: int) -> list[tuple[str, list[bytes]]]:
    keys = [key_name(RECORDS, number) for number in numbers]
    return [(key, make_record(RECORDS, SEED, key)) for key in keys]


def test_a_key_is_the_hash_of_its_number_or_the_number() -> None:
    assert KEY == "user1000385178204227360"
    ordered = replace(RECORDS, insert_order="ordered")
    assert key_name(ordered, 5) == "user5"
    assert key_name(replace(ordered, zero_padding=8), 5) == "user00000005"


def test_a_field_never_changes_from_one_version_of_the_program_to_the_next() -> None:
    # A native engine must make the same from (seed 42, record 5, field 3).
    assert make_field(RECORDS, SEED, KEY, 3, 0)[:24] == b"AAAA342JKxGcX0O4OHT83Osb"
    assert make_field(RECORDS, SEED, KEY, 3, 78)[:24] == b"AABOPbKR1J0yUCfRRYa1jG5R"


@settings(deadline=None)
@given(st.integers(0, 10**10), st.integers(8, 300), st.integers(1, 12), st.integers(0, 2**40))
def test_what_is_written_is_found_genuine(number: int, length: int, count: int, version: int) -> None:
    records = replace(RECORDS, field_length=length, field_count=count)
    key = key_name(records, number)
    values = make_record(records, SEED, key, version)
    assert len(values) == count
    assert all(len(value) == length and value.isascii() for value in values)
    assert check_record(records, SEED, key, values) is Answer.COMPLETED


def test_fields_may_be_of_different_versions() -> None:
    values = make_record(RECORDS, SEED, KEY)
    values[7] = make_field(RECORDS, SEED, KEY, 7, updated_version(123_456))
    values[2] = make_field(RECORDS, SEED, KEY, 2, updated_version(99))
    assert judge(values) is Answer.COMPLETED


def test_an_update_writes_another_value_than_the_insert_and_than_other_updates() -> None:
    versions = [0, *(updated_version(number) for number in range(1000))]
    assert len({make_field(RECORDS, SEED, KEY, 0, version) for version in versions}) == 1001


def test_no_record_is_not_found() -> None:
    assert judge(None) is Answer.NOT_FOUND


@settings(deadline=None)
@given(st.integers(0, 9), st.integers(0, 99), st.integers(1, 255))
def test_any_changed_byte_of_any_field_is_found(field: int, place: int, change: int) -> None:
    values = make_record(RECORDS, SEED, KEY, 17)
    broken = bytearray(values[field])
    broken[place] ^= change
    values[field] = bytes(broken)
    assert judge(values) is Answer.WRONG_DATA


def _wrong_records() -> dict[str, list[bytes]]:
    good = make_record(RECORDS, SEED, KEY)
    other = make_record(RECORDS, SEED, key_name(RECORDS, 6))
    return {
        "another record": other,
        "a field of another record": [*good[:9], other[9]],
        "of another seed": make_record(RECORDS, SEED + 1, KEY),
        "two fields exchanged": [good[1], good[0], *good[2:]],
        "a field too few": good[:9],
        "a field too many": [*good, good[0]],
        "no fields": [],
        "an empty field": [b"", *good[1:]],
        "a field cut short": [good[0][:-1], *good[1:]],
        "a field too long": [good[0] + b"A", *good[1:]],
        "a later version's mark": [make_field(RECORDS, SEED, KEY, 0, 1)[:4] + good[0][4:], *good[1:]],
    }


@pytest.mark.parametrize("name", sorted(_wrong_records()))
def test_a_wrong_record_is_found(name: str) -> None:
    assert judge(_wrong_records()[name]) is Answer.WRONG_DATA


def test_a_scan_is_judged_by_its_first_key_and_by_every_record() -> None:
    answer = scanned(3, 1, 7)
    first = answer[0][0]
    assert check_scan(RECORDS, SEED, first, 3, answer) is Answer.COMPLETED
    assert check_scan(RECORDS, SEED, first, 10, answer) is Answer.COMPLETED
    assert check_scan(RECORDS, SEED, first, 10, []) is Answer.NOT_FOUND
    assert check_scan(RECORDS, SEED, first, 10, answer[1:]) is Answer.NOT_FOUND


def _wrong_scans() -> dict[str, list[tuple[str, list[bytes]]]]:
    good = scanned(3, 1, 7)
    (_, values), *rest = good
    return {
        "more than asked for": scanned(3, 1, 7, 8),
        "the first key later": [rest[0], good[0], rest[1]],
        "a key twice": [good[0], rest[0], rest[0]],
        "a key of another form": [good[0], ("customer7", values)],
        "a key with more zeros": [good[0], ("user0" + rest[0][0][4:], rest[0][1])],
        "a record under another key": [good[0], (rest[0][0], values)],
        "a record with a field too few": [good[0], (rest[0][0], rest[0][1][:9])],
    }


@pytest.mark.parametrize("name", sorted(_wrong_scans()))
def test_a_wrong_scan_is_found(name: str) -> None:
    first = key_name(RECORDS, 3)
    assert check_scan(RECORDS, SEED, first, 3, _wrong_scans()[name]) is Answer.WRONG_DATA


def test_only_the_last_of_an_order_can_begin_scans_that_end_early() -> None:
    ends = Ends()
    assert all(ends.can_be(key, came) for key, came in [("c", 3), ("a", 1), ("b", 2), ("a", 1)])
    # Inserts come after what was there: more follow then, and never fewer.
    assert ends.can_be("a", 7)
    assert ends.can_be("d", 4)
    assert not ends.can_be("e", 4)
    assert not ends.can_be("b", 1)
    assert ends.can_be("e", 5)


def test_choices_are_functions_of_seed_run_and_number() -> None:
    made = [choose_record(Uniform(100), SEED, 0, number, 100) for number in range(200)]
    assert made == [choose_record(Uniform(100), SEED, 0, number, 100) for number in range(200)]
    assert made != [choose_record(Uniform(100), SEED, 1, number, 100) for number in range(200)]
    fields = Counter(choose_field(RECORDS, SEED, 0, number) for number in range(2000))
    assert sorted(fields) == list(range(10))
    assert min(fields.values()) > 140
    lengths = Counter(choose_length(RECORDS, SEED, 0, number) for number in range(4000))
    assert sorted(lengths) == list(range(1, 21))
    assert min(lengths.values()) > 140


def test_neighbouring_records_compress_no_better_than_random_text() -> None:
    block = b"".join(b"".join(make_record(RECORDS, SEED, key_name(RECORDS, n))) for n in range(64))
    # Base64 has 6 bits in 8; the mark of the version is the same in all of them.
    assert len(zlib.compress(block, 9)) > 0.96 * 0.75 * len(block)

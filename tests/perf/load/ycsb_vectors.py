"""Keys, records, choices and judgements of the YCSB core workload that every engine must give.

`python tests/perf/load/ycsb_vectors.py` writes them to tests/data/vectors/ycsb.json.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from vector_files import DIRECTORY, bits, digest, write_vectors

from perf.model.records import Operation, Ycsb
from perf.workloads.keys import hash_number, insert_share, make_chooser, zeta
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

PATH = DIRECTORY / "ycsb.json"
_CHOICES = 10_000
_FEWER = 1000
_DISTRIBUTIONS = ("zipfian", "uniform", "hotspot", "latest")
_MIXES: tuple[Mapping[Operation, float], ...] = (
    {Operation.READ: 0.5, Operation.UPDATE: 0.5},
    {Operation.READ: 0.95, Operation.INSERT: 0.05},
    {Operation.SCAN: 19.0, Operation.INSERT: 1.0},
    {Operation.READ: 0.1, Operation.UPDATE: 0.2, Operation.INSERT: 0.3, Operation.SCAN: 0.7},
)
# What may come instead of a record or a key: done to the genuine one, both here and where vectors are
# read.
_SPOILS = ("", "none", "nothing", "fewer", "more", "swapped", "changed", "head", "short", "empty")
_KEY_SPOILS = ("", "", "", "", "0", "x", "-", "wrapped", "bare", "twice", "first", "absent", "field")


def make_vectors() -> dict[str, Any]:
    """Compute them all, as what JSON can say."""
    return {
        "zeta": [[items, bits(zeta(items))] for items in _zeta_items()],
        "hashes": [[number, hash_number(number)] for number in (0, 1, 255, 256, 10**10, 2**63 - 1)],
        "cases": [*_usual_cases(), *_edge_cases()],
        "scans": [
            *judge_scans(_records("uniform"), 42, 60),
            *judge_scans(_records("uniform", insert_order="ordered", zero_padding=5), 7, 60),
        ],
        "ends": [judge_ends(seed) for seed in range(6)],
    }


def _zeta_items() -> list[int]:
    draw = random.Random(1)  # noqa: S311  chances, not secrets
    near = [*range(1, 70), 99, 100, 101, 999, 10**6 - 1, 10**6, 10**9, 10**10, 10**12]
    return near + [draw.randrange(64, 10 ** draw.randint(2, 12)) for _ in range(200)]


def _records(distribution: str, **more: Any) -> Ycsb:  # noqa: ANN401  as its fields are
    return Ycsb(
        kind="ycsb",
        request_distribution=distribution,  # type: ignore[arg-type]
        **{"record_count": 1000, **more},
    )


def _usual_cases() -> Iterator[dict[str, Any]]:
    for distribution in _DISTRIBUTIONS:
        for place, mix in enumerate(_MIXES):
            seed = (0, 42, 2**63, 2**64 - 1)[place]
            records = _records(distribution, record_count=1001 * 10**place)
            yield make_case(records, seed, place, mix, engine_count=1 + place)


def _edge_cases() -> Iterator[dict[str, Any]]:
    mix = _MIXES[1]
    for distribution in _DISTRIBUTIONS:
        for stored in (1, 2, 3):
            yield make_case(_records(distribution, record_count=stored), 42, 0, mix)
        large = _records(distribution, record_count=1_000_000_000_000, insert_order="ordered")
        yield make_case(large, 42, 1, mix)
    yield make_case(_records("zipfian", operation_count=20_000), 42, 5, mix, engine_count=3)
    for data, operations in ((0.0, 1.0), (1.0, 0.0), (0.37, 0.123456789012345), (0.0005, 1.0)):
        hot = _records("hotspot", hotspot_data_fraction=data, hotspot_operation_fraction=operations)
        yield make_case(hot, 42, 0, mix)
    shape = {"field_count": 1, "field_length": 8, "zero_padding": 30, "max_scan_length": 1}
    yield make_case(_records("latest", insert_order="ordered", **shape), 42, 0, mix)
    wide = {"field_count": 300, "field_length": 13, "max_scan_length": 100_000}
    yield make_case(_records("uniform", **wide), 42, 0, mix)


def make_case(
    records: Ycsb, seed: int, run: int, mix: Mapping[Operation, float], *, engine_count: int = 1
) -> dict[str, Any]:
    """Compute keys, records and choices of one seed."""
    return {
        "records": asdict(records),
        "seed": seed,
        "run": run,
        "mix": [[operation.value, weight] for operation, weight in mix.items()],
        "engine_count": engine_count,
        "keys_digest": digest(key_name(records, number) for number in range(_FEWER)),
        "first_keys": [key_name(records, number) for number in (0, 1, records.record_count)],
        **_say_contents(records, seed, run),
        "choices": [
            _say_choices(records, seed, run, mix, engine_count, known)
            for known in (records.record_count, records.record_count * 21 // 20 + 1)
        ],
        "judged": list(_judge(records, seed)),
    }


def _say_contents(records: Ycsb, seed: int, run: int) -> dict[str, Any]:
    numbers = [10**number - 1 for number in range(14)]
    keys = [key_name(records, number) for number in numbers]
    values = [
        make_record(records, seed, key, updated_version(number - 1))
        for key in keys
        for number in (0, 1, 63, 64, 2**24 - 1, 2**24, 10**12)
    ]
    changes = []
    for number in range(_FEWER):
        field = choose_field(records, seed, run, number)
        value = make_field(records, seed, keys[number % len(keys)], field, updated_version(number))
        changes += [field, value, choose_length(records, seed, run, number)]
    return {
        "first_value": values[1][0].decode(),
        "records_digest": digest(value for record in values for value in record),
        "changes": _FEWER,
        "changes_digest": digest(changes),
    }


def _say_choices(
    records: Ycsb,
    seed: int,
    run: int,
    mix: Mapping[Operation, float],
    engine_count: int,
    known: int,
) -> dict[str, Any]:
    chooser = make_chooser(
        records,
        stored=records.record_count,
        insert_share=insert_share(mix),
        engine_count=engine_count,
    )
    # How many are known grows by one from choice to choice in a second sequence.
    count = _CHOICES if known > 1000 and known == records.record_count else _FEWER
    fixed = [choose_record(chooser, seed, run, number, known) for number in range(count)]
    growing = [choose_record(chooser, seed, run, number, known + number) for number in range(_FEWER)]
    return {
        "known": known,
        "count": count,
        "first": fixed[:20],
        "digest": digest(fixed),
        "growing": _FEWER,
        "growing_digest": digest(growing),
    }


def _judge(records: Ycsb, seed: int) -> Iterator[tuple[str, str]]:
    key = key_name(records, 5)
    for spoil in _SPOILS:
        values = _spoil(make_record(records, seed, key, 77), spoil)
        yield spoil, check_record(records, seed, key, values).value


def _spoil(values: list[bytes], spoil: str) -> list[bytes] | None:
    """Do something to the values of a record."""
    *others, last = values
    done: dict[str, list[bytes] | None] = {
        "": values,
        "none": None,
        "nothing": [],
        "fewer": others,
        "more": [*values, last],
        "swapped": [*values[1:], values[0]],
        "changed": [*others, last[:-1] + bytes([last[-1] ^ 1])],
        "head": [*others, bytes([last[0] ^ 1]) + last[1:]],
        "short": [*others, last[:-1]],
        "empty": [*others, last[:2]],
    }
    return done[spoil]


def judge_scans(records: Ycsb, seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Judge answers to scans that are more or less right, drawn from a seed."""
    draw = random.Random(seed)  # noqa: S311  chances, not secrets
    for _ in range(count):
        numbers = draw.sample(range(1000), draw.randint(1, 6))
        spoils = [draw.choice(_KEY_SPOILS) if draw.random() < 0.25 else "" for _ in numbers]
        asked = len(numbers) + draw.choice((-1, 0, 0, 0, 3))
        first_key = key_name(records, numbers[0])
        answer = []
        for number, spoil in zip(numbers, spoils, strict=True):
            answer += _spoil_row(records, seed, number, spoil)
        yield {
            "records": asdict(records),
            "seed": seed,
            "count": asked,
            "came": list(zip(numbers, spoils, strict=True)),
            "answer": check_scan(records, seed, first_key, asked, answer).value,
        }


def _spoil_row(records: Ycsb, seed: int, number: int, spoil: str) -> list[tuple[str, list[bytes]]]:
    key = key_name(records, number)
    digits, values = key.removeprefix("user"), make_record(records, seed, key, number)
    genuine, stranger = (key, values), key_name(records, 1001)
    done = {
        "": [genuine],
        "0": [(f"user0{digits}", values)],
        "x": [(f"{key}x", values)],
        "-": [(f"user-{digits}", values)],
        # A number beyond 64 bits, which is a key, and stands for the contents of its lowest bits.
        "wrapped": [(f"user{int(digits) + 2**64}", values)],
        "bare": [("user", values)],
        "twice": [genuine, genuine],
        "first": [(stranger, make_record(records, seed, stranger)), genuine],
        "absent": [],
        "field": [(key, values[:-1])],
    }
    return done[spoil]


def judge_ends(seed: int) -> dict[str, Any]:
    """Judge the ends of scans, one after the other."""
    draw, ends = random.Random(seed), Ends()  # noqa: S311  chances, not secrets
    longest = draw.choice((5, 20, 100))
    scans = [(f"user{draw.randrange(longest)}", draw.randint(1, longest)) for _ in range(120)]
    return {"came": [(key, came, ends.can_be(key, came)) for key, came in scans]}


if __name__ == "__main__":
    PATH.write_text(write_vectors(make_vectors()))

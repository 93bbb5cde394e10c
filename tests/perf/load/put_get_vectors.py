"""Keys, values and choices of the put/get workload that every engine must give.

`python tests/perf/load/put_get_vectors.py` writes them to tests/data/vectors/put_get.json.
"""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from vector_files import DIRECTORY, digest, write_vectors

from perf.model.records import PutGet
from perf.workloads.put_get import check_value, choose_get, choose_put, key_name, make_value

PATH = DIRECTORY / "put_get.json"
_CHOICES = 10_000


def make_vectors() -> dict[str, Any]:
    """Compute them all, as what JSON can say."""
    usual = PutGet(kind="put-get", keys=10_000)
    odd = PutGet(kind="put-get", keys=1001, key_bytes=17, least_value_bytes=1, value_bytes_range=1)
    largest = PutGet(
        kind="put-get",
        keys=1_000_000_000_000,
        key_bytes=1000,
        least_value_bytes=1_000_000,
        value_bytes_range=1_000_000,
    )
    one = PutGet(kind="put-get", keys=1, key_bytes=16)
    few = PutGet(kind="put-get", keys=6, key_bytes=33)
    cases = (
        (usual, 0, 0, 0),
        (usual, 42, 7, 3),
        (usual, 2**64 - 1, 2**64 - 1, 1),
        (usual, 2**63, 1, 0),
        (odd, 42, 42, 2),
        (one, 42, 3, 0),
        (few, 9, 3, 1),
    )
    return {
        "cases": [
            *(make_case(records, seed, value_seed, run) for records, seed, value_seed, run in cases),
            make_case(usual, 42, 7, 3, begin=25_000),
            make_case(largest, 42, 7, 3, begin=4_999_999_999_990, count=20),
        ]
    }


def make_case(
    records: PutGet, seed: int, value_seed: int, run: int, *, begin: int = 0, count: int = 1000
) -> dict[str, Any]:
    """Compute keys, values and choices of one seed, from a number on."""
    indexes = [(begin + number) % records.keys for number in range(count)]
    numbers = range(begin, begin + _CHOICES)
    gets = [choose_get(records, seed, run, number) for number in numbers]
    keys = [key_name(records, seed, index) for index in indexes]
    first = make_value(records, seed, value_seed, indexes[0])
    return {
        "records": asdict(records),
        "seed": seed,
        "value_seed": value_seed,
        "run": run,
        "begin": begin,
        "count": count,
        "first_keys": keys[:3],
        "keys_digest": digest(keys),
        "first_value": [len(first), first[:24].decode()],
        "values_digest": digest(make_value(records, seed, value_seed, index) for index in indexes),
        "choices": _CHOICES,
        "first_gets": gets[:20],
        "gets_digest": digest(gets),
        "puts_digest": digest(choose_put(records, number) for number in numbers),
        "judged": list(_judge(records, seed, value_seed, indexes[0])),
    }


def _judge(records: PutGet, seed: int, value_seed: int, index: int) -> Iterator[tuple[str, str]]:
    value = make_value(records, seed, value_seed, index)
    others = make_value(records, seed, value_seed, index + 1)
    past = make_value(records, seed, (value_seed + 1) % 2**64, index)
    came: dict[str, list[bytes] | None] = {
        "": [value],
        "none": None,
        "nothing": [],
        "twice": [value, value],
        "changed": [value[:-1] + bytes([value[-1] ^ 1])],
        "short": [value[:-1]],
        "other index": [others],
        "other seed": [past],
    }
    for spoil, values in came.items():
        yield spoil, check_value(records, seed, value_seed, index, values).value


if __name__ == "__main__":
    PATH.write_text(write_vectors(make_vectors()))

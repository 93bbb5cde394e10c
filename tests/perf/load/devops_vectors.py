"""Rows, queries and answers of the devops workload that every engine must give, bit for bit.

`python tests/perf/load/devops_vectors.py` writes them to tests/data/vectors/devops.json, which the Rust
engine reads in perf/load/native/tests/vectors_devops.rs. A number with a fraction stands there as
the 16 hexadecimal digits of its IEEE bits, which no parser can round. A digest runs over many more
numbers than a file should hold: from 0 on, each one's 64 bits are mixed into it by SplitMix64.
"""

import json
import struct
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from perf.model.records import Devops
from perf.workloads.devops.batches import Batches, host_tags
from perf.workloads.devops.queries import QUERIES, CpuHistory, make_query
from perf.workloads.devops.rows import DevopsRow, Group, Query
from perf.workloads.devops.tables import TABLES, devops_rows
from perf.workloads.splitmix import MASK, mix

PATH = Path(__file__).parents[2] / "data/vectors/devops.json"

# Neither the begin nor the end is at a full minute or hour; a batch is of parts of tables.
_SMALL = Devops(
    kind="devops", hosts=11, span_s=3 * 3600, interval_s=60, begin_s=1_451_607_137, queries=5
)
_SEED, _BATCH_ROWS = 7, 40
# The whole first moment, one of the middle, the last one that is full, the rest, and nothing.
_BATCHES = (0, 1, 2, 222, 444, 445, 446)
_ASKED = (0, 8)  # the second is asked for number 3, as there are five
# Longer, at the usual interval: windows of twelve hours, edges that walks reach.
_LONG = Devops(kind="devops", hosts=3, span_s=13 * 3600, interval_s=40, queries=12)
_LONG_SEED, _LONG_BATCH_ROWS = 20_260_301, 1000


def make_vectors() -> dict[str, Any]:
    """Compute them all, as what JSON can say."""
    batches, history = Batches(_SMALL, _SEED, _BATCH_ROWS), CpuHistory(_SMALL, _SEED)
    asked = [make_query(_SMALL, _SEED, operation, number) for operation in QUERIES for number in _ASKED]
    return {
        "records": asdict(_SMALL),
        "seed": _SEED,
        "batch_rows": _BATCH_ROWS,
        "fields": {table: [field.name for field in fields] for table, fields in TABLES.items()},
        "tags": host_tags(_SMALL, _SEED),
        "batches": [
            {"number": number, "rows": list(map(_say_row, batches.batch(number)))}
            for number in _BATCHES
        ],
        "queries": [
            {
                "number": number,
                **_say_query(query),
                "answer": list(map(_say_group, history.answer(query))),
            }
            for query, number in zip(asked, _ASKED * len(QUERIES), strict=True)
        ],
        "long": _digest_long(),
    }


def write_vectors(vectors: dict[str, Any]) -> str:
    """Return the text of the file: a row or a group per line."""
    text = json.dumps(vectors, separators=(",", ":"))
    for begin in ('[["', '["', "[1", '{"number"', '"long"', '"batches"', '"queries":[{', '"tags"'):
        text = text.replace(f",{begin}", f",\n{begin}")
    return text + "\n"


def _digest_long() -> dict[str, Any]:
    batches = Batches(_LONG, _LONG_SEED, _LONG_BATCH_ROWS)
    history = CpuHistory(_LONG, _LONG_SEED)
    answers = (
        history.answer(make_query(_LONG, _LONG_SEED, operation, number))
        for operation in QUERIES
        for number in range(_LONG.queries)
    )
    rows = (
        row
        for number in range(-(-devops_rows(_LONG) // _LONG_BATCH_ROWS))
        for row in batches.batch(number)
    )
    return {
        "records": asdict(_LONG),
        "seed": _LONG_SEED,
        "batch_rows": _LONG_BATCH_ROWS,
        "rows_digest": _digest(rows),
        "answers_digest": _digest(group for groups in answers for group in groups),
    }


def _digest(said: Iterable[DevopsRow | Group]) -> str:
    digest = 0
    for one in said:
        for number in (one.ts_ms, *one.values):
            digest = mix(digest ^ (number & MASK if isinstance(number, int) else _bits(number)))
    return f"{digest:016x}"


def _bits(number: float) -> int:
    bits: int = struct.unpack(">Q", struct.pack(">d", number))[0]
    return bits


def _say(number: float) -> int | str:
    return number if isinstance(number, int) else f"{_bits(number):016x}"


def _say_row(row: DevopsRow) -> list[Any]:
    return [row.table, int(row.tags[0].removeprefix("host_")), row.ts_ms, list(map(_say, row.values))]


def _say_group(group: Group) -> list[Any]:
    return [group.ts_ms, group.host, list(map(_say, group.values))]


def _say_query(query: Query) -> dict[str, Any]:
    return {**asdict(query), "operation": query.operation.value}


if __name__ == "__main__":
    PATH.parent.mkdir(parents=True, exist_ok=True)
    PATH.write_text(write_vectors(make_vectors()))

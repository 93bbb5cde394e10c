"""Readings of the sensor workload, and their outcomes, that every engine must give.

`python tests/perf/load/sensor_vectors.py` writes them to tests/data/vectors/sensor.json.
"""

import random
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from typing import Any

from vector_files import DIRECTORY, bits, digest, write_vectors

from perf.model.records import Sensor
from perf.workloads.sensor import (
    EPOCH_MS,
    STEP_MS,
    SensorReading,
    batch,
    check_latest,
    choose_device,
    expected_latest,
    reading,
)

PATH = DIRECTORY / "sensor.json"
SEEDS = (0, 42, 20_260_301, 2**63, 2**64 - 1)
_CHOICES = 10_000
# What may be wrong with a row: these are done to a genuine one, both here and where vectors are read.
_SPOILS = ("device", "time", "early", "late", "value", "metadata", "short")
_FAR_MS = 2**63 - 1


def make_vectors() -> dict[str, Any]:
    """Compute them all, as what JSON can say."""
    shuffled = Sensor(kind="sensor", devices=1000, payload_bytes=200, order="shuffled")
    many = Sensor(kind="sensor", devices=10_000_000, payload_bytes=128, order="shuffled")
    huge = Sensor(kind="sensor", devices=3, payload_bytes=1_000_000)
    one = Sensor(kind="sensor", devices=1, payload_bytes=129)
    return {
        "cases": [
            *(
                make_case(Sensor(kind="sensor", devices=1000, payload_bytes=1024), seed)
                for seed in SEEDS
            ),
            make_case(shuffled, 42, first_row=7000, batch_rows=3),
            make_case(shuffled, 7, first_row=1_000_000_000_000, batch_rows=100, count=40),
            make_case(many, 42, first_row=20_000_000, count=500),
            make_case(one, 42, first_row=5, batch_rows=7),
            make_case(replace(one, order="shuffled"), 42),
            make_case(huge, 42, count=8),
        ],
        "judged": [
            *judge(Sensor(kind="sensor", devices=5, payload_bytes=200, latest_count=4), 42, 150),
            *judge(Sensor(kind="sensor", devices=1, payload_bytes=128, latest_count=1), 7, 30),
            *judge(Sensor(kind="sensor", devices=3, payload_bytes=128, latest_count=10), 9, 60),
        ],
    }


def make_case(
    records: Sensor, seed: int, *, first_row: int = 0, batch_rows: int = 1, count: int = 1000
) -> dict[str, Any]:
    """Compute rows, batches and choices of one seed."""
    rows = (reading(records, seed, first_row + row) for row in range(count))
    batches = (batch(records, seed, first_row, batch_rows, number) for number in range(count))
    devices = [choose_device(records, seed, number) for number in range(_CHOICES)]
    first = reading(records, seed, first_row)
    return {
        "records": asdict(records),
        "seed": seed,
        "first_row": first_row,
        "batch_rows": batch_rows,
        "count": count,
        "first": [
            first.device_id,
            first.ts_ms,
            list(map(bits, first.values)),
            first.metadata[:16].hex(),
        ],
        "rows_digest": digest(_say(rows)),
        "batches_digest": digest(_say(row for rows in batches for row in rows)),
        "choices": _CHOICES,
        "first_choices": devices[:20],
        "choices_digest": digest(devices),
    }


def judge(records: Sensor, seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Judge answers that are more or less right, drawn from a seed."""
    draw = random.Random(seed)  # noqa: S311  chances, not secrets
    for _ in range(count):
        readable_rows = draw.choice((0, 2, 7, 23, 24, 25, 60))
        device_index = draw.randrange(records.devices)
        acknowledged = draw.choice((None, (), _draw_numbers(draw)))
        came = _draw_came(draw, records, readable_rows, device_index, acknowledged or ())
        answer = check_latest(
            records,
            seed,
            readable_rows,
            device_index,
            count=records.latest_count,
            answer=[_spoil(records, seed, *row) for row in came],
            acknowledged=acknowledged,
        )
        yield {
            "records": asdict(records),
            "seed": seed,
            "readable_rows": readable_rows,
            "device_index": device_index,
            "acknowledged": acknowledged,
            "came": came,
            "answer": answer.value,
        }


def _draw_numbers(draw: random.Random) -> tuple[int, ...]:
    return tuple(draw.sample(range(30), draw.randint(1, 4)))


def _draw_came(
    draw: random.Random,
    records: Sensor,
    readable_rows: int,
    device_index: int,
    acknowledged: Iterable[int],
) -> list[tuple[int, int, str]]:
    """Draw what comes: (device, sequence number, what is wrong with it)."""
    stored = expected_latest(records, 0, readable_rows, device_index, records.latest_count)
    sequences = {(row.ts_ms - EPOCH_MS) // STEP_MS for row in stored} | set(acknowledged)
    newest = sorted(sequences, reverse=True)[: records.latest_count]
    came = [(device_index, sequence, "") for sequence in newest]
    for _ in range(draw.choice((0, 0, 1, 2))):
        place = draw.randrange(len(came) + 1)
        fresh = (device_index, draw.randrange(30), draw.choice(("", *_SPOILS)))
        foreign = (draw.randrange(records.devices), fresh[1], "")
        match draw.choice(("put in", "put instead", "leave out", "foreign", "repeat")):
            case "put in":
                came.insert(place, fresh)
            case "put instead":
                came[place : place + 1] = [(*(came[place:] or [fresh])[0][:2], fresh[2])]
            case "leave out":
                del came[place : place + 1]
            case "foreign":
                came.insert(place, foreign)
            case _:
                came[place:place] = came[place : place + 1]
    return came


def _spoil(records: Sensor, seed: int, device_index: int, sequence: int, spoil: str) -> SensorReading:
    row = reading(records, seed, sequence * records.devices + device_index)
    done: dict[str, dict[str, Any]] = {
        "": {},
        "device": {"device_id": row.device_id + "0"},
        "time": {"ts_ms": row.ts_ms + 1},
        "early": {"ts_ms": EPOCH_MS - STEP_MS},
        "late": {"ts_ms": _FAR_MS - (_FAR_MS - EPOCH_MS) % STEP_MS},
        "value": {"values": (*row.values[:7], 0.5)},
        "metadata": {"metadata": bytes([row.metadata[0] ^ 1]) + row.metadata[1:]},
        "short": {"metadata": row.metadata[:-1]},
    }
    return replace(row, **done[spoil])


def _say(rows: Iterable[SensorReading]) -> Iterator[float | str | bytes]:
    for row in rows:
        yield from (row.device_id, row.ts_ms, *row.values, row.metadata)


if __name__ == "__main__":
    PATH.write_text(write_vectors(make_vectors()))

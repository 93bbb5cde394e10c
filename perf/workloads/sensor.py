"""The sensor workload: IoT telemetry, after the public report "MongoDB 8 vs Cassandra 5 for IoT".

A reading is a device id, a timestamp, eight floats and padding metadata to about 1 KB. Row number
`i` belongs to device `i mod devices`, as that device's reading number `i div devices`; everything in
it is a pure function of (seed, i), so a reader recomputes what it must get.

Rows of a device follow each other in its own sequence. Writes visit the devices in turn or, if the
records say so, in a shuffled order of each turn: so every row is known beforehand.

Randomness is SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", 2014;
reference code by S. Vigna, prng.di.unimi.it/splitmix64.c) used by counter, and, for the padding,
slices of a pool that SHAKE-128 (FIPS 202) draws from the seed. Both are easy to repeat in another
language, and cheap: a reading costs about 5 µs, a small share of what a driver spends on it.
"""

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import inf

from perf.model.records import Answer, Sensor
from perf.workloads.permutation import permute
from perf.workloads.splitmix import GAMMA, MASK, UNIT, mix, stream, word

EPOCH_MS = 1_704_067_200_000
"""The first timestamp of each device: 2024-01-01T00:00:00Z."""
STEP_MS = 1000
"""The time between two readings of a device."""

VALUES = (
    *("temperature", "humidity", "pressure", "vibration"),
    *("battery", "latitude", "longitude", "signal"),
)
"""Names of a reading's values, in order."""
_VALUES = len(VALUES)
_FIXED_BYTES = 16 + 8 + 8 * _VALUES  # device id, timestamp, values
# Slices of a pool of this size rarely overlap within one compression block of a database, so that
# the padding stays incompressible; overlaps cost well under 1 % there.
_POOL_BYTES = 4 << 20

# Counters of different purposes never meet: each purpose starts its own stream.
_READING_STREAM = 1
_DEVICE_STREAM = 2
_ORDER_STREAM = 4


@dataclass(frozen=True, slots=True)
class SensorReading:
    """One telemetry record. `ts_ms` is milliseconds since the Unix epoch."""

    device_id: str
    ts_ms: int
    values: tuple[float, float, float, float, float, float, float, float]
    metadata: bytes


def device_id(device_index: int) -> str:
    """Return a device's id: 16 ASCII characters up to the thousand millionth device."""
    return f"sensor-{device_index:09d}"


def device_ids(records: Sensor) -> tuple[str, ...]:
    """Return the ids of all devices, by index."""
    return tuple(device_id(index) for index in range(records.devices))


def reading(records: Sensor, seed: int, row: int) -> SensorReading:
    """Compute row number `row`.

    Its size is counted as 16 bytes of device id, 8 of timestamp, 8 for each of 8 values, and the
    metadata, which fills up to `records.payload_bytes`.
    """
    sequence, device_index = divmod(row, records.devices)
    padding = records.payload_bytes - _FIXED_BYTES
    state = stream(seed, _READING_STREAM) + row * _VALUES * GAMMA
    words = []
    for _ in range(_VALUES):
        state = (state + GAMMA) & MASK
        words.append(mix(state))
    # The offset reuses the first word: nothing asks the padding to be independent of a value.
    offset = words[0] % (_POOL_BYTES - padding)
    a, b, c, d, e, f, g, h = [(word >> 11) * UNIT for word in words]
    return SensorReading(
        device_id(device_index),
        EPOCH_MS + sequence * STEP_MS,
        (a, b, c, d, e, f, g, h),
        _pool(seed)[offset : offset + padding],
    )


def place_of(reading: SensorReading) -> tuple[int, int]:
    """Return a reading's device, by index, and its sequence number there."""
    return int(reading.device_id.rpartition("-")[2]), (reading.ts_ms - EPOCH_MS) // STEP_MS


def payload_bytes(reading: SensorReading) -> int:
    """Count the bytes of a reading, as `reading` fills them up to the payload that a workload wants."""
    return _FIXED_BYTES + len(reading.metadata)


def batch(
    records: Sensor, seed: int, first_row: int, batch_rows: int, number: int
) -> tuple[SensorReading, ...]:
    """Compute batch number `number`: `batch_rows` readings of one device, oldest first.

    Batches take each device once in a turn; those of one device follow each other without a gap from
    row `first_row` on, which is a multiple of the devices. In turn and of one row, it is row
    first_row + number.
    """
    turn, device_index = divmod(number, records.devices)
    if records.order == "shuffled":
        key = word(stream(seed, _ORDER_STREAM), turn)
        device_index = permute(device_index, records.devices, key)
    first = first_row // records.devices + turn * batch_rows
    return tuple(
        reading(records, seed, sequence * records.devices + device_index)
        for sequence in range(first, first + batch_rows)
    )


def choose_device(records: Sensor, seed: int, operation_number: int) -> int:
    """Choose the device that read number `operation_number` asks for; uniform over all devices."""
    state = stream(seed, _DEVICE_STREAM) + (operation_number + 1) * GAMMA
    return mix(state & MASK) % records.devices


def expected_latest(
    records: Sensor, seed: int, readable_rows: int, device_index: int, count: int
) -> tuple[SensorReading, ...]:
    """Compute the newest `count` readings of a device, newest first.

    The rows [0, readable_rows) are stored and no others.
    """
    stored = _stored_readings(records, readable_rows, device_index)
    return tuple(
        reading(records, seed, sequence * records.devices + device_index)
        for sequence in range(stored - 1, max(stored - count, 0) - 1, -1)
    )


def check_latest(
    records: Sensor,
    seed: int,
    readable_rows: int,
    device_index: int,
    *,
    count: int,
    answer: Sequence[SensorReading],
    acknowledged: Collection[int] | None = None,
    genuine: Callable[[int], SensorReading] | None = None,
) -> Answer:
    """Judge an answer to "the newest `count` readings of this device".

    The rows [0, readable_rows) must be there. Without `acknowledged`, no others can be. With it, newer
    ones are being written: each that comes is genuine or wrong like any other, and those with a
    sequence number in `acknowledged` must come as well, unless newer ones leave no room for them.
    `genuine` gives a row by its number, for who remembers some.

    NOT_FOUND: each row that came is genuine and in order, but at least one that must be there is
    not. WRONG_DATA: anything else that differs: a changed or foreign row, a wrong order, a row twice,
    too many rows.
    """
    stored = _stored_readings(records, readable_rows, device_index)
    previous = float(stored) if acknowledged is None else inf
    compute = genuine or partial(reading, records, seed)
    came: set[int] = set()
    for row in answer:
        sequence, rest = divmod(row.ts_ms - EPOCH_MS, STEP_MS)
        if rest or not 0 <= sequence < previous:
            return Answer.WRONG_DATA
        if row != compute(sequence * records.devices + device_index):
            return Answer.WRONG_DATA
        came.add(sequence)
        previous = sequence
    if len(came) > count:
        return Answer.WRONG_DATA
    oldest = min(came) if len(came) == count else 0
    must_come = (*(acknowledged or ()), *range(max(stored - count, 0), stored))
    is_missing = any(sequence >= oldest and sequence not in came for sequence in must_come)
    return Answer.NOT_FOUND if is_missing else Answer.COMPLETED


def _stored_readings(records: Sensor, readable_rows: int, device_index: int) -> int:
    return max(0, -((device_index - readable_rows) // records.devices))


@lru_cache(maxsize=2)
def _pool(seed: int) -> bytes:
    return hashlib.shake_128(b"knickpoint sensor padding %d" % seed).digest(_POOL_BYTES)

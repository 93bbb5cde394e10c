"""The sensor workload: IoT telemetry, after the public report "MongoDB 8 vs Cassandra 5 for IoT".

A reading is a device id, a timestamp, eight floats and padding metadata to about 1 KB. Row number
`i` belongs to device `i mod devices`, as that device's reading number `i div devices`; everything in
it is a pure function of (seed, i), so a reader recomputes what it must get.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """One telemetry record. `ts_ms` is milliseconds since the Unix epoch."""

    device_id: str
    ts_ms: int
    values: tuple[float, float, float, float, float, float, float, float]
    metadata: bytes

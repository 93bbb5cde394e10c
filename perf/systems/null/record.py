"""What a null server did: one line of numbers per operation, in a file that it leaves when it ends.

This is the truth that the self-test of the engine compares reports with.
"""

from array import array
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

COLUMNS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Deeds:
    """All operations of a null server, by arrival; times are Unix seconds."""

    arrived_s: NDArray[np.float64]
    due_s: NDArray[np.float64]
    """When it was to be answered; what is between this and `answered_s` is the machine's delay."""
    answered_s: NDArray[np.float64]
    """Infinite if it never was: the client had gone, or the server ended."""
    is_refused: NDArray[np.bool_]
    device: NDArray[np.int64]
    """CRC-32 of the id of the device that was written or read."""
    ts_ms: NDArray[np.int64]
    """Timestamp of the first row written, 0 for a read."""


class Record:
    """Collects lines, as one flat array: a line costs 48 bytes and no object."""

    def __init__(self) -> None:
        """Begin without a line."""
        self._numbers = array("d")

    def append(self, line: tuple[float, float, float, bool, int, int]) -> None:
        """Add an operation: arrived, due, answered, refused, device, timestamp."""
        self._numbers.extend(line)

    def write(self, path: Path, unix_minus_clock_s: float) -> None:
        """Write everything in one step, with times as Unix seconds."""
        lines = np.array(self._numbers, dtype=np.float64).reshape(-1, COLUMNS)
        lines[:, :3] += unix_minus_clock_s
        fresh = path.with_suffix(".new")
        fresh.write_bytes(lines.tobytes())
        fresh.rename(path)


def read_record(path: Path) -> Deeds:
    """Read what a null server left."""
    lines = np.fromfile(path, dtype=np.float64).reshape(-1, COLUMNS)
    by_arrival = np.argsort(lines[:, 0], kind="stable")
    arrived, due, answered, refused, device, ts_ms = lines[by_arrival].T
    return Deeds(
        arrived_s=arrived,
        due_s=due,
        answered_s=answered,
        is_refused=refused.astype(np.bool_),
        device=device.astype(np.int64),
        ts_ms=ts_ms.astype(np.int64),
    )

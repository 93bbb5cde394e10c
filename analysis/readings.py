"""Readings that are not made again: what a detector saw in the same values, by the same method.

A night gives a series one point, and replays its last ten nights: of these readings all but one were
made on the nights before. They are kept in a file of the data directory, by the digest of their values.
Nothing in it could not be made again: if anything is wrong with it, it is as if it were not there.
"""

import hashlib
import json
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from datetime import date, timedelta
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from analysis.detection import Detector, Drift, Reading, Shift, SpreadChange
from analysis.noise import Noise
from perf import durable

Answer = TypeVar("Answer")
_Stored: TypeAlias = Sequence[Any]
"""Shifts, drifts, changes of the scatter and the noise, as lists of their fields."""

_DAYS = 14
"""So long is kept what no judgement asked for: ten nights are replayed, and some may fall out."""
_LIBRARIES = ("apache-otava", "numpy", "scipy")


@dataclass(slots=True)
class RememberingDetector:
    """A detector that another one answers for, once for each sequence of values.

    `known` is what was read before, `asked` what was read or known of all that it was asked.
    """

    detector: Detector
    known: Mapping[str, _Stored]
    asked: dict[str, _Stored] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name the method."""
        return self.detector.name

    def read(self, values: Sequence[float]) -> Reading:
        """Tell what is to be seen. Raises ValueError on values that are not finite."""
        digest = hashlib.sha256(array("d", values).tobytes()).hexdigest()
        stored = self.asked.get(digest) or self.known.get(digest)
        if stored is None:
            stored = _store(self.detector.read(values))
        self.asked[digest] = stored
        return _restore(stored)

    def noting(self, work: Callable[[], Answer]) -> tuple[Answer, dict[str, _Stored]]:
        """Do work; give its answer and what it asked, which another process may have to be told."""
        before, self.asked = self.asked, {}
        try:
            return work(), self.asked
        finally:
            self.asked = before


def _store(reading: Reading) -> _Stored:
    """Give a reading as JSON holds it, in plain numbers."""
    return (
        [
            (*map(int, astuple(one)[:3]), float(one.p_value), bool(one.is_confirmed))
            for one in reading.shifts
        ],
        [
            (int(one.first), int(one.last), float(one.before), float(one.after))
            for one in reading.drifts
        ],
        [
            (int(one.index), float(one.before), float(one.after), float(one.p_value))
            for one in reading.spreads
        ],
        reading.noise
        and (*map(float, astuple(reading.noise)[:3]), *map(int, astuple(reading.noise)[3:])),
    )


def _restore(stored: _Stored) -> Reading:
    shifts, drifts, spreads, noise = stored
    return Reading(
        shifts=tuple(_make(Shift, one) for one in shifts),
        drifts=tuple(_make(Drift, one) for one in drifts),
        spreads=tuple(_make(SpreadChange, one) for one in spreads),
        noise=_make(Noise, noise) if noise else None,
    )


def _make(kind: Callable[..., Answer], values: Sequence[float]) -> Answer:
    names = kind.__dataclass_fields__  # type: ignore[attr-defined]  # each kind is a dataclass
    return kind(**dict(zip(names, values, strict=True)))


def read_file(path: Path, method: str) -> dict[str, dict[str, _Stored]]:
    """Give what was read by a method, by day and digest; nothing where the file is not whole."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        head, _, body = path.read_bytes().partition(b"\n")
        if json.loads(head) == {"method": method, "sha256": hashlib.sha256(body).hexdigest()}:
            days: dict[str, dict[str, _Stored]] = json.loads(body)
            return days
    return {}


def write_file(path: Path, method: str, days: Mapping[str, Mapping[str, _Stored]]) -> None:
    """Keep what was read, if the data directory lets us: without it all is read again."""
    body = json.dumps(days, separators=(",", ":")).encode()
    head = json.dumps({"method": method, "sha256": hashlib.sha256(body).hexdigest()}).encode()
    with suppress(OSError):
        durable.write(path, head + b"\n" + body)


def add_day(
    days: Mapping[str, Mapping[str, _Stored]], today: date, asked: Mapping[str, _Stored]
) -> dict[str, dict[str, _Stored]]:
    """Give the days with what was asked today, each reading on its last day, without those long ago."""
    since = (today - timedelta(days=_DAYS)).isoformat()
    kept = {
        day: {digest: one for digest, one in of_day.items() if digest not in asked}
        for day, of_day in days.items()
        if day >= since and day != today.isoformat()
    }
    # What the same day asked before stays: a night judges several times.
    return {**kept, today.isoformat(): {**days.get(today.isoformat(), {}), **asked}}


def describe_method(detector: Detector) -> str:
    """Give a digest of all that decides what a detector sees: its settings, its code, its libraries."""
    content = hashlib.sha256(repr(detector).encode())
    for library in _LIBRARIES:
        content.update(f"{library} {version(library)}\n".encode())
    for path, file in sorted(_walk(files("analysis"), "")):
        content.update(f"{path}\n".encode() + file.read_bytes())
    return content.hexdigest()


def _walk(place: Traversable, path: str) -> list[tuple[str, Traversable]]:
    found = []
    for one in place.iterdir():
        inner = f"{path}/{one.name}"
        if one.is_dir():
            found += _walk(one, inner)
        elif inner.endswith(".py"):
            found.append((inner, one))
    return found

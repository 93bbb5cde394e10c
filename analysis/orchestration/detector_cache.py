"""Readings that are not made again: what a detector saw in the same values, by the same method.

A night gives a series one point, and replays its last ten nights: of these readings all but one were
made on the nights before. They are kept in a file of the data directory, by the digest of their values.
Nothing in it could not be made again: if anything is wrong with it, it is as if it were not there. An
edge: it reads and writes that file.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from datetime import date, timedelta
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar, cast

import numpy as np
from pydantic import Field, TypeAdapter

from analysis.detection.detection import Detector, DetectorResult, Drift, Shift, SpreadChange
from analysis.detection.noise import Noise, Values
from analysis.detection.weeks import DAYS, Days
from perf.local import durable
from perf.local.plain_files import read_plain

Answer = TypeVar("Answer")
MOST_BYTES = 256 * 2**20
_LARGEST = 1e150
"""Whatever is made of numbers up to it is finite."""
_Number: TypeAlias = Annotated[float, Field(ge=-_LARGEST, le=_LARGEST, allow_inf_nan=False)]
_Share: TypeAlias = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_Deviation: TypeAlias = Annotated[float, Field(ge=0, le=_LARGEST, allow_inf_nan=False)]
_Persistence: TypeAlias = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
_Stored: TypeAlias = tuple[
    tuple[tuple[int, int, int, _Share, bool], ...],
    tuple[tuple[int, int, _Number, _Number], ...],
    tuple[tuple[int, _Deviation, _Deviation, _Share], ...],
    tuple[_Deviation, _Persistence, _Number, int, int] | None,
    tuple[_Number, ...],
]
"""Shifts, drifts, changes of the scatter, the noise and the week, each as its fields in their order."""
_DAY = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
_DIGEST = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_FORM = TypeAdapter(dict[_DAY, dict[_DIGEST, _Stored]], config={"strict": True})
_DAYS = 14
"""So long is kept what no judgement asked for: ten nights are replayed, and some may fall out."""
_LIBRARIES = ("apache-otava", "numpy", "scipy")


@dataclass(slots=True)
class RememberingDetector:
    """A detector that another one answers for, once for each sequence of values.

    `known` is what was read before, `asked` what was read or known of all that it was asked. What is
    known, but cannot be of these values, is read anew.
    """

    detector: Detector
    known: Mapping[str, _Stored]
    asked: dict[str, _Stored] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name the method."""
        return self.detector.name

    def read(self, values: Sequence[float] | Values, days: Days = ()) -> DetectorResult:
        """Describe what is to be seen. Raises ValueError on values that are not finite."""
        content = hashlib.sha256(np.asarray(values, dtype=float).tobytes())
        content.update((np.asarray(days, dtype=int) % DAYS).astype(np.uint8).tobytes())
        digest = content.hexdigest()
        stored = self.asked.get(digest)
        if stored is None:
            stored = self.known.get(digest)
            if stored is None or not _can_be_of(len(values), stored):
                stored = cast("_Stored", astuple(self.detector.read(values, days)))
            self.asked[digest] = stored
        return _restore(stored)

    def noting(self, work: Callable[[], Answer]) -> tuple[Answer, dict[str, _Stored]]:
        """Do work; give its answer and what it asked, which another process may need."""
        before, self.asked = self.asked, {}
        try:
            return work(), self.asked
        finally:
            self.asked = before


def _can_be_of(count: int, stored: _Stored) -> bool:
    """Return whether all places of a reading lie within so many values, and ascend."""
    shifts, drifts, spreads, noise, week = stored
    return (
        all(0 <= earliest <= index <= latest < count for index, earliest, latest, *_ in shifts)
        and _parts(count, [index for index, *_ in shifts])
        and _parts(count, [index for index, *_ in spreads])
        and all(0 <= first < last < count for first, last, *_ in drifts)
        and all(one[:2] <= other[:2] for one, other in pairwise(drifts))
        and (noise is None or (0 <= noise[3] <= count and 0 <= noise[4] <= count))
        and len(week) in (0, DAYS)
    )


def _parts(count: int, places: Sequence[int]) -> bool:
    """Return whether each of these places parts so many values further, from left to right."""
    return all(before < after for before, after in pairwise((0, *places, count)))


def _restore(stored: _Stored) -> DetectorResult:
    shifts, drifts, spreads, noise, week = stored
    return DetectorResult(
        shifts=tuple(_make(Shift, one) for one in shifts),
        drifts=tuple(_make(Drift, one) for one in drifts),
        spreads=tuple(_make(SpreadChange, one) for one in spreads),
        noise=_make(Noise, noise) if noise else None,
        week=week,
    )


def _make(kind: Callable[..., Answer], values: tuple[float, ...]) -> Answer:
    names = kind.__dataclass_fields__  # type: ignore[attr-defined]  # each kind is a dataclass
    return kind(**dict(zip(names, values, strict=True)))


def read_file(path: Path, method: str) -> dict[str, dict[str, _Stored]]:
    """Return what was read by a method, by day and digest; nothing where the file is not whole."""
    with suppress(OSError, ValueError):
        head, _, body = read_plain(path, MOST_BYTES).partition(b"\n")
        if head == _head(method, body):
            return _FORM.validate_json(body)
    return {}


def write_file(path: Path, method: str, days: Mapping[str, Mapping[str, _Stored]]) -> None:
    """Keep what was read, if the data directory lets us: without it all is read again."""
    body = json.dumps(days, separators=(",", ":")).encode()
    with suppress(OSError):
        durable.atomic_write(path, _head(method, body) + b"\n" + body)


def _head(method: str, body: bytes) -> bytes:
    return json.dumps({"method": method, "sha256": hashlib.sha256(body).hexdigest()}).encode()


def add_day(
    days: Mapping[str, Mapping[str, _Stored]], today: date, asked: Mapping[str, _Stored]
) -> dict[str, dict[str, _Stored]]:
    """Return the days with what was asked today, each reading on its last day, without those long ago.

    Nor with those to come, of a clock that was ahead: they would stay until they have come.
    """
    since = (today - timedelta(days=_DAYS)).isoformat()
    kept = {
        day: {digest: one for digest, one in of_day.items() if digest not in asked}
        for day, of_day in days.items()
        if since <= day < today.isoformat()
    }
    # What the same day asked before stays: a night judges several times.
    return {**kept, today.isoformat(): {**days.get(today.isoformat(), {}), **asked}}


def describe_method(detector: Detector) -> str:
    """Return a digest of all that decides what a detector sees: its settings, its code, its libraries.

    It is rather too wide: other settings of a judgement and any code of `analysis` are in it. The
    processor is not: libraries choose code by it, so that last digits may differ between two machines.
    """
    content = hashlib.sha256(f"{detector!r}\npython {sys.version}\n".encode())
    for library in _LIBRARIES:
        content.update(f"{library} {version(library)}\n".encode())
    package = Path(__file__).parents[1]
    for path in sorted(package.rglob("*.py")):
        content.update(f"{path.relative_to(package)}\n".encode() + path.read_bytes())
    return content.hexdigest()

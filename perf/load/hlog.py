"""HdrHistogram interval logs (V2, format version 1.3): text that the standard tools read.

    #[Histogram log format version 1.3]
    #[StartTime: 1772330400.000 (seconds since epoch), 2026-03-01T02:00:00Z]
    "StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
    Tag=steady:write:response_time:1,1772330402.000000,1.000000,9.503,HISTFAAAA…

Our tags are phase:operation:kind:iteration. Timestamps are Unix seconds, histogram values
microseconds, and Interval_Max milliseconds. This file needs no histogram library.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from perf.errors import BundleError
from perf.model import Interval

_VERSION = "#[Histogram log format version 1.3]"
_LEGEND = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'
_LINE = re.compile(
    r"Tag=(?P<phase>[^:,\s]+):(?P<operation>[^:,\s]+):(?P<kind>[^:,\s]+):(?P<iteration>\d+),"
    r"(?P<start>\d+\.\d+),(?P<length>\d+\.\d+),(?P<max>\d+\.\d+),(?P<payload>[A-Za-z0-9+/]+=*)"
)
# The first bytes of a payload: the cookie of a compressed V2 histogram, then the length of the rest.
_COOKIE = 0x1C849314
_HEADER_BYTES = 8


class HlogWriter:
    """Appends intervals to an open log; each call is on its way to the disk when it returns."""

    def __init__(self, output: TextIO, start_s: float) -> None:
        """Write the head of the log; `start_s` is Unix time."""
        self._output = output
        moment = datetime.fromtimestamp(start_s, UTC)
        output.write("#[Knickpoint: Tag is phase:operation:kind:iteration; values in µs, max in ms]\n")
        output.write(f"{_VERSION}\n")
        output.write(
            f"#[StartTime: {start_s:.3f} (seconds since epoch), {moment:%Y-%m-%dT%H:%M:%SZ}]\n"
        )
        output.write(f"{_LEGEND}\n")
        output.flush()

    def append(self, intervals: Iterable[Interval]) -> None:
        """Append intervals, so that a crash after this keeps them."""
        self._output.writelines(map(_format, intervals))
        self._output.flush()


def write_hlog(path: Path, intervals: Iterable[Interval]) -> None:
    """Write a whole log. Times are kept to the microsecond."""
    kept = tuple(intervals)
    start_s = min((interval.start_s for interval in kept), default=0.0)
    with path.open("w", encoding="utf-8") as output:
        HlogWriter(output, start_s).append(kept)


def read_hlog(path: Path) -> tuple[Interval, ...]:
    """Read all intervals of a log written by Knickpoint, in the order of the file.

    Raises:
        BundleError: a line is truncated or foreign; the message names the line.

    """
    return tuple(_parse_all(path))


def _format(interval: Interval) -> str:
    tag = f"{interval.phase}:{interval.operation}:{interval.kind}:{interval.iteration}"
    times = f"{interval.start_s:.6f},{interval.length_s:.6f},{interval.max_us / 1000:.3f}"
    return f"Tag={tag},{times},{interval.encoded}\n"


def _parse_all(path: Path) -> Iterator[Interval]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    except UnicodeDecodeError as error:
        raise BundleError(f"{path}: not an interval log: {error}") from error
    if _VERSION + "\n" not in lines[:2]:
        raise BundleError(f"{path}: not an interval log: it does not begin with {_VERSION}")
    for number, line in enumerate(lines, start=1):
        where = f"{path}, line {number}"
        if not line.endswith("\n"):
            raise BundleError(f"{where}: the line is truncated; what follows it is lost")
        if line.startswith("#") or line.rstrip("\n") == _LEGEND:
            continue
        yield _parse(where, line.rstrip("\n"))


def _parse(where: str, line: str) -> Interval:
    match = _LINE.fullmatch(line)
    if match is None:
        raise BundleError(f"{where}: not an interval of Knickpoint: {line[:80]}")
    if not _is_whole(match["payload"]):
        raise BundleError(f"{where}: the histogram is truncated or not HdrHistogram V2")
    return Interval(
        phase=match["phase"],
        operation=match["operation"],
        kind=match["kind"],
        iteration=int(match["iteration"]),
        start_s=float(match["start"]),
        length_s=float(match["length"]),
        max_us=round(float(match["max"]) * 1000),
        encoded=match["payload"],
    )


def _is_whole(payload: str) -> bool:
    try:
        raw = base64.b64decode(payload, validate=True)
    except binascii.Error:
        return False
    cookie, length = int.from_bytes(raw[:4], "big"), int.from_bytes(raw[4:8], "big")
    return cookie == _COOKIE and length == len(raw) - _HEADER_BYTES

"""HdrHistogram interval logs (V2, format version 1.3): text that the standard tools read.

    #[Histogram log format version 1.3]
    #[StartTime: 1772330400.000 (seconds since epoch), 2026-03-01T02:00:00Z]
    "StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
    Tag=steady:write:response_time:1,1772330402.000000,1.000000,9.503,HISTFAAAA…

Our tags are phase:operation:kind:iteration. Timestamps are Unix seconds, histogram values
microseconds, and Interval_Max milliseconds.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from perf.local.plain_files import open_plain
from perf.model.errors import BundleError
from perf.model.histograms import decode
from perf.model.results import Interval
from perf.model.shown import printable

MOST_BYTES = 512 * 1024**2
"""Of a log that is read; MOST_INTERVALS and MOST_LINE_BYTES bound it further."""
MOST_INTERVALS = 1_000_000
MOST_LINE_BYTES = 4 * 1024**2

_VERSION = "#[Histogram log format version 1.3]"
_LEGEND = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'
# Numbers of so many digits are within the years to 9999, and finite.
_LINE = re.compile(
    r"Tag=(?P<phase>[^:,\s]+):(?P<operation>[^:,\s]+):(?P<kind>[^:,\s]+):(?P<iteration>[0-9]{1,9}),"
    r"(?P<start>[0-9]{1,12}\.[0-9]{1,9}),(?P<length>[0-9]{1,12}\.[0-9]{1,9}),"
    r"(?P<max>[0-9]{1,11}\.[0-9]{1,9}),(?P<payload>[A-Za-z0-9+/]+=*)"
)


_HEAD_LINES = 2
"""Among which the version stands."""
_MOST_PROBLEMS = 50


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
        BundleError: lines are truncated or foreign; the message names each, up to a few dozen.
        OSError: it cannot be read, is no plain file, or is larger than any log of Knickpoint.

    """
    intervals: list[Interval] = []
    problems: list[str] = []
    has_version = False
    with open_plain(path, MOST_BYTES) as file:
        for number, raw in enumerate(iter(lambda: file.readline(MOST_LINE_BYTES), b""), start=1):
            try:
                line = _decode_line(raw)
                has_version = has_version or (number <= _HEAD_LINES and line == _VERSION)
                if not (line.startswith("#") or line == _LEGEND):
                    intervals.append(_parse(line))
            except ValueError as error:
                problems.append(f"{path}, line {number}: {error}")
            if number >= _HEAD_LINES and not has_version:
                break
            if len(problems) == _MOST_PROBLEMS or len(intervals) > MOST_INTERVALS:
                problems.append(f"{path}: from line {number} on nothing more was read")
                break
    if not has_version:
        raise BundleError(f"{path}: not an interval log: it does not begin with {_VERSION}")
    if len(intervals) > MOST_INTERVALS:
        problems.append(f"{path}: it has more than {MOST_INTERVALS} intervals")
    if problems:
        raise BundleError("\n".join(problems))
    return tuple(intervals)


def _format(interval: Interval) -> str:
    tag = f"{interval.phase}:{interval.operation}:{interval.kind}:{interval.iteration}"
    times = f"{interval.start_s:.6f},{interval.length_s:.6f},{interval.max_us / 1000:.3f}"
    return f"Tag={tag},{times},{interval.encoded}\n"


def _decode_line(raw: bytes) -> str:
    """Return the text of a line that is whole; ValueError says what is wrong."""
    if len(raw) == MOST_LINE_BYTES:
        raise ValueError(f"the line has {MOST_LINE_BYTES} bytes or more")
    if not raw.endswith(b"\n"):
        raise ValueError("the line is truncated; what follows it is lost")
    try:
        return raw[:-1].decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"no text in UTF-8: {error.reason}") from error


def _parse(line: str) -> Interval:
    """Return the interval of a line; ValueError says what is wrong."""
    match = _LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"not an interval of Knickpoint: {printable(line, 80)}")
    decode(match["payload"])
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

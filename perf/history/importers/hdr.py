"""HdrHistogram interval logs (format 1.2 and 1.3, histograms of V2): kept interval by interval.

    #[StartTime: 1772330400.000 (seconds since epoch), Sun Mar 01 02:00:00 UTC 2026]
    "StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
    Tag=WRITE-rt,0.000,1.000,9.503,HISTFAAAA…

So `knickpoint history percentile` can answer for any percentile later. Timestamps count from
#[BaseTime], without one from #[StartTime] where they are small, else from 1970, as the standard reader
has it. A log says neither in which unit its values are nor from where times count. Known are
cassandra-stress (tags end in -st, -rt, -wt; nanoseconds) and YCSB ("Logging for:" in the head;
microseconds); for any other the user says both.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from hdrh.histogram import HdrHistogram

from perf.history.importers.run import (
    EVERYTHING,
    PER_MS,
    PHASE,
    Done,
    File,
    ForeignRun,
    Naming,
    Unreadable,
    parse_number,
    sample,
    show,
)
from perf.model.histograms import decode
from perf.model.metrics import RESPONSE_TIME, SEND_LATENESS, SERVICE_TIME, THROUGHPUT
from perf.model.results import Interval, Sample

_LINE = re.compile(
    r"(?:Tag=(?P<tag>[^,]*),)?(?P<start>[^,]+),(?P<length>[^,]+),(?P<max>[^,]+),(?P<payload>\S+)"
)
_HEAD = re.compile(
    r"^[ \t]*+#\[(?P<name>BaseTime|StartTime): *(?P<seconds>\d+(?:\.\d*)?)(?![\d.])", re.MULTILINE
)
_YCSB = re.compile(
    r"^[ \t]*+#\[Logging for: (?:Hdr)?(?P<intended>Intended-)?(?P<operation>[^\]\n]+)\]", re.MULTILINE
)
_STRESS = {"-st": SERVICE_TIME.name, "-rt": RESPONSE_TIME.name, "-wt": SEND_LATENESS.name}
_PERCENTILES = (("p50", 50.0), ("p95", 95.0), ("p99", 99.0), ("p99.9", 99.9))
_HIGHEST_US = 3_600_000_000
_HIGHEST = 2**63 - 1
"""Of a foreign histogram, in its own unit: the logs of some tools have room for any number."""
_MOST_INTERVALS = 100_000
"""More than a day of them, one per second."""
_USED = re.compile(rb"[^\0]+")
_YEAR_S = 365 * 24 * 3600
_END_S = datetime.max.replace(tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True)
class _Head:
    """What the comments of a log say."""

    base_s: float | None
    start_s: float | None
    ycsb: re.Match[str] | None


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What the values of a histogram are: of which operation, from where they count, in which unit."""

    operation: str
    kind: str
    unit: str


def read(file: File) -> tuple[ForeignRun, ...]:
    """Read one run; each tag is an operation."""
    head = _head(file)
    intervals: list[Interval] = []
    tags: dict[tuple[str, str], str] = {}
    for number, line in file.lines():
        if not line or line.startswith(("#", '"StartTimestamp"')):
            continue
        try:
            tag, interval = _interval(line, head, file.said)
        except ValueError as error:
            file.blame(number, str(error))
            continue
        if interval is None:
            continue
        first = tags.setdefault((interval.operation, interval.kind), tag)
        if first != tag:
            file.blame(
                None,
                f"the tags {show(first)} and {show(tag)} would be one operation of one kind of time; "
                "import them apart",
            )
        intervals.append(interval)
        if len(intervals) > _MOST_INTERVALS:
            raise Unreadable(f"{file.name}: more than {_MOST_INTERVALS:,} intervals; split the log")
    if not intervals:
        file.refuse_if_wrong("no HdrHistogram log: it has no interval with values")
    file.refuse_if_wrong()
    ordered = sorted(intervals, key=lambda one: (one.start_s, one.operation, one.kind))
    return file.run(
        _samples(ordered, head),
        intervals=tuple(ordered),
        done=_count(ordered),
        findings=[("intervals", len(ordered))],
        started_at=datetime.fromtimestamp(min(one.start_s for one in ordered), UTC),
        finished_at=datetime.fromtimestamp(max(one.start_s + one.length_s for one in ordered), UTC),
    )


def _count(intervals: Sequence[Interval]) -> Iterator[Done]:
    """Count each operation once, of however many of its times there are histograms."""
    counts: defaultdict[tuple[str, str], int] = defaultdict(int)
    for one in intervals:
        counts[one.operation, one.kind] += decode(one.encoded, _HIGHEST_US).get_total_count()
    for operation in dict.fromkeys(operation for operation, _ in counts):
        most = max(count for (name, _), count in counts.items() if name == operation)
        yield Done(operation, most)


def _head(file: File) -> _Head:
    found: dict[str, float] = {}
    for match in _HEAD.finditer(file.text):
        found[match["name"]] = float(match["seconds"])
    return _Head(found.get("BaseTime"), found.get("StartTime"), _YCSB.search(file.text))


def _interval(line: str, head: _Head, said: Naming) -> tuple[str, Interval | None]:
    """Return tag and interval of a line, None where nothing happened; ValueError says what is wrong."""
    match = _LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"not an interval of a HdrHistogram log: {show(line)}")
    start_s, length_s = parse_number(match["start"]), parse_number(match["length"])
    if start_s is None or length_s is None or min(start_s, length_s) < 0:
        printed = show(f"{match['start']}, {match['length']}")
        raise ValueError(f"start and length must be seconds, not {printed}")
    start_s += _origin(start_s, head)
    if start_s + length_s >= _END_S:
        raise ValueError(f"it does not end within the year 9999: {show(match['start'])}")
    tag = match["tag"] or ""
    meaning = _meaning(tag, head, said)
    histogram = _decode(match["payload"], 1000 / PER_MS[meaning.unit])
    if histogram.get_total_count() == 0:
        return tag, None
    encoded: bytes = histogram.encode()
    return tag, Interval(
        phase=PHASE,
        operation=meaning.operation,
        kind=meaning.kind,
        iteration=1,
        start_s=start_s,
        length_s=length_s,
        max_us=histogram.get_max_value(),
        encoded=encoded.decode("ascii"),
    )


def _origin(start_s: float, head: _Head) -> float:
    if head.base_s is not None:
        return head.base_s
    if head.start_s is not None and start_s < head.start_s - _YEAR_S:
        return head.start_s
    return 0.0


def _meaning(tag: str, head: _Head, said: Naming) -> _Meaning:
    kind, unit, operation = said.times, said.unit, tag
    if known := _STRESS.get(tag[-3:]):
        kind, unit, operation = said.times or known, said.unit or "ns", tag[:-3]
    elif head.ycsb:
        known = RESPONSE_TIME.name if head.ycsb["intended"] else SERVICE_TIME.name
        kind, unit, operation = said.times or known, said.unit or "us", tag or head.ycsb["operation"]
    if kind is None or unit is None:
        raise ValueError(
            f"the log does not say what the values of tag {show(tag)} are; say from where they count "
            "with --times (response_time, service_time or duration) and the unit with --unit "
            "(ns, us, ms)"
        )
    # In our own log, : and , and white space end a part of a tag.
    return _Meaning(re.sub(r"[:,\s]+", "_", operation).lower() or EVERYTHING, kind, unit)


def _decode(payload: str, us_per_unit: float) -> Any:  # noqa: ANN401  hdrh ships no types
    """Return a histogram in whole microseconds; values of an hour and more are recorded as an hour."""
    foreign = decode(payload, _HIGHEST)
    histogram = _empty()
    # Most counters are empty, and there may be many: those are passed by at the speed of memory.
    raw = bytes(foreign.counts)
    width = len(raw) // len(foreign.counts)
    used = {place // width for run in _USED.finditer(raw) for place in range(*run.span())}
    for index in sorted(used):
        value = foreign.get_highest_equivalent_value(foreign.get_value_from_index(index))
        histogram.record_value(
            min(max(round(value * us_per_unit), 0), _HIGHEST_US), foreign.counts[index]
        )
    return histogram


def _empty() -> Any:  # noqa: ANN401  hdrh ships no types
    return HdrHistogram(1, _HIGHEST_US, 3)


def _samples(intervals: Sequence[Interval], head: _Head) -> Iterator[Sample]:
    """Read percentiles from merged histograms; throughput is what was recorded by the time it took.

    YCSB writes the same operations into two logs; those by their intended start tell no throughput.
    """
    groups: defaultdict[tuple[str, str], list[Interval]] = defaultdict(list)
    for interval in intervals:
        groups[interval.operation, interval.kind].append(interval)
    values: dict[tuple[str, str, str], float] = {}
    for (operation, kind), group in groups.items():
        merged = _empty()
        for interval in group:
            merged.decode_and_add(interval.encoded)
        for statistic, percentile in _PERCENTILES:
            values[operation, kind, statistic] = merged.get_value_at_percentile(percentile) / 1000
        values[operation, kind, "max"] = merged.get_max_value() / 1000
        values[operation, kind, "mean"] = merged.get_mean_value() / 1000
        end_s = max(one.start_s + one.length_s for one in group)
        if end_s > group[0].start_s and not (head.ycsb and head.ycsb["intended"]):
            rate = merged.get_total_count() / (end_s - group[0].start_s)
            values[operation, THROUGHPUT.name, "mean"] = rate
    return (sample(*name, value) for name, value in sorted(values.items()))

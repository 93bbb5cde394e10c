"""cassandra-stress: the "Results:" section that it prints, of Cassandra 2.1 to 5.0.

    Op rate                   :    6,070 op/s  [READ: 2,003 op/s, WRITE: 4,067 op/s]
    Latency 99th percentile   :  171.3 ms [READ: 180.1 ms, WRITE: 165.9 ms]

Its times are service times, but for `-rate fixed=…`, which counts from the intended start (since 4.0).
They are printed with one decimal: below a millisecond that is a coarse ruler; import its HdrHistogram
log (`-log hdrfile=…`) instead. `-rate auto` tries several numbers of threads: each is a phase.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perf.history.importers.run import (
    EVERYTHING,
    PHASE,
    Done,
    File,
    ForeignRun,
    name_percentile,
    parse_number,
    sample,
    show,
    without_repetition,
)
from perf.model.metrics import RESPONSE_TIME, ROW_THROUGHPUT, SERVICE_TIME, THROUGHPUT
from perf.model.results import Sample
from perf.model.shown import printable

_NAME = re.compile(r"[A-Za-z][\w .%()/-]*")
_VALUE = re.compile(r"(?P<number>[\d.,]+|NaN)\s*(?:[a-z/]+)?\s*(?:\[(?P<each>.*)\])?")
_EACH = re.compile(
    r"(?:^|,)\s*+(?P<operation>[^:,\[\]]++):\s*+(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|[\d.]+|NaN)"
)
_THREADS = re.compile(r"Running (?:\S+ )?with (?P<count>\d+) thread")
_PERCENTILE = re.compile(r"latency (?P<rank>[\d.]+)th percentile")
_STATISTICS = {"latency mean": "mean", "latency median": "p50", "latency max": "max"}
_RATES = {"op rate": THROUGHPUT, "real op rate": THROUGHPUT, "row rate": ROW_THROUGHPUT}
_DECIMAL_COMMA = re.compile(r"\d,\d{1,2}(?!\d)")


@dataclass(frozen=True, slots=True)
class _Entry:
    """One line of a section: its number, its name in lower case, and what follows the colon."""

    line: int
    name: str
    value: str


def read(file: File) -> tuple[ForeignRun, ...]:
    """Read one run; each section of results is a phase of it."""
    sections = list(_sections(file))
    if not any(entry.name in _RATES for _, entries in sections for entry in entries):
        file.refuse_if_wrong(
            "no text of cassandra-stress: it has no section 'Results:' with an op rate; import what "
            "`cassandra-stress` prints"
        )
    is_fixed = re.search(r"\bfixed=\d", file.text)
    times = file.said.times or (RESPONSE_TIME if is_fixed else SERVICE_TIME).name
    samples: list[Sample] = []
    findings: list[tuple[str, object]] = []
    for threads, entries in sections:
        phase, prefix = PHASE, ""
        if len(sections) > 1:
            phase = f"{threads}-threads"
            prefix = f"{phase} "
        for entry in entries:
            if kind := _kind(entry.name, times):
                samples += _samples(file, entry, phase, kind)
            else:
                findings.append((prefix + entry.name, entry.value))
    threads = ", ".join(threads for threads, _ in sections if threads)
    return file.run(samples, done=_count(findings), settings=[("threads", threads)], findings=findings)


def _count(findings: Sequence[tuple[str, object]]) -> Iterator[Done]:
    """Count what a run with one section of results did, all operations together."""
    found = {name: parse_number(str(value).partition("[")[0]) for name, value in findings}
    completed, failed = found.get("total partitions"), found.get("total errors")
    if completed is not None:
        yield Done(EVERYTHING, int(completed), None if failed is None else int(failed))


def _sections(file: File) -> Iterator[tuple[str, list[_Entry]]]:
    """Yield the number of threads and the lines of each section of results."""
    threads, entries = "", list[_Entry]()
    inside = False
    for number, line in file.lines():
        running = _THREADS.match(line)
        if entries and (running or line in {"Results:", "END", ""}):
            yield threads, entries
            entries, inside = [], False
        if running:
            threads = running["count"]
        elif line == "Results:":
            inside = True
        elif inside:
            name, _, value = line.partition(":")
            if _NAME.fullmatch(name.rstrip()) and value[:1].isspace():
                entries.append(_Entry(number, name.rstrip().lower(), value.strip()))
    if entries:
        yield threads, entries


def _kind(name: str, times: str) -> tuple[str, str] | None:
    """Return metric and statistic of a line, or None where it is not one that is judged."""
    if name in _RATES:
        return _RATES[name].name, "mean"
    match = _PERCENTILE.fullmatch(name)
    if match and (percentile := name_percentile(match["rank"])):
        return times, percentile
    return (times, _STATISTICS[name]) if name in _STATISTICS else None


def _samples(file: File, entry: _Entry, phase: str, kind: tuple[str, str]) -> Iterator[Sample]:
    match = _VALUE.fullmatch(entry.value)
    if match is None or _DECIMAL_COMMA.search(entry.value):
        said = f"{entry.name}: {show(entry.value)} is not a number as cassandra-stress prints it"
        file.blame(entry.line, f"{said} with LC_ALL=C")
        return
    printed = {EVERYTHING: match["number"]}
    for each in _EACH.finditer(match["each"] or ""):
        printed[each["operation"].strip().lower()] = each["number"]
    for operation in without_repetition(list(printed)):
        of = f"{entry.name} of {printable(operation)}: "
        if (value := file.number(entry.line, printed[operation], of)) is not None:
            yield sample(operation, *kind, value, phase)

"""YCSB: the text that a run prints (TextMeasurementsExporter), of 0.1.x to 0.18, all measurement types.

    [OVERALL], Throughput(ops/sec), 22106.89
    [READ], 99thPercentileLatency(us), 4567
    [Intended-READ], 99thPercentileLatency(us), 9012

`[READ]` is measured around the call of the database: service time, with and without `-target`.
`[Intended-READ]` counts from when the operation was to start: response time. With
`-p measurement.interval=intended` that is called plain `[READ]`; the command line in the text tells.
Of `measurementtype=hdrhistogram+histogram` the exact half is taken, `Hdr…`; `Bucket…` knows whole
milliseconds only.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import PurePath

from perf.history.importers.run import (
    EVERYTHING,
    PER_MS,
    PHASE,
    Done,
    File,
    ForeignRun,
    name_percentile,
    sample,
)
from perf.model.metrics import RESPONSE_TIME, SERVICE_TIME, THROUGHPUT
from perf.model.results import Sample
from perf.model.shown import printable

_LINE = re.compile(r"\[(?P<group>[^\]]+)\],\s*+(?P<name>[^,]+),\s*+(?P<value>\S+)")
_TIME = re.compile(
    r"(?:(?P<word>Average|Min|Max)|(?P<rank>[\d.]+)(?:st|nd|rd|th)?Percentile)Latency\((?P<unit>us|ms)\)"
)
_WORDS = {"Average": "mean", "Min": "min", "Max": "max"}
_OVERALL, _THROUGHPUT, _OPERATIONS = "OVERALL", "Throughput(ops/sec)", "Operations"
_FLAGS = ("-threads", "-target", "-db")
_INTENDED, _BOTH = "Intended-", "read-modify-write"
# FAILED is all of them; with reportlatencyforeacherror each kind is a group.
_FAILURE = re.compile(
    r"-(FAILED|ERROR|NOT_FOUND|NOT_IMPLEMENTED|UNEXPECTED_STATE|BAD_REQUEST|FORBIDDEN|SERVICE_UNAVAILABLE)$"
)
_BESIDE = re.compile(r".*CLEANUP$|TOTAL_GC|Bucket|Raw")
"""Groups that are no work of the database, or known better from another group."""


@dataclass(slots=True)
class _Text:
    """What stands in the text, before it is judged: values by group and name, each with its line."""

    values: dict[str, dict[str, tuple[int, str]]] = field(default_factory=lambda: defaultdict(dict))
    command: str = ""
    version: str = ""


def read(file: File) -> tuple[ForeignRun, ...]:
    """Read one run; whatever was printed around its figures may stand there too."""
    text = _scan(file)
    if _THROUGHPUT not in text.values.get(_OVERALL, {}):
        file.refuse_if_wrong(
            "no text of YCSB: it has no line [OVERALL], Throughput(ops/sec), …; import what `ycsb run` "
            "prints at its end"
        )
    pairs = tuple(pairwise(text.command.split()))
    workloads = [PurePath(value).name for flag, value in pairs if flag == "-P"]
    return file.run(
        _samples(file, text),
        done=_count(file, text),
        settings=[
            ("ycsb", text.version),
            *((flag[1:], value) for flag, value in pairs if flag in _FLAGS),
            *(value.partition("=")[::2] for flag, value in pairs if flag == "-p"),
        ],
        findings=(
            (f"{group} {name}", value)
            for group, values in text.values.items()
            for name, (_, value) in values.items()
            if not _TIME.fullmatch(name) and name != _THROUGHPUT
        ),
        workload=workloads[0] if workloads else None,
    )


def _scan(file: File) -> _Text:
    text = _Text()
    for number, line in file.lines():
        if line.startswith("Command line:"):
            text.command = line.partition(":")[2]
        elif line.startswith("YCSB Client "):
            text.version = line.removeprefix("YCSB Client ")
        elif match := _LINE.match(line):
            group, name = match["group"], match["name"].strip()
            if name.lstrip(">").isdigit():  # a bucket of a histogram
                continue
            first, _ = text.values[group].setdefault(name, (number, match["value"]))
            if first != number:
                file.blame(
                    number,
                    f"{printable(f'[{group}], {name}')} was there in line {first} already; one file "
                    "holds one run: split it",
                )
    return text


def _count(file: File, text: _Text) -> Iterator[Done]:
    """Count each operation once; the same ones may be in several groups, by their intended start too.

    What a read-modify-write reads and updates is counted as reads and updates by YCSB, too.
    """
    completed: dict[str, int] = {}
    failed: dict[str, dict[str, int]] = defaultdict(dict)
    for group, values in text.values.items():
        if _OPERATIONS not in values or _BESIDE.match(group):
            continue
        name = group.removeprefix("Hdr").removeprefix(_INTENDED)
        number = int(file.number(*values[_OPERATIONS]) or 0.0)
        if ending := _FAILURE.search(name):
            failed[name[: ending.start()].lower()][ending[0]] = number
        else:
            completed[name.lower()] = max(completed.get(name.lower(), 0), number)
    both = completed.get(_BOTH, 0)
    for operation in dict.fromkeys((*completed, *failed)):
        within = both if operation in {"read", "update"} else 0
        count = max(0, completed.get(operation, 0) - within)
        yield Done(operation, count, sum(failed[operation].values()))


def _samples(file: File, text: _Text) -> Iterator[Sample]:
    phase = "load" if " -load" in text.command else PHASE
    is_intended = "measurement.interval=intended" in text.command
    plain = file.said.times or (RESPONSE_TIME if is_intended else SERVICE_TIME).name
    if found := text.values[_OVERALL].get(_THROUGHPUT):
        throughput = file.number(*found)
        if throughput is not None:
            yield sample(EVERYTHING, THROUGHPUT, "mean", throughput, phase)
    for group, values in text.values.items():
        is_none = group == _OVERALL or _BESIDE.match(group) or group.endswith("-FAILED")
        if is_none or values.get(_OPERATIONS, (0, ""))[1] == "0":
            continue
        name = group.removeprefix("Hdr")
        times = RESPONSE_TIME.name if name.startswith(_INTENDED) else plain
        for key, (line, printed) in values.items():
            if not (match := _TIME.fullmatch(key)):
                continue
            time = file.number(line, printed)
            statistic = _WORDS.get(match["word"]) or name_percentile(match["rank"])
            if statistic is None:
                file.blame(line, f"there is no {printable(key)}")
            elif time is not None:
                operation = name.removeprefix(_INTENDED).lower()
                yield sample(operation, times, statistic, time / PER_MS[match["unit"]], phase)

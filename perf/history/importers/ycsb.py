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
    File,
    ForeignRun,
    ImportHints,
    Unreadable,
    digest,
    end_if_many,
    facts,
    name_percentile,
    parse_number,
    show,
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
_INTENDED = "Intended-"
_NO_OPERATION = re.compile(r".*CLEANUP$|TOTAL_GC|.*-FAILED$|Bucket|Raw")
"""Groups that are no work of the database that succeeded, or known better from another group."""


@dataclass(slots=True)
class _Text:
    """What stands in the text, before it is judged: values by group and name, each with its line."""

    values: dict[str, dict[str, tuple[int, str]]] = field(default_factory=lambda: defaultdict(dict))
    command: str = ""
    version: str = ""
    problems: list[str] = field(default_factory=list)


def read(file: File, hints: ImportHints) -> tuple[ForeignRun, ...]:
    """Read one run; whatever was printed around its figures may stand there too."""
    text = _scan(file)
    if not text.problems and _THROUGHPUT not in text.values.get(_OVERALL, {}):
        what = f"{file.name}: no text of YCSB: it has no line [OVERALL], Throughput(ops/sec), …"
        raise Unreadable(f"{what}; import what `ycsb run` prints at its end")
    samples = tuple(_samples(file, text, hints))
    if text.problems:
        raise Unreadable(*text.problems)
    pairs = tuple(pairwise(text.command.split()))
    workloads = [PurePath(value).name for flag, value in pairs if flag == "-P"]
    return (
        ForeignRun(
            place=file.name,
            identity=digest(file.text),
            samples=samples,
            settings=facts(
                [
                    ("ycsb", text.version),
                    *((flag[1:], value) for flag, value in pairs if flag in _FLAGS),
                    *(value.partition("=")[::2] for flag, value in pairs if flag == "-p"),
                ]
            ),
            findings=facts(
                (f"{group} {name}", value)
                for group, values in text.values.items()
                for name, (_, value) in values.items()
                if not _TIME.fullmatch(name) and name != _THROUGHPUT
            ),
            workload=workloads[0] if workloads else None,
        ),
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
            if name in text.values[group]:
                first = text.values[group][name][0]
                text.problems.append(
                    f"{file.name}, line {number}: {printable(f'[{group}], {name}')} was there in line "
                    f"{first} already; one file holds one run: split it"
                )
                end_if_many(text.problems, file.name)
                continue
            text.values[group][name] = (number, match["value"])
    return text


def _samples(file: File, text: _Text, hints: ImportHints) -> Iterator[Sample]:
    phase = "load" if " -load" in text.command else PHASE
    plain = hints.times or (
        RESPONSE_TIME.name if "measurement.interval=intended" in text.command else SERVICE_TIME.name
    )
    number, value = text.values[_OVERALL].get(_THROUGHPUT, (0, ""))
    throughput = _number(file, text, number, value)
    if throughput is not None:
        yield Sample(
            phase=phase,
            operation=EVERYTHING,
            metric=THROUGHPUT.name,
            statistic="mean",
            value=throughput,
        )
    for group, values in text.values.items():
        if (
            group == _OVERALL
            or _NO_OPERATION.match(group)
            or values.get(_OPERATIONS, (0, ""))[1] == "0"
        ):
            continue
        name = group.removeprefix("Hdr")
        for key, (line, printed) in values.items():
            if not (match := _TIME.fullmatch(key)):
                continue
            time = _number(file, text, line, printed)
            statistic = _WORDS.get(match["word"]) or name_percentile(match["rank"])
            if statistic is None:
                text.problems.append(f"{file.name}, line {line}: there is no {printable(key)}")
            elif time is not None:
                yield Sample(
                    phase=phase,
                    operation=name.removeprefix(_INTENDED).lower(),
                    metric=RESPONSE_TIME.name if name.startswith(_INTENDED) else plain,
                    statistic=statistic,
                    value=time / PER_MS[match["unit"]],
                )


def _number(file: File, text: _Text, line: int, printed: str) -> float | None:
    number = parse_number(printed)
    if number is None and line:
        text.problems.append(f"{file.name}, line {line}: {show(printed)} is not a finite number")
        end_if_many(text.problems, file.name)
    return number

"""TSBS: the text of its loaders (`tsbs_load_…`) and query runners (`tsbs_run_queries_…`), 2018 to 2023.

    loaded 34560 rows in 5.844sec with 1 workers (mean rate 5913.43 rows/sec)

    Run complete after 1000 queries with 1 workers (Overall query rate 61.99 queries/sec):
    TimescaleDB last row per host:
    min:  4.42ms, med:  6.75ms, mean:  16.05ms, max:  209.67ms, stddev:  17.46ms, sum:  16.1sec, …

A query is timed around its sending: service time, with and without `--max-rps`. Intermediate lines
("After 100 queries …") are left out. Where a loader inserts rows or metrics (single values), one of
them is the operation.

A later query runner prints p25, p75 and p99 too, but in an order other than that of its labels: "p25"
is followed by the median, "p99" by p75, "mean" by p99. Of such a line only minimum, maximum and the
mean as sum / count are taken, for these are right.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from perf.history.importers.run import (
    File,
    ForeignRun,
    sample,
    without_repetition,
)
from perf.model.metrics import SERVICE_TIME, THROUGHPUT
from perf.model.results import Sample

_LOADED = re.compile(
    r"loaded (?P<count>\d+) (?P<what>rows|metrics|items|values) in (?P<seconds>\S+?)sec "
    r"with (?P<workers>\d+) workers \(mean (?:rate|point rate) (?P<rate>\S+) \S+/sec\)"
)
_COMPLETE = re.compile(
    r"Run complete after (?P<count>\d+) queries with (?P<workers>\d+) workers"
    r"(?: \(Overall query rate (?P<rate>\S+) queries/sec\))?:?"
)
_FIRST = re.compile(r"(?:^|:)\s*+(?=min:)")
_LAST = re.compile(r"\bcount:\s*+\d++$")
_FIGURE = re.compile(r"\b(?P<name>\w++):\s*+(?P<number>[^\s,:]+?)(?:ms|sec)?(?:,|$)")
_REPORT = re.compile(r"(?P<time>1\d{9}),[\d.]+,")
_ALL = "all queries"
_NAMES = {"min": "min", "med": "p50", "mean": "mean", "max": "max"}
_MISLABELLED = "p25"


def read(file: File) -> tuple[ForeignRun, ...]:
    """Read one run of a loader or of a query runner."""
    samples = (*_loaded(file), *_queried(file, file.said.times or SERVICE_TIME.name))
    if not samples:
        file.refuse_if_wrong(
            "no text of TSBS: neither 'loaded … rows in …sec' nor 'Run complete after …'"
        )
    counts = [*_LOADED.finditer(file.text), *_COMPLETE.finditer(file.text)]
    moments = [
        datetime.fromtimestamp(int(match["time"]), UTC)
        for _, line in file.lines()
        if (match := _REPORT.match(line))
    ]
    return file.run(
        samples,
        settings=[("workers", ", ".join(sorted({match["workers"] for match in counts})))],
        findings=[(f"count of {m.groupdict().get('what', 'queries')}", m["count"]) for m in counts],
        started_at=min(moments, default=None),
        finished_at=max(moments, default=None),
    )


def _loaded(file: File) -> Iterator[Sample]:
    for number, line in file.lines():
        if match := _LOADED.match(line):
            operation = f"insert-{match['what'].removesuffix('s')}"
            rate = file.number(number, match["rate"]) or 0.0
            yield sample(operation, THROUGHPUT, "mean", rate, "load")


def _queried(file: File, times: str) -> Iterator[Sample]:
    """Yield what stands below "Run complete": a label and its figures, on two lines or one."""
    figures: dict[str, dict[str, float]] = {}
    label, complete = "", False
    for number, line in file.lines():
        if match := _COMPLETE.fullmatch(line):
            if complete:
                file.blame(number, "a second run begins here; split the file")
            complete = True
            if match["rate"]:
                yield sample(_ALL, THROUGHPUT, "mean", file.number(number, match["rate"]) or 0.0)
        elif complete and (match := _FIRST.search(line)) and _LAST.search(line):
            name = (line[: match.start()] or label).removesuffix(":").strip()
            figures[name] = {
                one["name"]: file.number(number, one["number"]) or 0.0
                for one in _FIGURE.finditer(line[match.end() :])
            }
        elif line.endswith(":"):
            label = line
    for operation in without_repetition(list(figures), _ALL):
        for statistic, value in _honest(figures[operation]):
            yield sample(operation, times, statistic, value)


def _honest(figures: dict[str, float]) -> Iterator[tuple[str, float]]:
    """Yield the figures that are what their label says."""
    if _MISLABELLED not in figures:
        yield from ((_NAMES[name], value) for name, value in figures.items() if name in _NAMES)
        return
    yield from ((name, figures[name]) for name in ("min", "max") if name in figures)
    if figures.get("count") and "sum" in figures:
        yield "mean", figures["sum"] * 1000 / figures["count"]

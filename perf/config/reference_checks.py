"""What the schema of references.yaml cannot see: figures that no page would show."""

from collections.abc import Collection, Iterator
from dataclasses import replace

from perf.config.checks import Entries, say, say_dangling
from perf.config.document import Document, Steps, dotted
from perf.config.problems import suggest
from perf.design import SteppedLoad, Workload
from perf.load.stages import ladder_phases
from perf.metrics import DIAGNOSTICS, METRICS
from perf.references import Reference, References
from perf.rules import Detection


def check_references(
    document: Document, references: References, entries: Entries, detection: Detection | None
) -> Iterator[str]:
    """Find names that lead nowhere, figures that are not judged here, and figures given twice."""
    listed = references.entries
    first_of: dict[Reference, int] = {}
    for index, one in enumerate(listed):
        steps: Steps = ("entries", index)
        first = first_of.setdefault(replace(one, value=1.0, note=""), index)
        if first != index:
            yield (
                f"{document.locate(steps)}: {dotted(steps)} is the same figure of the same source as "
                f"{dotted(('entries', first))}; keep one of them"
            )
        if one.system not in entries.known_systems:
            why = f"but there is no such system; {suggest(one.system, entries.known_systems)}"
            yield say(document, (*steps, "system"), one.system, why)
        yield from _check_release(document, steps, one, entries)
        workload = entries.workloads.get(one.workload)
        if workload is None:
            place = (*steps, "workload")
            yield say_dangling(document, place, one.workload, "workloads", entries.workloads)
        elif workload.value is not None:
            yield from _check_place(document, steps, one, workload.value)
        yield from _check_measure(document, steps, one, detection)


def _check_release(document: Document, steps: Steps, one: Reference, entries: Entries) -> Iterator[str]:
    """Insist on a line that there is, and on the one that a version belongs to."""
    lines = entries.known_releases.get(one.system, {})
    if one.version is not None and one.line is None:
        key = (*steps, "line")
        yield (
            f"{document.locate(key)}: {dotted(key)} is missing; add the line of {one.version}, so that "
            "the figure stands beside no other"
        )
    elif one.line is not None and lines and one.line not in lines.values():
        why = f"but {one.system} has no such line; {suggest(one.line, set(lines.values()))}"
        yield say(document, (*steps, "line"), one.line, why)
    elif one.version is not None and lines.get(one.version, one.line) != one.line:
        why = f"which is of the line {lines[one.version]}, not of {one.line}; correct one of them"
        yield say(document, (*steps, "version"), one.version, why)


def _check_place(document: Document, steps: Steps, one: Reference, workload: Workload) -> Iterator[str]:
    known: tuple[tuple[str, Collection[str]], ...] = (
        ("phase", _phases(workload)),
        ("operation", (workload.operation.value,)),
    )
    for key, words in known:
        value = getattr(one, key)
        if value not in words:
            why = f"but the workload {workload.name} has no such {key}; {suggest(value, words)}"
            yield say(document, (*steps, key), value, why)


def _phases(workload: Workload) -> tuple[str, ...]:
    plain = (part.name for part in workload.measurements if not isinstance(part.load, SteppedLoad))
    return (*plain, *ladder_phases(workload))


def _check_measure(
    document: Document, steps: Steps, one: Reference, detection: Detection | None
) -> Iterator[str]:
    """Insist on a metric and statistic that have a series with a page of its own."""
    if one.metric in DIAGNOSTICS:
        why = "which explains results and is not judged; only judged metrics have references"
        yield say(document, (*steps, "metric"), one.metric, why)
    elif one.metric not in METRICS:
        why = f"which is no metric; {suggest(one.metric, METRICS)}"
        yield say(document, (*steps, "metric"), one.metric, why)
    elif detection is not None and one.metric in detection.judged:
        judged = detection.judged[one.metric]
        if one.statistic not in judged:
            why = f"which is not judged of {one.metric}; {suggest(one.statistic, judged)}"
            yield say(document, (*steps, "statistic"), one.statistic, why)

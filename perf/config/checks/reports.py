"""What the schema of a report cannot see: addresses that lead nowhere, and cells without one."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import astuple, dataclass, field

from perf.config.checks.files import Entries, find_repeated
from perf.local.document import Steps, YamlDocument, dotted
from perf.local.problems import say, say_dangling, suggest
from perf.model.design import SteppedLoad, Workload
from perf.model.metrics import DIAGNOSTICS, METRICS
from perf.model.records import ALL
from perf.model.references import (
    TABLE_MEASURES,
    PublishedColumn,
    PublishedRow,
    PublishedTable,
    Report,
    Spot,
    Subject,
    cells,
)
from perf.workloads.stages import ladder_phases

_MEASURES = frozenset((*METRICS, *DIAGNOSTICS, *TABLE_MEASURES))


@dataclass(frozen=True, slots=True)
class _Known:
    """What the addresses of one report may name, and the first cell of each."""

    report: Report
    entries: Entries
    first: dict[tuple[object, ...], str] = field(default_factory=dict)

    @property
    def subjects(self) -> Collection[str]:
        return {one.name for one in self.report.subjects}


def check_report(document: YamlDocument, report: Report, entries: Entries) -> Iterator[str]:
    """Find names that lead nowhere, cells that no page would show, and figures given twice."""
    known = _Known(report, entries)
    for index, suite in enumerate(report.suites):
        if suite not in entries.suites:
            yield say_dangling(document, ("suites", index), suite, "suites", entries.suites)
    yield from find_repeated(document, ("subjects",), report.subjects, "name", lambda one: one.name)
    yield from find_repeated(document, ("tables",), report.tables, "name", lambda one: one.name)
    for index, subject in enumerate(report.subjects):
        yield from _check_subject(document, ("subjects", index), subject, entries)
    for name, other in report.also_beside.items():
        for one, key in ((name, name), (other, name)):
            if one not in entries.workloads:
                place: Steps = ("also_beside", key)
                yield say_dangling(document, place, one, "workloads", entries.workloads)
    for index, table in enumerate(report.tables):
        yield from _check_table(document, ("tables", index), table, known)
    yield from _check_scalings(document, known)
    yield from _check_courses(document, known)


def _check_subject(
    document: YamlDocument, steps: Steps, one: Subject, entries: Entries
) -> Iterator[str]:
    """Insist on a system and a line that there are, and on configs and testbeds to stand for it."""
    if one.system not in entries.known_systems:
        why = f"but there is no such system; {suggest(one.system, entries.known_systems)}"
        yield say(document, (*steps, "system"), one.system, why)
        return
    lines = entries.known_releases.get(one.system, {})
    if one.line is None and one.version in lines:
        line: Steps = (*steps, "line")
        yield (
            f"{document.locate(line)}: {dotted(line)} is missing; add the line of {one.version}, so "
            "that its figures stand beside no other"
        )
    elif one.line is not None and lines and one.line not in lines.values():
        why = f"but {one.system} has no such line; {suggest(one.line, set(lines.values()))}"
        yield say(document, (*steps, "line"), one.line, why)
    elif one.version is not None and lines.get(one.version, one.line) != one.line:
        why = f"which is of the line {lines[one.version]}, not of {one.line}; correct one of them"
        yield say(document, (*steps, "version"), one.version, why)
    for kind, names, folder, there in (
        ("configs", one.configs, f"systems/{one.system}", entries.systems.get(one.system, {})),
        ("topologies", one.topologies, "topologies", entries.topologies),
    ):
        for index, name in enumerate(names):
            if name not in there:
                place: Steps = (*steps, kind, index)
                yield say_dangling(document, place, name, folder, there)


def _check_table(
    document: YamlDocument, steps: Steps, table: PublishedTable, known: _Known
) -> Iterator[str]:
    yield from find_repeated(document, (*steps, "columns"), table.columns, "name", lambda it: it.name)
    yield from find_repeated(document, (*steps, "rows"), table.rows, "name", lambda it: it.name)
    tables = [one.name for one in known.report.tables]
    if table.ratio_to is not None and table.ratio_to not in tables:
        yield _say_unnamed(document, (*steps, "ratio_to"), table.ratio_to, "table", tables)
    yield from _check_columns(document, steps, table)
    yield from _check_rows(document, steps, table)
    yield from _check_cells(document, steps, table, known)


def _check_columns(document: YamlDocument, steps: Steps, table: PublishedTable) -> Iterator[str]:
    columns = [one.name for one in table.columns]
    for index, column in enumerate(table.columns):
        place: Steps = (*steps, "columns", index)
        if column.ratio_to is not None and column.ratio_to not in columns:
            yield _say_unnamed(document, (*place, "ratio_to"), column.ratio_to, "column", columns)
        if column.quotient:
            for key, name in (("of", column.quotient.of), ("over", column.quotient.over)):
                if name not in columns:
                    way = (*place, "quotient", key)
                    yield _say_unnamed(document, way, name, "column", columns)


def _check_rows(document: YamlDocument, steps: Steps, table: PublishedTable) -> Iterator[str]:
    columns, rows = [one.name for one in table.columns], [one.name for one in table.rows]
    for index, row in enumerate(table.rows):
        place: Steps = (*steps, "rows", index)
        if len(row.values) != len(columns):
            yield (
                f"{document.locate((*place, 'values'))}: {dotted((*place, 'values'))} has "
                f"{len(row.values)} values, but the table has {len(columns)} columns; give one for "
                "each, null where there is none"
            )
        for key, names in (("words", row.words), ("cells", row.cells)):
            for name in names:
                if name not in columns:
                    yield _say_unnamed(document, (*place, key, name), name, "column", columns)
        for at, name in enumerate(row.ratios_to):
            if name not in rows:
                yield _say_unnamed(document, (*place, "ratios_to", at), name, "row", rows)


def _say_unnamed(
    document: YamlDocument, steps: Steps, name: str, kind: str, known: Collection[str]
) -> str:
    return say(document, steps, name, f"but there is no such {kind}; {suggest(name, known)}")


def _check_cells(
    document: YamlDocument, steps: Steps, table: PublishedTable, known: _Known
) -> Iterator[str]:
    """Check each address once, at the row that completes it."""
    rows = {row.name: index for index, row in enumerate(table.rows)}
    told: set[str] = set()
    for row, column, spot in cells(table):
        if column.quotient or column.not_here:
            continue
        place: Steps = (*steps, "rows", rows[row.name])
        found = list(_check_spot(document, place, spot, known))
        if not found and _has_value(table, row, column):
            here = f"{dotted(place)}, {column.name}"
            before = known.first.setdefault(astuple(spot), here)
            if before != here:
                where = document.locate(place)
                found = [f"{where}: {here} has the same address as {before}; keep one of them"]
        yield from (one for one in found if one not in told)
        told.update(found)


def _has_value(table: PublishedTable, row: PublishedRow, column: PublishedColumn) -> bool:
    """Tell whether anything is published in a cell; what is only measured may stand in many tables."""
    place = table.columns.index(column)
    return place < len(row.values) and row.values[place] is not None


def _check_spot(document: YamlDocument, steps: Steps, spot: Spot, known: _Known) -> Iterator[str]:
    missing = [key for key in Spot.__slots__ if getattr(spot, key) is None]
    if missing:
        yield (
            f"{document.locate(steps)}: {dotted(steps)} has a cell without {' and '.join(missing)}; "
            "add it to the table, the column or the row, or say not_here of the column"
        )
        return
    if spot.subject not in known.subjects:
        why = f"but there is no such subject; {suggest(f'{spot.subject}', known.subjects)}"
        yield _say_of(document, steps, "subject", f"{spot.subject}", why)
    yield from _check_place(document, steps, spot, known.entries)
    if spot.metric not in _MEASURES:
        why = f"which is no metric; {suggest(f'{spot.metric}', _MEASURES)}"
        yield _say_of(document, steps, "metric", f"{spot.metric}", why)


def _say_of(document: YamlDocument, steps: Steps, key: str, value: str, why: str) -> str:
    return f"{document.locate(steps)}: the {key} of a cell of {dotted(steps)} is {value}, {why}"


def _check_place(document: YamlDocument, steps: Steps, spot: Spot, entries: Entries) -> Iterator[str]:
    """Insist on a workload with such a phase, and on an operation that is measured in it."""
    if spot.workload not in entries.workloads:
        why = f"but there is no workloads/{spot.workload}.yaml; "
        why += suggest(f"{spot.workload}", entries.workloads)
        yield _say_of(document, steps, "workload", f"{spot.workload}", why)
        return
    workload = entries.workloads[f"{spot.workload}"].value
    if workload is None:
        return
    phases, phase = _operations_by_phase(workload), f"{spot.phase}"
    # A part of an operation is named behind it: read-modify-write.update.
    operation = f"{spot.operation}".partition(".")[0]
    if phase not in phases:
        why = f"but the workload {workload.name} has no such phase; {suggest(phase, phases)}"
        yield _say_of(document, steps, "phase", phase, why)
    elif spot.operation is not None and operation not in phases[phase]:
        why = f"which {workload.name} does not ask for in {phase}; {suggest(operation, phases[phase])}"
        yield _say_of(document, steps, "operation", spot.operation, why)


def _operations_by_phase(workload: Workload) -> Mapping[str, Collection[str]]:
    """Give the phases with samples of a workload, and the operations that each has samples of."""
    mix = [one.value for one in workload.offered_mix]
    offered = (*mix, ALL) if len(mix) > 1 else tuple(mix)
    plain = (part.name for part in workload.measurements if not isinstance(part.load, SteppedLoad))
    return {
        **{one.name: (one.operation.value,) for one in workload.sequence},
        **dict.fromkeys((*plain, *ladder_phases(workload)), offered),
    }


def _check_scalings(document: YamlDocument, known: _Known) -> Iterator[str]:
    for index, one in enumerate(known.report.scalings):
        steps: Steps = ("scalings", index)
        for key, name in (("small", one.small), ("large", one.large)):
            if name not in known.subjects:
                yield _say_unnamed(document, (*steps, key), name, "subject", known.subjects)
        for workload in dict.fromkeys((one.small_workload, one.large_workload)):
            spot = Spot(workload=workload, phase=one.phase, operation=one.operation)
            yield from _check_place(document, steps, spot, known.entries)


def _check_courses(document: YamlDocument, known: _Known) -> Iterator[str]:
    for index, one in enumerate(known.report.courses):
        steps: Steps = ("courses", index)
        entry = known.entries.workloads.get(one.workload)
        if entry is None:
            place = (*steps, "workload")
            yield say_dangling(document, place, one.workload, "workloads", known.entries.workloads)
        elif entry.value is not None:
            for phase in one.phases or tuple(_operations_by_phase(entry.value)):
                for operation in one.operations or (None,):
                    spot = Spot(workload=one.workload, phase=phase, operation=operation)
                    yield from _check_place(document, steps, spot, known.entries)

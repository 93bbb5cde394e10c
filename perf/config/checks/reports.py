"""What the schema of a report cannot see: addresses that lead nowhere, and cells without one."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import astuple, dataclass, field

from perf.config.checks.files import Entries, find_dangling, find_repeated, find_unnamed
from perf.local.problems import Place, suggest
from perf.model.design import Workload
from perf.model.metrics import DIAGNOSTICS, METRICS
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
from perf.workloads.stages import name_offered, phases_of

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


def check_report(at: Place, report: Report, entries: Entries) -> Iterator[str]:
    """Find names that lead nowhere, cells that no page would show, and figures given twice."""
    known = _Known(report, entries)
    for index, suite in enumerate(report.suites):
        yield from find_dangling(at / "suites" / index, suite, "suites", entries.suites)
    yield from find_repeated(at / "subjects", report.subjects)
    yield from find_repeated(at / "tables", report.tables)
    for index, subject in enumerate(report.subjects):
        yield from _check_subject(at / "subjects" / index, subject, entries)
    for key, other in report.also_beside.items():
        for name in (key, other):
            yield from find_dangling(at / "also_beside" / key, name, "workloads", entries.workloads)
    for index, table in enumerate(report.tables):
        yield from _check_table(at / "tables" / index, table, known)
    yield from _check_scalings(at / "scalings", known)
    yield from _check_courses(at / "courses", known)


def _check_subject(at: Place, one: Subject, entries: Entries) -> Iterator[str]:
    """Insist on a system and a line that there are, and on configs and testbeds to stand for it."""
    if one.system not in entries.known_systems:
        why = f"but there is no such system; {suggest(one.system, entries.known_systems)}"
        yield (at / "system").say(why)
        return
    lines = entries.known_releases.get(one.system, {})
    if one.line is None and one.version in lines:
        yield (at / "line").fault(
            f"is missing; add the line of {one.version}, so that its figures stand beside no other"
        )
    elif one.line is not None and lines and one.line not in lines.values():
        why = f"but {one.system} has no such line; {suggest(one.line, set(lines.values()))}"
        yield (at / "line").say(why)
    elif one.version is not None and lines.get(one.version, one.line) != one.line:
        why = f"which is of the line {lines[one.version]}, not of {one.line}; correct one of them"
        yield (at / "version").say(why)
    for kind, names, folder, there in (
        ("configs", one.configs, f"systems/{one.system}", entries.systems.get(one.system, {})),
        ("topologies", one.topologies, "topologies", entries.topologies),
    ):
        for index, name in enumerate(names):
            yield from find_dangling(at / kind / index, name, folder, there)


def _check_table(at: Place, table: PublishedTable, known: _Known) -> Iterator[str]:
    yield from find_repeated(at / "columns", table.columns)
    yield from find_repeated(at / "rows", table.rows)
    tables = [one.name for one in known.report.tables]
    yield from find_unnamed(at / "ratio_to", table.ratio_to, "table", tables)
    yield from _check_columns(at, table)
    yield from _check_rows(at, table)
    yield from _check_cells(at, table, known)


def _check_columns(at: Place, table: PublishedTable) -> Iterator[str]:
    columns = [one.name for one in table.columns]
    for index, column in enumerate(table.columns):
        place = at / "columns" / index
        yield from find_unnamed(place / "ratio_to", column.ratio_to, "column", columns)
        if one := column.quotient:
            yield from find_unnamed(place / "quotient" / "of", one.of, "column", columns)
            yield from find_unnamed(place / "quotient" / "over", one.over, "column", columns)


def _check_rows(at: Place, table: PublishedTable) -> Iterator[str]:
    columns, rows = [one.name for one in table.columns], [one.name for one in table.rows]
    for index, row in enumerate(table.rows):
        place = at / "rows" / index
        if len(row.values) != len(columns):
            yield (place / "values").fault(
                f"has {len(row.values)} values, but the table has {len(columns)} columns; give one for "
                "each, null where there is none"
            )
        for key, names in (("words", row.words), ("cells", row.cells)):
            for name in names:
                yield from find_unnamed(place / key / name, name, "column", columns)
        for number, name in enumerate(row.ratios_to):
            yield from find_unnamed(place / "ratios_to" / number, name, "row", rows)


def _check_cells(at: Place, table: PublishedTable, known: _Known) -> Iterator[str]:
    """Check each address once, at the row that completes it."""
    rows = {row.name: index for index, row in enumerate(table.rows)}
    reported: set[str] = set()
    for row, column, spot in cells(table):
        if column.quotient or column.not_here:
            continue
        place = at / "rows" / rows[row.name]
        found = list(_check_spot(place, spot, known))
        if not found and _has_value(table, row, column):
            here = f"{place}, {column.name}"
            before = known.first.setdefault(astuple(spot), here)
            if before != here:
                found = [place.problem(f"{here} has the same address as {before}; keep one of them")]
        yield from (one for one in found if one not in reported)
        reported.update(found)


def _has_value(table: PublishedTable, row: PublishedRow, column: PublishedColumn) -> bool:
    """Return whether a cell has a published figure; what is only measured may stand in many tables."""
    place = table.columns.index(column)
    return place < len(row.values) and row.values[place] is not None


def _check_spot(at: Place, spot: Spot, known: _Known) -> Iterator[str]:
    missing = [key for key in Spot.__slots__ if getattr(spot, key) is None]
    if missing:
        yield at.fault(
            f"has a cell without {' and '.join(missing)}; "
            "add it to the table, the column or the row, or say not_here of the column"
        )
        return
    if spot.subject not in known.subjects:
        why = f"but there is no such subject; {suggest(f'{spot.subject}', known.subjects)}"
        yield _say_of(at, "subject", f"{spot.subject}", why)
    yield from _check_place(at, spot, known.entries)
    if spot.metric not in _MEASURES:
        why = f"which is no metric; {suggest(f'{spot.metric}', _MEASURES)}"
        yield _say_of(at, "metric", f"{spot.metric}", why)


def _say_of(at: Place, key: str, value: str, why: str) -> str:
    return at.problem(f"the {key} of a cell of {at} is {value}, {why}")


def _check_place(at: Place, spot: Spot, entries: Entries) -> Iterator[str]:
    """Insist on a workload with such a phase, and on an operation that is measured in it."""
    if spot.workload not in entries.workloads:
        why = f"but there is no workloads/{spot.workload}.yaml; "
        why += suggest(f"{spot.workload}", entries.workloads)
        yield _say_of(at, "workload", f"{spot.workload}", why)
        return
    workload = entries.workloads[f"{spot.workload}"].value
    if workload is None:
        return
    phases, phase = _operations_by_phase(workload), f"{spot.phase}"
    # A part of an operation is named behind it: read-modify-write.update.
    operation = f"{spot.operation}".partition(".")[0]
    if phase not in phases:
        why = f"but the workload {workload.name} has no such phase; {suggest(phase, phases)}"
        yield _say_of(at, "phase", phase, why)
    elif spot.operation is not None and operation not in phases[phase]:
        why = f"which {workload.name} does not ask for in {phase}; {suggest(operation, phases[phase])}"
        yield _say_of(at, "operation", spot.operation, why)


def _operations_by_phase(workload: Workload) -> Mapping[str, Collection[str]]:
    """Return the phases with samples of a workload, and the operations that each has samples of."""
    return {
        **{one.name: (str(one.operation),) for one in workload.sequence},
        **{
            phase: tuple(dict.fromkeys((*map(str, mix), name_offered(mix))))
            for part in workload.measurements
            for mix in (workload.mix_of(part),)
            for phase in phases_of(part)
        },
    }


def _check_scalings(at: Place, known: _Known) -> Iterator[str]:
    for index, one in enumerate(known.report.scalings):
        here = at / index
        yield from find_unnamed(here / "small", one.small, "subject", known.subjects)
        yield from find_unnamed(here / "large", one.large, "subject", known.subjects)
        for workload in dict.fromkeys((one.small_workload, one.large_workload)):
            spot = Spot(workload=workload, phase=one.phase, operation=one.operation)
            yield from _check_place(here, spot, known.entries)


def _check_courses(at: Place, known: _Known) -> Iterator[str]:
    workloads = known.entries.workloads
    for index, one in enumerate(known.report.courses):
        here = at / index
        yield from find_dangling(here / "workload", one.workload, "workloads", workloads)
        entry = workloads.get(one.workload)
        if entry and entry.value:
            for phase in one.phases or tuple(_operations_by_phase(entry.value)):
                for operation in one.operations or (None,):
                    spot = Spot(workload=one.workload, phase=phase, operation=operation)
                    yield from _check_place(here, spot, known.entries)

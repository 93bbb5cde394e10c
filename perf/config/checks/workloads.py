"""What the schema of a workload cannot see: confused phases, and operations that cannot be."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from operator import truediv

from perf.config.checks.files import ConfigFile, find_repeated
from perf.local.problems import Place, suggest
from perf.model.design import (
    ClosedLoop,
    CountedPhase,
    Load,
    Measurement,
    OpenLoop,
    SearchLoad,
    SteppedLoad,
    Workload,
)
from perf.model.metrics import CANARY_PHASES
from perf.model.program import OF_A_LOAD, OF_AN_OPEN_LOOP, OF_EVERY_RUN, Program, placeholders
from perf.model.records import ALL, Devops, Operation, PutGet, Sensor, Ycsb, operations_known
from perf.model.scaling import scale_of
from perf.model.statements import (
    Expected,
    IntegerValue,
    Language,
    RealValue,
    Statement,
    Statements,
    TimestampValue,
    Value,
    strip_quoted,
)
from perf.workloads.loading import preload_rows
from perf.workloads.stages import PRELOAD, WARM_UP, ladder_phase, operations_of

_RESERVED = frozenset({WARM_UP, PRELOAD, *CANARY_PHASES})
# None of them reads or writes a file of a server, calls another host, or brings code.
_SQL_ALLOWED = (
    *("SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "REFRESH", "OPTIMIZE"),
    *("CREATE TABLE", "CREATE VIEW", "ALTER TABLE"),
)


def check_workload(entry: ConfigFile[Workload]) -> Iterator[str]:
    """Find measurements that would be confused, and reads of rows that were never written."""
    workload, at = entry.value, entry.top
    if workload is None:
        return
    parts = workload.measurements
    yield from find_repeated(at / "measurements", parts)
    yield from _check_names(at, workload)
    yield from _check_program(at, workload)
    if not workload.program:
        yield from _check_offered(at, workload)
    yield from _check_rows(at, workload)
    yield from _check_statements(at, workload)
    for index, phase in enumerate(workload.sequence):
        yield from _check_counted(at / "sequence" / index, phase)
    yield from _check_values(at, workload)
    yield from _check_dataset(at, workload)
    yield from _check_written(at, workload)
    yield from _check_loaded(at, workload)
    yield from check_floors(at, workload)
    for index, part in enumerate(parts):
        here = at / "measurements" / index
        if part.warmup_cap_s < part.warmup_s:
            why = f"but warmup_s is {part.warmup_s:g}; make the cap at least as long"
            yield (here / "warmup_cap_s").say(why)
        yield from _check_load(here, part)
        yield from _check_objective(here, part, workload.operation_timeout_s)
    yield from _confused_phases(at, parts)


def _check_names(at: Place, workload: Workload) -> Iterator[str]:
    """Insist on phases of names of their own, and on scaling by suites alone."""
    named = [
        *((at / "sequence" / i / "name", one.name) for i, one in enumerate(workload.sequence)),
        *((at / "measurements" / i / "name", one.name) for i, one in enumerate(workload.measurements)),
    ]
    if not named:
        yield at.problem(
            "there is neither a sequence nor measurements, so nothing would be measured; "
            "add one of them"
        )
    counted = {one.name for one in workload.sequence}
    for place, name in named:
        if name in _RESERVED:
            yield place.say("which names a phase of every trial; choose another name")
        if name in counted and place.steps[0] == "measurements":
            yield place.say("which names a phase of the sequence as well; rename one of the two")
    yield from find_repeated(at / "sequence", workload.sequence)
    if workload.scaled_down_by is not None:
        why = "but a workload is written in full size; say it in the suite that runs it smaller"
        yield (at / "scaled_down_by").say(why)
    if scale_of(workload.name) != 1:
        why = "which reads like a workload that a suite has scaled down; choose another ending"
        yield (at / "name").say(why)


def _check_offered(at: Place, workload: Workload) -> Iterator[str]:
    """Insist on operations that the records know, and on one way to say which."""
    known = operations_known(workload.records)
    if workload.operation is not None and workload.mix:
        yield (at / "operation").say("but there is a mix as well; keep one of the two")
    if not all(map(workload.mix_of, workload.measurements)):
        yield (at / "measurements").fault(
            "offer nothing; add the key operation, or a mix of operations"
        )
    asked = [
        *(
            (at / "measurements" / i / "mix" / str(one), one)
            for i, phase in enumerate(workload.measurements)
            for one in phase.mix
        ),
        *((at / "mix" / str(one), one) for one in workload.mix),
        *((at / "sequence" / i / "operation", p.operation) for i, p in enumerate(workload.sequence)),
    ]
    if workload.operation is not None:
        asked.append((at / "operation", workload.operation))
    for place, operation in asked:
        if operation not in known:
            hint = suggest(operation, [str(one) for one in known])
            why = f"but records of kind {workload.records.kind} know no such operation; {hint}"
            yield place.say(why, str(operation))


def _check_program(at: Place, workload: Workload) -> Iterator[str]:
    """Insist on a program where one is to offer the load, and on what it can be given."""
    program = workload.program
    if workload.engine == "command" and program is None:
        yield (at / "engine").say("but there is no program; add the key program, see docs/engine.md")
    if program is None:
        return
    if workload.engine != "command":
        yield (at / "program").fault("is run by `engine: command` alone; say that, or remove it")
    for key in ("operation", "mix", "sequence", "batch_rows"):
        if getattr(workload, key):
            yield (at / key).fault("is for the program to know: it decides what is asked; remove it")
    for index, part in enumerate(workload.measurements):
        yield from _check_run(at / "measurements" / index, part)
    here = at / "program"
    for place, command in enumerate(program.prepare):
        yield from _check_placeholders(here / "prepare" / place, command, OF_EVERY_RUN)
    yield from _check_placeholders(here / "run", program.run, OF_A_LOAD)
    yield from _check_placeholders(here / "closed", program.closed, OF_A_LOAD)
    yield from _check_placeholders(here / "open", program.open, OF_AN_OPEN_LOOP)
    yield from _check_given(here, workload, program)
    for name in program.parts:
        if "/" in name and not name.startswith("/"):
            yield here.problem(
                f"{name} is a path from nowhere: it is started in a directory of its own; name a "
                "program in PATH, or write its whole path"
            )


def _check_given(at: Place, workload: Workload, program: Program) -> Iterator[str]:
    """Insist that the program is given what its phases say."""
    missing: set[tuple[str, str]] = set()
    for part in workload.measurements:
        is_open = isinstance(part.load, OpenLoop)
        asked = {name for one in program.command(is_open=is_open) for name in placeholders(one)}
        wanted = {("run", "seconds"), ("open", "rate") if is_open else ("run", "in_flight")}
        missing |= {(key, name) for key, name in wanted if name not in asked}
    for key, name in sorted(missing):
        yield (at / key).fault(
            f"does not give the program its {{{name}}}, so it would not do what the phases say; "
            f"add {{{name}}} to an argument"
        )


def _check_run(at: Place, part: Measurement) -> Iterator[str]:
    """Insist on a load that a program can be given, of a length that is known beforehand."""
    if not isinstance(part.load, ClosedLoop | OpenLoop):
        why = "but a program is given one load; say `closed` or `open`, or give each step a phase"
        yield (at / "load" / "kind").say(why)
    elif isinstance(part.load, OpenLoop) and part.load.arrivals:
        yield (at / "load" / "arrivals").say("but the program decides when it sends; remove it")
    if part.warmup_cap_s != part.warmup_s:
        why = f"but nobody sees whether a program is steady; make it {part.warmup_s:g}, as warmup_s"
        yield (at / "warmup_cap_s").say(why)
    if part.mix:
        yield (at / "mix").fault("is for the program to know: it decides what is asked; remove it")
    if part.histogram_s:
        yield (at / "histogram_s").say("but the program writes what it writes; remove it")


def _check_placeholders(at: Place, command: Sequence[str], known: Collection[str]) -> Iterator[str]:
    for place, argument in enumerate(command):
        for name in placeholders(argument):
            if name not in known:
                yield (at / place).fault(
                    f"has {{{name}}}, which stands for nothing here; {suggest(name, known)}, or write "
                    f"{{{{{name}}}}} for braces that are text"
                )


def _check_rows(at: Place, workload: Workload) -> Iterator[str]:
    """Find batches, preloads and reads that the records have no meaning for."""
    records = workload.records
    asked = {*(phase.operation for phase in workload.sequence), *workload.offered}
    if workload.batch_rows is not None and not (
        isinstance(records, Devops) or Operation.WRITE in asked
    ):
        names = ", ".join(sorted(str(one) for one in asked)) or "none"
        why = f"but operation is {names}; only writes have batches, so remove it"
        yield (at / "batch_rows").say(why)
    rows = workload.preload_rows_per_device
    if isinstance(records, Sensor):
        if Operation.READ_LATEST in asked and rows < (wanted := records.latest_count):
            yield (at / "preload_rows_per_device").say(
                f"but each read asks for records.latest_count = {wanted} rows; preload "
                "at least as many",
                rows,
            )
        if workload.preload is not None:
            why = "but the sensor workload preloads by preload_rows_per_device; remove this key"
            yield (at / "preload").say(why)
    elif rows:
        why = f"but records of kind {records.kind} have no devices; remove it, or say preload: records"
        yield (at / "preload_rows_per_device").say(why)
    if isinstance(records, Ycsb) and workload.preload is None and asked - {Operation.INSERT}:
        names = ", ".join(sorted(str(one) for one in asked - {Operation.INSERT}))
        yield at.problem(
            f"nothing is stored that {names} could be about, since only what is "
            "preloaded is known to be there; add `preload: records`"
        )
    if isinstance(records, PutGet | Devops) and workload.preload is not None:
        why = "but its records are stored by a phase of its sequence, which is measured; remove it"
        yield (at / "preload").say(why)


def _check_dataset(at: Place, workload: Workload) -> Iterator[str]:
    """Insist on rows that are stored by Knickpoint, where they are to be kept."""
    if workload.dataset is None:
        return
    if workload.program:
        why = "but what a program of one's own prepares cannot be checked; remove it"
        yield (at / "dataset").say(why)
    elif not preload_rows(workload):
        why = "but the workload has no preload, so there is nothing to keep; remove it"
        yield (at / "dataset").say(why)


def _check_statements(at: Place, workload: Workload) -> Iterator[str]:
    """Insist on values for all parameters, and on statements that have a row to be about."""
    records, here = workload.records, at / "records"
    if not isinstance(records, Statements):
        return
    if records.store not in records.statements:
        yield (here / "store").say(
            f"which is no statement; {suggest(records.store, records.statements)}"
        )
    elif records.statements[records.store].row != "new":
        why = "but it stores rows that were not there (records.store); say `new`"
        yield (here / "statements" / records.store / "row").say(why)
    yield from _check_texts(here, records)
    used: set[str] = set()
    for name, statement in records.statements.items():
        place, is_stored = here / "statements" / name, workload.preload is not None
        yield from _check_statement(place, name, statement, records, is_stored=is_stored)
        expected = statement.expect.columns.values() if statement.expect else ()
        used |= {*records.parameters(name), *expected}
    for name, value in records.values.items():
        if isinstance(value, IntegerValue | RealValue) and value.least > value.most:
            why = f"but least is {value.least:g}; make it at least as much"
            yield (here / "values" / name / "most").say(why)
    for name in sorted(records.values.keys() - used):
        yield (here / "values" / name).fault("is used by no statement; remove it")
    if workload.exceeds_memory:
        why = "but how many bytes statements store is not known; remove it"
        yield (at / "exceeds_memory").say(why)


def _check_texts(at: Place, records: Statements) -> Iterator[str]:
    """Insist on texts of the language, as far as that is seen without a server."""
    if check := _CHECKS.get(records.language):
        for steps, text in records.texts.items():
            yield from check(reduce(truediv, steps, at), text)


def _check_command(at: Place, text: str) -> Iterator[str]:
    """Insist on a JSON object, which begins with the name of a command."""
    try:
        command = json.loads(text)
    except (ValueError, RecursionError) as error:  # of what is nested too deeply
        yield at.fault(f"is no JSON: {error}")
    else:
        if not isinstance(command, dict) or not command:
            yield at.fault('is no command; write one as {"find": "customers", …}')


def _check_sql(at: Place, text: str) -> Iterator[str]:
    """Insist on a single statement, of a kind that reads or writes tables and does nothing else."""
    bare = strip_quoted(text)
    words = re.findall(r"\w+", bare)[:2]
    begins = {" ".join(words[:count]).upper() for count in (1, 2)}
    if begins.isdisjoint(_SQL_ALLOWED):
        allowed = f"{', '.join(_SQL_ALLOWED[:-1])} or {_SQL_ALLOWED[-1]}"
        yield at.fault(f"begins with {' '.join(words) or 'nothing'}; let it begin with {allowed}")
    elif ";" in bare.rstrip().removesuffix(";"):
        yield at.fault("has several statements; write each of them by itself")


_CHECKS: Mapping[Language, Callable[[Place, str], Iterator[str]]] = {
    "mongodb": _check_command,
    "sql": _check_sql,
}


def _check_statement(
    at: Place, name: str, statement: Statement, records: Statements, *, is_stored: bool
) -> Iterator[str]:
    """Insist on a name of its own, a value for each parameter, and a row that it can be about."""
    values = records.values
    if name in {ALL, *Operation}:
        yield at.fault("has the name of something else in results; choose another one")
    for parameter in sorted(records.parameters(name) - values.keys()):
        hint = suggest(parameter, values)
        yield (at / "text").fault(f"has :{parameter}, but records.values has none; {hint}")
    if expected := statement.expect:
        yield from _check_expected(at / "expect" / "columns", expected, values)
        if expected.applied and records.language != "cql":
            why = "but only conditions of CQL are applied or not; say `rows` instead"
            yield (at / "expect" / "applied").say(why)
    if statement.row != "new" and not is_stored:
        yield (at / "row").say("but no row is stored; add `preload: records` to the workload")


def _check_expected(at: Place, expected: Expected, values: Mapping[str, Value]) -> Iterator[str]:
    """Insist on values that whoever reads a row can know."""
    for column, name in expected.columns.items():
        value = values.get(name)
        if value is None:
            yield (at / column).say(f"which is no value; {suggest(name, values)}")
        elif value.of == "operation":
            yield (at / column).say("which is new in each operation, so a reader cannot know it")
        elif isinstance(value, TimestampValue):
            yield (at / column).say("which is a time, and times are not compared; leave it out")


def _check_counted(at: Place, phase: CountedPhase) -> Iterator[str]:
    """Insist on a value seed where values are stored in place of others, and only there."""
    stores = phase.operation in {Operation.PUT, Operation.PUT_GET}
    if stores and phase.value_seed is None:
        yield at.problem(
            f"the phase {phase.name} stores values and has no value_seed; "
            "add one, other than that of the phase before"
        )
    if phase.value_seed is not None and not stores:
        yield (at / "value_seed").say(f"but {phase.operation} stores no values; remove it")


def _check_values(at: Place, workload: Workload) -> Iterator[str]:
    """Insist that under every key lies a value of the last value seed before any is asked for."""
    records = workload.records
    if not isinstance(records, PutGet):
        return
    is_stored = False
    for index, phase in enumerate(workload.sequence):
        if phase.operation is Operation.GET:
            if not is_stored:
                why = "but no phase before it puts a value under every key; begin with one that does"
                yield (at / "sequence" / index / "operation").say(why)
                return
        elif phase.operations is not None and phase.operations < records.keys:
            yield (at / "sequence" / index / "operations").say(
                f"but there are {records.keys} keys, and what is got after it is expected to be of its "
                "value_seed; make it as many, or leave it out"
            )
        is_stored = is_stored or phase.operation is Operation.PUT
    if workload.sequence and workload.sequence[-1].operation is Operation.PUT:
        why = "and no phase after it gets the values, so none of them is verified; add one"
        last = len(workload.sequence) - 1
        yield (at / "sequence" / last / "operation").say(why)
    if Operation.GET in workload.offered and not is_stored:
        yield (at / "measurements").fault(
            "get values, but no phase before them puts any; add one that puts a value under every key"
        )


def _check_written(at: Place, workload: Workload) -> Iterator[str]:
    """Find reads of devices that an earlier phase wrote to: they expect the preloaded rows alone."""
    why = "after a phase that writes rows, which would each be a wrong one to it; read before it"
    is_written = False
    for index, phase in enumerate(workload.sequence):
        if phase.operation is Operation.READ_LATEST and is_written:
            yield (at / "sequence" / index / "operation").say(why)
        is_written = is_written or phase.operation is Operation.WRITE
    # Phases of one mix run together, in the order of the first of each mix.
    for mix in dict.fromkeys(frozenset(workload.mix_of(part)) for part in workload.measurements):
        if is_written and mix == {Operation.READ_LATEST}:
            yield (at / "measurements").fault(f"only read, {why}")
        is_written = is_written or Operation.WRITE in mix


def _check_loaded(at: Place, workload: Workload) -> Iterator[str]:
    """Insist that all rows of devops are loaded, once, before the first query about them."""
    records = workload.records
    if not isinstance(records, Devops):
        return
    if records.interval_s > records.span_s:
        why = f"but span_s is {records.span_s}, so there would be no rows; make it smaller"
        yield (at / "records" / "interval_s").say(why, records.interval_s)
        return
    if Operation.LOAD in workload.offered:
        yield (at / "measurements").fault(
            "go on for a time, and there are only so many rows to load; let a phase "
            "of the sequence load them"
        )
    is_loaded = False
    for index, phase in enumerate(workload.sequence):
        here = at / "sequence" / index
        if phase.operation is Operation.LOAD:
            batches = operations_of(workload, replace(phase, operations=None))
            if phase.operations is not None and phase.operations > batches:
                why = f"but there are {batches} batches; make it as many, or leave it out"
                yield (here / "operations").say(why)
            is_loaded = is_loaded or (phase.operations or batches) >= batches
        elif not is_loaded:
            why = "but no phase before it loads all rows, as answers expect; begin with one that does"
            yield (here / "operation").say(why)
            return
    if not is_loaded and set(workload.offered) - {Operation.LOAD}:
        yield (at / "measurements").fault(
            "ask queries, but no phase before them loads all rows; add one that does"
        )


def _check_load(at: Place, part: Measurement) -> Iterator[str]:
    """Insist that a ladder goes up, each load in a phase of its own, and that a search has room."""
    load = part.load
    if isinstance(load, SteppedLoad):
        rungs = at / "load" / "offered_loads_ops_per_s"
        for place, (before, rung) in enumerate(pairwise(load.offered_loads_ops_per_s), start=1):
            if rung <= before:
                why = f"but the one before it is {before:g}; list them from the lowest up, each once"
                yield (rungs / place).say(why)
            elif ladder_phase(part, rung) == ladder_phase(part, before):
                why = "which reads like the one before it; let them differ in their first six digits"
                yield (rungs / place).say(why)
    elif isinstance(load, SearchLoad) and load.lowest_ops_per_s >= load.highest_ops_per_s:
        why = f"but highest_ops_per_s is {load.highest_ops_per_s:g}; make it the lower of the two"
        yield (at / "load" / "lowest_ops_per_s").say(why)


def _check_objective(at: Place, part: Measurement, timeout_s: float) -> Iterator[str]:
    """Insist that an operation can miss the objective of a search and still have a response time."""
    if isinstance(part.load, SearchLoad):
        objective_ms, longest_ms = part.load.response_time_p99_objective_ms, timeout_s * 1000
        if objective_ms >= longest_ms:
            yield (at / "load" / "response_time_p99_objective_ms").say(
                f"but operation_timeout_s is {timeout_s:g}: what takes longer has no response time, so "
                f"no load would ever miss; make it less than {longest_ms:g}"
            )


def _confused_phases(at: Place, parts: Sequence[Measurement]) -> Iterator[str]:
    """Find measurements that are named like a phase of a ladder or of a search."""
    for index, part in enumerate(parts):
        for other in parts:
            if isinstance(other.load, SteppedLoad):
                is_taken = any(
                    part.name == ladder_phase(other, rung)
                    for rung in other.load.offered_loads_ops_per_s
                )
            elif isinstance(other.load, SearchLoad):
                is_taken = re.fullmatch(rf"{other.name}-[0-9]{{2,}}", part.name) is not None
            else:
                continue
            if is_taken:
                why = f"which names a phase of the measurement {other.name}; rename one of the two"
                yield (at / "measurements" / index / "name").say(why)


def check_floors(at: Place, workload: Workload) -> Iterator[str]:
    """Find floors above all sizes that they bound: nothing would be smaller but the name."""
    floors = workload.floors
    if floors is None:
        return
    for name, written in _list_sizes(workload).items():
        floor = getattr(floors, name)
        if written and floor > max(written):
            yield (at / "floors" / name).say(
                f"but what is written is {max(written):g} at most, so that no suite could scale it "
                "down; make it no more than that"
            )


def _list_sizes(workload: Workload) -> Mapping[str, list[float]]:
    """Return the sizes that each floor bounds, as they are written."""
    parts, phases = workload.measurements, workload.sequence
    sizes: dict[str, list[float]] = {
        "operations": [one.operations for one in phases if one.operations is not None],
        "in_flight": [
            workload.preload_in_flight,
            *(one.in_flight for one in phases),
            *(part.load.in_flight for part in parts),
        ],
        "offered_load_ops_per_s": [one for part in parts for one in _offered(part.load)],
        "seconds": [part.iteration_s for part in parts],
    }
    match workload.records:
        case Sensor(devices=count) | PutGet(keys=count):
            sizes["records"] = [count]
        case Statements(rows=count):
            sizes["records"] = [count]
        case Ycsb(record_count=count, operation_count=expected):
            sizes["records"] = [count]
            sizes["operations"] += [] if expected is None else [expected]
        case Devops() as records:
            sizes["records"] = [records.hosts]
            sizes["operations"].append(records.queries)
            sizes["seconds"].append(records.span_s)
    return sizes


def _offered(load: Load) -> tuple[float, ...]:
    match load:
        case OpenLoop(offered_load_ops_per_s=offered):
            return (offered,)
        case SteppedLoad(offered_loads_ops_per_s=(lowest, *_)):
            return (lowest,)
        case SearchLoad(lowest_ops_per_s=lowest):
            return (lowest,)
        case _:
            return ()

"""`knickpoint workloads`: what there is to measure, and what each of it is for."""

import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from itertools import groupby
from pathlib import Path

import click

from perf.commands.options import configs_option
from perf.commands.workloads_try import try_workload
from perf.config.catalog import default_root, load_catalog
from perf.model.design import Suite, Workload
from perf.model.identity import content_hash
from perf.model.records import Records
from perf.model.scaling import scale_down, unscaled_name
from perf.model.statements import Statements
from perf.trial.measurement import describe_counted, describe_load
from perf.workloads.loading import preload_rows, row_bytes


class _WorkloadGroup(click.Group):
    """A group of commands, of which any other word is the name of a workload to explain."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in self.commands:
            return super().resolve_command(ctx, args)
        return _explain.name, _explain, args


@click.group(cls=_WorkloadGroup, invoke_without_command=True, subcommand_metavar="[NAME | try NAME]")
@configs_option
@click.pass_context
def workloads(context: click.Context, *, configs: Path | None) -> None:
    """List the workloads, explain one, or try one.

    \b
    knickpoint workloads
    knickpoint workloads iot-write
    knickpoint workloads iot-write-by-1000
    knickpoint workloads try own-index

    Of one: its purpose, its owner, the public source that it follows, and what its figures must not be
    compared with; then its sizes as they are written, and as each suite runs it. A suite that says
    `scaled_down_by: 1000` runs it a thousand times smaller, under a name that ends in -by-1000, and
    never below the floors that the workload states.

    A series goes by the name and a hash of all that decides what is measured, iot-write@0123456789ab:
    whoever changes a workload, but for its prose, begins new series. docs/workloads.md holds the
    procedures of the public reports, and what was chosen where they leave a choice, and how to write
    a workload of your own.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    context.obj = configs
    if context.invoked_subcommand is None:
        catalog = load_catalog(configs or default_root())
        click.echo(list_workloads(catalog.workloads[one] for one in sorted(catalog.workloads)))


workloads.add_command(try_workload)


@click.command("explain")
@click.argument("name")
@configs_option
@click.pass_obj
def _explain(outer: Path | None, *, name: str, configs: Path | None) -> None:
    """Explain one workload."""
    catalog = load_catalog(configs or outer or default_root())
    workload = catalog.workload(unscaled_name(name))
    click.echo(describe_workload(workload, catalog.suites.values()))


_WIDTH = 100

_LABEL = 18

# What rounding to whole records may do to a factor.
_ROUNDING = 0.01

# What a suite scales.
_SIZES = frozenset(
    {
        *("devices", "keys", "record_count", "operation_count", "hosts", "span_s", "queries"),
        *("operations", "preload_in_flight", "in_flight", "warmup_s", "warmup_cap_s", "iteration_s"),
        *("offered_load_ops_per_s", "offered_loads_ops_per_s", "lowest_ops_per_s", "highest_ops_per_s"),
    }
)


def list_workloads(workloads: Iterable[Workload]) -> str:
    """Return two lines for each: name, kind of records and operations; and below, its description."""
    listed = tuple(workloads)
    width = max((len(one.name) for one in listed), default=0)
    kind_width = max((len(one.records.kind) for one in listed), default=0)
    return "\n".join(
        f"{one.name:<{width}}  {one.records.kind:<{kind_width}}  {' '.join(name_operations(one))}\n"
        f"{'':<{width}}  {one.description}"
        for one in listed
    )


def name_operations(workload: Workload) -> tuple[str, ...]:
    """Name what a workload asks for, each once, in the order of its phases."""
    counted = (phase.operation for phase in workload.sequence)
    return tuple(dict.fromkeys(str(one) for one in (*counted, *workload.offered)))


def describe_workload(workload: Workload, suites: Iterable[Suite]) -> str:
    """Return all that is to be known of a workload, as it is written and as each suite runs it."""
    lines = [f"{workload.name}", *_indent(workload.description), ""]
    for label, text in (
        ("purpose", workload.purpose),
        ("owner", workload.owner),
        ("source", workload.source),
        ("not comparable", workload.not_comparable),
    ):
        lines += _say(label, text)
    lines += ["", "as it is written"]
    lines += _sizes(workload)
    if workload.floors is None:
        lines += _say("floors", "none: it is not scaled down")
    else:
        lines += _say("floors", ", ".join(_values(workload.floors)))
    lines += ["", "in suites"]
    used = [suite for suite in suites if _experiments(suite, workload)]
    used.sort(key=lambda suite: (suite.scaled_down_by or 1, suite.name))
    if not used:
        lines += _indent("none uses it")
    for suite in used:
        lines += _use(suite, workload)
    return "\n".join(lines)


def _use(suite: Suite, workload: Workload) -> Iterator[str]:
    """Describe where a suite runs it, and what it is there."""
    experiments = ", ".join(_experiments(suite, workload))
    by = suite.scaled_down_by
    if by is None:
        yield from _say(suite.name, f"as written, on {suite.testbed}: {experiments}")
        return
    yield from _say(suite.name, f"scaled down by {by}, on {suite.testbed}: {experiments}")
    run = scale_down(workload, by)
    yield from (f"  {line}" for line in _sizes(run))
    others = ", ".join(_other_factors(workload, run, by))
    yield from (f"  {line}" for line in (_say("smaller by less", others) if others else ()))


def _other_factors(workload: Workload, run: Workload, by: int) -> Iterator[str]:
    """Name the sizes that ended at a floor, each with the factors that it really is smaller by."""
    found = sorted(_factors(workload, run), key=lambda one: one[0])
    for name, each in groupby(found, key=lambda one: one[0]):
        factors = sorted({factor for _, factor in each if abs(factor - by) > _ROUNDING * by})
        ends = dict.fromkeys((*factors[:1], *factors[-1:]))
        if ends:
            yield f"{name} {' to '.join(f'{one:.4g}' for one in ends)}"


def _factors(written: object, run: object, name: str = "") -> Iterator[tuple[str, float]]:
    """Yield each size below a value, by name, with how many times smaller it is run."""
    if is_dataclass(written):
        for one in fields(written):
            if one.name != "floors":
                yield from _factors(getattr(written, one.name), getattr(run, one.name), one.name)
    elif isinstance(written, tuple) and isinstance(run, tuple):
        for before, after in zip(written, run, strict=True):
            yield from _factors(before, after, name)
    elif name in _SIZES and isinstance(written, int | float) and isinstance(run, int | float):
        yield name, written / run


def _experiments(suite: Suite, workload: Workload) -> list[str]:
    return [one.name for one in suite.experiments if one.workload == workload.name]


def _sizes(workload: Workload) -> Iterator[str]:
    yield from _say("series", f"{workload.name}@{content_hash(workload)}")
    yield from _describe_records(workload.records)
    rows, size = preload_rows(workload), row_bytes(workload)
    stored = f"{rows} rows" + (f", {rows * size / 1e6:.6g} MB" if size else "") if rows else "nothing"
    yield from _say("stored before", stored)
    if workload.batch_rows:
        yield from _say("rows per batch", f"{workload.batch_rows}")
    yield from _say("consistency", workload.consistency)
    if workload.engine:
        yield from _say("engine", workload.engine)
    yield from _say("seed", f"{workload.seed}")
    for phase in workload.sequence:
        drawn = "" if phase.value_seed is None else f", value seed {phase.value_seed}"
        yield from _say("counted phase", f"{describe_counted(workload, phase)}{drawn}")
    for line in describe_load(workload).splitlines():
        yield from _say("measured phase", line)


def _describe_records(records: Records) -> Iterator[str]:
    if not isinstance(records, Statements):
        yield from _say("records", f"{records.kind}: {', '.join(_values(records))}")
        return
    yield from _say("records", f"{records.kind}: {records.language}")
    for text in records.schema:
        yield from _say("schema", text)
    for name, statement in records.statements.items():
        yield from _say(name, f"{statement.row}: {statement.text}")


def _values(part: Records | object) -> Iterator[str]:
    for one in fields(part):  # type: ignore[arg-type]  # records and floors are dataclasses
        value = getattr(part, one.name)
        if one.name != "kind" and value is not None:
            yield f"{one.name} {value}"


def _say(label: str, text: str) -> Iterator[str]:
    first = f"  {label:<{_LABEL}} "
    wrapped = textwrap.wrap(text, _WIDTH - len(first), break_on_hyphens=False) or [""]
    yield f"{first}{wrapped[0]}"
    yield from (f"{'':<{len(first)}}{line}" for line in wrapped[1:])


def _indent(text: str) -> list[str]:
    return [f"  {line}" for line in textwrap.wrap(text, _WIDTH - 2, break_on_hyphens=False)]

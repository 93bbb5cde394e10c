"""The command that backfills: it measures releases × experiments, what teaches most first."""

from collections.abc import Sequence
from pathlib import Path

import click

from perf.commands.history_texts import align
from perf.commands.options import configs_option, data_option, spell_command
from perf.config.catalog import Catalog, find_experiment
from perf.history import bundle
from perf.jobs.attaching import refuse_attached
from perf.jobs.holding import hold
from perf.jobs.matrix import Cell, Grid, Tally, choose_rows, open_backfill, plan_cells
from perf.jobs.measuring import Job, describe, keep, open_job
from perf.local.problems import suggest
from perf.model.design import Suite
from perf.model.errors import MeasureError, UsageError

NOT_MEASURED = MeasureError.exit_code
_LEGEND = "known n: n completed trials count; #n: the n-th to be measured; ·: not asked for"


@click.command()
@click.option(
    "--suite", "suite_name", default="quickstart", show_default=True, help="Suite of the experiments."
)
@click.option(
    "--experiment",
    "experiments",
    multiple=True,
    help="Experiment; may be given several times.  [default: all but sentinels]",
)
@click.option(
    "--release",
    "releases",
    multiple=True,
    help='Releases: one ("5.0.5"), a span ("5.0.2..5.0.9") or a line ("5.0"); may be given several '
    "times.  [default: the lines of the releases that each experiment lists]",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Completed trials wanted of each cell.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    help="Begin no trial that would end later than this.  [default: until all is measured]",
)
@click.option("--dry-run", is_flag=True, help="Show what is known and the order of the rest, and stop.")
@data_option
@configs_option
def matrix(
    *,
    suite_name: str,
    experiments: tuple[str, ...],
    releases: tuple[str, ...],
    repeat: int,
    minutes: float | None,
    dry_run: bool,
    data: Path,
    configs: Path | None,
) -> None:
    """Measure many releases, most informative first.

    A cell that is known is skipped.

    A cell is one experiment at one release. It is known if enough completed trials in the data
    directory have the same contents of topology, testbed, workload and config: after a change of the
    configuration it is measured anew. Of each line the ends come first, then always the middle of the
    largest gap, the experiments taking turns; so whenever it is stopped, the picture is even.
    The same command goes on from there; a kill costs the trial that was running.

    \b
    knickpoint matrix --suite nightly --release 5.0 --dry-run
    knickpoint matrix --suite nightly --release 5.0 --minutes 90
    knickpoint matrix --experiment cassandra-sensor --release 5.0.2..5.0.9 --repeat 3

    Each trial becomes a point of its series, and the history has them all at the end.

    Exit codes: 0 fine, also if time ran out; 2 wrong usage; 3 something could not be measured.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    job = open_job(data, configs)
    suite = job.catalog.suite(suite_name)
    grid = read_grid(job.catalog, suite, experiments, releases, repeat)
    if dry_run:
        backfill = open_backfill(job, grid)
        click.echo("\n".join((backfill.announce(), "", *describe_grid(grid, backfill.tally))))
        return
    testbed = job.catalog.testbed(suite.testbed)
    refuse_attached(testbed)
    with hold(job.paths, job.progress, [testbed], f"the matrix of suite {suite_name}"):
        backfill = open_backfill(job, grid)
        click.echo(backfill.announce())
        backfill.measure(minutes)
    job.progress.expected_s = None
    is_kept = _append(job)
    for trial in backfill.trials:
        click.echo(describe(trial))
    if left := plan_cells(grid, backfill.tally):
        count, about = backfill.count_left(left)
        again = spell_command(click.get_current_context(), without=())
        click.echo(f"{count} left, {about}; go on with:\n  {again}")
    for cell, why in backfill.lost.items():
        click.echo(f"{cell.experiment} at {cell.release.version} is not measured: {why}", err=True)
    if backfill.lost or not is_kept:
        click.get_current_context().exit(NOT_MEASURED)


def read_grid(
    catalog: Catalog, suite: Suite, experiments: Sequence[str], releases: Sequence[str], repeat: int
) -> Grid:
    """Return what is wanted of a suite: the named experiments at the named releases.

    Raises:
        UsageError: an experiment, a release or a line is unknown, an experiment is a sentinel, or all
            of the suite's are.

    """
    of_releases = [each.name for each in suite.experiments if not each.sentinel_every_nights]
    for name in experiments:
        if name not in of_releases:
            is_sentinel = name in {each.name for each in suite.experiments}
            why = (
                "is a sentinel: it watches the testbed" if is_sentinel else "is none of its experiments"
            )
            raise UsageError(f"suite {suite.name}: {name!r} {why}; {suggest(name, of_releases)}")
    chosen = tuple(dict.fromkeys(experiments or of_releases))
    if not chosen:
        raise UsageError(f"suite {suite.name} has sentinels only; name another one with --suite")
    deployments = [catalog.resolve(suite, find_experiment(suite, name)) for name in chosen]
    known = {
        name: catalog.releases(name)
        for name in dict.fromkeys(each.experiment.system for each in deployments)
    }
    return Grid(rows=choose_rows(deployments, known, releases), repeat=repeat)


def describe_grid(grid: Grid, tally: Tally) -> tuple[str, ...]:
    """Show releases × experiments as a table: what is known of each cell, and when it is its turn."""
    turns: dict[Cell, list[str]] = {}
    for number, cell in enumerate(plan_cells(grid, tally), start=1):
        turns.setdefault(cell, []).append(f"#{number}")
    wanted = set(grid.cells())
    releases = dict.fromkeys(cell.release for cell in grid.cells())
    table = [["release", *(row.experiment for row in grid.rows)]]
    for release in releases:
        marks = []
        for cell in (row.cell(release) for row in grid.rows):
            count = tally.completed[cell]
            known = [f"known {count}"] if count else ["failed before"] if tally.failed[cell] else []
            marks.append(", ".join(known + turns.get(cell, [])) if cell in wanted else "·")
        table.append([f"{release.system} {release.version}", *marks])
    return (*align(table), "", _LEGEND)


def _append(job: Job) -> bool:
    """Append what the history lacks; return whether all bundles are sound."""
    if not bundle.find(job.paths):
        return True
    kept = keep(job)
    for problem in kept.bad:
        click.echo(f"A bundle was refused: {problem}", err=True)
    return not kept.bad

"""The command that backfills: it measures releases × experiments, what teaches most first."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click
from click.core import ParameterSource

from perf import config
from perf.config.problems import suggest
from perf.errors import BundleError, MeasureError, ReleaseError, UsageError
from perf.history import bundle
from perf.history.store import append_all
from perf.matrix import (
    Cell,
    Grid,
    Tally,
    choose_rows,
    count_known,
    count_trial,
    expect_s,
    next_cell,
    plan_cells,
)
from perf.measuring import (
    Session,
    describe,
    fetch_release,
    find_experiment,
    hold,
    measure_extra,
    planned_s,
)
from perf.model import Source, Trial, TrialStatus
from perf.options import configs_option, data_option
from perf.places import Places
from perf.progress import Progress, format_duration
from perf.releases import copy_variable
from perf.systems import registry

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
    """Measure releases × experiments in the order that teaches most, skipping what is known.

    A cell is one experiment at one release. It is known if enough completed trials in the data
    directory have the same contents of topology, testbed, workload and config: after a change of the
    configuration it is measured anew. Of each line the ends come first, then always the middle of the
    largest gap, the experiments taking turns; so whenever it is stopped, the picture is even.
    The same command goes on from there; a kill costs the trial that was running.

    \b
    knickpoint matrix --suite nightly --release 5.0 --dry-run
    knickpoint matrix --suite nightly --release 5.0 --minutes 90
    knickpoint matrix --experiment cassandra-sensor-write --release 5.0.2..5.0.9 --repeat 3

    Each trial becomes a point of its series, and the history has them all at the end.

    Exit codes: 0 fine, also if time ran out; 2 wrong usage; 3 something could not be measured.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    catalog = config.load_catalog(configs or config.default_root())
    session = Session(catalog, catalog.suite(suite_name), Places(data), Progress())
    grid = read_grid(session, experiments, releases, repeat)
    if dry_run:
        backfill = Backfill(session, grid, read_known(session, grid))
        click.echo("\n".join((backfill.announce(), "", *describe_grid(grid, backfill.tally))))
        return
    testbed = catalog.testbeds[session.suite.testbed]
    with hold(session.places, session.progress, [testbed], f"the matrix of suite {suite_name}"):
        backfill = Backfill(session, grid, read_known(session, grid))
        click.echo(backfill.announce())
        backfill.measure(minutes)
    session.progress.expected_s = None
    is_kept = _append(session)
    for trial in backfill.trials:
        click.echo(describe(trial))
    if left := plan_cells(grid, backfill.tally):
        about = format_duration(backfill.expect_s(left))
        again = write_command(click.get_current_context())
        click.echo(f"{_count(left)} left, about {about}; go on with:\n  {again}")
    for cell, why in backfill.lost.items():
        click.echo(f"{cell.experiment} at {cell.release.version} is not measured: {why}", err=True)
    if backfill.lost or not is_kept:
        click.get_current_context().exit(NOT_MEASURED)


@dataclass(slots=True)
class Backfill:
    """A matrix under way: what is wanted, what is there, and what could not be had."""

    session: Session
    grid: Grid
    tally: Tally
    trials: list[Trial] = field(default_factory=list)
    lost: dict[Cell, str] = field(default_factory=dict)
    """What could not be measured, with the reason."""

    def announce(self) -> str:
        """Say how many cells there are, how many of them are known, and how long the rest takes."""
        cells, left = self.grid.cells(), plan_cells(self.grid, self.tally)
        known = len(cells) - len(set(left))
        if not left:
            return f"{len(cells)} cells, all known: nothing is left to measure"
        about = format_duration(self.expect_s(left))
        return f"{len(cells)} cells, {known} known; {_count(left)} to measure, about {about}"

    def expect_s(self, cells: Sequence[Cell]) -> float:
        """Give about how long these cells take, in seconds."""
        planned = [planned_s(row.deployment) for row in self.grid.rows]
        return expect_s(self.grid, self.tally, cells, planned)

    def measure(self, minutes: float | None) -> None:
        """Measure cell after cell until all is measured or no further trial fits; hold the lock.

        Raises:
            HostUnfit: the hosts cannot carry any trial.
            UsageError: not even the first trial fits.

        """
        clock = self.session.progress.clock
        begun_s, number = clock(), 0
        while cell := next_cell(self.grid, self.tally):
            needs_s = self.expect_s([cell])
            if minutes is not None and clock() - begun_s + needs_s > 60 * minutes:
                if number:
                    return
                raise UsageError(
                    f"no trial fits into {minutes:g} minutes: {cell.experiment} takes about "
                    f"{format_duration(needs_s)}; give --minutes more"
                )
            number += 1
            left = plan_cells(self.grid, self.tally)
            self.session.progress.expect(self.expect_s(left))
            what = f"{cell.experiment} at {cell.release.version}"
            self.session.progress.heading(f"cell {number} of {number - 1 + len(left)}: {what}")
            self._measure_cell(cell)

    def _measure_cell(self, cell: Cell) -> None:
        # What a cell needs is fetched just before it: most of a large matrix may wait for another day.
        try:
            fetched = fetch_release(self.session, cell.experiment, cell.release.version)
        except ReleaseError as error:
            self._give_up(cell, str(error))
            return
        if fetched[1].source is Source.PATH:
            name = copy_variable(cell.release)
            self._give_up(cell, f"a local copy is no point of a release's series; unset {name}")
            return
        trial = measure_extra(self.session, cell.experiment, fetched)
        self.trials.append(trial)
        count_trial(self.tally, self.grid, trial)
        if trial.status is TrialStatus.COMPLETED:
            self.lost.pop(cell, None)
        else:
            self.lost[cell] = "; ".join(reason.text for reason in trial.reasons)

    def _give_up(self, cell: Cell, why: str) -> None:
        self.session.progress.tell(f"skipped: {why}")
        for each in self.grid.cells():
            if each.release == cell.release and self.tally.completed[each] < self.grid.repeat:
                self.tally.give_up(each)
                self.lost[each] = why


def read_grid(
    session: Session, experiments: Sequence[str], releases: Sequence[str], repeat: int
) -> Grid:
    """Give what is wanted of a suite: the named experiments at the named releases.

    Raises:
        UsageError: an experiment, a release or a line is unknown, an experiment is a sentinel, or all
            of the suite's are.

    """
    suite = session.suite
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
    deployments = [session.catalog.resolve(suite, find_experiment(suite, name)) for name in chosen]
    known = {
        name: registry.load(name).releases()
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
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in table)
    return (*lines, "", _LEGEND)


def write_command(context: click.Context) -> str:
    """Write the command line that was given, for somebody to give it again."""
    words = [*context.command_path.split()]
    for option in context.command.params:
        value = context.params[option.name or ""]
        if context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE:
            for each in value if isinstance(value, tuple) else (value,):
                words += [option.opts[0], f"{each:g}" if isinstance(each, float) else f"{each}"]
    return shlex.join(words)


def read_known(session: Session, grid: Grid) -> Tally:
    """Count the trials of the data directory; tell of each bundle that cannot be read."""
    return count_known(grid, _read_trials(session))


def _read_trials(session: Session) -> Iterator[Trial]:
    # The bundles are read, not the history: they are there at once, and none of them is missing.
    for place in bundle.find(session.places):
        try:
            yield bundle.read(place)[0]
        except BundleError as error:
            session.progress.tell(f"not counted: {error}")


def _append(session: Session) -> bool:
    """Append what the history lacks; tell whether all bundles are sound."""
    if not bundle.find(session.places):
        return True
    kept = append_all(session.places, session.progress.tell)
    session.progress.tell(f"history: {kept.new} trials appended, {kept.known} already there")
    for problem in kept.bad:
        click.echo(f"A bundle was refused: {problem}", err=True)
    return not kept.bad


def _count(cells: Sequence[Cell]) -> str:
    return "1 trial" if len(cells) == 1 else f"{len(cells)} trials"

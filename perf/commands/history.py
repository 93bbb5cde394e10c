"""`knickpoint history`: look into the history, ask it anything, make it new from the bundles."""

import csv
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import duckdb

from perf.commands.history_import import import_results
from perf.commands.history_lake import at, migrate
from perf.commands.history_texts import TRIALS, align, print_table
from perf.commands.options import data_option
from perf.history import bundle, retention, store
from perf.history.place import LakePlace, read_place
from perf.history.storage import file
from perf.history.storage.lake import LakeStorage
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.errors import BundleError, UsageError
from perf.model.metrics import DURATION, RESPONSE_TIME, SEND_LATENESS, SERVICE_TIME
from perf.model.results import TrialId

_COLUMNS = """
    SELECT column_name, data_type, comment FROM duckdb_columns()
    WHERE table_name = ? ORDER BY column_index
"""


@click.group()
def history() -> None:
    """Query, import, repair or move the history.

    The history is one DuckDB file, <data>/history.duckdb. The trial bundles under <data>/trials are
    the truth: the history can be thrown away and rebuilt from them at any time. Several labs can share
    one history, which <data>/history.yaml names: docs/shared-history.md.

    \b
    knickpoint history show                      all trials, and why some do not count
    knickpoint history percentile --release 5.0.9 --experiment cassandra-sensor \\
        --phase write-steady --percentile 99.9
    knickpoint history schema                    tables and columns, each with its meaning
    knickpoint history sql "SELECT version, count(*) FROM trials GROUP BY version"
    knickpoint history verify                    are all bundles whole?
    knickpoint history rebuild                   after a corrupt or older file
    knickpoint history import --format csv --system mydb results.csv
    knickpoint history prune --older-than 400      old trials in less detail
    knickpoint history at                        how a history of several labs was
    """  # noqa: D301  \b is click's mark for "do not re-wrap"


@history.command()
@click.option(
    "--drop-lost",
    is_flag=True,
    help="Also if the old history holds trials whose bundle is gone, unreadable or replaced.",
)
@data_option
def rebuild(*, drop_lost: bool, data: Path) -> None:
    """Rebuild the history from the trial bundles.

    The old file stays until the new one is whole, and is then replaced in one step; one that cannot be
    read is kept beside it. Where a new one would lack trials of the old one, the old one stays, unless
    --drop-lost is given. Bad bundles are left out and reported, all of them; the exit code is then 3.
    """
    paths = DataPaths(data)
    found = bundle.find(paths)
    if not found:
        raise UsageError(
            f"there are no trial bundles in {paths.trials} to rebuild from; name the data directory "
            "with --data, or measure first: knickpoint nightly"
        )
    result = store.rebuild(
        paths.history, found, lambda text: click.echo(text, err=True), drops_lost=drop_lost
    )
    click.echo(f"{paths.history}: rebuilt from {result.new} trial bundles")
    if result.bad:
        raise BundleError(f"{len(result.bad)} of {len(found)} bundles were left out; see above")


@history.command()
@data_option
def verify(data: Path) -> None:
    """Check that every bundle is whole.

    Reads each again, holds it against its manifest and against the history, and changes nothing. An
    append does so for the latest hundred, and for each within 28 days (56 of more than 14,000, twice
    that again beyond 28,000, and so on). The exit code is 3 if a bundle is bad or gone, which a backup
    restores.
    """
    paths = DataPaths(data)
    found = store.verify(paths, Progress().report_sometimes)
    for problem in found.bad:
        click.echo(problem)
    for trial in found.gone:
        click.echo(f"{paths.trials / trial} is gone; the history holds its trial")
    if found.unknown:
        click.echo(f"{len(found.unknown):,} bundles are not in the history yet: knickpoint append")
    whole = f"{found.bundles - len(found.bad):,} of {found.bundles:,} bundles are whole"
    if lost := len(found.bad) + len(found.gone):
        raise BundleError(f"{whole}; bad or gone, see above: {lost:,}. Restore them from a backup")
    click.echo(whole)


@history.command()
@data_option
def show(data: Path) -> None:
    """List all trials, oldest first.

    Shows night, release, experiment and status, and why a trial does not count.
    """
    with store.open_history(DataPaths(data).history, read_only=True) as opened:
        answer = opened.query(TRIALS)
    print_table(answer.columns, answer.rows)


@history.command()
@click.option("--trial", "trials", multiple=True, help="A trial by its id; may be given several times.")
@click.option("--release", help='All completed trials of this release, for example "5.0.5".')
@click.option("--experiment", help="All completed trials of this experiment.")
@click.option("--phase", help="Measured phase; needed if the trials have several.")
@click.option("--operation", help="Operation; needed if the trials have several.")
@click.option(
    "--metric",
    type=click.Choice([RESPONSE_TIME.name, SERVICE_TIME.name, SEND_LATENESS.name, DURATION.name]),
    default=RESPONSE_TIME.name,
    show_default=True,
    help="From the intended start of an operation, from its actual send, until that send; or, of an "
    "import, from where another program counted.",
)
@click.option("--iteration", type=click.IntRange(min=1), help="One iteration only.  [default: all]")
@click.option(
    "--percentile",
    "percentiles",
    type=float,
    multiple=True,
    default=(50.0, 99.0, 99.9),
    show_default=True,
    help="Percentile; may be given several times.",
)
@data_option
def percentile(
    *,
    trials: tuple[str, ...],
    release: str | None,
    experiment: str | None,
    phase: str | None,
    operation: str | None,
    metric: str,
    iteration: int | None,
    percentiles: tuple[float, ...],
    data: Path,
) -> None:
    """Compute any percentile, in milliseconds.

    The histograms of all trials are merged first; percentiles are never averaged. Only trials of one
    release, topology, testbed class, workload, config and engine can be merged. The warm-up is left
    out.

    \b
    knickpoint history percentile --trial TRIAL --phase write-steady --percentile 99.99
    knickpoint history percentile --release 5.0.9 --experiment cassandra-sensor --phase write-steady
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    if bool(trials) == bool(release or experiment):
        raise UsageError("name trials either by --trial, or by --release and --experiment")
    with store.open_history(DataPaths(data).history, read_only=True) as opened:
        chosen = tuple(map(TrialId, trials)) or opened.find_trials(
            version=release, experiment=experiment
        )
        if not chosen:
            raise UsageError(
                f"no completed trial has release {release or 'any'} and experiment "
                f"{experiment or 'any'}; see them all with: knickpoint history show"
            )
        names = opened.histogram_names(chosen, metric)
        phase, operation = _choose(names, phase, operation)
        values = [
            opened.percentile(
                chosen, phase=phase, operation=operation, kind=metric, percentile=p, iteration=iteration
            )
            for p in percentiles
        ]
    measured = "all iterations" if iteration is None else f"iteration {iteration}"
    count = "1 trial" if len(chosen) == 1 else f"{len(chosen)} trials"
    click.echo(f"{metric} of {operation} in {phase}, {measured}, {count}")
    for p, value in zip(percentiles, values, strict=True):
        click.echo(f"p{p:<8g} {value:.3f} ms")


@history.command()
@click.argument("query")
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
@data_option
def sql(query: str, *, as_csv: bool, data: Path) -> None:
    """Answer an SQL QUERY (DuckDB's dialect). The history is opened read-only.

    \b
    knickpoint history sql "SELECT version, metric, avg(value) FROM trials JOIN samples
        USING (trial_id) WHERE iteration IS NULL GROUP BY ALL ORDER BY ALL" --csv

    Tables and columns: knickpoint history schema
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    with store.open_history(DataPaths(data).history, read_only=True) as opened:
        answer = opened.query(query)
    if as_csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows([answer.columns, *answer.rows])
    else:
        print_table(answer.columns, answer.rows)


@history.command()
def schema() -> None:
    """Print the tables and columns, with their meaning."""
    with duckdb.connect(":memory:") as empty:
        empty.execute(file.schema())
        tables = empty.execute("SELECT table_name, comment FROM duckdb_tables()").fetchall()
        for table, comment in tables:
            click.echo(f"{table}: {comment}")
            for line in align(empty.execute(_COLUMNS, [table]).fetchall()):
                click.echo(f"  {line}")
            click.echo()


history.add_command(import_results)
history.add_command(migrate)
history.add_command(at)


def _choose(
    names: Sequence[tuple[str, str]], phase: str | None, operation: str | None
) -> tuple[str, str]:
    """Choose the only phase and operation that fit what was asked for."""
    fitting = [name for name in names if phase in (None, name[0]) and operation in (None, name[1])]
    if len(fitting) == 1:
        return fitting[0]
    there = ", ".join(f"--phase {name[0]} --operation {name[1]}" for name in names)
    raise UsageError(
        f"{len(fitting)} phases with operations fit, one is needed; "
        f"the histograms of these trials have: {there or 'none of this metric'}"
    )


_LEAST_DAYS = 30

_LONGEST_DAYS = 36_500


@history.command()
@click.option(
    "--older-than",
    "days",
    required=True,
    metavar="DAYS",
    type=click.IntRange(min=_LEAST_DAYS, max=_LONGEST_DAYS),
    help=f"Roll up trials that started longer ago than this; at least {_LEAST_DAYS}.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be rolled up; change nothing.")
@data_option
def prune(*, days: int, dry_run: bool, data: Path) -> None:
    """Keep old trials in less detail.

    They keep one histogram per iteration, instead of one per second.

    No percentile of an iteration, a phase or several trials changes, for they are read from merged
    histograms anyway. What old trials lose is how an iteration went second by second; pages of such
    trials say so. Trials, samples, facts and everything else stay, and so do the bundles under
    <data>/trials, from which `knickpoint history rebuild` brings the histograms per second back.

    Of a file a copy is made, which replaces the history at the end; until then both need room, and an
    interrupted prune leaves the history as it was. A history of several labs is changed some trials at
    a time; then its Parquet files are merged, its snapshots are forgotten, so that `history at` shows
    nothing of before, and the files that nothing names any more are deleted. Run again, it goes on.

    \b
    knickpoint history prune --older-than 400 --dry-run
    knickpoint history prune --older-than 400
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    path, progress = DataPaths(data).history, Progress()
    before = datetime.now(UTC) - timedelta(days=days)
    if place := read_place(path):
        _prune_lake(place, before, dry_run=dry_run)
        return
    if not path.exists():
        raise UsageError(f"there is no history at {path}; is --data the right directory?")
    with store.open_history(path, read_only=dry_run) as history:
        old = retention.find_old(history.tables, before)
    if dry_run or not old:
        outcome = "would be rolled up" if old else "nothing to roll up"
        click.echo(f"{_found(len(old), sum(old.values()), before)}: {outcome}")
        return
    size = path.stat().st_size
    done = retention.roll_up_old(path, before, progress.report_sometimes)
    click.echo(
        f"{_found(done.trials, done.before, before)}: rolled up, {done.after} are left; {path} took "
        f"{size / 1e6:,.1f} MB and takes {path.stat().st_size / 1e6:,.1f} MB now"
    )


def _prune_lake(place: LakePlace, before: datetime, *, dry_run: bool) -> None:
    storage = LakeStorage(place, read_only=dry_run)
    with store.History(storage):
        old = retention.find_old(storage.tables, before)
        if dry_run:
            outcome = "would be rolled up" if old else "nothing to roll up"
            click.echo(f"{_found(len(old), sum(old.values()), before)}: {outcome}")
            return
        size = storage.measure()
        done = retention.roll_up_lake(storage, old, Progress().report_sometimes)
        is_deleted = storage.give_up_past()
        click.echo(
            f"{_found(done.trials, done.before, before)}: rolled up, {done.after} are left; "
            f"{place.data_path} held {size / 1e6:,.1f} MB of today's history and holds "
            f"{storage.measure() / 1e6:,.1f} MB now, and no snapshot of before"
        )
        if not is_deleted:
            click.echo(
                "Others have had the history open all the time, so the files that nothing names any "
                "more are still there: run the command again to delete them"
            )


def _found(trials: int, histograms: int, before: datetime) -> str:
    return f"{_counted(trials)} from before {before:%Y-%m-%d} with {histograms} histograms"


def _counted(trials: int) -> str:
    return "1 trial" if trials == 1 else f"{trials} trials"

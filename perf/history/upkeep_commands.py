"""The commands that keep a history small: what is old is kept in less detail, and that is said."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from perf.errors import UsageError
from perf.history import retention, store
from perf.history.place import read_place
from perf.options import data_option
from perf.places import Places
from perf.progress import Progress

_LEAST_DAYS = 30
_LONGEST_DAYS = 36_500


@click.command()
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
    """Keep one histogram per iteration of old trials, instead of one per second.

    No percentile of an iteration, a phase or several trials changes, for they are read from merged
    histograms anyway. What old trials lose is how an iteration went second by second; pages of such
    trials say so. Trials, samples, facts and everything else stay, and so do the bundles under
    <data>/trials, from which `knickpoint history rebuild` brings the histograms per second back.

    A copy is made, which replaces the history at the end; until then both need room, and an interrupted
    prune leaves the history as it was.

    \b
    knickpoint history prune --older-than 400 --dry-run
    knickpoint history prune --older-than 400
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    path, progress = Places(data).history, Progress()
    if place := read_place(path):
        raise UsageError(
            f"{place.history} keeps what is removed for as long as its snapshots, so nothing would "
            "become smaller: refused. What can be done is in docs/shared-history.md"
        )
    if not path.exists():
        raise UsageError(f"there is no history at {path}; is --data the right directory?")
    before = datetime.now(UTC) - timedelta(days=days)
    with store.open_history(path, read_only=dry_run) as history:
        old = retention.find_old(history.tables, before)
    if dry_run or not old:
        outcome = "would be rolled up" if old else "nothing to roll up"
        click.echo(f"{_found(len(old), sum(old.values()), before)}: {outcome}")
        return
    size = path.stat().st_size
    done = retention.roll_up_old(path, before, progress.tell_sometimes)
    click.echo(
        f"{_found(done.trials, done.before, before)}: rolled up, {done.after} are left; {path} took "
        f"{size / 1e6:,.1f} MB and takes {path.stat().st_size / 1e6:,.1f} MB now"
    )


def _found(trials: int, histograms: int, before: datetime) -> str:
    return f"{_counted(trials)} from before {before:%Y-%m-%d} with {histograms} histograms"


def _counted(trials: int) -> str:
    return "1 trial" if trials == 1 else f"{trials} trials"

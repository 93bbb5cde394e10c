"""`knickpoint append`: keep finished trials in the history."""

from pathlib import Path

import click

from perf.commands.measure import NOT_MEASURED
from perf.commands.options import data_option
from perf.history.store import append_all
from perf.local.paths import DataPaths


@click.command()
@data_option
def append(data: Path) -> None:
    """Put measured trials into the history.

    Bundles whose ids are already in the history are skipped, so it is safe to repeat.
    Bundles are never changed or removed.
    """
    result = append_all(DataPaths(data), lambda text: click.echo(text, err=True))
    gone = f", {len(result.gone):,} without a bundle" if result.gone else ""
    click.echo(
        f"{result.new} trials appended, {result.known} already there, {len(result.bad)} refused{gone}"
    )
    if result.bad:
        click.get_current_context().exit(NOT_MEASURED)

"""The commands of a history of several labs: move one there or back, and see it as it was."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from perf.commands.history_texts import TRIALS, print_table
from perf.commands.options import data_option
from perf.history.place import lake_file, read_place
from perf.history.storage import lake, migration
from perf.history.store import History
from perf.local.paths import DataPaths
from perf.model.errors import UsageError

_SNAPSHOTS = """
    SELECT snapshot_id AS snapshot,
        strftime(snapshot_time AT TIME ZONE 'UTC', '%Y-%m-%d %H:%M:%S') AS time_utc,
        coalesce(author, '') AS lab, coalesce(commit_message, 'by DuckLake itself') AS what
    FROM ducklake_snapshots(?) ORDER BY snapshot_id
"""


@click.command()
@click.option(
    "--to",
    "target",
    type=click.Choice(["lake", "file"]),
    required=True,
    help="lake: what history.yaml names; file: history.duckdb.",
)
@data_option
def migrate(target: str, data: Path) -> None:
    """Copy the history into a shared lake, or back.

    The lake is what <data>/history.yaml names. All is copied in one transaction and compared before
    it counts; of an interrupted copy nothing counts. What is copied from stays as it is, what is
    copied into must be empty, or equal already. Once history.yaml is there every command uses the
    lake; take it away, and the file is used again.

    \b
    knickpoint history migrate --to lake
    knickpoint history migrate --to file         then move history.yaml away
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    path = DataPaths(data).history
    place = read_place(path)
    if place is None:
        raise UsageError(
            f"{lake_file(path)} is not there, and it is what names the lake: write it first, as "
            "docs/shared-history.md shows, then run the command again"
        )
    if target == "file":
        count = migration.copy_to_file(place, path)
        click.echo(
            f"{path}: {count} trials copied from {place.history}, and compared. To use it, move "
            f"{lake_file(path).name} away"
        )
        return
    if not path.exists():
        raise UsageError(
            f"there is no history file at {path} to copy; the bundles of this lab go into the lake "
            "with: knickpoint append"
        )
    count = migration.copy_to_lake(path, place)
    click.echo(
        f"{place.history}: {count} trials copied from {path}, and compared. The file is used no more, "
        "and stays as it is"
    )


@click.command()
@click.argument("when", required=False)
@click.argument("query", required=False)
@data_option
def at(when: str | None, query: str | None, data: Path) -> None:
    """Show a shared history as it was.

    Each append makes a snapshot. Without arguments they are listed; WHEN is the number of one, or a
    time in UTC. With an SQL QUERY it is answered as it was then; without, all trials are listed.

    \b
    knickpoint history at
    knickpoint history at 42
    knickpoint history at "2026-03-01 06:00" "SELECT count(*) FROM trials"
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    path = DataPaths(data).history
    place = read_place(path)
    if place is None:
        raise UsageError(
            f"the history is the file {path}, which keeps nothing of how it was before; its trials say "
            "when they were measured: knickpoint history show. To share a history with other labs, and "
            f"see it as it was, name a lake in {lake_file(path)}: docs/shared-history.md"
        )
    if when is None:
        storage = lake.LakeStorage(place, read_only=True)
        try:
            rows = storage.tables.rows(_SNAPSHOTS, [lake.NAME])
        finally:
            storage.close(is_fine=True)
        print_table(("snapshot", "time (UTC)", "lab", "what"), [tuple(row.values()) for row in rows])
        return
    with History(lake.LakeStorage(place, read_only=True, at=_read_moment(when))) as history:
        answer = history.query(query or TRIALS)
    print_table(answer.columns, answer.rows)


def _read_moment(text: str) -> str:
    """Return the number of a snapshot, or a time as DuckLake reads it."""
    if text.isdecimal():
        return text
    try:
        moment: Any = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            f"{text!r} is neither the number of a snapshot nor a time such as "
            '"2026-03-01 06:00" (UTC); see the snapshots with: knickpoint history at'
        ) from error
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S.%f}+00"

"""`knickpoint history import`: results of other programs as trials of the history."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from perf.commands.options import data_option
from perf.history.importers.formats import FORMATS
from perf.history.importers.run import PER_MS, TIMES, Naming
from perf.history.importing import NIGHTLY, Imported, import_files
from perf.local.paths import DataPaths
from perf.model.errors import UsageError

_MOMENTS = ("%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d")


@click.command("import")
@click.argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE…",
)
@click.option(
    "--format", "kind", type=click.Choice(sorted(FORMATS)), required=True, help="Format of all files."
)
@click.option("--system", help="What was measured.")
@click.option("--release", help="Its version or build.  [default: from the file]")
@click.option(
    "--line",
    help=f"Release line.  [default: from the file, else {NIGHTLY}: a moving target, ordered by time]",
)
@click.option(
    "--ordinal",
    type=click.IntRange(-(2**63) + 1, 2**63 - 1),
    help="Place of the release in its line; equal ones are ordered by time.  [default: what the file "
    "file, else 0]",
)
@click.option("--workload", help="Name of the workload.  [default: from the file]")
@click.option("--experiment", help="Name of the experiment.  [default: system and workload]")
@click.option("--testbed", help="Where it ran; never compared across.  [default: imported]")
@click.option("--config", help="Name of the system's settings.  [default: imported]")
@click.option(
    "--night", type=click.DateTime(["%Y-%m-%d"]), help="Its night.  [default: day of its start]"
)
@click.option(
    "--started-at",
    type=click.DateTime(list(_MOMENTS)),
    help="Start of the run, in UTC if it names no zone; one file only.  [default: from the file, "
    "else when it was last changed]",
)
@click.option("--times", type=click.Choice(TIMES), help="What its times are.  [default: by the format]")
@click.option(
    "--unit",
    type=click.Choice(sorted(PER_MS)),
    help="Unit of a HdrHistogram log's values.",
)
@click.option(
    "--scheduled",
    "is_news",
    is_flag=True,
    help="The results of tonight, not old ones in bulk: a change in them is news.",
)
@data_option
def import_results(
    *,
    files: tuple[Path, ...],
    kind: str,
    night: datetime | None,
    started_at: datetime | None,
    data: Path,
    **said: Any,  # noqa: ANN401  fields of Naming
) -> None:
    """Import results of other programs.

    Each run becomes a trial bundle and rows of the history. If a file has errors, all of them are
    reported and nothing is imported (exit code 2). Importing a file again adds nothing. An import
    alerts nobody, unless it is of tonight (--scheduled). Formats, with the columns of csv and json:
    docs/importing.md

    \b
    knickpoint history import --format ycsb --system cassandra --release 5.0.4 \\
        --line 5.0 --ordinal 4 run-1.txt
    knickpoint history import --format csv --system mydb results.csv
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    if started_at and len(files) > 1:
        raise UsageError("--started-at is the start of one run: import the files one by one with it")
    naming = Naming(
        night=f"{night:%Y-%m-%d}" if night else None, started_at=_in_utc(started_at), **said
    )
    imported = import_files(
        DataPaths(data),
        FORMATS[kind],
        files,
        naming=naming,
        report=lambda text: click.echo(text, err=True),
    )
    click.echo(_summary(imported, data))


def _in_utc(moment: datetime | None) -> datetime | None:
    if moment is None or moment.utcoffset() is not None:
        return moment
    return moment.replace(tzinfo=UTC)


def _summary(imported: Imported, data: Path) -> str:
    """Describe what came in and what to run next."""
    trials = "1 trial" if imported.new == 1 else f"{imported.new} trials"
    known = f" ({imported.known} known already)" if imported.known else ""
    where = "" if data == Path("var") else f" --data {data}"
    return (
        f"{trials} imported{known}, {imported.series} series\n"
        f"next: knickpoint detect{where}, knickpoint report{where}, or look with: "
        f"knickpoint history show{where}"
    )

"""The commands that measure and keep: each reads, calls, and says what happened."""

from pathlib import Path

import click

from perf import config
from perf.errors import UsageError
from perf.history.store import append_all
from perf.measuring import Session, describe, measure_night, measure_one
from perf.model import Trial, TrialStatus
from perf.options import configs_option, data_option
from perf.places import Places
from perf.progress import Progress
from perf.systems import registry

NOT_MEASURED = 3


@click.command()
@click.option(
    "--suite", "suite_name", default="quickstart", show_default=True, help="Suite to measure."
)
@click.option("--experiment", help="Measure only this experiment of the suite, once.")
@click.option("--release", help='Measure the experiment at this release, for example "5.0.9".')
@data_option
@configs_option
def measure(
    suite_name: str, experiment: str | None, release: str | None, data: Path, configs: Path | None
) -> None:
    """Measure a suite's trials, or one trial, and write a bundle for each.

    Without --experiment, the suite's night is measured: resumed if it was interrupted, else a new
    one. With --experiment and --release, one extra trial of that release is measured; the release
    need not be listed in the suite. It becomes a point of the series like any other; a trial of a
    local copy (KNICKPOINT_RELEASE_…, see `knickpoint releases --help`) is kept and shown, but is not.

    \b
    knickpoint measure --suite quickstart
    knickpoint measure --experiment cassandra-sensor-write --release 5.0.5

    How hard to measure stands in configs/ only; no option changes a number.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    if (experiment is None) != (release is None):
        raise UsageError("--experiment and --release belong together; give both or neither")
    catalog = config.load_catalog(configs or config.default_root())
    session = Session(catalog, catalog.suite(suite_name), Places(data), Progress())
    if experiment is not None and release is not None:
        trials: tuple[Trial, ...] = (measure_one(session, experiment, release),)
    else:
        trials = measure_night(session)
    for trial in trials:
        click.echo(describe(trial))
    if any(trial.status is not TrialStatus.COMPLETED for trial in trials):
        click.get_current_context().exit(NOT_MEASURED)


@click.command()
@data_option
def append(data: Path) -> None:
    """Append every trial bundle that the history does not hold yet.

    Safe to repeat: a trial is kept once, by its id. Bundles are never changed or removed.
    """
    result = append_all(Places(data), lambda text: click.echo(text, err=True))
    click.echo(f"{result.new} trials appended, {result.known} already there, {len(result.bad)} refused")
    if result.bad:
        click.get_current_context().exit(NOT_MEASURED)


@click.command()
@click.argument("system", required=False)
def releases(system: str | None) -> None:
    """List the known releases of SYSTEM by line, oldest first; without SYSTEM, all systems.

    A release comes from its official archive, or from Maven where there is one. To measure a copy of
    your own instead, set

    \b
    KNICKPOINT_RELEASE_<SYSTEM>_<VERSION>=PATH

    to a directory or a tar archive; PATH is then the only place that is looked at. The name is in
    capitals, with _ for all but letters and digits:

    \b
    KNICKPOINT_RELEASE_CASSANDRA_5_0_9=/srv/apache-cassandra-5.0.9-bin.tar.gz
    KNICKPOINT_RELEASE_MONGODB_5_0_31=/srv/mongodb-5.0.31

    Releases are kept in the user's cache directory, or in $KNICKPOINT_CACHE.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    for name in (system,) if system else registry.names():
        lines: dict[str, list[str]] = {}
        for release in registry.load(name).releases():
            lines.setdefault(release.line, []).append(release.version)
        click.echo(name)
        for line, versions in lines.items():
            click.echo(f"  {line:<6} {' '.join(versions)}")


@click.command()
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("configs/schema"),
    show_default=True,
    help="Directory to write the schemas to.",
)
def schema(output: Path) -> None:
    """Write the JSON Schemas of all configuration files, for editors to check as you type."""
    for path in config.write_schemas(output):
        click.echo(path)

"""The commands that measure and keep: each reads, calls, and says what happened."""

from pathlib import Path

import click

from perf.commands.options import configs_option, data_option
from perf.jobs.measuring import describe, measure_one, open_job
from perf.jobs.night import measure_night
from perf.model.errors import UsageError
from perf.model.results import Trial, TrialStatus

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
    job = open_job(data, configs)
    suite = job.catalog.suite(suite_name)
    if experiment is not None and release is not None:
        trials: tuple[Trial, ...] = (measure_one(job, suite, experiment, release),)
    else:
        trials = measure_night(job, suite)
    for trial in trials:
        click.echo(describe(trial))
    if any(trial.status is not TrialStatus.COMPLETED for trial in trials):
        click.get_current_context().exit(NOT_MEASURED)

"""The commands that measure and keep: each reads, calls, and says what happened."""

from pathlib import Path

import click

from perf.commands.options import configs_option, data_option, spell_command
from perf.config.catalog import Catalog
from perf.jobs.attaching import ask_running
from perf.jobs.feasible import planned_s
from perf.jobs.measuring import describe, measure_one, open_job
from perf.jobs.night import measure_night
from perf.model.design import Suite
from perf.model.errors import UsageError
from perf.model.results import Trial, TrialStatus
from perf.model.shown import format_duration

NOT_MEASURED = 3
_USUAL = "quickstart"


@click.command()
@click.option("--suite", "suite_name", help="Suite to measure, for example quickstart.")
@click.option("--experiment", help="Measure only this experiment of the suite, once.")
@click.option("--release", help='Measure the experiment at this release, for example "5.0.9".')
@click.option("--profile", is_flag=True, help="Attach a profiler: what it keeps is in the bundle.")
@data_option
@configs_option
def measure(
    *,
    suite_name: str | None,
    experiment: str | None,
    release: str | None,
    profile: bool,
    data: Path,
    configs: Path | None,
) -> None:
    """Measure a suite, or one release once more.

    Each trial becomes a bundle.

    With --suite alone, its night is measured: resumed if it was interrupted, else a new one. With
    --experiment and --release, one extra trial of that release is measured; the suite (quickstart, if
    none is named) need not list the release. It becomes a point of the series like any other; a trial
    of a local copy (KNICKPOINT_RELEASE_…, see `knickpoint releases --help`) is kept and shown, but is
    not. Nor is one with --profile, whose bundle holds the stacks of the servers by CPU time, allocated
    bytes and waits for locks, in profiles/. Without any of these, nothing is started, and what would be
    is listed.

    \b
    knickpoint measure --suite quickstart
    knickpoint measure --experiment cassandra-sensor --release 5.0.5

    How hard to measure stands in configs/ only; no option changes a number.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    if (experiment is None) != (release is None):
        raise UsageError("--experiment and --release belong together; give both or neither")
    if profile and experiment is None:
        raise UsageError("--profile is for one trial: give --experiment and --release as well")
    job = open_job(data, configs)
    suite = job.catalog.suite(suite_name or _USUAL)
    if suite_name is None and experiment is None:
        raise UsageError(
            _say_plan(
                job.catalog,
                suite,
                spell_command(click.get_current_context(), (), suite_name=suite.name),
            )
        )
    if job.catalog.testbed(suite.testbed).attached:
        job = ask_running(job, suite.name)
        suite = job.catalog.suite(suite.name)
    if experiment is not None and release is not None:
        trials: tuple[Trial, ...] = (measure_one(job, suite, experiment, release, profile=profile),)
    else:
        trials = measure_night(job, suite)
    for trial in trials:
        click.echo(describe(trial))
    if any(trial.status is not TrialStatus.COMPLETED for trial in trials):
        click.get_current_context().exit(NOT_MEASURED)


def _say_plan(catalog: Catalog, suite: Suite, command: str) -> str:
    """Return what a night of a suite measures, how long that takes, and the command that starts it."""
    each = [catalog.resolve(suite, one) for one in suite.experiments]
    needed_s = sum(planned_s(one) * len(one.experiment.versions) for one in each)
    trials = [f"  {one.name} at {', '.join(one.versions)}" for one in suite.experiments]
    said = f"nothing was started; `{command}` measures, in about {format_duration(needed_s)}:"
    return "\n".join((said, *trials))

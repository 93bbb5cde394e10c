"""The command `compare`: two sides of one experiment, interleaved on the same hosts."""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import click

from analysis.comparing.blocks import Measure
from analysis.comparing.description import describe_comparison
from analysis.comparing.results import (
    SCHEMA_VERSION,
    ComparisonFile,
    ComparisonResult,
    write_comparisons,
)
from analysis.comparing.turns import list_measures
from analysis.detection.verdict import Outcome
from analysis.orchestration.comparing import allow, run_comparison
from perf.commands.options import configs_option, data_option, spell_command
from perf.config.catalog import Catalog, find_experiment
from perf.history.store import append_all
from perf.jobs.attaching import refuse_attached
from perf.jobs.interleaving import Pairing, Side, pair_methods, take_side
from perf.jobs.measuring import open_job
from perf.local import durable
from perf.local.problems import suggest
from perf.model.design import Suite, Workload
from perf.model.errors import UsageError
from perf.model.results import TURNS, Purpose
from perf.model.rules import Detection

_EXIT_CODES = {Outcome.REGRESSED: 1, Outcome.INVALID: 3}
_NOT_KEPT = 3
_VERDICTS = """\b
Verdicts, and exit codes (2 is wrong usage or configuration):
  regressed  1  the candidate is worse: the interval excludes zero, and the change is relevant
  improved   0  it is better, by the same measures
  unchanged  0  shown to be equivalent, within the relevant change
  undecided  0  the budget ended before any of these was shown
  invalid    3  a side could not be measured
"""


@click.command(epilog=_VERDICTS)
@click.option("--suite", "suite_name", default="quickstart", show_default=True, help="Its suite.")
@click.option("--experiment", required=True, help="Experiment of the suite that both sides run.")
@click.option("--baseline", required=True, help="RELEASE, CONFIG or RELEASE/CONFIG to start from.")
@click.option("--candidate", required=True, help="The same, of the side that may have changed.")
@click.option(
    "--baseline-by",
    "program",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, resolve_path=True),
    metavar="PROGRAM",
    help="Measure the baseline with this knickpoint, of another installation.",
)
@click.option("--trials", type=click.IntRange(min=TURNS), help="Most trials, of both sides together.")
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="Most minutes of trials.")
@click.option(
    "--measure", "measures", multiple=True, help="Decide by this: PHASE/OPERATION/METRIC/STATISTIC."
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of the order of turns."
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the result here as well, as JSON, for `knickpoint comment`.",
)
@data_option
@configs_option
def compare(
    *,
    suite_name: str,
    experiment: str,
    baseline: str,
    candidate: str,
    program: Path | None,
    trials: int | None,
    minutes: float | None,
    measures: tuple[str, ...],
    seed: int,
    output: Path | None,
    data: Path,
    configs: Path | None,
) -> None:
    """Compare two releases or configs, interleaved.

    Both sides run on the same hosts.

    Trials take turns in blocks of four (baseline, candidate, candidate, baseline, or the other way
    round), each on a fresh deployment, so that a host that grows slower meanwhile harms both sides
    alike. After each block a sequential rule decides whether another one is worth it.

    \b
    … --experiment cassandra-sensor --baseline 5.0.0 --candidate 5.0.9
    … --experiment cassandra-sensor --baseline default --candidate sentinel
    … --experiment cassandra-sensor --baseline 5.0.8/default --candidate 5.0.9/sentinel

    A side that names no release runs the newest one of the experiment; one that names no config runs
    the experiment's own. The verdict rests on the trusted measures (comparison.trusted in
    detection.yaml, or --measure).

    With --baseline-by, one release that two versions of Knickpoint measure shows what the change of
    method did: the old one stays installed until then. It measures by its own `knickpoint measure`.

    The interval holds although it is looked at after each block. The same command resumes what was
    interrupted.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    job = open_job(data, configs)
    suite, settings = job.catalog.suite(suite_name), job.catalog.detection
    before, after = (_read_side(job.catalog, suite, experiment, each) for each in (baseline, candidate))
    pairing = _pair(suite, before, after, seed, program)
    result = run_comparison(
        job,
        pairing,
        allow(settings, trials, minutes),
        trusted=_read_measures(measures, before.deployment.workload, settings),
        # A page shows it, and no path of this machine.
        reproduce=spell_command(
            click.get_current_context(), **({"program": "PROGRAM"} if program else {})
        ),
    )
    # Said and written first: a history that cannot take the trials must not cost the verdict.
    for line in describe_comparison(result):
        click.echo(line)
    if output is not None:
        _write(output, result)
    kept = append_all(job.paths, lambda text: click.echo(text, err=True))
    code = _EXIT_CODES.get(result.outcome, 0)
    click.get_current_context().exit(code or (_NOT_KEPT if kept.bad else 0))


def _write(output: Path, result: ComparisonResult) -> None:
    content = ComparisonFile(
        schema_version=SCHEMA_VERSION,
        created_at=result.finished_at,
        knickpoint=version("knickpoint"),
        comparisons=(result,),
    )
    durable.atomic_write(output, write_comparisons(content))


def _pair(suite: Suite, baseline: Side, candidate: Side, seed: int, program: Path | None) -> Pairing:
    pairing = Pairing(
        purpose=Purpose.COMPARISON,
        suite=suite.name,
        baseline=baseline,
        candidate=candidate,
        seed=seed,
    )
    if program is not None:
        experiment = baseline.deployment.experiment
        own = find_experiment(suite, experiment.name).config
        if experiment.config != own:
            raise UsageError(
                f"--baseline-by: another installation measures {experiment.name} with its own config,"
                f" {own}, not with {experiment.config}; give --baseline a release alone"
            )
        return pair_methods(pairing, program)
    is_same = baseline.version == candidate.version
    if is_same and baseline.deployment.config == candidate.deployment.config:
        click.echo("Both sides are the same: whatever differs is noise.", err=True)
    return pairing


def _read_side(catalog: Catalog, suite: Suite, experiment: str, text: str) -> Side:
    """Read RELEASE, CONFIG or RELEASE/CONFIG."""
    refuse_attached(catalog.testbed(suite.testbed))
    found = find_experiment(suite, experiment)
    known = [release.version for release in catalog.releases(found.system)]
    newest = catalog.newest(found.system, found.versions)
    configs = catalog.systems[found.system]
    release, slash, chosen = text.partition("/")
    if slash:
        return take_side(catalog, suite, experiment, release, chosen)
    if text in known:
        return take_side(catalog, suite, experiment, text)
    if text in configs:
        return take_side(catalog, suite, experiment, newest, text)
    raise UsageError(
        f"{text!r} is neither a release nor a config of {found.system};"
        f" {suggest(text, (*known, *configs))}"
    )


def _read_measures(texts: Sequence[str], workload: Workload, settings: Detection) -> list[Measure]:
    known = {str(measure): measure for measure in list_measures(workload, settings)}
    unknown = [f"--measure {text}: {suggest(text, known)}" for text in texts if text not in known]
    if unknown:
        raise UsageError("\n".join(unknown))
    return [known[text] for text in texts]

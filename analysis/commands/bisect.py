"""The command `bisect`: it finds the release that brought a change."""

import shlex
from dataclasses import replace
from datetime import UTC, datetime
from math import ceil, log2
from pathlib import Path

import click

from analysis.bisecting.bisection import LEAST
from analysis.bisecting.description import describe_bisection, is_inconclusive, is_regression
from analysis.bisecting.record import BisectionRecord, write_bisection
from analysis.comparing.blocks import Measure
from analysis.comparing.turns import choose_trusted, list_measures
from analysis.detection import words
from analysis.detection.detection import ChangePoint
from analysis.judging.incidents import name_incident
from analysis.judging.judgement import Judgement
from analysis.judging.remeasurement import measure_of
from analysis.orchestration.bisecting import BisectionQuestion, releases_between, run_bisection
from analysis.orchestration.comparing import Budget, allow
from analysis.orchestration.judging import judge_history
from perf.commands.options import configs_option, data_option
from perf.config.catalog import Catalog, find_experiment, find_experiment_of
from perf.history.store import append_all
from perf.jobs.measuring import Job, open_job
from perf.local import durable
from perf.local.problems import suggest
from perf.model.design import Suite, Workload
from perf.model.errors import UsageError
from perf.model.rules import Detection

_REGRESSION_FOUND, _INCONCLUSIVE = 1, 3
_DEFAULT_SUITE = "quickstart"
_FORMS = (
    "knickpoint bisect SYSTEM FIRST..LAST --experiment E --metric M, or knickpoint bisect --change ID"
)


@click.command()
@click.argument("system", required=False)
@click.argument("span", metavar="[FIRST..LAST]", required=False)
@click.option("--experiment", help="Experiment of the suite that the releases run.")
@click.option("--metric", help="METRIC, METRIC/STATISTIC or PHASE/OPERATION/METRIC/STATISTIC.")
@click.option(
    "--change", "change_id", metavar="ID", help="An incident of the report, instead of all the above."
)
@click.option(
    "--suite",
    "suite_name",
    help=f"Its suite.  [default: {_DEFAULT_SUITE}; with --change, the one that measured it]",
)
@click.option(
    "--trials", type=click.IntRange(min=LEAST), help="Most trials to measure, all probes together."
)
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="Most minutes of trials.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the result here as well, as JSON.",
)
@data_option
@configs_option
def bisect(
    *,
    system: str | None,
    span: str | None,
    experiment: str | None,
    metric: str | None,
    change_id: str | None,
    suite_name: str | None,
    trials: int | None,
    minutes: float | None,
    output: Path | None,
    data: Path,
    configs: Path | None,
) -> None:
    """Find the release that brought a change.

    FIRST is known good, LAST known bad. Releases are measured interleaved with FIRST, LAST first: if
    the ends do not differ, there is nothing to look for. Every other probe is read by that
    difference, by a low and a high threshold; between them it gets more trials. Earlier trials count.

    \b
    knickpoint bisect cassandra 5.0.2..5.0.9 --experiment cassandra-sensor \\
        --metric write-steady/write/response_time/p99
    knickpoint bisect --change 3f9a1c20

    --metric throughput is enough where only one phase is judged by it. ID is that of an incident in
    the report or in `knickpoint detect`, or of one of its changes: its series says the rest.

    A release that does not install or start is skipped, and the answer says so. Several changes, a
    gradual one and an improvement are distinguished. The budget ends it with what is known: the range,
    a probability for each release, the cost to finish. Without --trials and --minutes it is what each
    probe of a binary search may take at most (comparison.trials and .minutes in detection.yaml).

    Each probe is saved at once. Interrupted or killed, the same command goes on where it was.

    Exit codes: 0 nothing changed, or a release made it better; 1 it became worse, in one step or more;
    2 wrong usage or configuration; 3 no answer, or nothing measured; 130 interrupted.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    job = open_job(data, configs)
    catalog = job.catalog
    if change_id is not None:
        if any((system, span, experiment, metric)):
            raise UsageError(f"--change says it all; write either {_FORMS}")
        judgement = judge_history(job.paths, catalog, datetime.now(UTC).date())
        asked = read_change(find_change(judgement, change_id), catalog, suite_name)
    elif system and span and experiment and metric:
        suite = catalog.suite(suite_name or _DEFAULT_SUITE)
        asked = _read_span(catalog, suite, system, span, experiment=experiment, metric=metric)
    else:
        raise UsageError(f"something is missing; write {_FORMS}")
    question = replace(asked, trials=trials, minutes=minutes)
    budget = allow(catalog.detection, trials, minutes, times=_count_probes(question))
    job.progress.report(_announce(question, budget))
    try:
        record = run_bisection(job, question, budget)
    except KeyboardInterrupt:
        where = shlex.join(("--data", str(data), *(("--configs", str(configs)) if configs else ())))
        click.echo(f"each finished probe is saved; go on with:\n  {question.command} {where}", err=True)
        raise
    _report(record, job, output)


def _report(record: BisectionRecord, job: Job, output: Path | None) -> None:
    job.progress.expected_s = None
    if job.paths.trials.is_dir():
        append_all(job.paths, job.progress.report)
    if output is not None:
        durable.atomic_write(output, write_bisection(record))
    for line in describe_bisection(record):
        click.echo(line)
    if is_regression(record):
        click.get_current_context().exit(_REGRESSION_FOUND)
    if is_inconclusive(record):
        click.get_current_context().exit(_INCONCLUSIVE)


def _read_span(
    catalog: Catalog, suite: Suite, system: str, span: str, *, experiment: str, metric: str
) -> BisectionQuestion:
    found = find_experiment(suite, experiment)
    if found.system != system:
        raise UsageError(f"experiment {experiment} measures {found.system}, not {system}")
    first, dots, last = span.partition("..")
    if not (first and dots and last):
        raise UsageError(f"{span!r} is no range of releases; write FIRST..LAST, such as 5.0.2..5.0.9")
    releases = releases_between(catalog.releases(system), system, first, last)
    workload = catalog.resolve(suite, found).workload
    measure = choose_measure(metric, workload, catalog.detection)
    return BisectionQuestion(suite=suite, experiment=found, measure=measure, releases=releases)


def choose_measure(text: str, workload: Workload, settings: Detection) -> Measure:
    """Read METRIC, METRIC/STATISTIC or PHASE/OPERATION/METRIC/STATISTIC.

    Of several that fit, the one on which verdicts rest (`comparison.trusted`) is meant.

    Raises:
        UsageError: none fits, or several do.

    """
    known = list_measures(workload, settings)
    fitting = [measure for measure in known if text in _spellings(measure)]
    trusted = [measure for measure in choose_trusted(workload, settings) if measure in fitting]
    for found in (fitting, trusted):
        if len(found) == 1:
            return found[0]
    listed = "".join(f"\n  {measure}" for measure in fitting or known)
    if fitting:
        raise UsageError(f"--metric {text} may be any of these; write one in full:{listed}")
    raise UsageError(f"--metric {text}: workload {workload.name} has no such measure; it has:{listed}")


def _spellings(measure: Measure) -> tuple[str, str, str]:
    return measure.metric, f"{measure.metric}/{measure.statistic}", str(measure)


def find_change(judgement: Judgement, name: str) -> ChangePoint:
    """Find a change by the name of its incident, which stands for the lead, or by its own.

    Raises:
        UsageError: there is none, or it lies within one release.

    """
    leads = {incident.name: incident.lead for incident in judgement.incidents}
    changes = {
        name_incident(change): change
        for incident in judgement.incidents
        for change in (*incident.changes, *incident.fixed_by)
    }
    found = leads.get(name) or changes.get(name)
    if found is None:
        hint = suggest(name, leads) if leads else "the history has no incident at all"
        raise UsageError(f"there is no incident {name!r}; {hint}. See: knickpoint detect")
    if found.last_before.release == found.first_after.release:
        raise UsageError(
            f"change {name} lies {words.place(found)}: no other release was measured there, so there is"
            " nothing to bisect; look at the hosts and the configuration first (its page lists what"
            " changed there)"
        )
    return found


def read_change(change: ChangePoint, catalog: Catalog, suite_name: str | None) -> BisectionQuestion:
    """Return what a change asks about the releases on both sides of it, as configured today.

    Raises:
        UsageError: no experiment measures its series any more.

    """
    key = change.series.key
    suites = [catalog.suite(suite_name)] if suite_name else list(catalog.suites.values())
    if key.host:
        raise UsageError(f"the change is one of host {key.host} alone; bisect a measure of the whole")
    for suite in suites:
        if experiment := find_experiment_of(catalog, suite, key):
            return BisectionQuestion(
                suite=suite,
                experiment=experiment,
                measure=measure_of(key),
                releases=releases_between(
                    catalog.releases(key.system),
                    key.system,
                    change.last_before.release.version,
                    change.first_after.release.version,
                ),
            )
    where = f"suite {suite_name}" if suite_name else "any suite"
    raise UsageError(
        f"no experiment of {where} measures the series of this change any more ({words.series(key)});"
        " its configuration was edited since. Bisect an experiment of today instead:"
        " knickpoint bisect SYSTEM FIRST..LAST --experiment E --metric M"
    )


def _count_probes(asked: BisectionQuestion) -> int:
    """Describe how many probes a binary search takes, the one of the bad end included."""
    return 1 + ceil(log2(len(asked.releases) - 1))


def _announce(asked: BisectionQuestion, budget: Budget) -> str:
    between = len(asked.releases) - 2
    ends = f"between {asked.first} and {asked.last}"
    inside = words.counted(between, "release lies", "releases lie")
    said = (
        f"{inside} {ends}"
        if between
        else f"no release lies {ends}: this is a plain comparison of the two, as `compare` makes them"
    )
    return f"{said}; at most {budget.trials} trials and {budget.minutes:g} minutes"

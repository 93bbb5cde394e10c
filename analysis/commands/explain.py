"""The command `explain`: which code made two sides differ, by profiles of both."""

from datetime import UTC, datetime
from pathlib import Path

import click

from analysis.commands.bisect import find_change, read_change
from analysis.comparing.description import describe_profiles
from analysis.orchestration.bisecting import read_bisections
from analysis.orchestration.comparing import read_results
from analysis.orchestration.explaining import explain as measure_profiles
from analysis.orchestration.explaining import pair_again, pair_culprit
from analysis.orchestration.judging import judge_history
from perf.commands.options import configs_option, data_option
from perf.history.store import append_all
from perf.jobs.interleaving import Pairing, take_side
from perf.jobs.measuring import Job, open_job
from perf.model.results import Purpose

_NOTHING_COMPARED = 3


@click.command()
@click.argument("name")
@data_option
@configs_option
def explain(name: str, data: Path, configs: Path | None) -> None:
    """Show which code made two sides differ.

    NAME is that of a comparison (cmp-…), of a bisection that named a release (bis-…), or of an
    incident or one of its changes, as pages and `knickpoint detect` give it. Eight more trials are
    measured, interleaved, with a profiler attached to each server. What CPU time and allocations cost
    per operation is divided among the code that caused it, and what moved more than its noise is
    listed, most first: by method, with the interval of the difference, and how much of it is the
    method's own. `knickpoint report` makes a page of it, with a flame graph of the difference.

    \b
    knickpoint explain cmp-2026-11-26-1
    knickpoint explain bis-2026-11-26-1
    knickpoint explain 3f9a1c20

    These trials enter no series and no verdict: a profiler costs the server something. It is
    async-profiler, for servers that run on Java (Cassandra, CrateDB); others have no profile yet. The
    same command goes on where it was interrupted. Exit codes: 0 compared, 3 no two profiles of each
    side.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    job = open_job(data, configs)
    found = measure_profiles(job, _find_pairing(job, name))
    for line in describe_profiles(found):
        click.echo(line)
    append_all(job.paths, job.progress.report)
    if not found.differences:
        click.get_current_context().exit(_NOTHING_COMPARED)


def _find_pairing(job: Job, name: str) -> Pairing:
    """Return both sides of a comparison, of what a bisection found, or of a change.

    Raises:
        UsageError: there is none of them, or it is not configured as it was any more.

    """
    if result := next((one for one in read_results(job.paths) if one.id == name), None):
        return pair_again(job, result)
    if record := next((one for one in read_bisections(job.paths) if one.id == name), None):
        return pair_culprit(job, record)
    judgement = judge_history(job.paths, job.catalog, datetime.now(UTC).date())
    asked = read_change(find_change(judgement, name), job.catalog, None)
    first, last = (
        take_side(job.catalog, asked.suite, asked.experiment.name, version)
        for version in (asked.first, asked.last)
    )
    return Pairing(purpose=Purpose.COMPARISON, suite=asked.suite.name, baseline=first, candidate=last)

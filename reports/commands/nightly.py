"""The main job in one command: measure, keep, judge, make sure, tell. It may import all the rest."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from analysis.comparing.description import describe_releases
from analysis.comparing.results import ComparisonResult
from analysis.detection.verdict import Outcome
from analysis.judging.description import describe_hint, say_judgement
from analysis.orchestration.comparing import read_results
from analysis.orchestration.follow_up import (
    CurrentNight,
    FollowedUp,
    bisect,
    compare_methods,
    compare_releases,
    confirm,
    explain_regressions,
    profile_releases,
)
from perf.commands.options import configs_option, data_option
from perf.history.store import open_history, replace_damaged
from perf.jobs.attaching import ask_running
from perf.jobs.holding import hold
from perf.jobs.measuring import FetchedAll, Job, ask_sources, describe, keep, open_job
from perf.jobs.night import fetch_suite, finish_night, measure_night, read_nights, will_resume
from perf.jobs.other_knickpoint import ask_version
from perf.local.paths import DataPaths
from perf.model.design import Suite
from perf.model.errors import DamagedHistory
from perf.model.results import Trial, TrialStatus
from perf.trial.spent import describe_spent
from reports.commands.options import site_url_option
from reports.commands.report import SITE_URL_HELP
from reports.pages.report import write_report
from reports.site.context import JudgedHistory, judge_state
from reports.site.writing import check_target
from reports.wording.incidents import list_news

REGRESSION_FOUND = 1
NOT_MEASURED = 3
_MOST_HINTS = 5
"""The site has all."""


@click.command()
@click.option("--suite", "suite_name", default="quickstart", show_default=True, help="Suite to run.")
@click.option(
    "--before",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, resolve_path=True),
    metavar="PROGRAM",
    help="The knickpoint of the version before, to compare how both measure.",
)
@data_option
@configs_option
@site_url_option(SITE_URL_HELP)
def nightly(
    suite_name: str, before: Path | None, data: Path, configs: Path | None, site_url: str
) -> None:
    """Measure, append, judge and report: the whole job.

    Where the suite chooses releases by a rule, as `5.0: newest`, the sources under configs/sources/
    are asked first. A release that no night had is measured first.

    \b
    compare_minutes     so long the night measures the first and the last release of each experiment
                        interleaved; nights before it count as well, so that each night says more. A
                        release that is new is compared with the one before it, first of all.
    remeasure_minutes   so long the night measures its suspected changes again, interleaved, before
                        it reports them, the most relevant first: that confirms or rules them out.
    bisect: auto        a confirmed change between two releases that has unmeasured ones inside is
                        traced to the release that brought it, for at most bisect_minutes.
    explain_minutes     so long it profiles both sides of what became worse, to name the code.
    hint_minutes        so long it profiles each release once more: code that costs more each night than
                        it did is a hint, also where throughput shows nothing.

    These are settings of the suite; without them it does none of it. Skipped follow-ups are listed with
    the command to run them.

    Where Knickpoint itself measures otherwise than on the night before, the night says so; with
    --before, one release of each system is measured interleaved by both versions.

    An interrupted night is resumed, also while it makes sure: trials that were finished are kept and
    not repeated. Once a night has been reported, the next run starts a new one.

    Exit codes: 0 fine, 1 a regression is confirmed, 2 wrong usage or configuration, 3 a trial of this
    night failed or was invalid, a bundle was refused, or a change could not be measured again.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    began_at, job = datetime.now(UTC), open_job(data, configs)
    paths, suite = job.paths, job.catalog.suite(suite_name)
    _check_usable(job, before)
    job = _ask_releases(job, suite)
    suite = job.catalog.suite(suite_name)
    bad: dict[str, None] = {}
    fetched = fetch_suite(job, suite)
    testbed = job.catalog.testbed(suite.testbed)
    # From the first trial until all is reported: nobody else measures beside a report, which takes all
    # cores, nor takes a night that is just being reported for one to be resumed.
    with hold(paths, job.progress, [testbed], f"the nightly of suite {suite_name}"):
        done = _measure(job, suite, fetched, bad, before)
        judged = done.judged
        index = write_report(
            paths, job.catalog, datetime.now(UTC), judged=judged, summarizes=True, site_url=site_url
        )
        _report(done)
        _report_time(began_at, done, paths)
        click.echo(f"Site:    {index}")
        for problem in bad:
            click.echo(f"A bundle was refused: {problem}", err=True)
        finish_night(paths, done.night)
    context = click.get_current_context()
    if judged.judgement.outcome is Outcome.REGRESSED:
        context.exit(REGRESSION_FOUND)
    is_unmeasured = any(trial.status is not TrialStatus.COMPLETED for trial in done.trials)
    if is_unmeasured or bad or any(followed.failed for _, followed in done.follow_ups):
        context.exit(NOT_MEASURED)


def _ask_releases(job: Job, suite: Suite) -> Job:
    """Ask what an attached cluster runs, or sources for new releases, unless a night goes on."""
    if job.catalog.testbed(suite.testbed).attached:
        return ask_running(job, suite.name)
    if will_resume(job, suite):
        return job
    return ask_sources(job, job.catalog.ruled_systems(suite))


def _check_usable(job: Job, before: Path | None) -> None:
    """Refuse what cannot be used before an hour of measuring, not after it."""
    if before is not None:
        ask_version(before)
    try:
        with open_history(job.paths.history):
            pass
    except DamagedHistory as damaged:
        replace_damaged(job.paths, damaged, job.progress.report)
    read_results(job.paths)
    check_target(job.paths.site)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Night:
    """What a night came to; each kind of follow-up stands with what it is called and what it was."""

    night: str
    trials: tuple[Trial, ...]
    judged: JudgedHistory
    compared: tuple[ComparisonResult, ...]
    follow_ups: tuple[tuple[str, FollowedUp], ...]


def _measure(
    job: Job, suite: Suite, fetched: FetchedAll, bad: dict[str, None], before: Path | None
) -> _Night:
    """Measure the night, compare its releases and follow up what it found.

    It is judged again only where something was measured since.
    """
    trials = measure_night(job, suite, fetched, is_to_be_reported=True)
    night = read_nights(job.paths)[-1]
    tonight = CurrentNight(job=job, suite=suite, night=night, trials=trials)
    releases, compared = compare_releases(tonight)
    hinted = profile_releases(tonight)
    judged = _keep_and_judge(job, bad)
    again = confirm(judged.judgement.suspects, tonight)
    if again.has_measured:
        judged = _keep_and_judge(job, bad)
    traced = bisect(judged.judgement.suspects, tonight)
    if traced.has_measured:
        judged = _keep_and_judge(job, bad)
    profiled = explain_regressions(judged.judgement.suspects, tonight)
    if profiled.has_measured:
        judged = _keep_and_judge(job, bad)
    methods = compare_methods(judged.heads, tonight, before)
    if methods.has_measured:
        judged = _keep_and_judge(job, bad)
    follow_ups = (
        ("Method", methods),
        ("Releases", releases),
        ("Side by side", again),
        ("Bisection", traced),
        ("Profiles", profiled),
        ("Hints", hinted),
    )
    return _Night(
        night=night.id, trials=trials, judged=judged, compared=compared, follow_ups=follow_ups
    )


def _keep_and_judge(job: Job, bad: dict[str, None]) -> JudgedHistory:
    """Append what was measured, noting in `bad` what was refused, and judge all there is.

    Some damage shows itself only where it is read.
    """
    progress = job.progress
    progress.expected_s = None
    progress.heading("keep, judge")

    def attempt() -> JudgedHistory:
        bad.update(dict.fromkeys(keep(job).bad))
        return judge_state(job.paths, job.catalog, datetime.now(UTC).date())

    try:
        judged = attempt()
    except DamagedHistory as problem:
        replace_damaged(job.paths, problem, progress.report)
        judged = attempt()
    progress.report(f"judged {len(judged.judgement.series)} series")
    return judged


def _report(done: _Night) -> None:
    judgement = done.judged.judgement
    _report_trials(done.trials)
    # A workflow reads the line of the verdict, so there is one in each night.
    compared = [list(describe_releases(result)) for result in done.compared]
    trend = say_judgement(judgement)
    click.echo(f"\nVerdict: {'; '.join(lines[0] for lines in compared) or trend}")
    for conclusion, *measures in compared:
        for line in (*([conclusion] if len(compared) > 1 else ()), *measures):
            click.echo(line)
    if compared:
        click.echo(f"Trend:   {trend}")
    for title, followed in done.follow_ups:
        for said in followed.found:
            click.echo(f"{title}: {said}")
        for said in followed.left_out:
            click.echo(f"{title}, skipped: {said}")
    for hint in judgement.hints[:_MOST_HINTS]:
        click.echo(f"Hint: {describe_hint(hint)}")
    by_id = {head.id: head for head in done.judged.heads}
    for line in list_news(judgement.incidents, by_id, done.judged.settings):
        click.echo(line)
    _report_failures(done)


def _report_trials(trials: Sequence[Trial]) -> None:
    click.echo()
    for trial in trials:
        click.echo(describe(trial))


def _report_time(began_at: datetime, done: _Night, paths: DataPaths) -> None:
    """Report where the time went since then: in all trials measured here, and between them."""
    since = [head.id for head in done.judged.heads if head.started_at >= began_at]
    # Several labs may share a history.
    own = [one for one in since if (paths.trials / one).exists()]
    with open_history(paths.history, read_only=True) as history:
        trials = history.trials(own)
    if spent := describe_spent(trials, (datetime.now(UTC) - began_at).total_seconds()):
        click.echo(f"Time:    {spent}")


def _report_failures(done: _Night) -> None:
    unmeasured = sum(trial.status is not TrialStatus.COMPLETED for trial in done.trials)
    if unmeasured:
        click.echo(
            f"{unmeasured} of {len(done.trials)} trials could not be measured; see above", err=True
        )
    for title, followed in done.follow_ups:
        for said in followed.failed:
            click.echo(f"{title}, could not be measured: {said}", err=True)

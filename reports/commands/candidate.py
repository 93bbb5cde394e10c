"""The command of pull requests: what a change of configs/ does, measured side by side with its base."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import click

from analysis.comparing.results import (
    MOST_BYTES,
    ComparisonFile,
    read_comparisons,
    write_comparisons,
)
from analysis.detection import words
from analysis.detection.verdict import Outcome
from analysis.orchestration.candidate import (
    Allowance,
    CandidatePlan,
    Planned,
    plan_builds,
    plan_candidate,
    record_candidate,
    run_candidate,
    share_out,
)
from analysis.orchestration.comparing import cut
from perf.commands.options import data_option, spell_command
from perf.config.catalog import Catalog, load_catalog
from perf.config.difference import ConfigDifference, compare_catalogs
from perf.config.revisions import (
    SHORT,
    RevisionRange,
    find_repository,
    find_span,
    load_base_tip,
    load_revisions,
)
from perf.history.store import open_history
from perf.jobs.measuring import Job, keep
from perf.local import durable
from perf.local.paths import DataPaths
from perf.local.plain_files import read_plain
from perf.local.progress import Progress
from perf.model.errors import BundleError, HistoryError, InputError, UsageError
from perf.model.results import TURNS
from perf.model.shown import format_duration, printable
from perf.releases.asking import read_found
from perf.releases.building import take_build
from reports.commands.options import site_url_option
from reports.pull_requests.comment import render_comment
from reports.wording.summary import headline

_REGRESSION_FOUND, _NOT_MEASURED = 1, 3
_MOST_SHOWN = 50
"""Changed settings of one experiment; those of a hostile one would fill the log of a job."""
_OF_THE_PLACE = ("data", "output", "site_url")
_ASKED = (
    "give either --base and --head, two revisions of this repository, or --build and --against, two"
    " builds of the database"
)
_USUAL = "quickstart"
COMPARISON, COMMENT = "comparison.json", "comment.md"


@click.command()
@click.option("--base", metavar="REF", help="Where the change is to go: main.")
@click.option("--head", metavar="REF", help="The change: a branch, a tag, a commit.")
@click.option(
    "--build", metavar="BUILD", help="Instead: a build of the database, an archive or a commit."
)
@click.option("--against", metavar="BUILD", help="What the build is compared with: a release, a build.")
@click.option("--commit", metavar="SHA", help="The commit that an archive is a build of.")
@click.option(
    "--suite",
    "suites",
    multiple=True,
    help="Only this; repeatable.  [default: all; of builds quickstart]",
)
@click.option("--testbed", default="local", show_default=True, help="Measure what runs on this one.")
@click.option(
    "--release", default="", help="Measure this one.  [default: the newest an experiment lists]"
)
@click.option("--trials", type=click.IntRange(min=TURNS), help="Most trials, of all together.")
@click.option(
    "--minutes", type=click.FloatRange(min=0, min_open=True), help="Most minutes of trials, of all."
)
@click.option("--attribute", is_flag=True, help="Of several changed knobs, leave out one at a time.")
@click.option("--dry-run", is_flag=True, help="Say what would be measured, and measure nothing.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory of comparison.json and comment.md.  [default: candidate/ in the data directory]",
)
@site_url_option(
    "Where `knickpoint report` puts its pages: comment.md links the one of each comparison."
)
@click.option(
    "--configs",
    default="configs",
    show_default=True,
    metavar="DIRECTORY",
    help="Configuration directory, from the root of the repository on.",
)
@data_option
def candidate(
    *,
    base: str,
    head: str,
    build: str,
    against: str,
    commit: str,
    suites: tuple[str, ...],
    testbed: str,
    release: str,
    trials: int | None,
    minutes: float | None,
    attribute: bool,
    dry_run: bool,
    output: Path | None,
    site_url: str,
    configs: str,
    data: Path,
) -> None:
    """Measure what a change under configs/ does.

    Or, with --build and --against, what a build of the database does.

    Reads the configuration at two revisions of this git repository, finds the experiments that
    measure something different, prints which and how long, and measures base and head interleaved.

    \b
    knickpoint candidate --base main --head my-branch --dry-run    what would be measured
    knickpoint candidate --base main --head my-branch              measure it
    knickpoint candidate --base main --head my-branch --attribute  and which knob did it
    knickpoint candidate --build head.tar.gz --against 5.0.9       two builds, configured alike

    As on a pull request, base is where head parted from it (the merge base). The work tree is not
    touched, and only files are taken from the revisions, never code. A comment, a rename or another
    list of releases changes nothing; an edit of a shared file touches all that use it. What differs in
    its workload, topology or testbed is listed, not measured: it begins a new series.

    Interrupted, the same command goes on from there. Exit codes: 0 nothing regressed, 1 regressed,
    2 wrong usage, or a configuration is wrong at a revision, 3 something could not be measured.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    given = _Given(base, head, build, against, commit, release)
    plan, before, asked = _plan(given, configs, testbed, suites=suites, data=data)
    allowed = share_out(plan, before.detection, trials, minutes)
    for line in describe_plan(plan, allowed, testbed):
        click.echo(line)
    if dry_run:
        return
    context, target = click.get_current_context(), output or data / "candidate"
    save = partial(write_content, target, site_url=site_url)
    spelled = spell_command(context, _OF_THE_PLACE, **asked)
    run = partial(run_candidate, plan=plan, allowed=allowed, save=save, attributes=attribute)
    run = partial(run, reported=_find_reported(target), reproduce=spelled)
    content = _measure(Job(before, DataPaths(data), Progress()), plan, run)
    save(content)
    for line in describe_content(content):
        click.echo(line)
    click.echo(f"Files:   {target / COMPARISON}, {target / COMMENT}")
    context.exit(_exit_code(content))


def _compare_revisions(
    base: str,
    head: str,
    configs: str,
    testbed: str,
    *,
    suites: tuple[str, ...],
    data: Path,
) -> tuple[RevisionRange, Catalog, ConfigDifference]:
    """Return the revisions, the configuration at base, and what differs.

    Testbeds, rules and sources of builds are those of base's tip: a change must not loosen those that
    judge it, nor choose an older commit that had looser ones, nor name a program that the lab runs.
    What sources have offered so far is in `data`. A head that base contains is refused: that nothing
    differs would look like a success.
    """
    offered = read_found(DataPaths(data).found_releases)
    repository = find_repository(Path())
    span = find_span(repository, base, head)
    if span.merge_base == span.head_tip:
        raise UsageError(
            f"{span.head} is contained in {span.base}: there is nothing new to measure; --head names"
            " the commit that is to go there"
        )
    before, after = load_revisions(repository, span, configs, offered)
    found = compare_catalogs(before, after, testbed=testbed, suites=suites)
    today = load_base_tip(repository, span, configs, offered)
    rules = replace(
        before,
        testbeds=today.testbeds,
        detection=today.detection,
        sources=today.sources,
        root=repository / configs,
    )
    return span, rules, found


@dataclass(frozen=True, slots=True)
class _Given:
    """What the two sides are: revisions, or builds."""

    base: str
    head: str
    build: str
    against: str
    commit: str
    release: str


def _plan(
    given: _Given, configs: str, testbed: str, *, suites: tuple[str, ...], data: Path
) -> tuple[CandidatePlan, Catalog, dict[str, str]]:
    """Return what is to be measured, by which configuration, and the revisions by hash: they move."""
    by_revision, by_build = (given.base, given.head), (given.build, given.against)
    if all(by_build) and not any((*by_revision, given.release)):
        return *_plan_builds(given, configs, suites=suites, data=data), {}
    if all(by_revision) and not any((*by_build, given.commit)):
        span, before, found = _compare_revisions(
            *by_revision, configs, testbed, suites=suites, data=data
        )
        plan = plan_candidate(found, span, before, testbed, given.release)
        return plan, before, {"base": span.base_tip, "head": span.head_tip}
    raise UsageError(_ASKED)


def _plan_builds(
    given: _Given, configs: str, *, suites: tuple[str, ...], data: Path
) -> tuple[CandidatePlan, Catalog]:
    """Return the comparison of two builds, and the configuration that knows them."""
    catalog = load_catalog(Path(configs), read_found(DataPaths(data).found_releases))
    chosen = [catalog.suite(name) for name in suites or (_USUAL,)]
    system = chosen[0].experiments[0].system
    take = partial(take_build, catalog.found, catalog.releases(system), system)
    baseline = take(given.against)
    head = take(given.build, like=baseline.release, commit=given.commit)
    known = catalog.found.builds
    added = tuple(one for one in (baseline, head) if one.location and one not in known)
    catalog = replace(catalog, found=replace(catalog.found, builds=(*known, *added)))
    return plan_builds(catalog, chosen, baseline, head), catalog


def _exit_code(content: ComparisonFile) -> int:
    outcomes = {one.outcome for one in content.comparisons}
    if Outcome.REGRESSED in outcomes:
        return _REGRESSION_FOUND
    return _NOT_MEASURED if content.problems or Outcome.INVALID in outcomes else 0


def _measure(job: Job, plan: CandidatePlan, run: Callable[[Job], ComparisonFile]) -> ComparisonFile:
    """Measure, and keep the trials in the history; what goes wrong is a problem of the result."""
    if not plan.planned:
        return record_candidate(plan)
    try:
        # A history that cannot be used must be known before hours of measuring, not after them.
        with open_history(job.paths.history):
            pass
    except HistoryError as error:
        return record_candidate(plan, [str(error)])
    content = run(job)
    job.progress.expected_s = None
    try:
        kept = keep(job)
    except (HistoryError, BundleError) as error:
        problem = cut(f"the trials are not in the history: {error}")
        return replace(content, problems=(*content.problems, problem))
    for bad in kept.bad:
        click.echo(f"A bundle was refused: {bad}", err=True)
    return content


def _find_reported(target: Path) -> frozenset[str]:
    """Return the comparisons that the last run reported; none if it lacked something: it is resumed."""
    path = target / COMPARISON
    try:
        content = read_comparisons(read_plain(path, MOST_BYTES), path)
    except (OSError, InputError):
        return frozenset()
    reported = (*content.comparisons, *(one.comparison for one in content.attributions))
    return frozenset() if content.problems else frozenset(one.id for one in reported)


def write_content(target: Path, content: ComparisonFile, *, site_url: str) -> None:
    """Write both files, each in one step."""
    durable.atomic_write(target / COMPARISON, write_comparisons(content))
    durable.atomic_write(
        target / COMMENT, f"{render_comment(content, site_url=site_url).rstrip()}\n".encode()
    )


def describe_plan(plan: CandidatePlan, allowed: Allowance, testbed: str) -> Iterator[str]:
    """Describe what differs, what of it will be measured, and how long that takes at most."""
    if plan.base and plan.head and not (plan.planned and not plan.changes):
        yield f"base  {plan.base.sha[:SHORT]}  (where {plan.head.ref} parted from {plan.base.ref})"
        yield f"head  {plan.head.sha[:SHORT]}  ({plan.head.ref})"
    else:
        sides = plan.planned[0].pairing
        yield f"base  {sides.baseline.label}"
        yield f"head  {sides.candidate.label}"
    for note in plan.notes:
        yield f"Note: {cut(note)}"
    if not plan.changes and not plan.planned:
        experiments = words.counted(plan.total, "experiment", "experiments")
        yield f"Nothing to measure: {experiments} looked at, and none is configured otherwise."
        return
    if plan.changes:
        yield f"{len(plan.changes)} of {plan.total} experiments differ."
    if plan.planned:
        count = len(plan.planned)
        trials = min(allowed.total.trials, allowed.each.trials * count)
        longest_s = sum(_longest_s(one, allowed, count) for one in plan.planned)
        yield (
            f"To measure on testbed {testbed}, both sides interleaved: at most {trials} trials, about"
            f" {format_duration(longest_s)}; less if it is decided sooner."
        )
    for one in plan.planned:
        yield from _describe_planned(one)
    for change in plan.changes:
        if change.text:
            yield f"  not measured: {cut(change.experiment)} (suite {cut(change.suite)}): {change.text}"


def _longest_s(one: Planned, allowed: Allowance, count: int) -> float:
    budget = allowed.total.share(count).within(allowed.each)
    return min(budget.trials * one.trial_s, max(budget.minutes * 60, TURNS * one.trial_s))


def _describe_planned(one: Planned) -> Iterator[str]:
    side = one.pairing.candidate
    yield (
        f"  {side.deployment.experiment.name} (suite {one.pairing.suite}) at {side.version},"
        f" about {format_duration(one.trial_s)} a trial"
    )
    for knob in one.knobs[:_MOST_SHOWN]:
        before, after = (printable(text) or "not set" for text in (knob.before, knob.after))
        yield f"      {cut(knob.path)}  {cut(before)} → {cut(after)}"
    if (more := len(one.knobs) - _MOST_SHOWN) > 0:
        yield f"      … and {more:,} more"


def describe_content(content: ComparisonFile) -> Iterator[str]:
    """Describe what came of it: a line for each comparison, then what went wrong, then the verdict."""
    yield ""
    for one in content.comparisons:
        yield f"{one.outcome:<10}  {one.experiment} (suite {one.suite}): {one.reason}"
    for attribution in content.attributions:
        result = attribution.comparison
        what = f"by {attribution.knob.path}, the others in place"
        yield f"{result.outcome:<10}  {what}: {result.reason}"
    for problem in content.problems:
        yield f"Problem: {problem}"
    for note in content.notes:
        yield f"Note:    {note}"
    yield f"Verdict: {headline(content)}"

"""The main job in one command: measure, keep, judge, tell. `reports` may import all of it."""

from datetime import UTC, datetime
from pathlib import Path

import click

from analysis.commands import judge_history
from analysis.verdict import Outcome
from perf import config
from perf.history.store import append_all, open_history
from perf.measuring import Session, describe, measure_night
from perf.model import TrialStatus
from perf.options import configs_option, data_option
from perf.places import Places
from perf.progress import Progress
from reports.commands import write_report
from reports.view.incident import list_news

REGRESSION_FOUND = 1
NOT_MEASURED = 3


@click.command()
@click.option("--suite", "suite_name", default="quickstart", show_default=True, help="Suite to run.")
@data_option
@configs_option
def nightly(suite_name: str, data: Path, configs: Path | None) -> None:
    """Measure a suite, append to the history, judge it and write the site.

    An interrupted night is resumed: trials that were finished are kept and not repeated. After a
    finished night, the next run is the next night.

    Exit codes: 0 fine, 1 a regression is confirmed, 3 a trial of this night failed or was invalid,
    or a bundle was refused.
    """
    root = configs or config.default_root()
    catalog = config.load_catalog(root)
    places, progress = Places(data), Progress()
    session = Session(catalog, catalog.suite(suite_name), places, progress)
    # A history that cannot be used must be known before an hour of measuring, not after it.
    with open_history(places.history):
        pass
    trials = measure_night(session)

    progress.expected_s = None
    progress.heading("keep, judge, tell")
    kept = append_all(places, progress.tell)
    progress.tell(f"history: {kept.new} trials appended, {kept.known} already there")
    now = datetime.now(UTC)
    judgement = judge_history(places, root, now.date())
    progress.tell(f"judged {len(judgement.series)} series")
    index = write_report(places, root, now)

    click.echo()
    for trial in trials:
        click.echo(describe(trial))
    click.echo(f"\nVerdict: {judgement.verdict.reason}")
    for line in list_news(judgement.incidents):
        click.echo(line)
    click.echo(f"Site:    {index}")
    unmeasured = sum(trial.status is not TrialStatus.COMPLETED for trial in trials)
    if unmeasured:
        click.echo(f"{unmeasured} of {len(trials)} trials could not be measured; see above", err=True)
    for problem in kept.bad:
        click.echo(f"A bundle was refused: {problem}", err=True)
    context = click.get_current_context()
    if judgement.verdict.outcome is Outcome.REGRESSED:
        context.exit(REGRESSION_FOUND)
    if unmeasured or kept.bad:
        context.exit(NOT_MEASURED)

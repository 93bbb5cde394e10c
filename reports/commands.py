"""The command that tells: read the history, judge it, write the static site."""

import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import click

from analysis.bisecting.run import read_bisections
from analysis.commands import judge_history
from analysis.comparing.run import read_results
from analysis.judgement import Judgement
from analysis.verdict import Outcome, Verdict
from perf import config
from perf.config import Catalog
from perf.errors import BundleError
from perf.history import bundle
from perf.history.store import open_history
from perf.model import Trial, TrialId
from perf.night import Night, read_nights
from perf.options import configs_option, data_option
from perf.places import Places
from reports.pages import render_site
from reports.site import check_target, explained, write_site
from reports.view.attention import LeftOut
from reports.view.bisection import view_bisection
from reports.view.comparison import view_comparison, view_recent
from reports.view.incident import view_incident
from reports.view.index import view_index
from reports.view.links import series_page, trial_page
from reports.view.series import view_all_series
from reports.view.testbed import view_testbed
from reports.view.trial import BundleFile, SeriesLink, view_trial
from reports.view.wording import series_words

_NOTHING_TO_JUDGE = Judgement(
    series=(), verdict=Verdict(outcome=Outcome.UNDECIDED, reason="nothing has been measured yet")
)


@click.command()
@data_option
@configs_option
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    help="Directory of the site, replaced as a whole.  [default: site/ in the data directory]",
)
def report(data: Path, configs: Path | None, output: Path | None) -> None:
    """Judge the history and write it as a static site.

    The front page says the verdict in words and what needs attention first; each series has a page
    with a chart, each trial a page with all that is known about it. The site needs no server and no
    network: open index.html in a browser.

    Exit code 0 even if a series regressed: this command tells, `knickpoint detect` decides.
    """
    root = configs or config.default_root()
    places = Places(data)
    index = write_report(places, root, datetime.now(UTC), output=output)
    if not places.history.exists():
        click.echo(f"There is no history at {places.history}; the site says how to begin.", err=True)
    click.echo(index)


def write_report(
    places: Places,
    configs_root: Path,
    now: datetime,
    *,
    output: Path | None = None,
    links_bundles: bool = True,
) -> Path:
    """Write the site of a data directory, built at `now`; return the path of its front page.

    Trial pages link to the files of their bundles, unless the bundles will not stay where they are.

    Raises:
        ConfigError: the configuration is wrong.
        HistoryError: the history cannot be read.
        SiteError: the operating system refuses to read or write what the site needs.
        UsageError: `output` holds something that is not a site.

    """
    target = output or places.site
    with explained(target):
        return _write_report(places, configs_root, now, target, links_bundles=links_bundles)


def _write_report(
    places: Places, configs_root: Path, now: datetime, target: Path, *, links_bundles: bool
) -> Path:
    check_target(target)
    catalog = config.load_catalog(configs_root)
    trials, judgement = _read(places, configs_root, now)
    by_id = {trial.id: trial for trial in trials}
    nights = read_nights(places)
    caveats = {name: testbed.caveat for name, testbed in catalog.testbeds.items()}
    series_of = _find_series(judgement)
    judged = {one.series.key: one for one in (*judgement.series, *judgement.watched)}
    suites = {one.experiment: find_suite(one, catalog, nights) for one in trials}
    bisections = read_bisections(places)
    bisected = tuple(view_bisection(one) for one in bisections)
    compared = read_results(places)
    return write_site(
        target,
        render_site(
            view_index(
                trials,
                judgement,
                nights=nights,
                left_out=find_left_out(places, by_id),
                triage=catalog.triage,
                caveats=caveats,
                now=now,
                bisections=bisected,
                comparisons=view_recent(compared),
            ),
            view_testbed(judgement, by_id, catalog.detection, caveats),
            (
                view_incident(incident, judged, by_id, caveats, suites=suites, bisections=bisections)
                for incident in judgement.incidents
            ),
            view_all_series(judgement, by_id, catalog.detection, caveats),
            (
                view_trial(
                    trial,
                    series=series_of.get(trial.id, ()),
                    files=list_bundle(places, trial.id, target) if links_bundles else (),
                    reproduce=reproduce_command(trial, catalog, nights),
                    caveats=caveats,
                )
                for trial in trials
            ),
            bisections=bisected,
            comparisons=(view_comparison(one, by_id) for one in compared),
        ),
    )


def _read(places: Places, configs_root: Path, now: datetime) -> tuple[tuple[Trial, ...], Judgement]:
    if not places.history.exists():
        return (), _NOTHING_TO_JUDGE
    with open_history(places.history, read_only=True) as history:
        trials = history.trials()
    return trials, judge_history(places, configs_root, now.date())


def _find_series(judgement: Judgement) -> Mapping[TrialId, Sequence[SeriesLink]]:
    found: dict[TrialId, list[SeriesLink]] = {}
    for judged in (*judgement.series, *judgement.watched):
        key = judged.series.key
        link = SeriesLink(title=series_words(key), page=series_page(key))
        for point in judged.series.points:
            found.setdefault(point.trial, []).append(link)
    return found


def find_left_out(places: Places, known: Collection[TrialId]) -> tuple[LeftOut, ...]:
    """Give the bundles on disk that are none of the known trials; only these are read."""
    return tuple(
        LeftOut(name=path.name, fault=_find_fault(path))
        for path in bundle.find(places)
        if path.name not in known
    )


def _find_fault(path: Path) -> str:
    """Say what makes a bundle unreadable; nothing if it is sound."""
    try:
        bundle.read(path)
    except (BundleError, OSError) as error:
        # The site may be published: it names places inside of the data directory only.
        return str(error).replace(f"{path.parent}{os.sep}", "")
    return ""


def list_bundle(places: Places, trial: TrialId, site: Path) -> tuple[BundleFile, ...]:
    """Give the files of a trial's bundle, with links from the trial pages of `site`; none if gone."""
    place = places.trials / trial
    page = (site / trial_page(trial)).parent.resolve()
    return tuple(
        BundleFile(
            name=path.relative_to(place).as_posix(),
            href=quote(Path(os.path.relpath(path.resolve(), page)).as_posix()),
            length=path.stat().st_size,
        )
        for path in sorted(place.rglob("*"))
        if path.is_file()
    )


def reproduce_command(trial: Trial, catalog: Catalog, nights: Sequence[Night]) -> str:
    """Give the command line that measures this experiment at this release again."""
    suite = find_suite(trial, catalog, nights)
    return shlex.join(
        (
            *("knickpoint", "measure"),
            *(("--suite", suite) if suite else ()),
            *("--experiment", trial.experiment, "--release", trial.release.version),
        )
    )


def find_suite(trial: Trial, catalog: Catalog, nights: Sequence[Night]) -> str:
    """Give a suite that has the experiment of a trial: that of its night, else any; empty if none."""
    planned = next((night.suite for night in nights if night.id == trial.night), None)
    listed = (
        suite.name
        for suite in catalog.suites.values()
        for experiment in suite.experiments
        if experiment.name == trial.experiment and suite.testbed == trial.testbed.name
    )
    return planned or next(listed, "")

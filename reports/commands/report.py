"""The command that tells: read the history, judge it, write the static site."""

from datetime import UTC, datetime
from pathlib import Path

import click

from perf.commands.options import configs_option, data_option
from perf.config.catalog import default_root, load_catalog
from perf.history.place import has_history
from perf.local.paths import DataPaths
from reports.commands.options import site_url_option
from reports.pages.report import write_report

SITE_URL_HELP = "Where the site will be: the summary of a job on GitHub Actions links its pages."


@click.command()
@data_option
@configs_option
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=None,
    help="Directory of the site, replaced as a whole, or the file of --single-file.  "
    "[default: site/ in the data directory]",
)
@click.option(
    "--single-file",
    "experiment",
    metavar="EXPERIMENT",
    help="Write this one experiment as one HTML file, to send it to somebody.",
)
@site_url_option(SITE_URL_HELP)
def report(
    data: Path, configs: Path | None, output: Path | None, experiment: str | None, site_url: str
) -> None:
    """Write the history as a static site.

    The front page says the verdict in words and what needs attention first; each series has a page
    with a chart, each trial a page with all that is known about it. The site needs no server and no
    network: open index.html in a browser. Beside the pages lie an Atom feed, badges, a JUnit report and
    an export as JSON and Parquet. Where $GITHUB_STEP_SUMMARY is set, the job gets its summary.

    Only what has changed since the last report is made and written again.

    With --single-file all pages of one experiment (series, incidents, trials) are parts of one file
    that needs nothing beside it, for a mail or a ticket: --single-file EXPERIMENT --output FILE.html

    Exit code 0 even if a series regressed; `knickpoint detect` returns 1 then.
    """
    catalog = load_catalog(configs or default_root())
    paths, now = DataPaths(data), datetime.now(UTC)
    if experiment is not None:
        from reports.pages.whole_site import write_experiment  # noqa: PLC0415  half a second

        click.echo(write_experiment(paths, catalog, now, experiment, output))
        return
    index = write_report(paths, catalog, now, output=output, summarizes=True, site_url=site_url)
    if not has_history(paths):
        click.echo(f"There is no history at {paths.history}; the site says how to begin.", err=True)
    click.echo(index)

"""The command that tells: read the history, judge it, write the static site."""

from datetime import UTC, datetime
from pathlib import Path

import click

from analysis.judgement import Judgement
from perf import config
from perf.errors import UsageError
from perf.history.place import has_history
from perf.options import configs_option, data_option
from perf.places import Places
from reports.github.options import site_url_option
from reports.pages import all_batches
from reports.pages.elsewhere import list_attention
from reports.pages.single_file import check_target_file, write_single_file
from reports.scene import read_scene
from reports.site import explained, held, write_site
from reports.telling.step_summary import append_step_summary

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
    """Judge the history and write it as a static site.

    The front page says the verdict in words and what needs attention first; each series has a page
    with a chart, each trial a page with all that is known about it. The site needs no server and no
    network: open index.html in a browser. Beside the pages lie an Atom feed, badges, a JUnit report and
    an export as JSON and Parquet. Where $GITHUB_STEP_SUMMARY is set, the job gets its summary.

    Only what has changed since the last report is made and written again.

    With --single-file all pages of one experiment (series, incidents, trials) are parts of one file
    that needs nothing beside it, for a mail or a ticket: --single-file EXPERIMENT --output FILE.html

    Exit code 0 even if a series regressed: this command tells, `knickpoint detect` decides.
    """
    root = configs or config.default_root()
    places = Places(data)
    if experiment is not None:
        click.echo(write_experiment(places, root, datetime.now(UTC), experiment, output))
        return
    index = write_report(
        places, root, datetime.now(UTC), output=output, summarizes=True, site_url=site_url
    )
    if not has_history(places):
        click.echo(f"There is no history at {places.history}; the site says how to begin.", err=True)
    click.echo(index)


def write_report(
    places: Places,
    configs_root: Path,
    now: datetime,
    *,
    output: Path | None = None,
    judgement: Judgement | None = None,
    is_recording: bool = False,
    summarizes: bool = False,
    site_url: str = "",
) -> Path:
    """Write the site of a data directory, built at `now`; return the path of its front page.

    What is known as `judgement` is not judged again. Trial pages link to the files of their bundles,
    except in a recording: it says that it does not grow, and its bundles do not stay. A job on GitHub
    Actions gets its summary, if asked; with the address of the site it links the pages.

    Raises:
        ConfigError: the configuration is wrong.
        HistoryError: the history cannot be read.
        SiteError: the operating system refuses to read or write what the site needs, or the summary.
        UsageError: `output` holds something that is not a site, or another report keeps writing it.

    """
    target = output or places.site
    with held(target), explained(target):
        scene = read_scene(
            places,
            configs_root,
            now,
            target,
            judgement=judgement,
            links_bundles=not is_recording,
            is_recording=is_recording,
        )
        index = write_site(target, all_batches(scene))
    if summarizes:
        append_step_summary(scene.judgement, list_attention(scene), site_url=site_url)
    return index


def write_experiment(
    places: Places, configs_root: Path, now: datetime, experiment: str, output: Path | None
) -> Path:
    """Write one experiment as one HTML file; return its path.

    Raises:
        ConfigError: the configuration is wrong.
        HistoryError: the history cannot be read.
        SiteError: the operating system refuses.
        UsageError: there is no such experiment, or no place for its file.

    """
    if output is None:
        raise UsageError("--single-file needs the name of its file: --output FILE.html")
    check_target_file(output)
    scene = read_scene(places, configs_root, now, output, links_bundles=False)
    write_single_file(scene, experiment, output)
    return output

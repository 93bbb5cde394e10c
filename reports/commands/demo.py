"""The command that shows the whole chain on a recorded history: what was planted, what is found."""

import tarfile
import tempfile
from importlib.resources import as_file, files
from pathlib import Path

import click

from analysis.judging.description import say_judgement
from perf.config.catalog import load_catalog
from perf.history.store import append_all, open_history
from perf.local.paths import DataPaths
from reports.pages.report import write_report
from reports.site.context import JudgedHistory, judge_state
from reports.site.writing import check_target
from reports.wording.incidents import list_news

_PLANTED = (
    "a configuration change in Cassandra 5.0.9 from the 15th night on: commitlog_sync: batch instead of"
    " periodic, so that each write waits until the commit log is on the disk. Reads do not wait for it."
    " Nights #15 to #18 gave no valid trial of writes, so that #19 is the first to show it."
)


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Directory of the site: a new one, an empty one, or a site to replace.",
)
def demo(out: Path) -> None:
    """Write the site of a recorded real history.

    The cause of its regression is known.

    A single Cassandra node was measured night after night; from one night on its configuration was
    changed for the worse. The bundles of these trials come with Knickpoint. They are brought into a
    history, judged and reported like any other, as of the end of the last trial. Nothing is measured
    and no network is needed.

    Exit code 0 although a regression is found: it is meant to be.
    """
    with as_file(files("reports.demo")) as shipped:
        judged, index = build_site(shipped, out)
    by_id = {head.id: head for head in judged.heads}
    click.echo(f"Planted: {_PLANTED}")
    click.echo(f"Judged:  {len(judged.heads)} trials. {say_judgement(judged.judgement)}")
    for line in list_news(judged.judgement.incidents, by_id, judged.settings):
        click.echo(f"Found:   {line}")
    click.echo(f"Open:    {index}")


def build_site(shipped: Path, out: Path) -> tuple[JudgedHistory, Path]:
    """Build the site of the recording in `shipped`; return its judged history and its front page.

    `shipped` holds trials.tar.xz (trials/ and nights/ of a data directory) and configs/. The site
    says that it is a recording, so nothing becomes stale; its clock stands still at the end of the
    last trial, so each build is equal.

    Raises:
        SiteError: the operating system refuses what the site needs.
        UsageError: `out` holds something that is not a site.

    """
    check_target(out)
    with tempfile.TemporaryDirectory(prefix="knickpoint-demo-") as aside:
        paths, catalog = DataPaths(Path(aside)), load_catalog(shipped / "configs")
        with tarfile.open(shipped / "trials.tar.xz") as archive:
            archive.extractall(paths.data, filter="data")
        append_all(paths, lambda _: None)
        with open_history(paths.history, read_only=True) as history:
            now = max(head.finished_at for head in history.heads())
        judged = judge_state(paths, catalog, now.date())
        index = write_report(paths, catalog, now, output=out, judged=judged, is_recording=True)
    return judged, index

"""A report: the site is made again, unless it is what would be made."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.orchestration.inputs import describe_inputs
from perf.config.catalog import Catalog
from perf.local.paths import DataPaths
from reports.notifications.summary_file import is_asked_for
from reports.site.publishing import FRONT
from reports.site.stamp import describe_all, describe_surroundings, is_current, keep_stamp
from reports.site.writing import explained, held

if TYPE_CHECKING:
    from reports.site.context import JudgedHistory


def write_report(
    paths: DataPaths,
    catalog: Catalog,
    now: datetime,
    *,
    output: Path | None = None,
    judged: "JudgedHistory | None" = None,
    is_recording: bool = False,
    summarizes: bool = False,
    site_url: str = "",
) -> Path:
    """Write the site of a data directory, built at `now`; return the path of its front page.

    What is `judged` already is neither read nor judged again, and a site that is what would be made
    stays as it is, with the moment when it was built. Trial pages link to the files of their
    bundles, except in a recording: it says that it does not grow, and its bundles do not stay. A job on
    GitHub Actions gets its summary, if asked; with the address of the site it links the pages.

    Raises:
        HistoryError: the history cannot be read.
        SiteError: the operating system refuses to read or write what the site needs, or the summary.
        UsageError: `output` holds something that is not a site, or another report keeps writing it.

    """
    target, is_asked = output or paths.site, summarizes and is_asked_for()
    with held(target) as place, explained(target):
        # Told before anything is read: what comes later is news to the next report.
        around = describe_surroundings(
            paths, target, links_bundles=not is_recording, is_recording=is_recording
        )
        inputs = judged.inputs if judged else describe_inputs(paths, catalog, now.date())
        if not is_asked and is_current(paths.site_stamp, place, describe_all(inputs, around, now), now):
            return place / FRONT
        # To load it takes half a second, which a report without news is spared.
        from reports.pages.whole_site import make_site  # noqa: PLC0415

        made = make_site(paths, catalog, now, target, judged=judged, is_recording=is_recording)
        keep_stamp(paths.site_stamp, place, describe_all(made.inputs, around, now), now, made.until)
    if is_asked:
        made.append_summary(site_url)
    return place / FRONT

"""The whole site: the pages of every kind, a kind being a folder here with a `page.py`."""

import importlib
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from importlib.resources import files
from itertools import chain
from pathlib import Path
from types import ModuleType

from analysis.orchestration.inputs import describe_inputs
from perf.config.catalog import Catalog
from perf.local.paths import DataPaths
from perf.model.errors import UsageError
from reports.notifications.step_summary import append_step_summary
from reports.notifications.summary_file import is_asked_for
from reports.pages.feeds.page import list_attention
from reports.pages.front.page import find_next_lateness
from reports.pages.single_file.document import check_target_file, write_single_file
from reports.site.context import JudgedHistory, SiteContext, judge_any, read_context
from reports.site.leading import lead_all
from reports.site.publishing import FRONT
from reports.site.rendering import static_batch
from reports.site.stamp import describe_all, describe_surroundings, is_current, keep_stamp
from reports.site.writing import Batch, LazyBatches, explained, held, write_site


def all_batches(context: SiteContext) -> Iterator[Batch | LazyBatches]:
    """Yield all files of a site."""
    yield static_batch()
    made = chain.from_iterable(kind.batches(context) for kind in _find_kinds())
    yield from lead_all(made, context.old_trials)


@cache
def _find_kinds() -> tuple[ModuleType, ...]:
    """Return the `page` module of each kind, by name; each has `batches(context)`."""
    folders = files("reports.pages").iterdir()
    names = sorted(folder.name for folder in folders if (folder / "page.py").is_file())
    return tuple(importlib.import_module(f"reports.pages.{name}.page") for name in names)


def write_report(
    paths: DataPaths,
    catalog: Catalog,
    now: datetime,
    *,
    output: Path | None = None,
    judged: JudgedHistory | None = None,
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
        judged = judged or judge_any(paths, catalog, now.date())
        context = read_context(
            paths,
            catalog,
            now,
            target,
            judged=judged,
            links_bundles=not is_recording,
            is_recording=is_recording,
        )
        # What is wrong with a bundle that the history lacks is read of its files, which may change.
        inputs = "" if context.left_out else judged.inputs
        index = write_site(target, all_batches(context))
        made_from = describe_all(inputs, around, now)
        keep_stamp(paths.site_stamp, place, made_from, now, find_next_lateness(context))
    if is_asked:
        append_step_summary(context.judgement, list_attention(context), site_url=site_url)
    return index


def write_experiment(
    paths: DataPaths, catalog: Catalog, now: datetime, experiment: str, output: Path | None
) -> Path:
    """Write one experiment as one HTML file; return its path.

    Raises:
        HistoryError: the history cannot be read.
        SiteError: the operating system refuses.
        UsageError: there is no such experiment, or no place for its file.

    """
    if output is None:
        raise UsageError("--single-file needs the name of its file: --output FILE.html")
    check_target_file(output)
    context = read_context(paths, catalog, now, output, links_bundles=False)
    write_single_file(context, experiment, output)
    return output

"""The whole site: the pages of every kind, a kind being a folder here with a `page.py`."""

import importlib
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import ModuleType

from perf.config.catalog import Catalog
from perf.local.paths import DataPaths
from perf.model.errors import UsageError
from reports.notifications.step_summary import append_step_summary
from reports.pages.feeds.page import list_attention
from reports.pages.single_file.document import check_target_file, write_single_file
from reports.site.context import JudgedHistory, SiteContext, read_context
from reports.site.rendering import static_batch
from reports.site.writing import Batch, LazyBatches, explained, held, write_site


def all_batches(context: SiteContext) -> Iterator[Batch | LazyBatches]:
    """Yield all files of a site."""
    yield static_batch()
    for kind in _find_kinds():
        yield from kind.batches(context)


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

    What is `judged` already is neither read nor judged again. Trial pages link to the files of their
    bundles, except in a recording: it says that it does not grow, and its bundles do not stay. A job on
    GitHub Actions gets its summary, if asked; with the address of the site it links the pages.

    Raises:
        HistoryError: the history cannot be read.
        SiteError: the operating system refuses to read or write what the site needs, or the summary.
        UsageError: `output` holds something that is not a site, or another report keeps writing it.

    """
    target = output or paths.site
    with held(target), explained(target):
        context = read_context(
            paths,
            catalog,
            now,
            target,
            judged=judged,
            links_bundles=not is_recording,
            is_recording=is_recording,
        )
        index = write_site(target, all_batches(context))
    if summarizes:
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

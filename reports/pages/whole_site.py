"""The whole site: the pages of every kind, a kind being a folder here with a `page.py`."""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files
from itertools import chain
from pathlib import Path
from types import ModuleType

from perf.config.catalog import Catalog
from perf.local.paths import DataPaths
from perf.model.errors import UsageError
from reports.notifications.step_summary import append_step_summary
from reports.pages.feeds.page import list_attention
from reports.pages.front.page import find_next_lateness
from reports.pages.single_file.document import check_target_file, write_single_file
from reports.site.context import JudgedHistory, SiteContext, judge_any, read_context
from reports.site.leading import lead_all
from reports.site.rendering import static_batch
from reports.site.writing import Batch, LazyBatches, write_site


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


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeSite:
    """What a site was made of, and until when it says the same: no time, if for good.

    `inputs` digests what it was judged from, and is empty where that cannot be told.
    """

    context: SiteContext
    inputs: str
    until: datetime | None

    def append_summary(self, site_url: str) -> None:
        """Append the summary to the file of the job on GitHub Actions.

        Raises:
            SiteError: the file of the summary cannot be written.

        """
        append_step_summary(self.context.judgement, list_attention(self.context), site_url=site_url)


def make_site(
    paths: DataPaths,
    catalog: Catalog,
    now: datetime,
    target: Path,
    *,
    judged: JudgedHistory | None,
    is_recording: bool,
) -> MadeSite:
    """Judge a history unless it is `judged`, and write what is new in its site; see `write_report`."""
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
    write_site(target, all_batches(context))
    return MadeSite(
        context=context,
        # What is wrong with a bundle that the history lacks is read of its files, which may change.
        inputs="" if context.left_out else judged.inputs,
        until=find_next_lateness(context),
    )


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

"""A page for each side-by-side comparison."""

import math
import re
from collections.abc import Collection, Iterator

from analysis.comparing.description import describe_why
from analysis.comparing.diagnostics import CONFIDENCE
from analysis.comparing.profiles import ProfileComparison, find_code
from analysis.comparing.results import ComparisonResult, SideRecord
from perf.model.results import SIDES, Purpose, TrialStatus
from reports.pages.comparison.view import draw_turns, place_turns
from reports.site.context import SiteContext
from reports.site.rendering import render
from reports.site.writing import Batch, SiteFile, batch_of
from reports.wording.links import comparison_page
from reports.wording.markdown import clean, drop_invisible
from reports.wording.measures import explains, length_words, view_diagnostic, view_measure
from reports.wording.summary import side_words, summarize_result
from reports.wording.wording import NOTHING, named

_PURPOSES = {
    Purpose.CANDIDATE: "for a pull request",
    Purpose.COMPARISON: "on request",
    Purpose.CONFIRMATION: "to make sure of a change that a night suspected",
    Purpose.BISECTION: "in search of the release that brought a change",
}


def batches(context: SiteContext) -> Iterator[Batch]:
    """Yield the pages of all comparisons."""
    yield batch_of(
        *(
            render_comparison(
                one,
                context.heads,
                next((each for each in reversed(context.profiles) if each.is_of(one)), None),
            )
            for one in context.comparisons
        )
    )


def render_comparison(
    result: ComparisonResult, known: Collection[str], profiled: ProfileComparison | None = None
) -> SiteFile:
    """Return the page of a comparison; `known` are the trials that have a page.

    `profiled` are profiles of both sides, if there are any.
    """
    places = place_turns(result)
    measures = [
        (
            re.sub(r"[^A-Za-z0-9.]+", "-", str(one.measure)),
            view_measure(one),
            draw_turns(one, places, len(result.trials)),
        )
        for one in result.measures
        if not (one.before is None and one.after is None)
    ]
    return render(
        "comparison.html",
        comparison_page(result.id),
        result=result,
        summary=summarize_result(result),
        purpose=_PURPOSES.get(result.purpose, result.purpose.value),
        names=[side_words(None, result, side) for side in SIDES],
        length=length_words(math.fsum(one.duration_s for one in result.trials)),
        unused=list(count_unused(result)),
        sides=list(zip(_describe_side(result.baseline), _describe_side(result.candidate), strict=True)),
        trusted=[one for one in measures if one[1].result.is_trusted],
        others=[one for one in measures if not one[1].result.is_trusted],
        diagnostics=[view_diagnostic(one) for one in result.diagnostics],
        asks_why=explains(result),
        why=describe_why(result, find_code(profiled) if profiled else result.code),
        profiled=profiled,
        confidence=CONFIDENCE,
        known=known,
        clean=clean,
        drop_invisible=drop_invisible,
        length_words=length_words,
    )


def count_unused(result: ComparisonResult) -> Iterator[tuple[int, str, str]]:
    """Yield how many trials of which side ended how and were not used."""
    for status in (TrialStatus.FAILED, TrialStatus.INVALID):
        for side in SIDES:
            found = sum(one.side == side and one.status is status for one in result.trials)
            if found:
                yield found, side, status


def _describe_side(side: SideRecord) -> tuple[tuple[str, str], ...]:
    """Return what a side was measured with, by name."""
    parts = (
        ("Release", side.version),
        ("Config", named(side.config)),
        ("Topology", named(side.topology)),
        ("Workload", named(side.workload)),
        ("Testbed", named(side.testbed)),
        ("Artifact (SHA-256)", side.artifact_sha256 or NOTHING),
    )
    return tuple((name, clean(value)) for name, value in parts)

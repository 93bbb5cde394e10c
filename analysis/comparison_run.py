"""A side-by-side comparison from the first trial to its verdict: measure a block, look, go on or stop.

An edge: it measures through `perf.side_by_side` and writes the result beside the plan. What is judged is
pure: `paired` and `sequential`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from analysis.blocks import Block, Measure
from analysis.comparison_file import (
    ComparisonResult,
)
from analysis.sequential import Look, Rule, look
from perf.places import Places
from perf.progress import Progress
from perf.rules import Detection
from perf.side_by_side import (
    Pairing,
    Taken,
)

Looker: TypeAlias = Callable[[Sequence[Block], Rule, int], Look]


def read_results(places: Places) -> tuple[ComparisonResult, ...]:
    """Give what all finished comparisons of a data directory came to, oldest first.

    Raises:
        InputError: a result is not one.

    """
    raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that a comparison may take: trials of both sides together, and minutes of trials."""

    trials: int
    minutes: float


def run_comparison(
    pairing: Pairing,
    settings: Detection,
    budget: Budget,
    places: Places,
    progress: Progress,
    *,
    trusted: Sequence[Measure] = (),
    looker: Looker = look,
    prior: Sequence[Taken] = (),
    reproduce: str = "",
) -> ComparisonResult:
    """Measure two sides in turns until it is decided or the budget is used up, and keep the result.

    A comparison of the same question that was cut short is resumed. `trusted` are the measures that
    decide; without them those of `settings.comparison`. `prior` are trials that took turns before and
    count as well. `reproduce` is the command that asks the same again.

    Raises:
        MeasureError: another process measures here, or the hosts cannot carry any trial.
        ReleaseError: a release could be fetched from nowhere.
        UsageError: a release is unknown, or nothing of what is measured can be trusted.

    """
    raise NotImplementedError

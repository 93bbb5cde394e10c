"""What the servers of two sides did differently: their costs per operation, pauses and debts. Pure.

No verdict rests on it: it is what to look at first when the verdict asks why.
"""

import math
from collections.abc import Sequence
from statistics import fmean, variance

from scipy.special import stdtrit

from analysis.comparing.blocks import Measure
from analysis.comparing.results import DiagnosticResult
from analysis.comparing.turns import build_blocks
from perf.model.metrics import SERVER_DIAGNOSTICS
from perf.model.results import Taken, TrialStatus

CONFIDENCE = 0.99
"""Of all intervals of a comparison together: of a hundred without a difference, one shows any."""
_LEAST_TRIALS = 4
"""Of each side: two blocks. The scatter of fewer says next to nothing."""


def compare_diagnostics(taken: Sequence[Taken]) -> tuple[DiagnosticResult, ...]:
    """Return the diagnostics of servers that both sides have, those that moved most first.

    Each has the means of the trials of both sides, which are those that the measures rest on, and the
    interval of the difference of these means, in the unit of the metric: that of Welch (Biometrika 34,
    1947, 28-35), at a confidence that holds for all of them together (Bonferroni). What was zero
    throughout is left out.
    """
    sides = []
    for measure in sorted(_find(taken)):
        blocks = build_blocks(taken, measure)
        before = [one.value for block in blocks for one in block.baseline]
        after = [one.value for block in blocks for one in block.candidate]
        if min(len(before), len(after)) >= _LEAST_TRIALS and any((*before, *after)):
            sides.append((measure, before, after))
    found = [_compare(*each, miss=(1 - CONFIDENCE) / len(sides)) for each in sides]
    return tuple(sorted(found, key=lambda one: (not one.is_sure, -_factor(one))))


def _find(taken: Sequence[Taken]) -> set[Measure]:
    return {
        Measure(
            phase=sample.phase,
            operation=sample.operation,
            metric=sample.metric,
            statistic=sample.statistic,
        )
        for one in taken
        if one.trial.status is TrialStatus.COMPLETED
        for sample in one.trial.samples
        if sample.metric in SERVER_DIAGNOSTICS and not sample.host
    }


def _compare(
    measure: Measure, before: Sequence[float], after: Sequence[float], miss: float
) -> DiagnosticResult:
    """Compare the means, with an interval that misses the truth in `miss` of cases."""
    old, new = (variance(side) / len(side) for side in (before, after))
    difference, reach = fmean(after) - fmean(before), 0.0
    if old + new:
        freedom = (old + new) ** 2 / (old**2 / (len(before) - 1) + new**2 / (len(after) - 1))
        reach = -float(stdtrit(freedom, miss / 2)) * math.sqrt(old + new)
    return DiagnosticResult(
        measure=measure,
        before=fmean(before),
        after=fmean(after),
        low=difference - reach,
        high=difference + reach,
    )


def _factor(one: DiagnosticResult) -> float:
    """Return by how large a factor it moved, up or down, as a logarithm; from zero, endless."""
    if min(one.before, one.after) <= 0:
        return math.inf if one.before != one.after else 0.0
    return abs(math.log(one.after / one.before))

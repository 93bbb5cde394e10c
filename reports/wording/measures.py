"""Measures of a comparison in words, for its page and for the comment: levels, change, interval."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import isfinite

from analysis.comparing.blocks import Measure
from analysis.comparing.results import ComparisonResult, DiagnosticResult, MeasureResult
from analysis.detection.verdict import Outcome
from perf.model.metrics import RESPONSE_TIME
from reports.wording.markdown import clean
from reports.wording.wording import (
    NOTHING,
    direction_arrow,
    duration,
    metric_words,
    number,
    percent,
    phase_words,
    plain_percent,
    times,
    unit_words,
)

_LONGEST_S = 1e9
_BOUNDLESS = 1e4
"""A change by more than this factor says that nothing is known: so few trials show no bound."""
_ANY = 1e-6
_TENFOLD = 10.0
"""Trials that would show nothing smaller show nothing; digits of it would only look like knowledge."""
NO_BREAK = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureRow:
    """One measure in words; `better` is the arrow of its good direction, if that is known."""

    title: str
    better: str
    before: str
    after: str
    unit: str
    change: str
    interval: str
    relevant: str
    detectable: str
    result: MeasureResult

    @property
    def levels(self) -> str:
        """Return before → after with the unit once."""
        return f"{self.before} → {self.after}{NO_BREAK}{self.unit}".rstrip()

    @property
    def trials(self) -> str:
        """Return the trials of both sides that were used."""
        return f"{len(self.result.baseline)}{NO_BREAK}+{NO_BREAK}{len(self.result.candidate)}"


def view_measure(result: MeasureResult) -> MeasureRow:
    """Put what one measure came to into words; what is missing is a dash."""
    measure, effect = result.measure, result.effect
    return MeasureRow(
        title=clean(
            f"{metric_words(measure.metric, measure.statistic)} of {measure.operation} "
            f"{phase_words(measure.phase)}"
        ),
        better=direction_arrow(measure.metric),
        before=NOTHING if result.before is None else number(result.before),
        after=NOTHING if result.after is None else number(result.after),
        unit=unit_words(measure.metric),
        change=change_words(effect.relative_change) if effect else NOTHING,
        interval=ends_words(effect.low, effect.high) if effect else NOTHING,
        relevant=plain_percent(result.relevant_change),
        detectable=_detectable_words(result.detectable),
        result=result,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosticRow:
    """What servers did on both sides, in words; `change` is a factor, and the interval in the unit."""

    title: str
    levels: str
    change: str
    is_sure: bool

    def __str__(self) -> str:
        """Write it in a line."""
        return f"{self.title}: {self.levels} ({self.change})"


def view_diagnostic(result: DiagnosticResult) -> DiagnosticRow:
    """Put one diagnostic of the servers into words: a difference is in its unit, not in percent."""
    one, unit = result.measure, unit_words(result.measure.metric)
    return DiagnosticRow(
        title=clean(
            f"{metric_words(one.metric, one.statistic)} of {one.operation} {phase_words(one.phase)}"
        ),
        levels=f"{number(result.before)} → {number(result.after)}{NO_BREAK}{unit}".rstrip(),
        change=f"{times(result.before, result.after)}; {_signed(result.low)} to {_signed(result.high)}",
        is_sure=result.is_sure,
    )


def explains(result: ComparisonResult) -> bool:
    """Return whether a comparison asks why: it found a change, and knows what its servers did."""
    return bool(result.diagnostics or result.code) and result.outcome in {
        Outcome.REGRESSED,
        Outcome.IMPROVED,
    }


def _signed(value: float) -> str:
    """Write a difference in the unit of its metric, with its sign."""
    return f"+{number(value)}" if value > 0 else number(value)


def name_briefly(results: Sequence[MeasureResult]) -> Mapping[Measure, str]:
    """Name each measure as shortly as tells it from the others: p99, write p99, or in full."""
    forms = {one.measure: _name_forms(one) for one in results}
    counts = Counter(form for names in forms.values() for form in set(names))
    return {
        measure: next((name for name in names if counts[name] == 1), names[-1])
        for measure, names in forms.items()
    }


def _name_forms(result: MeasureResult) -> tuple[str, str, str]:
    one = result.measure
    is_percentile = one.metric == RESPONSE_TIME.name and one.statistic[:1] == "p"
    bare = one.statistic if is_percentile else metric_words(one.metric, one.statistic)
    return clean(bare), clean(f"{one.operation} {bare}"), view_measure(result).title


def change_words(change: float) -> str:
    """Write a relative change with its sign; a bound that is not there, or beyond reason, is said."""
    if not abs(change) <= _BOUNDLESS:
        return "no bound"
    return percent(change)


def ends_words(low: float, high: float) -> str:
    """Write the ends of an interval of relative changes; nothing falls by more than all of it."""
    return f"{change_words(max(low, -1.0))} to {change_words(high)}"


def _detectable_words(detectable: float | None) -> str:
    if detectable is None or not 0 <= detectable <= _BOUNDLESS:
        return NOTHING
    if detectable < _ANY:
        return "any"
    if detectable > _TENFOLD:
        return f"over 1,000{NO_BREAK}%"
    return plain_percent(detectable)


def weight(result: MeasureResult) -> float:
    """Return how many times the relevant change a measure moved: what is reported first."""
    effect = result.effect
    if effect is None or not isfinite(effect.relative_change) or result.relevant_change <= 0:
        return 0.0
    return abs(effect.relative_change) / result.relevant_change


def length_words(seconds: float) -> str:
    """Write seconds of trials in words; what cannot be a length of time is said to be unknown."""
    if not 0 <= seconds <= _LONGEST_S:
        return "unknown time"
    return duration(timedelta(seconds=seconds))

"""A comparison as lines of text, for a terminal and a log. Pure."""

from collections.abc import Iterator, Sequence

from analysis.comparing.blocks import measure, name_kind
from analysis.comparing.profiles import KINDS, ProfileComparison, find_code
from analysis.comparing.results import (
    CodeDifference,
    ComparisonResult,
    DiagnosticResult,
    MeasureResult,
    TrialRecord,
)
from analysis.detection import words
from analysis.detection.effects import Effect
from analysis.detection.verdict import Outcome
from perf.model.metrics import (
    GC_PAUSE,
    METRICS,
    NETWORK_SENT,
    SERVER_CPU,
    STORAGE_READ,
    STORAGE_WRITTEN,
)
from perf.model.results import TrialStatus

HARDLY_ANYTHING = 0.5
"""An interval that leaves half as much again open says nothing that helps anybody."""
_MOST_SHOWN = 4
"""Trials that were not used, lines of logs; the rest is on the page."""


def describe_comparison(result: ComparisonResult) -> Iterator[str]:
    """Describe what came of it: the verdict first, then each measure, then what could not be used."""
    yield f"{result.outcome}: {result.baseline.label} → {result.candidate.label}, {result.experiment}"
    yield f"  {result.reason}"
    yield f"  {result.ended}"
    for one in result.measures:
        yield f"  {_describe_measure(one)}"
    for line in (result.logs or ())[:_MOST_SHOWN]:
        counts = (words.counted(high, "time", "times") for _, high in (line.before, line.after))
        yield f"  Logged at most {' → '.join(counts)} a trial: {line.level}: {line.text}"
    for each in result.method:
        yield f"  Measured otherwise: {each.path} {each.before or 'none'} → {each.after or 'none'}"
    unused = [trial for trial in result.trials if trial.status is not TrialStatus.COMPLETED]
    for trial in unused[:_MOST_SHOWN]:
        yield f"  {trial.status.upper()}, not used: {trial.id}: {_give_reason(trial)}"
    if len(unused) > _MOST_SHOWN:
        yield f"  … and {len(unused) - _MOST_SHOWN} more of {len(result.trials)} trials not used"
    for remark in result.remarks:
        yield f"  Remark: {remark}"
    if (result.diagnostics or result.code) and result.outcome in {Outcome.REGRESSED, Outcome.IMPROVED}:
        yield f"  Why: {describe_why(result, result.code)}"
    if result.caveat:
        yield f"  {result.caveat}"


def describe_releases(result: ComparisonResult) -> Iterator[str]:
    """Describe how two releases differ: a sentence, then a line for each measure that decides.

    Where no difference is shown, the smallest one that is excluded says how much was looked for.
    """
    before, after = result.baseline.label, result.candidate.label
    deciding = [one for one in result.measures if one.is_trusted]
    yield f"{result.experiment}, {after} against {before}: {_conclude(result.outcome, deciding)}"
    names = [measure(one.measure) for one in deciding]
    width = max(map(len, names), default=0)
    for name, one in zip(names, deciding, strict=True):
        yield f"  {name:<{width}}  {_describe_difference(one)}"


def _conclude(outcome: Outcome, deciding: Sequence[MeasureResult]) -> str:
    trials = min((min(len(one.baseline), len(one.candidate)) for one in deciding), default=0)
    basis = f"after {words.counted(trials, 'trial', 'trials')} of each"
    if outcome in {Outcome.REGRESSED, Outcome.IMPROVED}:
        which = [measure(one.measure) for one in deciding if one.outcome is outcome]
        return f"{'worse' if outcome is Outcome.REGRESSED else 'better'} {basis}: {', '.join(which)}"
    bounds: dict[str, float] = {}
    for one in deciding:
        if one.effect is None:
            return f"cannot be compared {basis}"
        kind = name_kind(one.measure)
        bounds[kind] = max(bounds.get(kind, 0.0), find_excluded(one.effect))
    known = {kind: bound for kind, bound in bounds.items() if bound < HARDLY_ANYTHING}
    if outcome is Outcome.INVALID or not bounds:
        return f"cannot be compared {basis}"
    if not known:
        return f"too early to tell {basis}"
    excluded = f"no difference of {words.percent(max(known.values()))} or more"
    if len(known) == len(bounds):
        return f"{excluded} {basis}"
    unknown = ", ".join(kind for kind in bounds if kind not in known)
    return f"{excluded} in {', '.join(known)} {basis}; {unknown}: too early to tell"


def _describe_difference(one: MeasureResult) -> str:
    if one.before is None or one.after is None or one.effect is None:
        return one.reason
    effect = one.effect
    said = {
        Outcome.UNCHANGED: "the same",
        Outcome.REGRESSED: "worse",
        Outcome.IMPROVED: "better",
    }.get(one.outcome, _say_excluded(effect))
    # The difference is that of trials which took turns. The median of the other side is left out: few
    # trials of wide scatter may have it on the other side of this one.
    return (
        f"{words.value(one.before)} {METRICS[one.measure.metric].unit},"
        f" {words.signed_percent(effect.relative_change)}"
        f" ({words.signed_percent(effect.low)} to {words.signed_percent(effect.high)}): {said}"
    )


def _say_excluded(effect: Effect) -> str:
    excluded = find_excluded(effect)
    if excluded >= HARDLY_ANYTHING:
        return "too early to tell"
    return f"no difference of {words.percent(excluded)} or more"


def find_excluded(effect: Effect) -> float:
    """Return the size from which on the interval excludes a difference in either direction."""
    return max(abs(effect.low), abs(effect.high))


def _give_reason(trial: TrialRecord) -> str:
    first, *more = [reason.text for reason in trial.reasons] or ["no reason is known"]
    return f"{first}; and {words.counted(len(more), 'reason', 'reasons')} more" if more else first


def describe_why(result: ComparisonResult, code: Sequence[CodeDifference] = ()) -> str:
    """Return in a sentence what the servers of the candidate do differently, as far as that is sure.

    `code` is what profiles of both sides found, beside what was recorded of all trials.
    """
    moved = {one.measure.metric: one for one in reversed(result.diagnostics) if one.is_sure}
    found = [_describe_moved(one) for one in reversed(moved.values()) if one.measure.metric in _DOES]
    found += map(describe_method, code)
    if not found:
        return "Nothing that was recorded of the servers explains it."
    return f"{result.candidate.label} {'; '.join(found)}."


def describe_code(profiled: ProfileComparison) -> str:
    """Return which method of the candidate costs most more or less, as far as that is sure."""
    found = "; ".join(map(describe_method, find_code(profiled)))
    return f"{profiled.candidate.label} {found}" if found else "no code moved more than its noise"


def describe_method(one: CodeDifference) -> str:
    """Return by how much a method costs more or less: what the servers of the candidate do."""
    size = words.value(abs(one.after - one.before))
    by = f"{size} {_COSTS[one.kind]} {'more' if one.after > one.before else 'less'}"
    return f"spends {by} per operation in {one.method} ({one.phase})"


_DOES = {
    SERVER_CPU.name: "uses {} much CPU time per operation",
    STORAGE_WRITTEN.name: "writes {} many bytes per operation",
    STORAGE_READ.name: "reads {} many bytes per operation",
    NETWORK_SENT.name: "sends {} many bytes per operation",
    GC_PAUSE.name: "pauses {} long for garbage collection",
}
_COSTS = {"cpu": "µs of CPU", "alloc": "allocated bytes"}


def _describe_moved(one: DiagnosticResult) -> str:
    size = f"{words.value(one.after / one.before)} × as" if one.before else "not 0 but so"
    return f"{_DOES[one.measure.metric].format(size)} ({one.measure.phase})"


def describe_profiles(found: ProfileComparison) -> Iterator[str]:
    """Describe what profiles of two sides say, phase by phase, and what lacks."""
    yield f"{found.baseline.label} → {found.candidate.label}, {found.experiment}: {found.id}"
    for one in found.differences:
        yield f"  {one.phase}: {KINDS[one.kind]}: {words.value(one.before)} → {words.value(one.after)}"
        for frame in one.frames:
            low, high = words.value(frame.low), words.value(frame.high)
            own = f"; {words.value(frame.own)} of it its own"
            yield f"    {words.value(frame.difference):>9} ({low} to {high}{own})  {frame.short_name}"
        if not one.frames:
            yield "    no code moved more than its noise"
    for gap in found.gaps:
        yield f"  Not used: {gap}"
    if not found.differences:
        yield "  Nothing can be compared: it takes two profiles of each side."


def describe_looks(measures: Sequence[MeasureResult]) -> Iterator[str]:
    """Describe how the trusted measures stand while more may come."""
    return (_describe_measure(one) for one in measures if one.is_trusted)


def _describe_measure(one: MeasureResult) -> str:
    metric = METRICS[one.measure.metric]
    name = measure(one.measure) + ("" if one.is_trusted else " (beside the verdict)")
    if one.before is None or one.after is None or one.effect is None:
        return f"{one.outcome:<10} {name}: {one.reason}"
    effect = one.effect
    return (
        f"{one.outcome:<10} {name} ({metric.better} is better): {words.value(one.before)} →"
        f" {words.value(one.after)} {metric.unit}, {words.signed_percent(effect.relative_change)}"
        f" ({words.signed_percent(effect.low)} to {words.signed_percent(effect.high)}),"
        f" {len(one.baseline)} against {words.counted(len(one.candidate), 'trial', 'trials')}"
    )

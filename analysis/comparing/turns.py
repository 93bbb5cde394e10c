"""From trials that took turns to what each measure came to: blocks, looks, results. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias

from analysis import words
from analysis.comparing.blocks import Block, Measure, Measured
from analysis.comparing.results import MeasureResult
from analysis.comparing.sequential import Look, Rule, look
from analysis.verdict import WORST_FIRST, Outcome, merge
from perf.design import Measurement, SearchLoad, SteppedLoad, Workload
from perf.load.stages import ladder_phase
from perf.metrics import HIGHEST_LOAD, METRICS, RESPONSE_TIME, SERVICE_TIME, THROUGHPUT, Better
from perf.model import SideName, TrialStatus
from perf.rules import Detection
from perf.side_by_side import Taken

_MEASURED = frozenset(one.name for one in (THROUGHPUT, RESPONSE_TIME, SERVICE_TIME, HIGHEST_LOAD))

Looker: TypeAlias = Callable[[Sequence[Block], Rule, int], Look]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """How turns are judged: by which measures, with which looks, of at most how many blocks."""

    settings: Detection
    trusted: tuple[Measure, ...]
    most_blocks: int
    seed: int
    looker: Looker = look

    def rule(self, measure: Measure) -> Rule:
        """Give the rule for a measure.

        The false regressions that a comparison may have are shared out among its trusted measures;
        the others are told beside the verdict, each by itself.
        """
        share = self.settings.comparison.false_regression_share
        return Rule(
            higher_is_better=METRICS[measure.metric].better is Better.HIGHER,
            relevant_change=self.settings.relevant_change[measure.metric],
            false_share=share / len(self.trusted) if measure in self.trusted else share,
            most_blocks=self.most_blocks,
        )


def choose_trusted(workload: Workload, settings: Detection) -> tuple[Measure, ...]:
    """Name the measures of a workload on which a verdict rests, as `settings.comparison` says."""
    return tuple(
        Measure(phase=phase, operation=workload.operation.value, metric=metric, statistic=statistic)
        for part in workload.measurements
        for phase in _phases(part)
        for metric, statistics in settings.comparison.trusted.get(part.load.kind, {}).items()
        for statistic in statistics
    )


def _phases(part: Measurement) -> Iterator[str]:
    if isinstance(part.load, SteppedLoad):
        yield from (ladder_phase(part, load) for load in part.load.offered_loads_ops_per_s)
    else:
        yield part.name


def list_measures(workload: Workload, settings: Detection) -> tuple[Measure, ...]:
    """Name all measures that trials of a workload can have and that are judged, sorted."""
    return tuple(
        sorted(
            Measure(phase=phase, operation=workload.operation.value, metric=metric, statistic=statistic)
            for part in workload.measurements
            for phase in _phases(part)
            for metric, statistics in settings.judged.items()
            if (metric == HIGHEST_LOAD.name) == isinstance(part.load, SearchLoad)
            and metric in _MEASURED
            for statistic in statistics
        )
    )


def find_measures(taken: Iterable[Taken], settings: Detection) -> tuple[Measure, ...]:
    """Name all judged measures that any completed trial has a value of, sorted."""
    return tuple(
        sorted(
            {
                Measure(
                    phase=sample.phase,
                    operation=sample.operation,
                    metric=sample.metric,
                    statistic=sample.statistic,
                )
                for one in _completed(taken)
                for sample in one.trial.samples
                if not sample.host
                and sample.metric in METRICS
                and sample.metric in settings.relevant_change
                and sample.statistic in settings.judged.get(sample.metric, ())
            }
        )
    )


def build_blocks(taken: Iterable[Taken], measure: Measure) -> tuple[Block, ...]:
    """Give the blocks, in order, in which both sides have a value of a measure."""
    sides: dict[int, dict[SideName, list[Measured]]] = {}
    for one in _completed(taken):
        found = _read(one, measure)
        if found is not None:
            of_block = sides.setdefault(one.block, {"baseline": [], "candidate": []})
            of_block[one.side].append(found)
    return tuple(
        Block(baseline=tuple(each["baseline"]), candidate=tuple(each["candidate"]))
        for _, each in sorted(sides.items())
        if each["baseline"] and each["candidate"]
    )


def _completed(taken: Iterable[Taken]) -> Iterator[Taken]:
    return (one for one in taken if one.trial.status is TrialStatus.COMPLETED)


def _read(one: Taken, measure: Measure) -> Measured | None:
    values = {
        sample.iteration: sample.value
        for sample in one.trial.samples
        if not sample.host
        and (sample.phase, sample.operation) == (measure.phase, measure.operation)
        and (sample.metric, sample.statistic) == (measure.metric, measure.statistic)
    }
    if None not in values:
        return None
    iterations = tuple(values[index] for index in sorted(key for key in values if key is not None))
    return Measured(value=values[None], iterations=iterations)


def judge_measures(taken: Sequence[Taken], inquiry: Inquiry) -> tuple[MeasureResult, ...]:
    """Judge all measures that were taken, trusted ones first, in the order of the workload.

    A trusted measure that neither side has, as a step of a ladder that neither held, is left out.
    """
    found = find_measures(taken, inquiry.settings)
    others = (measure for measure in found if measure not in inquiry.trusted)
    return tuple(
        _judge(taken, measure, inquiry)
        for measure in (*(one for one in inquiry.trusted if one in found), *others)
    )


def _judge(taken: Sequence[Taken], measure: Measure, inquiry: Inquiry) -> MeasureResult:
    is_trusted = measure in inquiry.trusted
    rule = inquiry.rule(measure)
    blocks = build_blocks(taken, measure)
    seen = (inquiry.looker if is_trusted else look)(blocks, rule, inquiry.seed)
    before = tuple(one for block in blocks for one in block.baseline)
    after = tuple(one for block in blocks for one in block.candidate)
    return MeasureResult(
        measure=measure,
        is_trusted=is_trusted,
        outcome=seen.outcome if blocks else Outcome.INVALID,
        reason=seen.reason if blocks else "no block has a value of both sides",
        relevant_change=rule.relevant_change,
        before=median(one.value for one in before) if before else None,
        after=median(one.value for one in after) if after else None,
        effect=seen.effect,
        detectable=seen.detectable,
        baseline=before,
        candidate=after,
    )


def is_over(taken: Sequence[Taken], inquiry: Inquiry) -> bool:
    """Tell whether no further block is worth it: all trusted measures are decided, or one regressed.

    Nothing better than a regression can come of the others then.
    """
    looks = [
        inquiry.looker(blocks, inquiry.rule(measure), inquiry.seed)
        for measure in inquiry.trusted
        if (blocks := build_blocks(taken, measure))
    ]
    if any(one.is_over and one.outcome is Outcome.REGRESSED for one in looks):
        return True
    return bool(looks) and all(one.is_over for one in looks)


def conclude(measures: Sequence[MeasureResult]) -> tuple[Outcome, str]:
    """Merge the trusted measures: the worst outcome, and a sentence about each that has it."""
    trusted = [one for one in measures if one.is_trusted]
    if not trusted:
        return Outcome.INVALID, "no trial of both sides completed with a value that can be compared"
    worst = merge(one.outcome for one in trusted)
    others = sorted({one.outcome for one in trusted} - {worst}, key=WORST_FIRST.index)
    said = "; ".join(
        f"{words.measure(one.measure)}: {one.reason}" for one in trusted if one.outcome is worst
    )
    rest = "".join(
        f"; {outcome}: {', '.join(named)}"
        for outcome in others
        for named in [[words.measure(one.measure) for one in trusted if one.outcome is outcome]]
    )
    return worst, f"{said}{rest}"

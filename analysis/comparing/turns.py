"""From trials that took turns to what each measure came to: blocks, looks, results. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias

from analysis.comparing.blocks import Block, Measure, TrialValue, measure
from analysis.comparing.results import MeasureResult
from analysis.comparing.sequential import InterimAnalysis, StoppingRule, look
from analysis.detection.verdict import WORST_FIRST, Outcome, merge
from perf.model.design import Workload
from perf.model.metrics import HIGHEST_LOAD, METRICS, RESPONSE_TIME, SERVICE_TIME, THROUGHPUT, Better
from perf.model.results import SIDES, SideName, Taken, Trial, TrialStatus
from perf.model.rules import Detection
from perf.workloads.stages import list_phases

_MEASURED = frozenset(one.name for one in (THROUGHPUT, RESPONSE_TIME, SERVICE_TIME, HIGHEST_LOAD))

_BY_THE_SERVER = frozenset(
    (
        *("node-died", "errors-above-limit", "misses-above-limit", "unanswered"),
        *("nothing-completed", "load-not-offered"),
    )
)
_CLEARLY_MORE = 2
"""Lost trials of one side more than of the other: one may be chance."""

_MISSED = 2
"""A relevant change that is called unchanged, as a multiple of the false regressions that are allowed:
a later comparison or the nights find it, while a false one stops somebody's work at once."""

Looker: TypeAlias = Callable[[Sequence[Block], StoppingRule, int], InterimAnalysis]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """How turns are judged: by which measures, with which looks, of at most how many blocks.

    `may_lack` are the phases that a trial need not have: steps of a ladder, which may not hold.
    """

    settings: Detection
    trusted: tuple[Measure, ...]
    may_lack: frozenset[str] = frozenset()
    most_blocks: int
    seed: int
    looker: Looker = look

    def rule(self, measure: Measure) -> StoppingRule:
        """Return the rule for a measure.

        The false regressions that a comparison may have are shared out among its trusted measures;
        the others are reported beside the verdict, each by itself.
        """
        share = self.settings.comparison.false_regression_share
        share = share / len(self.trusted) if measure in self.trusted else share
        return StoppingRule(
            higher_is_better=METRICS[measure.metric].better is Better.HIGHER,
            relevant_change=self.settings.relevant_change[measure.metric],
            false_share=share,
            missed_share=_MISSED * share,
            most_blocks=self.most_blocks,
        )


def choose_trusted(workload: Workload, settings: Detection) -> tuple[Measure, ...]:
    """Name the measures of a workload on which a verdict rests, as `settings.comparison` says.

    Of a mix that is what all its operations came to together.
    """
    return tuple(
        Measure(phase=phase, operation=operation, metric=metric, statistic=statistic)
        for phase, operation, kind in list_phases(workload)
        for metric, statistics in settings.comparison.trusted.get(kind, {}).items()
        for statistic in statistics
    )


def list_measures(workload: Workload, settings: Detection) -> tuple[Measure, ...]:
    """Name all judged measures of whole phases that trials of a workload can have, sorted."""
    return tuple(
        sorted(
            Measure(phase=phase, operation=operation, metric=metric, statistic=statistic)
            for phase, operation, kind in list_phases(workload)
            for metric, statistics in settings.judged.items()
            if (metric == HIGHEST_LOAD.name) == (kind == "search") and metric in _MEASURED
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
    """Return the blocks, in order, with those of their pairs of which both trials have a value."""
    pairs: dict[tuple[int, str], dict[SideName, TrialValue]] = {}
    for one in _completed(taken):
        found = _read(one, measure)
        if found is not None:
            pairs.setdefault((one.block, one.pair), {})[one.side] = found
    blocks: dict[int, list[dict[SideName, TrialValue]]] = {}
    for (block, _), pair in sorted(pairs.items()):
        if len(pair) == len(SIDES):
            blocks.setdefault(block, []).append(pair)
    return tuple(
        Block(
            baseline=tuple(pair["baseline"] for pair in whole),
            candidate=tuple(pair["candidate"] for pair in whole),
        )
        for whole in blocks.values()
    )


def _completed(taken: Iterable[Taken]) -> Iterator[Taken]:
    return (one for one in taken if one.trial.status is TrialStatus.COMPLETED)


def _read(one: Taken, measure: Measure) -> TrialValue | None:
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
    return TrialValue(value=values[None], iterations=iterations, block=one.block)


def judge_measures(taken: Sequence[Taken], inquiry: Inquiry) -> tuple[MeasureResult, ...]:
    """Judge all measures that were taken, trusted ones first, in the order of the workload.

    Of those that a trial may lack, one that no trial has is left out.
    """
    found = find_measures(taken, inquiry.settings)
    trusted = (one for one in inquiry.trusted if one in found or one.phase not in inquiry.may_lack)
    others = (measure for measure in found if measure not in inquiry.trusted)
    return tuple(_judge(taken, measure, inquiry) for measure in (*trusted, *others))


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
    """Return whether no further block is worth it: all trusted measures are decided, or one regressed.

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


def doubt_losses(
    taken: Sequence[Taken], outcome: Outcome, reason: str, measures: Sequence[MeasureResult]
) -> tuple[Outcome, str]:
    """Take back a verdict that may rest on the trials that survived.

    A side whose server died, answered with errors or fell behind in clearly more trials than the other
    is compared by its better ones: it can be worse than it looks, never better.
    """
    lost = Counter(one.side for one in taken if _is_the_servers(one.trial))
    more = lost["candidate"] - lost["baseline"]
    flattered: SideName = "candidate" if more > 0 else "baseline"
    is_bad_news = outcome is (Outcome.REGRESSED if more > 0 else Outcome.IMPROVED)
    if abs(more) < _CLEARLY_MORE or outcome is Outcome.INVALID or is_bad_news or not measures:
        return outcome, reason
    turns = sum(one.side == flattered for one in taken)
    text = (
        f"{lost[flattered]} of {turns} trials of the {flattered} were lost to its server, and"
        f" {lost['candidate' if flattered == 'baseline' else 'baseline']} of the other side: what is"
        f" left may flatter it; of the others: {reason}"
    )
    return Outcome.UNDECIDED, text


def _is_the_servers(trial: Trial) -> bool:
    if trial.status is TrialStatus.COMPLETED:
        return False
    is_failed = trial.status is TrialStatus.FAILED
    return is_failed or any(reason.kind in _BY_THE_SERVER for reason in trial.reasons)


def conclude(measures: Sequence[MeasureResult]) -> tuple[Outcome, str]:
    """Merge the trusted measures: the worst outcome, and a sentence about each that has it."""
    trusted = [one for one in measures if one.is_trusted]
    if not trusted:
        return Outcome.INVALID, "no trial of both sides completed with a value that can be compared"
    worst = merge(one.outcome for one in trusted)
    others = sorted({one.outcome for one in trusted} - {worst}, key=WORST_FIRST.index)
    said = "; ".join(f"{measure(one.measure)}: {one.reason}" for one in trusted if one.outcome is worst)
    rest = "".join(
        f"; {outcome}: {', '.join(named)}"
        for outcome in others
        for named in [[measure(one.measure) for one in trusted if one.outcome is outcome]]
    )
    return worst, f"{said}{rest}"

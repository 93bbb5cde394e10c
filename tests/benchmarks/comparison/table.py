"""Print what a side-by-side comparison reaches: error rates, trials, coverage, with the truth known.

`make bench-comparison` runs all of it (about a quarter of an hour of one core); `--quick` a twentieth,
`--only` some parts. The tables are Markdown, as docs/statistics.md shows them. Everything goes through
`analysis.comparing.sequential.look` as shipped.
"""

import argparse
import math
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import count as count_from
from statistics import fmean, median, quantiles

from designs import DESIGNS, read_scatters
from fixed_design import trials_for
from scipy.special import stdtrit
from turns_drawn import KINDS, Case

from analysis.comparing.blocks import Block, TrialValue
from analysis.comparing.paired import Estimate, estimate
from analysis.comparing.sequential import (
    FIRST_LOOK,
    POWER,
    StoppingRule,
    _change_level,
    _interval_level,
    look,
)
from analysis.detection.verdict import Outcome

SEED = 20261121
RELEVANT = 0.05
FALSE_SHARE, MISSED_SHARE = 0.01, 0.02
EFFECTS = (0.75, 1.0, 1.5, 2.0, 3.0)
PARTS = ("trials", "noise", "iterations", "designs", "coverage")
COVERED = tuple(
    kind
    for kind in (
        *("gauss", "lognormal", "bimodal", "outliers", "unequal"),
        *("heavy", "ar3", "ar6", "drift", "recorded"),
    )
    if kind in KINDS
)
CHUNK = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What some comparisons of one case came to."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    trials: list[int] = field(default_factory=list)
    covered: int = 0

    def share(self, outcome: Outcome) -> float:
        """Return how often an outcome came."""
        return self.outcomes[outcome] / len(self.trials)

    def percent(self, outcome: Outcome) -> str:
        """Write it; above `FALSE_SHARE` by more than chance it would be a broken promise."""
        return f"{100 * self.share(outcome):.1f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Some comparisons of a case."""

    case: Case
    numbers: range


def make_rule(blocks: int) -> StoppingRule:
    """Return the rule as shipped, with a budget of so many blocks."""
    return StoppingRule(
        higher_is_better=False,
        relevant_change=RELEVANT,
        false_share=FALSE_SHARE,
        missed_share=MISSED_SHARE,
        most_blocks=blocks,
    )


def blocks_for(effect: float) -> int:
    """Return how many blocks a budget needs to decide nine times in ten; `effect` in deviations.

    That is: the relevant change is found, and no change is called unchanged, each with a chance of at
    least 0.9 at the last look alone, for normal noise. With σ the deviation as a share, k blocks, and
    at the last look α the level that excludes zero and β that of the interval:

        max(t(1 - α) + t(0.9), t(1 - β) + t(0.95)) · σ · √(π/3 / k) ≤ log(1 + relevant change)

    t has 3k - 1 degrees of freedom. (0.95, since no change may be missed to both sides; π/3 is what the
    Hodges-Lehmann estimate costs with normal noise.)
    """
    sought = math.log1p(RELEVANT) / RELEVANT * effect
    return next(blocks for blocks in count_from(FIRST_LOOK) if _least_effect(blocks) <= sought)


def _least_effect(blocks: int) -> float:
    """Return the least log ratio that so many blocks decide, in deviations."""
    rule = make_rule(blocks)
    tails = (
        (_change_level(blocks, rule), 1 - POWER),
        (_interval_level(blocks, rule), (1 - POWER) / 2),
    )
    widest = max(-float(stdtrit(3 * blocks - 1, tail).sum()) for tail in tails)
    return widest * math.sqrt(math.pi / 3 / blocks)


def make_case(
    kind: str, effect: float, truth: float, *, iterations: int = 0, shared: float = 0
) -> Case:
    """Return a case whose relevant change is `effect` deviations, and whose truth is so much of it."""
    full = math.log1p(RELEVANT)
    return Case(
        kind=kind,
        blocks=blocks_for(effect),
        deviation=full / effect,
        change=truth * full,
        iterations=iterations,
        shared=shared,
    )


def run_task(task: Task) -> list[tuple[Outcome, int, bool]]:
    """Run comparisons to their end: outcome, trials, and whether the interval holds the truth."""
    rule = make_rule(task.case.blocks)
    return [
        _run(task.case.draw(SEED, number), rule, number, task.case.change) for number in task.numbers
    ]


def _run(
    blocks: Sequence[Block], rule: StoppingRule, seed: int, truth: float
) -> tuple[Outcome, int, bool]:
    for count in range(1, len(blocks) + 1):
        seen = look(blocks[:count], rule, seed)
        if seen.is_over and seen.effect is not None:
            holds = seen.effect.low <= math.expm1(truth) <= seen.effect.high
            return seen.outcome, 4 * count, holds
    raise AssertionError("the last look is over")


def tally(cases: Iterable[tuple[Case, int]], pool: ProcessPoolExecutor) -> Iterator[Tally]:
    """Run so many comparisons of each case and count."""
    wanted = list(cases)
    tasks = [
        Task(case=case, numbers=range(start, min(start + CHUNK, n)))
        for case, n in wanted
        for start in range(0, n, CHUNK)
    ]
    results = pool.map(run_task, tasks)
    for _, n in wanted:
        found = [one for _ in range(0, n, CHUNK) for one in next(results)]
        yield Tally(
            outcomes=Counter(outcome for outcome, _, _ in found),
            trials=[trials for _, trials, _ in found],
            covered=sum(holds for _, _, holds in found),
        )


def write_trials(scale: float, pool: ProcessPoolExecutor) -> Iterator[str]:
    """Tell error rates and trials in normal noise, beside the fixed design."""
    sizes = {0.75: 200, 1.0: 700, 1.5: 3000, 2.0: 4000, 3.0: 4000}
    yield (
        "| Δ/σ | budget | truth | regressed % | unchanged % | undecided % | improved % | "
        "interval holds % |"
    )
    yield "|---:|---:|---|---:|---:|---:|---:|---:|"
    cases = [
        (make_case("gauss", effect, truth), max(20, int(scale * sizes[effect])))
        for effect in EFFECTS
        for truth in (0.0, 1.0)
    ]
    found = list(tally(cases, pool))
    for (case, n), one in zip(cases, found, strict=True):
        words = "equal" if case.change == 0 else "slower by Δ"
        cells = [one.percent(each) for each in (Outcome.REGRESSED, Outcome.UNCHANGED)]
        cells += [one.percent(each) for each in (Outcome.UNDECIDED, Outcome.IMPROVED)]
        effect = math.log1p(RELEVANT) / case.deviation
        held = f"{100 * one.covered / n:.1f} (n = {n})"
        yield f"| {effect:.3g} | {4 * case.blocks} | {words} | {' | '.join(cells)} | {held} |"
    yield ""
    yield (
        "| Δ/σ | truth | trials, median | 90 % | mean | fixed, equal errors | in whole blocks | less | "
        "fixed, 90 % found |"
    )
    yield "|---:|---|---:|---:|---:|---:|---:|---:|---:|"
    for place, effect in enumerate(EFFECTS):
        equal, slower = found[2 * place : 2 * place + 2]
        # The levels at which it errs as often as ours did; at least once in all, since no number of
        # trials reaches a level of zero.
        least = 1 / len(equal.trials) / 2
        false = (equal.share(Outcome.REGRESSED) + equal.share(Outcome.IMPROVED)) / 2
        shares = max(false, least), max(slower.share(Outcome.UNCHANGED), least)
        reported, unchanged = slower.share(Outcome.REGRESSED), equal.share(Outcome.UNCHANGED)
        alike = trials_for(effect, shares, reported, unchanged)
        whole = 4 * math.ceil(alike / 4)
        only = trials_for(effect, (FALSE_SHARE, MISSED_SHARE), 0.9)
        for words, one in (("equal", equal), ("slower by Δ", slower)):
            middle = median(one.trials)
            most = quantiles(one.trials, n=10)[-1]
            cells = f"{middle:g} | {most:.0f} | {fmean(one.trials):.1f} | {alike} | {whole}"
            yield f"| {effect:g} | {words} | {cells} | {100 * (1 - middle / whole):.0f} % | {only} |"
    yield ""


def write_noise(scale: float, pool: ProcessPoolExecutor) -> Iterator[str]:
    """Tell false verdicts and power in noise of all kinds."""
    sizes = {1.5: 4000, 2.0: 2000, 3.0: 2000}
    named = (
        "equal: regressed",
        "equal: improved",
        "slower by Δ: regressed",
        "slower by Δ: unchanged",
    )
    yield "| noise | " + " | ".join(f"{each} %" for each in named) + " |"
    yield "|---|" + "---:|" * len(named)
    cases = [
        (make_case(kind, effect, truth), max(20, int(scale * n / (1 if truth == 0 else 4))))
        for kind in KINDS
        for truth in (0.0, 1.0)
        for effect, n in sizes.items()
    ]
    found = list(tally(cases, pool))
    for place, kind in enumerate(KINDS):
        equal, slower = found[6 * place : 6 * place + 3], found[6 * place + 3 : 6 * place + 6]
        cells = [
            ", ".join(one.percent(outcome) for one in side)
            for side, outcome in (
                (equal, Outcome.REGRESSED),
                (equal, Outcome.IMPROVED),
                (slower, Outcome.REGRESSED),
                (slower, Outcome.UNCHANGED),
            )
        ]
        yield f"| {kind} | {' | '.join(cells)} |"
    yield ""


def write_iterations(scale: float, pool: ProcessPoolExecutor) -> Iterator[str]:
    """Tell the same with five iterations in each trial."""
    n = max(20, int(scale * 1500))
    yield "| shared | truth | regressed % | unchanged % | undecided % | improved % | trials, median |"
    yield "|---:|---|---:|---:|---:|---:|---:|"
    cases = [
        (make_case("gauss", 2.0, truth, iterations=5, shared=shared), n)
        for shared in (0.0, 0.5, 1.0)
        for truth in (0.0, 1.0)
    ]
    for (case, _), one in zip(cases, tally(cases, pool), strict=True):
        cells = [one.percent(each) for each in (Outcome.REGRESSED, Outcome.UNCHANGED)]
        cells += [one.percent(each) for each in (Outcome.UNDECIDED, Outcome.IMPROVED)]
        words = "equal" if case.change == 0 else "slower by Δ"
        yield f"| {case.shared:g} | {words} | {' | '.join(cells)} | {median(one.trials):g} |"
    yield f"\nn = {n} each.\n"


def cover(task: Task) -> list[tuple[bool, bool, bool]]:
    """Return whether the truth is in the 95 % interval: ours, of pooled iterations, with 1.96 for t."""
    return [_cover(task.case.draw(SEED, number), number, task.case.change) for number in task.numbers]


def _cover(blocks: Sequence[Block], seed: int, truth: float) -> tuple[bool, bool, bool]:
    ours = estimate(blocks, seed)
    pooled = estimate([_pool(block) for block in blocks], seed)
    return (
        abs(ours.log_ratio - truth) <= ours.half_width(0.025),
        abs(pooled.log_ratio - truth) <= pooled.half_width(0.025),
        abs(ours.log_ratio - truth) <= _normal_width(ours),
    )


def _normal_width(found: Estimate) -> float:
    # About what percentiles of the resamples would give.
    return 1.959964 * found.standard_error


def _pool(block: Block) -> Block:
    """Take each iteration for a trial, as is wrong."""
    return Block(
        baseline=tuple(TrialValue(value=one) for trial in block.baseline for one in trial.iterations),
        candidate=tuple(TrialValue(value=one) for trial in block.candidate for one in trial.iterations),
    )


def write_coverage(scale: float, pool: ProcessPoolExecutor) -> Iterator[str]:
    """Describe how often 95 % intervals of one look hold the truth."""
    n = max(25, int(scale * 1000))
    yield "| noise | blocks | this | with 1.96 for t | iterations as if trials |"
    yield "|---|---:|---:|---:|---:|"
    for kind in COVERED:
        for count in (1, 2, 3, 5):
            case = Case(kind=kind, blocks=count, deviation=0.03, change=0.04, iterations=5, shared=0.5)
            tasks = [
                Task(case=case, numbers=range(start, min(start + CHUNK, n)))
                for start in range(0, n, CHUNK)
            ]
            found = [one for part in pool.map(cover, tasks) for one in part]
            ours, pooled, normal = (100 * fmean(column) for column in zip(*found, strict=True))
            yield f"| {kind} | {count} | {ours:.1f} | {normal:.1f} | {pooled:.1f} |"
    yield f"\nn = {n} each.\n"


def write_designs(scale: float, pool: ProcessPoolExecutor) -> Iterator[str]:
    """Write the testbed minutes until a change is decided, by how long a trial measures.

    With noise as it was recorded, 5 % take a thousand trials; so it is scaled: a trial of the first
    design scatters by Δ / 1.5. Designs keep their ratios, and trials go with the square of the scatter.
    """
    n = max(20, int(scale * 300))
    yield (
        "| noise | design | scatter of a trial, recorded | truth | regressed % | unchanged % | "
        "improved % | trials, mean | minutes, mean | of the first |"
    )
    yield "|---|---|---:|---|---:|---:|---:|---:|---:|---:|"
    for noise in read_scatters():
        effects = [1.5 * noise.of(DESIGNS[0]) / noise.of(design) for design in DESIGNS]
        cases = [(make_case("gauss", each, truth), n) for each in effects for truth in (0.0, 1.0)]
        found, first = list(tally(cases, pool)), dict[str, float]()
        for place, ((case, _), one) in enumerate(zip(cases, found, strict=True)):
            design, words = DESIGNS[place // 2], "slower by Δ" if case.change else "equal"
            minutes = fmean(one.trials) * design.trial_s / 60
            share = 100 * minutes / first.setdefault(words, minutes)
            outcomes = (Outcome.REGRESSED, Outcome.UNCHANGED, Outcome.IMPROVED)
            cells = [f"{100 * noise.of(design):.1f} %", words, *map(one.percent, outcomes)]
            cells += [f"{fmean(one.trials):.1f}", f"{minutes:.1f}", f"{share:.0f} %"]
            yield f"| {noise.name} (n = {noise.trials}) | {design} | {' | '.join(cells)} |"
    yield f"\nn = {n} each.\n"


WRITERS = dict(
    zip(
        PARTS,
        (write_trials, write_noise, write_iterations, write_designs, write_coverage),
        strict=True,
    )
)


def main() -> None:
    """Run what is asked for and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of all comparisons")
    parser.add_argument("--only", action="append", choices=PARTS)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    started = time.monotonic()
    with ProcessPoolExecutor(arguments.processes) as pool:
        for part in arguments.only or PARTS:
            for line in WRITERS[part](0.05 if arguments.quick else 1.0, pool):
                sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    versions = ", ".join(f"{each} {version(each)}" for each in ("numpy", "scipy"))
    minutes = (time.monotonic() - started) / 60
    python = platform.python_version()
    sys.stdout.write(f"Seed {SEED}; {versions}; Python {python}; {minutes:.0f} min.\n")


if __name__ == "__main__":
    main()

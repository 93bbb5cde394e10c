"""Print what the bisection reaches on releases whose levels are known.

`make bench-bisection` runs all of it on one core; `--quick` a rough table. The table is Markdown, as
docs/statistics.md shows it.
"""

import argparse
import platform
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import version

import numpy as np
from bisection_cases import CASES, Case, Score, play, reference_trials

SEED = 20261121
_KINDS = ("right", "right, others not", "wrong")


def row(case: Case, scores: Sequence[Score]) -> str:
    """Write a line of the table."""
    counts = Counter(one.kind for one in scores)
    n = len(scores)
    trials = np.array([one.trials for one in scores])
    others = ", ".join(
        f"{kind} {_percent(count, n)}" for kind, count in counts.most_common() if kind not in _KINDS
    )
    cells = [_percent(counts[kind], n) for kind in _KINDS]
    if case.least_right is not None and counts["right"] < case.least_right * n:
        cells[0] = f"**{cells[0]}**"
    if case.most_wrong is not None and counts["wrong"] > case.most_wrong * n:
        cells[2] = f"**{cells[2]}**"
    share = f"{trials.mean() / reference_trials(case.size):.2f}" if case.size else ""
    covers = [one.covers for one in scores if one.covers is not None and case.size]
    covered = f"{100 * np.mean(covers):.0f} %" if covers else ""
    figures = f"{trials.mean():.0f} | {np.median(trials):.0f} | {share} | {covered}"
    return f"| {case.name} | {' | '.join(cells)} | {others} | {figures} | {n} |"


def _percent(count: int, n: int) -> str:
    return f"{100 * count / n:.3g} %" if count else "0"


def lines(seed: int, *, is_quick: bool) -> Iterator[str]:
    """Run all cases and give the lines of the table as they come."""
    yield (
        "| releases | right culprit | right, but another step missed or made up | wrong culprit "
        "| no culprit named | trials, mean | median | × reference | interval holds | n |"
    )
    yield "|---|---:|---:|---:|---|---:|---:|---:|---:|---:|"
    for number, case in enumerate(CASES):
        count = case.n // 10 if is_quick else case.n
        yield row(case, [play(case, (seed, number, each)) for each in range(count)])


def main() -> None:
    """Run what is asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the bisections")
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    started = time.monotonic()
    for line in lines(arguments.seed, is_quick=arguments.quick):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    minutes = (time.monotonic() - started) / 60
    references = ", ".join(f"{reference_trials(size):.0f} at {size} σ" for size in (1, 2, 3, 5))
    sys.stdout.write(
        f"\nThe reference takes {references}. Bold: misses its goal. Seed {arguments.seed}; "
        f"numpy {version('numpy')}, scipy {version('scipy')}; Python {platform.python_version()}; "
        f"one core, {minutes:.0f} min.\n"
    )


if __name__ == "__main__":
    main()

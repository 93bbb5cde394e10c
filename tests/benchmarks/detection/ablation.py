"""Print what each part of the detector earns: the same series, read without it.

`make bench-ablation` takes one part away at a time, by putting what does nothing in its place. A part
without which no column is worse should go.
"""

import argparse
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from unittest import mock

import data
import detectors
import numpy as np
import scores
from cases import FIVE, SLOW_GOALS, draw_long

from analysis.detection import selection, step_detector
from analysis.detection.criteria import PreparedSequence
from analysis.detection.selection import Selection

SEED = 20261126
"""Not that of the table of goals."""


def _yes(*_: object, **__: object) -> bool:
    return True


def _no(*_: object, **__: object) -> bool:
    return False


def _nothing(*_: object, **__: object) -> set[int]:
    return set()


def _no_week(*_: object) -> tuple[float, ...]:
    return ()


def _same(values: Sequence[float], _: object) -> Sequence[float]:
    return values


PARTS: dict[str, tuple[tuple[Any, str, Any], ...]] = {
    "nothing": (),
    "the week": ((step_detector, "find_week", _no_week),),
    "outliers pulled in": ((step_detector, "clip_outliers", _same),),
    "candidates of Otava's e-divisive": ((step_detector, "find_by_divisive", _nothing),),
    "candidates of moving sums": ((step_detector, "find_by_moving_sums", _nothing),),
    "the test of the ranks": ((Selection, "_passes_by_rank", _yes),),
    "seen without the furthest point": ((selection, "_MANY_POINTS", 0),),
    "stricter between two changes": ((selection, "_ENDED_SHARE", 1.0),),
    "each step moved to where it fits best": ((Selection, "_relocate", _nothing),),
    "do the newest points scatter?": ((PreparedSequence, "outdoes_newest_scatter", _yes),),
    "may it be the begin of something slower?": ((selection, "_NEW_LEAD", -math.inf),),
    "does the level wander?": ((PreparedSequence, "wanders", _no),),
    "drift is no step": ((step_detector, "find_drifts", _nothing),),
}
"""What is put in the place of what, so that the part has no say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One part, and the numbers of the series that are read without it."""

    part: str
    numbers: range


def score(task: Task) -> list[dict[str, Any]]:
    """Return what became of the series of each number, by column."""
    with ExitStack() as stack:
        for where, name, instead in PARTS[task.part]:
            stack.enter_context(mock.patch.object(where, name, instead))
        return [dict(_score(number)) for number in task.numbers]


def _score(number: int) -> Iterator[tuple[str, Any]]:
    def draw(*words: object) -> np.random.Generator:
        return data.make_generator(SEED, *words, number)

    for kind, size in (*((kind, 3) for kind in FIVE), ("gauss", 2), ("gauss", 1), ("weekly", 3)):
        planted = data.steps(kind, size, draw("steps", kind, size))
        found = [at for at, is_confirmed in detectors.ours(planted.values) if is_confirmed]
        yield f"steps {kind} {size}", scores.match(planted.places, found)
    for kind in (FIVE[number % len(FIVE)], *SLOW_GOALS):
        yield (
            f"nights {kind}",
            scores.false_alerts(detectors.ours, data.pure(kind, draw("nights", kind))),
        )
    planted = data.step_at("gauss", 2, draw("wait"), n=140)
    yield "wait", scores.describe_story(detectors.ours, planted.values, 100).confirmed_after
    yield "time", scores.cpu_ms(detectors.ours, draw_long(draw("time")))


def row(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the cells of one part, from the scores of all series."""

    def f1(*names: str) -> str:
        hits = [one[name] for one in results for name in names]
        return f"{scores.f1(hits):.3f}"

    def false(*kinds: str) -> str:
        told = [one[name] for one in results for kind in kinds if (name := f"nights {kind}") in one]
        return f"{1000 * sum(one.confirmed for one in told) / sum(one.nights for one in told):.1f}"

    yield f1(*(f"steps {kind} 3" for kind in FIVE))
    yield from (f1(f"steps {name}") for name in ("gauss 2", "gauss 1", "weekly 3"))
    yield false(*FIVE)
    yield from (false(kind) for kind in SLOW_GOALS)
    waits = [one["wait"] for one in results]
    yield f"{np.quantile(waits, 0.5, method='higher'):g}, {np.quantile(waits, 0.9, method='higher'):g}"
    yield f"{np.median([one['time'] for one in results]):.0f}"


def main() -> None:
    """Read all series without each part, and print the table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=30, help="of each kind (default 30)")
    parser.add_argument("--only", action="append", choices=PARTS)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    started = time.monotonic()
    head = ["F1 3σ", "2σ", "1σ", "3σ in a week", "five noises", *SLOW_GOALS, "wait for 2σ", "ms"]
    sys.stdout.write(f"| without | {' | '.join(head)} |\n|---|{'---:|' * len(head)}\n")
    numbers = range(arguments.series)
    with ProcessPoolExecutor(arguments.processes) as pool:
        for part in arguments.only or PARTS:
            works = [Task(part=part, numbers=numbers[at : at + 2]) for at in numbers[::2]]
            results = [one for some in pool.map(score, works) for one in some]
            sys.stdout.write(f"| {part} | {' | '.join(row(results))} |\n")
            sys.stdout.flush()
    took = (time.monotonic() - started) / 60
    sys.stdout.write(f"\nSeed {SEED}; {arguments.series} series of each kind; {took:.0f} min.\n")


if __name__ == "__main__":
    main()

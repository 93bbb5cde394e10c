"""Print what the detector reaches, beside Otava: same data, one run.

`make bench-detection` runs all of it; `--quick` gives a rough table of our detector alone in about a
minute or two. The tables are Markdown, as docs/statistics.md shows them.
"""

import argparse
import math
import os
import platform
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from cases import CASES, Figure, draw_long
from data import make_generator
from detectors import DETECTORS, TITLES

SEED = 20260301
CHUNK = 5
"""Series of one task: small, so that all cores end at about the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Some series of one case for one detector. Names only, since it goes to another process."""

    detector: str
    case: int
    seed: int
    numbers: range


def run_task(task: Task) -> list[Any]:
    """Score the series of a task; series of one number are the same for every detector."""
    case = CASES[task.case]
    find = DETECTORS[task.detector]
    return [
        case.score(find, make_generator(task.seed, case.part, case.name, number))
        for number in task.numbers
    ]


def plan(arguments: argparse.Namespace) -> Iterator[Task]:
    """Yield the tasks of a run."""
    for index, case in enumerate(CASES):
        if arguments.only and case.part not in arguments.only:
            continue
        series = case.quick if arguments.quick else case.series
        for detector in arguments.detectors:
            for start in range(0, series, CHUNK):
                numbers = range(start, min(start + CHUNK, series))
                yield Task(detector=detector, case=index, seed=arguments.seed, numbers=numbers)


def run(tasks: Sequence[Task], processes: int) -> dict[tuple[int, str], list[Any]]:
    """Run all tasks and gather the scores by case and detector, in the order of the series."""
    gathered: dict[tuple[int, str], list[Any]] = {}
    with ProcessPoolExecutor(processes, initializer=_silence) as pool:
        for number, (task, scores) in enumerate(zip(tasks, pool.map(run_task, tasks), strict=True), 1):
            gathered.setdefault((task.case, task.detector), []).extend(scores)
            if sys.stderr.isatty():
                sys.stderr.write(f"\r{number} of {len(tasks)}")
    return gathered


def judge_long(work: tuple[str, int, range]) -> int:
    """Judge long series and count what is found; the time of it is taken outside."""
    detector, seed, numbers = work
    find = DETECTORS[detector]
    return sum(len(find(draw_long(make_generator(seed, "long", number)))) for number in numbers)


def time_many(detector: str, seed: int, processes: int) -> Figure:
    """Judge 1000 series of 1000 points on all processes, their start included."""
    works = [(detector, seed, range(start, start + 20)) for start in range(0, 1000, 20)]
    started = time.monotonic()
    with ProcessPoolExecutor(processes, initializer=_silence) as pool:
        sum(pool.map(judge_long, works))
    name = f"seconds for 1000 series of 1000 points, {processes} processes"
    return Figure(name=name, value=time.monotonic() - started, at_most=20)


def _silence() -> None:
    # Otava divides by zero in equal values, and says so each time.
    warnings.simplefilter("ignore")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measured thing: a figure of each detector, in their order, from `n` series each."""

    figures: tuple[Figure, ...]
    n: int

    @property
    def has_goal(self) -> bool:
        """Return whether anything was asked of it."""
        return self.figures[0].is_met is not None

    def __str__(self) -> str:
        """Write it in Markdown; a value that misses the goal is bold."""
        first = self.figures[0]
        goal = "" if first.at_least is None else f"≥ {first.at_least:g}"
        goal += "" if first.at_most is None else f"≤ {first.at_most:g}"
        verdict = {None: "", True: "met", False: "missed"}[first.is_met]
        cells = " | ".join(map(_cell, self.figures))
        return f"| {first.name} | {goal} | {cells} | {self.n} | {verdict} |"


def rows(gathered: dict[tuple[int, str], list[Any]], detectors: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of what was run, in the order of the cases."""
    for index, case in enumerate(CASES):
        results = [gathered[index, each] for each in detectors if (index, each) in gathered]
        columns = [case.add_up(each) for each in results]
        for figures in zip(*columns, strict=True):
            yield Row(figures=figures, n=len(results[0]))


def write(found: Sequence[Row], detectors: Sequence[str]) -> Iterator[str]:
    """Yield the lines of both tables: what has a goal, and what is worth knowing beside it."""
    asked = [row for row in found if row.has_goal]
    for title, part in (
        ("Goals", asked),
        ("Beside the goals", [row for row in found if row not in asked]),
    ):
        if part:
            yield f"### {title}\n"
            yield "| measured | goal | " + " | ".join(TITLES[each] for each in detectors) + " | n | |"
            yield "|---|---|" + "---:|" * len(detectors) + "---:|---|"
            yield from map(str, part)
            yield ""
    met = [
        f"{TITLES[each]} {sum(row.figures[which].is_met is True for row in asked)}"
        for which, each in enumerate(detectors)
    ]
    yield f"Of {len(asked)} goals are met: {', '.join(met)}."
    yield "Bold: misses the goal. In brackets: 95 % intervals."


def _cell(figure: Figure) -> str:
    value = _number(figure.value)
    if figure.is_met is False:
        value = f"**{value}**"
    if figure.interval is None:
        return value
    low, high = figure.interval
    return f"{value} ({_number(low)}–{_number(high)})"


def _number(value: float) -> str:
    return "never" if math.isinf(value) else f"{value:.3g}"


def _circumstances(seed: int, took_s: float) -> str:
    versions = ", ".join(f"{each} {version(each)}" for each in ("apache-otava", "numpy", "scipy"))
    return (
        f"Seed {seed}; {versions}; Python {platform.python_version()}; "
        f"{os.cpu_count()} cores; {took_s / 60:.0f} min."
    )


def main() -> None:
    """Run what is asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few series, our detector alone")
    parser.add_argument("--only", action="append", choices=sorted({case.part for case in CASES}))
    parser.add_argument("--detectors", type=lambda text: text.split(","))
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    arguments.detectors = arguments.detectors or (["ours"] if arguments.quick else list(DETECTORS))
    started = time.monotonic()
    gathered = run(list(plan(arguments)), arguments.processes)
    found = list(rows(gathered, arguments.detectors))
    if not arguments.quick and (not arguments.only or "speed" in arguments.only):
        seed, processes = arguments.seed, arguments.processes
        times = tuple(time_many(each, seed, processes) for each in arguments.detectors)
        found.append(Row(figures=times, n=1000))
    sys.stdout.writelines(f"{line}\n" for line in write(found, arguments.detectors))
    sys.stdout.write(f"{_circumstances(arguments.seed, time.monotonic() - started)}\n")


if __name__ == "__main__":
    main()

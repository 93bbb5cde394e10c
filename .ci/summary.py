"""Print what a run of `.ci/run` did: its steps with their times, the slowest tests, how many passed.

    python summary.py STEPS TESTS

STEPS has a line "SECONDS NAME" for each step, the time at which it began; the last one says when all
ended. TESTS is what `KNICKPOINT_TESTS_TOLD` collected (tests/reliability/kept.py).
"""

import json
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

SLOWEST = 10


def main(steps: str, tests: str) -> None:
    """Print the summary; its last line is the one that runners of CI count by."""
    began = [line.split(" ", 1) for line in Path(steps).read_text().splitlines()]
    outcomes: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for phase in map(json.loads, Path(tests).read_text().splitlines()):
        outcomes[phase["outcome"]] += 1
        seconds[phase["test"]] += phase["seconds"]
    reported = ["", "=== what ran, and how long it took"]
    reported += [f"{int(end[0]) - int(start[0]):6} s  {start[1]}" for start, end in pairwise(began)]
    reported += [
        f"{int(began[-1][0]) - int(began[0][0]):6} s  in all",
        "",
        f"=== the {SLOWEST} slowest tests",
    ]
    reported += [f"{spent:6.0f} s  {test}" for test, spent in seconds.most_common(SLOWEST)]
    reported += ["", ", ".join(f"{outcomes[word]} {word}" for word in ("passed", "failed", "skipped"))]
    sys.stdout.write("\n".join(reported) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

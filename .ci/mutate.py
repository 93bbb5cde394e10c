"""Try the tests of what decides: of each room, a sample of mistakes that a test must notice.

Run by `make mutation`. mutmut makes and tries the mutants, by `[tool.mutmut]` of pyproject.toml; this
takes the sample, which mutmut cannot, and prints how many were found. Arguments: how many of each room,
and the seed.
"""

import random
import subprocess
import sys

ROOMS = {
    "detection": ("analysis.detection.",),
    "judging": ("analysis.judging.",),
    "comparing": ("analysis.comparing.",),
    "bisecting": ("analysis.bisecting.",),
    "validity": ("perf.trial.validity.", "perf.trial.disturbance."),
    "history append": ("perf.history.store.", "perf.history.storage.file."),
    "bundle sealing": ("perf.history.bundle.",),
}
ANY = "perf.history.bundle.x__listed__mutmut_1"
FOUND = ("killed", "timeout", "segfault")


def main() -> None:
    """Print for each room how many of the mutants the tests found, and those that they did not."""
    count, seed = map(int, (*sys.argv[1:], *("40", "23")[len(sys.argv) - 1 :]))
    _mutmut("run", ANY)  # before the first run nothing has a name
    names = sorted(_states())
    sample = {}
    for room, begins in ROOMS.items():
        generator = random.Random(seed)  # noqa: S311  no secret
        sample[room] = generator.sample([one for one in names if one.startswith(begins)], count)
    _mutmut("run", "--max-children", "1", *(name for chosen in sample.values() for name in chosen))
    states = _states()
    for room, chosen in sample.items():
        left = [name for name in chosen if states[name] not in FOUND]
        reported = f"{room}: {len(chosen)} mutants, {len(chosen) - len(left)} found"
        print(reported, flush=True)  # noqa: T201  a program
        for name in left:
            _mutmut("show", name)


def _mutmut(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "mutmut", *words], check=True)  # noqa: S603  fixed words


def _states() -> dict[str, str]:
    """Return how each mutant ended, by its name."""
    reported = subprocess.run(
        [sys.executable, "-m", "mutmut", "results", "--all", "true"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return dict(line.strip().rsplit(": ", 1) for line in reported.stdout.splitlines() if ": " in line)


if __name__ == "__main__":
    main()

"""Real nights in a row, unattended, with a watcher beside them: `make soak-real NIGHTS=30`.

Each night is one `knickpoint nightly` on one Cassandra server of this machine, as a command of its own.
After each the watcher writes a line of nights.jsonl: how the command ended, what became of its trials,
what it left behind, how large everything is, and how much memory and how many files it held open.
The nights have a temporary directory of their own, so that whatever they forget there is seen.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import psutil
from watching import find_processes, weigh

from perf.history import bundle
from perf.history.store import open_history
from perf.jobs.night import read_nights
from perf.local.places import Places
from perf.model.nights import Night

ROOT = Path(__file__).parents[2]
SUITE = "soak"
_LOOK_S = 0.5


@dataclass(slots=True, kw_only=True)
class Peak:
    """The most that the command, and all processes of a night, held at any look."""

    command_mb: float = 0.0
    command_files: int = 0
    command_threads: int = 0
    largest_mb: float = 0.0
    largest: str = ""
    processes: int = 0

    def look(self, pid: int, data: Path) -> None:
        ours = find_processes(data, pid)
        self.processes = max(self.processes, len(ours))
        for process in ours:
            try:
                held_mb = process.memory_info().rss / 1e6
                if process.pid == pid:
                    self.command_mb = max(self.command_mb, held_mb)
                    self.command_files = max(self.command_files, process.num_fds())
                    self.command_threads = max(self.command_threads, process.num_threads())
                elif held_mb > self.largest_mb:
                    self.largest_mb, self.largest = held_mb, process.name()
            except psutil.Error:
                continue


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the watcher saw of one night."""

    night: int
    ended_at: str
    exit_code: int
    waited_s: float
    took_s: float
    trials: dict[str, str]
    """Each trial of the night, and how it ended, with its reasons."""
    verdict: str
    incidents: tuple[str, ...]
    peak: Peak
    processes_left: tuple[str, ...]
    left_in_tmp: tuple[str, ...]
    untold: tuple[str, ...]
    sizes_kb: dict[str, int]
    """Of each part of the data directory."""
    files: dict[str, int]
    bundles: int
    in_history: int
    errors: str = field(default="")


@contextmanager
def locked(path: Path | None) -> Iterator[float]:
    """Hold a file's lock, if there is one to hold; give how long that took to get."""
    began_s = time.monotonic()
    if path is None:
        yield 0.0
        return
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield time.monotonic() - began_s


def lay_out(into: Path) -> tuple[Path, Places]:
    """Make the configuration: the repository's own, with the suite and testbed of the soak over it."""
    configs = into / "configs"
    shutil.copytree(ROOT / "configs", configs, dirs_exist_ok=True)
    shutil.copytree(Path(__file__).with_name("soak_configs"), configs, dirs_exist_ok=True)
    (into / "tmp").mkdir(parents=True, exist_ok=True)
    return configs, Places(into / "var")


def run_night(number: int, into: Path, configs: Path, places: Places, waited_s: float) -> Seen:
    """Run one night to its end, watch it, and say what was seen."""
    command = [sys.executable, "-m", "perf.commands.main", "nightly", "--suite", SUITE]
    command += ["--data", str(places.data), "--configs", str(configs)]
    log = into / f"night-{number:02d}.log"
    began_s, peak, known = time.monotonic(), Peak(), len(read_nights(places))
    with log.open("wb") as output:
        night = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(into / "tmp")},
        )
        while night.poll() is None:
            peak.look(night.pid, places.data)
            time.sleep(_LOOK_S)
    took_s = time.monotonic() - began_s
    new = read_nights(places)[known:]
    return _describe(number, night.returncode, (waited_s, took_s), peak, new, (into, places, log))


def _describe(
    number: int,
    exit_code: int,
    times_s: tuple[float, float],
    peak: Peak,
    new: Sequence[Night],
    where: tuple[Path, Places, Path],
) -> Seen:
    into, places, log = where
    told = log.read_text(encoding="utf-8", errors="replace")
    trials = {}
    for planned in (planned for night in new for planned in night.trials):
        trial = bundle.read(places.trials / planned.id)[0]
        reasons = "; ".join(f"{reason.kind}: {reason.text}" for reason in trial.reasons)
        trials[trial.id] = f"{trial.status.value}{': ' if reasons else ''}{reasons}"
    parts = {path.name: weigh(path) for path in sorted(places.data.iterdir())}
    with open_history(places.history, read_only=True) as history:
        in_history = len(history.heads())
    return Seen(
        night=number,
        ended_at=f"{datetime.now(UTC):%H:%M:%S}",
        exit_code=exit_code,
        waited_s=round(times_s[0], 1),
        took_s=round(times_s[1], 1),
        trials=trials,
        verdict=next((line for line in told.splitlines() if line.startswith("Verdict:")), ""),
        incidents=tuple(line for line in told.splitlines() if "Incident" in line),
        peak=peak,
        processes_left=tuple(
            f"{one.pid} {' '.join(one.cmdline())[:200]}" for one in find_processes(places.data)
        ),
        left_in_tmp=tuple(sorted(path.name for path in (into / "tmp").iterdir())),
        untold=tuple(path.name for path in places.nights.glob("*.untold")),
        sizes_kb={name: size for name, (size, _) in parts.items()},
        files={name: count for name, (_, count) in parts.items()},
        bundles=len(bundle.find(places)),
        in_history=in_history,
        errors="\n".join(told.splitlines()[-12:]) if exit_code not in {0, 1} else "",
    )


def run_nights(nights: int, into: Path, lock: Path | None = None) -> list[Seen]:
    """Run so many nights in a row; give, and write, what was seen of each."""
    configs, places = lay_out(into)
    seen = []
    for number in range(1, nights + 1):
        with locked(lock) as waited_s:
            seen.append(run_night(number, into, configs, places, waited_s))
        with (into / "nights.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(seen[-1]), ensure_ascii=False) + "\n")
    return seen


def check(seen: Sequence[Seen]) -> tuple[list[str], dict[str, object]]:
    """Give what is wrong, and figures: only trials may fail by what else the machine did."""
    wrong = []
    for one in seen:
        if one.exit_code not in {0, 1, 3}:
            wrong.append(f"night {one.night} ended with {one.exit_code}")
        if not one.trials:
            wrong.append(f"night {one.night} measured nothing: {one.errors}")
        elif one.exit_code == 3 and set(one.trials.values()) == {"completed"}:
            wrong.append(f"night {one.night} ended with 3 though each trial completed: {one.errors}")
        if one.processes_left or one.left_in_tmp or one.untold:
            wrong.append(
                f"night {one.night} left {one.processes_left or one.left_in_tmp or one.untold}"
            )
        if one.bundles != one.in_history:
            wrong.append(f"night {one.night}: {one.bundles} bundles, {one.in_history} in the history")
    ends = Counter(
        ended.partition(": ")[2].partition(": ")[0] or "completed" for ended in _trials(seen)
    )
    first, last = seen[0], seen[-1]
    return wrong, {
        "nights": len(seen),
        "exit codes": dict(Counter(one.exit_code for one in seen)),
        "trials by how they ended": dict(ends),
        "memory of the command, first, most, last (MB)": [
            round(value)
            for value in (
                first.peak.command_mb,
                max(one.peak.command_mb for one in seen),
                last.peak.command_mb,
            )
        ],
        "its open files, first and last": [first.peak.command_files, last.peak.command_files],
        "sizes, first and last (KB)": [_large(one) for one in (first, last)],
        "seconds of a night, least and most": [
            round(choose(one.took_s for one in seen)) for choose in (min, max)
        ],
    }


def _trials(seen: Sequence[Seen]) -> list[str]:
    return [ended for one in seen for ended in one.trials.values()]


def _large(one: Seen) -> dict[str, int]:
    return {name: size for name, size in one.sizes_kb.items() if size}

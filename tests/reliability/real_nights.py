"""Real nights in a row, unattended, with a watcher beside them: `make soak-real NIGHTS=30`.

Each night is one `knickpoint nightly` on one Cassandra server of this machine, as a command of its own.
After each the watcher writes a line of nights.jsonl: how the command ended, what became of its trials,
what it left behind, how large everything is, how much memory and how many files the command held.
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
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from watching import find_processes, weigh

from perf.history import bundle
from perf.history.store import open_history
from perf.jobs.night import read_nights
from perf.local.paths import DataPaths

ROOT = Path(__file__).parents[2]
SUITE = "soak"
_LOOK_S = 0.5


@dataclass(slots=True, kw_only=True)
class Peak:
    """The most that the command held at any look."""

    memory_mb: float = 0.0
    files: int = 0

    def look(self, pid: int) -> None:
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            self.memory_mb = max(self.memory_mb, process.memory_info().rss / 1e6)
            self.files = max(self.files, process.num_fds())


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the watcher saw of one night."""

    night: int
    exit_code: int
    took_s: float
    trials: dict[str, str]
    """Each trial of the night, and how it ended, with its reasons."""
    peak: Peak
    left: tuple[str, ...]
    """Processes, temporary files and marks of nights that were not told."""
    sizes_kb: dict[str, int]
    """Of each part of the data directory."""
    bundles: int
    in_history: int
    said: str


@contextmanager
def locked(path: Path | None) -> Iterator[None]:
    """Hold a file's lock, if there is one to hold."""
    if path is None:
        yield
        return
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def lay_out(into: Path) -> tuple[Path, DataPaths]:
    """Make the configuration: the repository's own, with the suite and testbed of the soak over it."""
    configs = into / "configs"
    shutil.copytree(ROOT / "configs", configs, dirs_exist_ok=True)
    shutil.copytree(Path(__file__).with_name("soak_configs"), configs, dirs_exist_ok=True)
    (into / "tmp").mkdir(parents=True, exist_ok=True)
    return configs, DataPaths(into / "var")


def run_night(number: int, into: Path, configs: Path, paths: DataPaths) -> Seen:
    """Run one night to its end, watch it, and say what was seen."""
    command = [sys.executable, "-m", "perf.commands.main", "nightly", "--suite", SUITE]
    command += ["--data", str(paths.data), "--configs", str(configs)]
    log = into / f"night-{number:02d}.log"
    began_s, peak, known = time.monotonic(), Peak(), len(read_nights(paths))
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
            peak.look(night.pid)
            time.sleep(_LOOK_S)
    took_s = time.monotonic() - began_s
    trials = {}
    for planned in (planned for one in read_nights(paths)[known:] for planned in one.trials):
        trial = bundle.read(paths.trials / planned.id)[0]
        reasons = "; ".join(f"{reason.kind}: {reason.text}" for reason in trial.reasons)
        trials[trial.id] = f"{trial.status.value}{': ' if reasons else ''}{reasons}"
    with open_history(paths.history, read_only=True) as history:
        in_history = len(history.heads())
    return Seen(
        night=number,
        exit_code=night.returncode,
        took_s=round(took_s, 1),
        trials=trials,
        peak=peak,
        left=(
            *(f"{one.pid} {' '.join(one.cmdline())[:200]}" for one in find_processes(paths.data)),
            *sorted(path.name for path in (into / "tmp").iterdir()),
            *(path.name for path in paths.nights.glob("*.untold")),
        ),
        sizes_kb={path.name: weigh(path)[0] for path in sorted(paths.data.iterdir())},
        bundles=len(bundle.find(paths)),
        in_history=in_history,
        said="\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-12:]),
    )


def run_nights(nights: int, into: Path, lock: Path | None = None) -> list[Seen]:
    """Run so many nights in a row; give, and write, what was seen of each."""
    configs, paths = lay_out(into)
    seen = []
    for number in range(1, nights + 1):
        with locked(lock):
            seen.append(run_night(number, into, configs, paths))
        with (into / "nights.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(seen[-1]), ensure_ascii=False) + "\n")
    return seen


def check(seen: Sequence[Seen]) -> tuple[list[str], dict[str, object]]:
    """Return what is wrong, and figures: only trials may fail by what else the machine did."""
    wrong = []
    for one in seen:
        if one.exit_code not in {0, 1, 3}:
            wrong.append(f"night {one.night} ended with {one.exit_code}")
        if not one.trials:
            wrong.append(f"night {one.night} measured nothing: {one.said}")
        elif one.exit_code == 3 and set(one.trials.values()) == {"completed"}:
            wrong.append(f"night {one.night} ended with 3 though each trial completed: {one.said}")
        if one.left:
            wrong.append(f"night {one.night} left {one.left}")
        if one.bundles != one.in_history:
            wrong.append(f"night {one.night}: {one.bundles} bundles, {one.in_history} in the history")
    trials = [ended for one in seen for ended in one.trials.values()]
    memory_mb = [round(one.peak.memory_mb) for one in seen]
    return wrong, {
        "nights": len(seen),
        "exit codes": dict(Counter(one.exit_code for one in seen)),
        "trials by how they ended": dict(
            Counter(ended.partition(": ")[2].partition(": ")[0] or "completed" for ended in trials)
        ),
        "memory of the command, first, most, last (MB)": [memory_mb[0], max(memory_mb), memory_mb[-1]],
        "its open files, first and last": [seen[0].peak.files, seen[-1].peak.files],
        "sizes, first and last (KB)": [seen[0].sizes_kb, seen[-1].sizes_kb],
        "seconds of a night, least and most": [
            round(choose(one.took_s for one in seen)) for choose in (min, max)
        ],
    }

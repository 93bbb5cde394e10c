"""Run a season of simulated nights, one after the other, unattended, and keep what was seen of each."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import season
from channel_server import Channel, Fault, serve
from simulated_night import BALLAST
from watching import find_processes, weigh

from perf.local.paths import DataPaths

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ALONE_EVERY = 10
"""Every tenth night is a process of its own, as are those that something ends; all others share one."""
_ROOM = "1g"
_DOWN = 40


@dataclass(slots=True)
class Seen:
    """A season as it was seen: a record for each run of a night, in order."""

    into: Path
    nights: int
    real_every: int
    has_room: bool
    runs: list[dict[str, Any]] = field(default_factory=list)
    messages: int = 0

    @property
    def paths(self) -> DataPaths:
        return DataPaths(self.into / "var")


class Worker:
    """A process that runs nights, one after the other, as they are asked of it."""

    def __init__(self, into: Path, log: Path, url: str, real_every: int) -> None:
        tmp = into / "tmp"
        tmp.mkdir(exist_ok=True)
        path = os.pathsep.join([str(HERE), str(ROOT)])
        with log.open("ab") as said:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, str(HERE / "simulated_night.py"), "--into", str(into)),
                    *("--real-every", str(real_every)),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                cwd=ROOT,
                text=True,
                env={
                    **os.environ,
                    "TMPDIR": str(tmp),
                    "PYTHONPATH": path,
                    "KNICKPOINT_WEBHOOK_URL": url,
                },
            )

    def run(self, asked: str) -> dict[str, Any]:
        """Run a night; give what it answers, or how the process ended where it did."""
        pipe, answers = self._process.stdin, self._process.stdout
        assert pipe is not None
        assert answers is not None
        pipe.write(f"{asked}\n")
        pipe.flush()
        if line := answers.readline():
            answer: dict[str, Any] = json.loads(line)
            return answer
        return {"night": int(asked.split(maxsplit=1)[0]), "code": self._process.wait()}

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.wait()


@contextmanager
def small_file_system(place: Path) -> Iterator[bool]:
    """Put a small file system of its own at a place, where this machine allows it; say whether."""
    place.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={_ROOM}", "knickpoint-season", str(place)]
    has_room = subprocess.run(command, check=False, capture_output=True).returncode == 0
    try:
        yield has_room
    finally:
        if has_room:
            subprocess.run(["umount", "--lazy", str(place)], check=True)


def lay_out(into: Path) -> None:
    """Make the configuration that stays the same in all nights."""
    shutil.copytree(HERE / "season_configs", into / "configs")
    for name in ("detection.yaml", "triage.yaml"):
        shutil.copy(ROOT / "configs" / name, into / "configs")


@contextmanager
def run_season(nights: int, into: Path, log: Path, *, real_every: int = 0) -> Iterator[Seen]:
    """Run so many nights; give what was seen, while the data directory is still there."""
    lay_out(into)
    with small_file_system(into / "var") as has_room, serve() as channel:
        seen = Seen(into, nights, real_every, has_room)
        long_lived = Worker(into, log, channel.url, real_every)
        try:
            for night in range(nights):
                _run_night(night, seen, long_lived, log, channel)
        finally:
            long_lived.close()
        seen.messages = len(channel.heard)
        yield seen


def _run_night(night: int, seen: Seen, long_lived: Worker, log: Path, channel: Channel) -> None:
    fault, _, rest = season.fault_of(night).partition(",")
    if fault == "left-out" or (not seen.has_room and fault.partition(" ")[0] in {"disk-full", "fill"}):
        return
    channel.faults[:] = [Fault(status=500)] * (_DOWN if fault == "channel-down" else 0)
    if not fault.startswith(("kill", "interrupt", "disk-full", "fill")) and night % ALONE_EVERY:
        _keep(seen, long_lived.run(str(night)), is_alone=False)
        return
    for asked in (str(night), *([f"{night} again"] if rest else [])):
        alone = Worker(seen.into, log, channel.url, seen.real_every)
        answer = alone.run(asked)
        alone.close()
        (seen.paths.data / BALLAST).unlink(missing_ok=True)
        _keep(seen, answer, is_alone=True)


def _keep(seen: Seen, answer: dict[str, Any], *, is_alone: bool) -> None:
    paths = seen.paths
    parts = {path.name: weigh(path) for path in sorted(paths.data.iterdir())}
    seen.runs.append(
        {
            **answer,
            "is_alone": is_alone,
            "ended_s": time.time(),
            "parts": parts,
            "tmp": sorted(path.name for path in (seen.into / "tmp").iterdir()),
            "untold": sorted(path.name for path in paths.nights.glob("*.untold")),
            "left": [" ".join(one.cmdline())[:160] for one in find_processes(paths.run)],
        }
    )
    with (seen.into / "runs.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(seen.runs[-1]) + "\n")

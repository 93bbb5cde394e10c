"""What server processes did second by second, sampled on their own hosts while load is offered.

    seconds.csv.gz   in the bundle: a line for each process and second, as its host saw it

One small program per host reads /proc once a second, until it is ended or no server is left. Windows of
`telemetry` are what is judged; seconds are for people, and cost no trial.
"""

import csv
import gzip
import io
import time
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from signal import SIGTERM
from typing import Self

from perf.hosts.remote import running_pid, send_signal
from perf.local.plain_files import read_plain
from perf.model.errors import KnickpointError, StepFailed
from perf.model.results import Reason
from perf.systems.contract import Cluster, Node

SECONDS = "seconds.csv.gz"
_HEAD = "node,time_s,cpu_s,read_bytes,written_bytes,memory_bytes,threads\n"
_MOST_PACKED, _MOST_TEXT = 16 * 1024**2, 64 * 1024**2
_ENDS_WITHIN_S, _POLL_S = 10.0, 0.02
_PROGRAM = """
import os, sys, time
nodes = list(zip(sys.argv[1::2], sys.argv[2::2]))
ticks, page, due = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE"), time.monotonic()
seen = True
while seen:
    seen = False
    for name, file in nodes:
        try:
            pid, born = open(file).read().split()
            stat = open("/proc/" + pid + "/stat").read().rpartition(")")[2].split()
            bytes = dict(line.split(": ") for line in open("/proc/" + pid + "/io").read().splitlines())
        except (OSError, ValueError):
            continue
        if stat[19] == born:
            seen = True
            cpu_s, memory = (int(stat[11]) + int(stat[12])) / ticks, int(stat[21]) * page
            moved = bytes.get("read_bytes", 0), bytes.get("write_bytes", 0)
            print(name, round(time.time(), 3), cpu_s, *moved, memory, stat[17], sep=",", flush=True)
    due = max(due + 1, time.monotonic())
    time.sleep(max(0, due - time.monotonic()))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSecond:
    """What one server process did between two looks, about a second; times since the Unix epoch.

    `cores` is CPU time per time, bytes are those fetched from and sent to storage per second.
    """

    node: str
    start_s: float
    end_s: float
    cores: float
    read_per_s: float
    written_per_s: float
    memory_bytes: int
    threads: int


@contextmanager
def sample_seconds(cluster: Cluster, staged: Path) -> Iterator[list[Reason]]:
    """Sample all server processes while this goes on, and put what was seen into a bundle.

    Gives the remarks on hosts that could not be sampled; it is whole afterwards.
    """
    placed: defaultdict[str, list[Node]] = defaultdict(list)
    for node in cluster.nodes:
        placed[node.remote.name].append(node)
    remarks: list[Reason] = []
    begun = []
    for nodes in placed.values():
        with _remarked(nodes[0], remarks):
            _start(nodes)
            begun.append(nodes[0])
    try:
        yield remarks
    finally:
        seen = []
        for node in begun:
            with _remarked(node, remarks):
                seen.append(_end(node))
        if any(seen):
            text = "".join((_HEAD, *seen))
            (staged / SECONDS).write_bytes(gzip.compress(text.encode(), mtime=0))


def _start(nodes: Sequence[Node]) -> None:
    first = nodes[0]
    asked = [word for node in nodes for word in (node.name, node.pid_file)]
    first.remote.run(["rm", "-f", _log(first)])
    first.remote.start(
        ["python3", "-I", "-S", "-c", _PROGRAM, *asked],
        pid_file=_pid_file(first),
        log=_log(first),
        cwd=first.work_dir,
    )


def _end(node: Node) -> str:
    """Return the lines of one host; what it wrote last may be half a line."""
    give_up_s = time.monotonic() + _ENDS_WITHIN_S
    send_signal(node.remote, _pid_file(node), SIGTERM)
    while running_pid(node.remote, _pid_file(node)) is not None:
        if time.monotonic() > give_up_s:
            raise StepFailed("sample", node.remote.name, f"no end within {_ENDS_WITHIN_S:g} s")
        time.sleep(_POLL_S)
    lines = node.remote.run(["cat", _log(node)]).stdout.splitlines(keepends=True)
    return "".join(one for one in lines if one.count(",") == _HEAD.count(",") and one.endswith("\n"))


def _log(node: Node) -> str:
    return f"{node.work_dir}/seconds.csv"


def _pid_file(node: Node) -> str:
    return f"{node.work_dir}/seconds.pid"


@contextmanager
def _remarked(node: Node, remarks: list[Reason]) -> Iterator[None]:
    try:
        yield
    except (KnickpointError, OSError) as error:
        text = f"{node.remote.name}: its servers were not sampled second by second: {error}"
        remarks.append(Reason(kind="seconds-missing", text=text))


def read_seconds(bundle: Path) -> tuple[ServerSecond, ...]:
    """Return what a trial's servers did, by node and time; nothing of a bundle without it."""
    try:
        packed = read_plain(bundle / SECONDS, _MOST_PACKED)
        text = zlib.decompressobj(wbits=31).decompress(packed, _MOST_TEXT).decode(errors="replace")
        looks = [_Look.of(row) for row in csv.DictReader(io.StringIO(text))]
    except (OSError, ValueError, TypeError, KeyError, zlib.error):
        return ()
    looks.sort(key=lambda one: (one.node, one.time_s))
    return tuple(
        _make_second(before, after)
        for before, after in pairwise(looks)
        if before.node == after.node and after.time_s > before.time_s
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """One line of the file."""

    node: str
    time_s: float
    cpu_s: float
    read_bytes: int
    written_bytes: int
    memory_bytes: int
    threads: int

    @classmethod
    def of(cls, row: Mapping[str, str]) -> Self:
        return cls(
            node=row["node"],
            time_s=float(row["time_s"]),
            cpu_s=float(row["cpu_s"]),
            read_bytes=int(row["read_bytes"]),
            written_bytes=int(row["written_bytes"]),
            memory_bytes=int(row["memory_bytes"]),
            threads=int(row["threads"]),
        )


def _make_second(before: _Look, after: _Look) -> ServerSecond:
    length_s = after.time_s - before.time_s
    return ServerSecond(
        node=after.node,
        start_s=before.time_s,
        end_s=after.time_s,
        cores=(after.cpu_s - before.cpu_s) / length_s,
        read_per_s=(after.read_bytes - before.read_bytes) / length_s,
        written_per_s=(after.written_bytes - before.written_bytes) / length_s,
        memory_bytes=after.memory_bytes,
        threads=after.threads,
    )

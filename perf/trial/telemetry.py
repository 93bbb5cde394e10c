"""Looks at servers and hosts while they are measured; two looks make a window.

What the windows of a trial say in numbers is in `diagnostics`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import repeat
from math import isfinite

from perf.hosts.remote import run_repeatable
from perf.hosts.usage import HostUsage, read_usage
from perf.model.errors import StepFailed
from perf.systems.contract import Cluster, Node, NodeFigure, ReportsTelemetry, System


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One look at a server process. `host` is the name of its host, as in `HostUsage`.

    `cpu_s` is of the process itself, without children. Bytes are those that it caused to be fetched
    from and sent to storage; what the page cache answered is not in them.
    """

    node: str
    host: str
    cpu_s: float
    read_bytes: int
    written_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that was seen at one moment, on every host and node.

    `missing` says why there are no levels, where the servers could not be asked for theirs.
    """

    hosts: tuple[HostUsage, ...]
    processes: tuple[Process, ...]
    levels: tuple[NodeFigure, ...]
    missing: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The looks at the beginning and the end of the iterations of one stage of a load."""

    phase: str
    iterations: tuple[int, ...]
    before: Snapshot
    after: Snapshot


MISSING = "the servers' own figures are missing from a window"
# Arguments: pid files. Prints "cpu-ticks read-bytes written-bytes" for each, or nothing but a line's
# end if that very process (by its start time, field 22 of its stat) has ended.
_READ_PROCESSES = r"""
getconf CLK_TCK
for file; do
  if read -r pid born <"$file" && read -r line <"/proc/$pid/stat"; then
    set -- ${line##*) }
    if [ "${20}" = "$born" ]; then
      printf '%s' "$((${12} + ${13}))"
      while read -r key value; do
        case $key in read_bytes: | write_bytes:) printf ' %s' "$value" ;; esac
      done <"/proc/$pid/io"
    fi
  fi
  echo
done
"""


@contextmanager
def open_snapshots(system: System, cluster: Cluster) -> Iterator[tuple[Callable[[], Snapshot], str]]:
    """Return a function that looks at all hosts at once, then at what the nodes say of themselves.

    With it comes why the nodes cannot be asked at all, if so; that is missing from each look as well.

    A host of servers and engines is looked at once. What a system cannot say of itself is missing from
    a look, which goes on without it. A look raises StepFailed where a host cannot be read, or a server
    process is gone.
    """
    remotes = {client.remote.name: client.remote for client in cluster.clients}
    remotes |= {node.remote.name: node.remote for node in cluster.nodes}
    with ExitStack() as connections:
        ask: Callable[[], tuple[NodeFigure, ...]] = tuple
        unconnected = ""
        if isinstance(system, ReportsTelemetry):
            try:
                ask = connections.enter_context(system.open_telemetry(cluster))
            except StepFailed as failure:
                unconnected = failure.sentence

        def look() -> Snapshot:
            with ThreadPoolExecutor(max_workers=len(remotes) + 1) as pool:
                usages = pool.map(read_usage, remotes.values())
                reading = pool.submit(read_processes, cluster.nodes)
                hosts, processes = tuple(usages), reading.result()
            try:
                levels, missing = tuple(map(_check_finite, ask())), unconnected
            except StepFailed as failure:
                levels, missing = (), failure.sentence
            return Snapshot(hosts=hosts, processes=processes, levels=levels, missing=missing)

        yield look, unconnected


def _check_finite(level: NodeFigure) -> NodeFigure:
    """Refuse what is no number: no bundle holds it, and the trial would be lost for it."""
    if not isfinite(level.value):
        raise StepFailed("look", level.node, f"its {level.name} is {level.value}")
    return level


def read_processes(nodes: Sequence[Node]) -> tuple[Process, ...]:
    """Look at the nodes' server processes, with one command per host.

    Raises:
        StepFailed: a host cannot be read, or a process is gone.

    """
    placed: defaultdict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        placed[node.remote.name].append(node)
    with ThreadPoolExecutor(max_workers=max(1, len(placed))) as pool:
        return tuple(process for found in pool.map(_read_host, placed.values()) for process in found)


def _read_host(nodes: Sequence[Node]) -> tuple[Process, ...]:
    remote = nodes[0].remote
    files = (node.pid_file for node in nodes)
    argv = ["sh", "-c", _READ_PROCESSES, "processes", *files]
    answer = run_repeatable(remote, argv, check=False)
    ticks, *lines = answer.stdout.splitlines() or [""]
    found = []
    for node, line in zip(nodes, [*lines, *repeat("", len(nodes))], strict=False):
        try:
            cpu, read, written = map(int, line.split())
            per_second = int(ticks)
        except ValueError as error:
            why = (
                f"its server process is gone or cannot be read: {answer.stderr.strip()[-500:] or line}"
            )
            raise StepFailed("look", node.name, why) from error
        found.append(
            Process(
                node=node.name,
                host=remote.name,
                cpu_s=cpu / max(1, per_second),
                read_bytes=read,
                written_bytes=written,
            )
        )
    return tuple(found)

"""Profiles of a trial's servers: where their time, allocations and waits for locks go, by stack.

While iterations run, async-profiler (https://github.com/async-profiler/async-profiler) is attached to
each JVM: CPU time by perf events, which the kernel allows the server's own user, what is allocated, and
waits for locks. It costs the server something, so such a trial is marked, and compared only with others
that have it. A server that is no JVM is not profiled, which is said.
"""

import gzip
import hashlib
import subprocess
import tempfile
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from perf.history.bundle import PROFILES
from perf.hosts.remote import running_pid
from perf.load.engines import Edge
from perf.local import durable
from perf.local.children import environment
from perf.local.paths import cache_dir, hold_in_cache
from perf.local.plain_files import read_plain
from perf.model.design import Workload
from perf.model.errors import KnickpointError, ReleaseError, StepFailed
from perf.model.metrics import METHOD_CPU, PACKAGE_CPU, THROUGHPUT, Metric
from perf.model.records import ALL, is_part
from perf.model.results import Reason, Sample
from perf.model.scalars import STRICT
from perf.model.stacks import UNSEEN, own_costs, package_of, read_stacks
from perf.releases.java import find_java
from perf.releases.maven import copy_libraries
from perf.systems.contract import Cluster, Node
from perf.trial import native_profiling
from perf.workloads.stages import steady_phases

PROFILED = Reason(
    kind="profiled", text="a profiler was attached: compare it only with trials that had one, too"
)
"""The remark of an order that is to be profiled, and of its trial."""
TIMES = "times.json"
_MOST_BYTES = 1024**2
KINDS = ("cpu", "alloc", "lock")
"""What is profiled: samples of CPU time, allocated bytes, and waits for locks in ns."""
# By perf events (cpu-clock) each sample stands for as much CPU time whatever a thread does: 2.4 ms
# of one that spins, 2.1 ms of one that handles 300 requests a second. Timers that the kernel looks
# at on its ticks (itimer, ctimer) saw the second at most once in 15 s, in which it took a second of
# CPU time: it woke between ticks (2026-11-26, by hand). So where perf events are not allowed there
# is no profile.
CPU_INTERVAL_US = 2000
ALLOCATED_BYTES = 524_288
"""What a sample of CPU time, and one of allocations, stands for."""
_START = (
    f"start,event=cpu-clock,interval={CPU_INTERVAL_US}us,alloc={ALLOCATED_BYTES},lock=10us,jfr,file="
)
_VERSION = "4.2"
_LIBRARIES = {
    "async-profiler": "445b7bdc6a3ed03d45a9d4b61b5a5fc072b3e9952d7f2b63722312f48ea9ee18",
    "jfr-converter": "16093ca59bd3cafb02a7548b513531ce576f1a6c643533390cbe53855b50ef6d",
}
_JAVA_MAJORS = (17, 11)
_MACHINES = {"x86_64": "linux-x64", "aarch64": "linux-arm64"}
_TIMEOUT_S = 300.0
_JFR = ".jfr"
"""How recordings of JVMs end."""
_TROUBLE = (KnickpointError, OSError, ValueError, subprocess.SubprocessError, zipfile.BadZipFile)
"""What is a remark: of the hosts, of what the profiler printed, of the converter, of a broken jar."""
# Speaks the attach protocol of HotSpot, as jcmd does, which a runtime without tools lacks: a file and
# SIGQUIT make the JVM open a socket; `load` with an absolute path makes it load an agent. Prints the
# host's clock and the CPU time of the JVM, in seconds, with the profiler's own work left out: to begin
# and to end costs as much CPU time as a second of load.
_LOOK = """
import os, sys, time


def look(pid=sys.argv[1]):
    spent = open(f"/proc/{pid}/stat").read().rpartition(") ")[2].split()[11:13]
    print(time.monotonic(), sum(map(int, spent)) / os.sysconf("SC_CLK_TCK"))


if len(sys.argv) == 2:
    look()
"""
_ATTACH = (
    _LOOK
    + """
import signal, socket
pid, library, options = sys.argv[1:]

if options == "stop":
    look()
door = os.path.join("/proc", pid, "root", "tmp", f".java_pid{pid}")
if not os.path.exists(door):
    mark = f"/proc/{pid}/cwd/.attach_pid{pid}"
    open(mark, "w").close()
    try:
        os.kill(int(pid), signal.SIGQUIT)
        end = time.monotonic() + 20
        while not os.path.exists(door):
            if time.monotonic() > end:
                sys.exit("the JVM opens no socket for it")
            time.sleep(0.02)
    finally:
        os.unlink(mark)
with socket.socket(socket.AF_UNIX) as spoken:
    spoken.settimeout(60)
    spoken.connect(door)
    spoken.sendall(b"".join(f"{word}\\0".encode() for word in ("1", "load", library, "true", options)))
    said = b""
    while part := spoken.recv(65536):
        said += part
text = said.decode(errors="replace")
if "return code: 0" not in text:
    sys.exit(text or "no answer")
if options != "stop":
    look()
"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledTime:
    """How long a phase was profiled, in seconds, and the CPU time of all servers meanwhile."""

    __pydantic_config__ = STRICT
    cpu_s: float = 0.0
    seconds: float = 0.0


_TIMES = TypeAdapter(dict[str, ProfiledTime])
_LEAST_SHARE = 0.001
"""Of all CPU time: methods below it are in their package's figure only."""


def find_rate(samples: Iterable[Sample], phase: str) -> float:
    """Return the operations per second of a phase, of all its kinds together."""
    rates = {
        sample.operation: sample.value
        for sample in samples
        if (sample.phase, sample.metric) == (phase, THROUGHPUT.name)
        if sample.iteration is None and not is_part(sample.operation)
    }
    return rates.get(ALL) or sum(rates.values())


def missed_looks(time: ProfiledTime, seen: float) -> float:
    """Return how many looks fell out: each stands for its interval, and the kernel's account is whole.

    It has the switches of threads and the bursts that are over before a timer can interrupt them.
    """
    return max(0.0, time.cpu_s * 1e6 / CPU_INTERVAL_US - seen)


def read_times(bundle: Path) -> Mapping[str, ProfiledTime]:
    """Return for each profiled phase of a trial how long it was; nothing without a profile."""
    try:
        return _TIMES.validate_json(read_plain(bundle / PROFILES / TIMES, _MOST_BYTES))
    except (OSError, ValidationError):
        return {}


@dataclass(slots=True)
class Profiler:
    """Profiles all nodes while iterations run; what goes wrong is a remark, and costs no trial."""

    cluster: Cluster
    workload: Workload | None
    """What is profiled; None in a trial that is not to be."""
    _remarks: list[Reason] = field(default_factory=list)
    _recorded: defaultdict[str, list[tuple[Node, str]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _times: dict[str, ProfiledTime] = field(default_factory=dict)
    _windows: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    """From when to when a recording counts, by node and path; in seconds of its host's clock."""
    _looks: dict[str, Mapping[str, float]] = field(default_factory=dict)
    """How often each method was looked at, by phase."""
    _running: list[tuple[Node, str, float, float]] = field(default_factory=list)
    _jvms: dict[str, bool] = field(default_factory=dict)
    """Of each node that can be profiled, whether its server is a JVM."""

    def prepare(self) -> None:
        """Load the agent, before code is compiled: it then knows what was inlined where."""
        for node in self.cluster.nodes if self.workload else ():
            with self._remarked(node.name):
                if is_jvm := _is_jvm(node):
                    self._attach(node, "version")
                self._jvms[node.name] = is_jvm

    def observe(self, edge: Edge) -> None:
        """Begin as iterations begin, and end as they end."""
        if self.workload is None or edge.phase not in steady_phases(self.workload):
            return
        if edge.is_start:
            recorded = self._recorded[edge.phase]
            for node in self.cluster.nodes:
                if node.name not in self._jvms:
                    continue
                with self._remarked(node.name):
                    path = f"{node.work_dir}/{edge.phase}-{len(recorded)}"
                    if self._jvms[node.name]:
                        path = f"{path}{_JFR}"
                        at_s, cpu_s = self._attach(node, f"{_START}{path}")
                    else:
                        native_profiling.begin(node.remote, _pid(node), path, CPU_INTERVAL_US)
                        at_s, cpu_s = _look(node)
                    recorded.append((node, path))
                    self._running.append((node, path, at_s, cpu_s))
        while not edge.is_start and self._running:
            node, path, at_s, cpu_s = self._running.pop()
            with self._remarked(node.name):
                if path.endswith(_JFR):
                    ended_s, spent_s = self._attach(node, "stop")
                else:
                    ended_s, spent_s = _look(node)
                    native_profiling.end(node.remote, path)
                self._windows[node.name, path] = at_s, ended_s
                known = self._times.get(edge.phase, ProfiledTime())
                self._times[edge.phase] = ProfiledTime(
                    cpu_s=known.cpu_s + spent_s - cpu_s,
                    seconds=known.seconds + (ended_s - at_s) / len(self.cluster.nodes),
                )

    def keep(self, staged: Path) -> tuple[Reason, ...]:
        """Put what was recorded into a bundle: stacks of all nodes, collapsed, by phase and kind.

        Returns what could not be profiled, and why.
        """
        for phase, recorded in self._recorded.items():
            with self._remarked(phase), tempfile.TemporaryDirectory(prefix="knickpoint-jfr-") as place:
                for kind, collapsed in _collapse_all(recorded, self._windows, Path(place)):
                    target = staged / PROFILES / f"{phase}-{kind}.collapsed.gz"
                    target.parent.mkdir(exist_ok=True)
                    target.write_bytes(gzip.compress(collapsed, mtime=0))
                    if kind == "cpu":
                        self._looks[phase] = own_costs(read_stacks(collapsed.decode(), kind))
        if self._times:
            (staged / PROFILES / TIMES).write_bytes(_TIMES.dump_json(self._times, indent=1))
        return tuple(self._remarks)

    def costs(self, samples: Sequence[Sample]) -> Iterator[Sample]:
        """Yield the CPU time per operation of each method and package, once profiles were kept.

        They stand for all operations of a phase together; `samples` are what the load came to.
        """
        for phase, looks in self._looks.items():
            time = self._times.get(phase, ProfiledTime())
            if operations := find_rate(samples, phase) * time.seconds:
                seen = sum(looks.values())
                whole = {**looks, UNSEEN[0]: missed_looks(time, seen)}
                unit, least = CPU_INTERVAL_US / operations, _LEAST_SHARE * sum(whole.values())
                packages = defaultdict[str, float](float)
                for method, found in sorted(whole.items()):
                    packages[package_of(method)] += found
                    if found >= least:
                        yield _cost(phase, METHOD_CPU, method, found * unit)
                for package, found in packages.items():
                    yield _cost(phase, PACKAGE_CPU, package, found * unit)

    def _attach(self, node: Node, options: str) -> tuple[float, float]:
        library = f"{node.work_dir}/libasyncProfiler.so"
        if node.remote.run(["test", "-f", library], check=False).returncode:
            machine = node.remote.run(["uname", "-m"]).stdout.strip()
            if machine not in _MACHINES:
                raise StepFailed("profile", node.name, f"there is no profiler for {machine}")
            with tempfile.TemporaryDirectory(prefix="knickpoint-agent-") as place:
                node.remote.put(_agent(machine, Path(place)), library)
        argv = ["python3", "-c", _ATTACH, str(_pid(node)), library, options]
        at_s, cpu_s = map(float, node.remote.run(argv, timeout_s=90).stdout.split())
        return at_s, cpu_s

    @contextmanager
    def _remarked(self, what: str) -> Iterator[None]:
        try:
            yield
        except _TROUBLE as error:
            remark = Reason(kind="profile-missing", text=f"{what}: not profiled: {error}")
            if remark not in self._remarks:
                self._remarks.append(remark)


def _cost(phase: str, metric: Metric, code: str, value: float) -> Sample:
    return Sample(phase=phase, operation=ALL, metric=metric.name, statistic=code, value=value)


def fetch_profiler() -> Path:
    """Return the directory of the profiler's pinned files, from the cache or by Maven.

    Raises:
        ReleaseError: they cannot be had, or are others than the pinned ones.

    """
    home = cache_dir() / "tools" / f"async-profiler-{_VERSION}"
    home.parent.mkdir(parents=True, exist_ok=True)
    with hold_in_cache(home.with_name(f"{home.name}.lock")):
        if not home.is_dir():
            with tempfile.TemporaryDirectory(dir=home.parent, prefix="part-") as part:
                jars = [f"tools.profiler:{name}:{_VERSION}" for name in _LIBRARIES]
                copy_libraries(jars, Path(part, "lib"), report=lambda _: None)
                durable.move(Path(part, "lib"), home)
        for name, digest in _LIBRARIES.items():
            with (home / f"{name}-{_VERSION}.jar").open("rb") as opened:
                if hashlib.file_digest(opened, "sha256").hexdigest() != digest:
                    raise ReleaseError(f"{home} holds another {name} than the pinned one; remove it")
    return home


def _pid(node: Node) -> int:
    pid = running_pid(node.remote, node.pid_file)
    if pid is None:
        raise StepFailed("profile", node.name, "its server has ended")
    return pid


def _program(node: Node) -> str:
    return node.remote.run(["readlink", f"/proc/{_pid(node)}/exe"], check=False).stdout.strip()


def _is_jvm(node: Node) -> bool:
    """Return whether a server is a JVM; raise StepFailed if it is not, and nothing else looks at it."""
    name = Path(_program(node)).name
    if name != "java" and not native_profiling.is_there(node.remote):
        why = f"its server, {name}, is no JVM, and its host has no perf: install linux-perf there"
        raise StepFailed("profile", node.name, why)
    return name == "java"


def _look(node: Node) -> tuple[float, float]:
    argv = ["python3", "-c", _LOOK, str(_pid(node))]
    at_s, cpu_s = map(float, node.remote.run(argv).stdout.split())
    return at_s, cpu_s


def _collapse_all(
    recorded: Sequence[tuple[Node, str]],
    windows: Mapping[tuple[str, str], tuple[float, float]],
    place: Path,
) -> Iterator[tuple[str, bytes]]:
    """Yield the stacks of all nodes together, by kind; of a server that is no JVM, CPU time alone."""
    files = [place / f"{number}{_JFR}" for number in range(len(recorded))]
    stacks: Counter[str] = Counter()
    for (node, path), file in zip(recorded, files, strict=True):
        if path.endswith(_JFR):
            node.remote.get(path, file)
        else:
            node.remote.get(native_profiling.write_stacks(node.remote, path), file)
            window = windows.get((node.name, path), (0.0, 0.0))
            with gzip.open(file, "rt", errors="replace") as text:
                stacks += native_profiling.collapse(text, _program(node), *window)
    if stacks:
        yield "cpu", _join(stacks)
    elif files:
        yield from ((kind, _collapse(files, kind)) for kind in KINDS)


def _join(stacks: Mapping[str, int]) -> bytes:
    """Return one line per stack: its frames from the outermost on, joined by `;`, and its total."""
    return "".join(f"{stack} {total}\n" for stack, total in sorted(stacks.items())).encode()


def _agent(machine: str, target: Path) -> Path:
    """Unpack the agent for a machine."""
    with zipfile.ZipFile(fetch_profiler() / f"async-profiler-{_VERSION}.jar") as jar:
        return Path(jar.extract(f"{_MACHINES[machine]}/libasyncProfiler.so", target))


def _collapse(recordings: Sequence[Path], kind: str) -> bytes:
    """Return the stacks of recordings of JVMs."""
    java = find_java(_JAVA_MAJORS, lambda _: None)
    converter = fetch_profiler() / f"jfr-converter-{_VERSION}.jar"
    # Totals in ns and bytes, hidden classes without their numbers, names with dots.
    options = (f"--{kind}", "--total", "--norm", "--dot", "--output", "collapsed")
    stacks: Counter[str] = Counter()
    for recording in recordings:
        target = recording.with_suffix(f".{kind}")
        done = subprocess.run(  # noqa: S603  no shell; the command is ours
            [java.path, "-jar", str(converter), *options, str(recording), str(target)],
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        if done.returncode or not target.is_file():
            said = (done.stderr or done.stdout).strip()
            raise StepFailed("profile", "this machine", f"{kind}: {said[-500:]}")
        for line in target.read_text(errors="replace").splitlines():
            stack, _, total = line.rpartition(" ")
            stacks[stack] += int(total)
    return _join(stacks)

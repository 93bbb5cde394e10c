"""The load engine beside a peer: YCSB core on the Java driver, same server, same rows, taking turns.

`make bench` runs it; docs/engine.md explains it and holds a table that it printed. Figures are of the
client: CPU time of its process (user and system, all threads) over the measured window, divided by
the operations that ended in it. The start of either process and its warm-up are outside.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from perf import config
from perf.design import ClosedLoop, OpenLoop, Steadiness
from perf.errors import KnickpointError, NotReady
from perf.java import find_java
from perf.load.engines import Engine, run_engines
from perf.load.histogram import merge
from perf.load.spec import LoadSpec, Preload, Stage
from perf.model import Interval
from perf.records import Operation, Sensor
from perf.releases import fetch, fetch_maven, find_release
from perf.remote import LocalHost
from perf.systems.cassandra import Cassandra
from perf.systems.contract import Cluster, Node, Target

HERE = Path(__file__).parent
CONFIGS = HERE.parents[1] / "configs"
SYSTEM = Cassandra()
RELEASE = "5.0.9"
ADDRESS = "127.0.0.48"
RECORDS = Sensor(kind="sensor", devices=1000, payload_bytes=1024)
PRELOADED = 20 * RECORDS.devices
SEED = 42
HEAP_MB = 1024
# The peer's virtual machine compiles what is used often, and has done most of that after some seconds.
WARM_UP_S = 6.0
MEASURED_S = 6.0
# One more is run before them and thrown away: the server compiles as well.
ROUNDS = 5
RATE = 500.0
# More than a run can write, so that no run writes rows again.
ROWS_PER_RUN = 10_000_000
PEER_JARS = (
    "site.ycsb:core:0.17.0",
    "com.datastax.oss:java-driver-core:4.17.0",
    "org.eclipse.jdt:ecj:3.33.0",  # compiles where Java is a runtime without a compiler
)
UNBOUNDED = 2_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What both clients are asked to do. `rate` is in operations per second; None: all they can."""

    operation: Operation
    rate: float | None
    in_flight: int

    @property
    def name(self) -> str:
        """Say it in words."""
        load = f"{self.rate:g}/s" if self.rate else "saturation"
        return f"{self.operation.value}, {load}, {self.in_flight} in flight"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one run of one client cost and did; lateness and service time in milliseconds."""

    cpu_us: float
    achieved: float
    late_ms: tuple[float, float, float] | None
    service_ms: tuple[float, float]
    failed: int


Client = Callable[[Case, Target, int], Figures]

# Reads come first: what they must find is what was preloaded, and nothing that was written later.
CASES = (
    Case(operation=Operation.READ_LATEST, rate=RATE, in_flight=32),
    Case(operation=Operation.READ_LATEST, rate=None, in_flight=64),
    Case(operation=Operation.WRITE, rate=RATE, in_flight=32),
    Case(operation=Operation.WRITE, rate=None, in_flight=64),
)


def main() -> int:
    """Run all rounds and print the table; give the exit code."""
    with tempfile.TemporaryDirectory(prefix="knickpoint-bench-") as directory:
        clients: dict[str, Client] = {"Knickpoint": Measured(Path(directory, "engine"))}
        try:
            clients["YCSB"] = make_peer(Path(directory, "classes"))
        except KnickpointError as error:
            sys.stderr.write(f"\nTHE PEER IS MISSING, so there is nothing to compare with: {error}\n\n")
        with serve(Path(directory, "server")) as target:
            preload(target, Path(directory, "preload"))
            results = take_turns(clients, target)
    sys.stdout.write(table(results))
    return 0 if "YCSB" in clients else KnickpointError.exit_code


def take_turns(clients: dict[str, Client], target: Target) -> dict[tuple[Case, str], list[Figures]]:
    """Run every case with every client, `ROUNDS` times and once before; whoever is first changes."""
    results: dict[tuple[Case, str], list[Figures]] = {}
    run = 0
    for case in CASES:
        for number in range(ROUNDS + 1):
            for name in sorted(clients, reverse=bool(number % 2)):
                run += 1
                found = clients[name](case, target, run * ROWS_PER_RUN)
                sys.stderr.write(f"{case.name}, round {number}, {name}: {found}\n")
                if number:
                    results.setdefault((case, name), []).append(found)
    return results


@contextmanager
def serve(directory: Path) -> Iterator[Target]:
    """Run one Cassandra with the release's own defaults, and the schema of the sensor workload."""
    catalog = config.load_catalog(CONFIGS)
    release = find_release(SYSTEM, RELEASE)
    directory.mkdir()
    node = Node(
        name="node-1", index=0, address=ADDRESS, remote=LocalHost(), work_dir=str(directory / "node-1")
    )
    cluster = Cluster(
        release=release,
        artifact=fetch(SYSTEM, release, tell=print),
        nodes=(node,),
        topology=catalog.topologies["local-one"],
        testbed=replace(catalog.testbeds["local"], jvm_options=()),
        config=replace(catalog.systems["cassandra"]["default"], heap_mb=HEAP_MB),
    )
    limits = cluster.testbed.limits
    for step in (SYSTEM.install, SYSTEM.configure, SYSTEM.start):
        step(node, cluster)
    try:
        wait(lambda: SYSTEM.check(cluster), limits.start_s)
        target = SYSTEM.target(cluster, consistency="quorum", timeout_s=10.0)
        with SYSTEM.connect(target) as session:
            session.create_schema(RECORDS)
        yield target
    finally:
        SYSTEM.stop(node, force=True)
        wait(lambda: require_gone(node), limits.stop_s)
        SYSTEM.wipe(node)


def require_gone(node: Node) -> None:
    """Raise NotReady while a node's process lives."""
    if SYSTEM.is_running(node):
        raise NotReady("stop", node.name, "still runs")


def wait(step: Callable[[], None], limit_s: float) -> None:
    """Repeat a step until it is ready."""
    end_s = time.monotonic() + limit_s
    while True:
        try:
            return step()
        except NotReady:
            if time.monotonic() > end_s:
                raise
        time.sleep(0.1)


def preload(target: Target, directory: Path) -> None:
    """Write the rows that reads will find."""
    rows = Preload(rows=PRELOADED, in_flight=32)
    run(spec(target, directory, Operation.WRITE, preload=rows))


def spec(target: Target, directory: Path, operation: Operation, **more: object) -> LoadSpec:
    """Give what one engine process is told."""
    common = {"target": target, "records": RECORDS, "mix": {operation: 1.0}, "seed": SEED}
    own = {"engine_index": 0, "engine_count": 1, "output_dir": str(directory)}
    return LoadSpec(**common, **own, **more)  # type: ignore[arg-type]  # fields by name


def run(what: LoadSpec) -> "Outcome":
    """Run one engine process to its end."""
    outcome = run_engines(
        [Engine(spec=what, remote=LocalHost())],
        connect_s=60,
        limit_s=WARM_UP_S + MEASURED_S + 120,
        steadiness=Steadiness(window_s=1, tolerance=1.0),
        watch=lambda: None,
        observe=lambda _: None,
    )
    measured = [one for one in outcome.counters if one.iteration == 1]
    (result,) = outcome.results
    return Outcome(
        counts={one.name: one.value for one in measured},
        cpu_s=sum(one.cpu_s for one in result.usages if one.iteration == 1),
        intervals=tuple(one for one in outcome.intervals if one.iteration == 1),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an engine process counted and used in its measured window."""

    counts: dict[str, int]
    cpu_s: float
    intervals: tuple[Interval, ...]

    def times_ms(self, kind: str, *percentiles: float) -> tuple[float, ...]:
        """Give percentiles of one kind of time."""
        merged = merge(one for one in self.intervals if one.kind == kind)
        return tuple(merged.get_value_at_percentile(one) / 1000 for one in percentiles)


@dataclass(frozen=True, slots=True)
class Measured:
    """The engine as shipped, as a client."""

    directory: Path

    def __call__(self, case: Case, target: Target, first_row: int) -> Figures:
        """Run a case."""
        stage = Stage(
            phase="bench",
            load=ClosedLoop(kind="closed", in_flight=case.in_flight)
            if case.rate is None
            else OpenLoop(kind="open", offered_load_ops_per_s=case.rate, in_flight=case.in_flight),
            warmup_s=WARM_UP_S,
            warmup_cap_s=WARM_UP_S,
            iteration_s=MEASURED_S,
            iterations=(1,),
        )
        more = {"stages": (stage,), "readable_rows": PRELOADED, "first_row": first_row}
        found = run(spec(target, self.directory, case.operation, **more))
        done = found.counts["completed_in_window"]
        lateness = found.times_ms("send_lateness", 50, 99, 100) if case.rate else None
        p50, p99 = found.times_ms("service_time", 50, 99)
        return Figures(
            cpu_us=found.cpu_s / done * 1e6,
            achieved=done / MEASURED_S,
            late_ms=(lateness[0], lateness[1], lateness[2]) if lateness else None,
            service_ms=(p50, p99),
            failed=found.counts["attempted"] - found.counts["completed"],
        )


@dataclass(frozen=True, slots=True)
class Peer:
    """YCSB core with the binding in peer/Peer.java, as a client."""

    java: str
    class_path: str

    def __call__(self, case: Case, target: Target, first_row: int) -> Figures:
        """Run a case."""
        is_write = case.operation is Operation.WRITE
        properties = {
            "workload": "site.ycsb.workloads.CoreWorkload",
            "insertproportion": int(is_write),
            "readproportion": int(not is_write),
            "updateproportion": 0,
            "requestdistribution": "uniform",
            "insertorder": "ordered",
            "recordcount": first_row if is_write else RECORDS.devices,
            "operationcount": UNBOUNDED,
            "fieldcount": 1,
            "fieldlength": RECORDS.payload_bytes - 88,
            "measurement.interval": "both",
            "peer.address": target.addresses[0],
            "peer.devices": RECORDS.devices,
            "peer.warm_up_ms": int(WARM_UP_S * 1000),
            "peer.measured_ms": int(MEASURED_S * 1000),
        }
        asked = [part for name, value in properties.items() for part in ("-p", f"{name}={value}")]
        load = ["-target", f"{case.rate:g}"] if case.rate else []
        command = [self.java, "-Xmx512m", "-cp", self.class_path, "site.ycsb.Client", "-t"]
        done = subprocess.run(
            [*command, "-db", "Peer", "-threads", str(case.in_flight), *load, *asked],
            capture_output=True,
            text=True,
            timeout=WARM_UP_S + MEASURED_S + 120,
            check=False,
        )
        windows = [line for line in done.stdout.splitlines() if line.startswith("window ")]
        if not windows:
            raise RuntimeError(f"the peer failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        found = json.loads(windows[0].removeprefix("window "))
        p50, p99, most = (one / 1000 for one in found["late_us"])
        return Figures(
            cpu_us=found["cpu_s"] / found["done"] * 1e6,
            achieved=found["done"] / found["wall_s"],
            late_ms=(p50, p99, most) if case.rate else None,
            service_ms=(found["service_us"][0] / 1000, found["service_us"][1] / 1000),
            failed=found["failed"],
        )


def make_peer(classes: Path) -> Peer:
    """Fetch YCSB and the Java driver, and compile the binding.

    Raises:
        KnickpointError: there is no Java, or the libraries cannot be had.

    """
    java = find_java((17, 11), tell=print).path
    jars = sorted(Path(fetch_maven("engine-peer", PEER_JARS, tell=print).location, "lib").glob("*.jar"))
    class_path = ":".join(map(str, jars))
    compiler = [java, "-cp", class_path, "org.eclipse.jdt.internal.compiler.batch.Main"]
    options = ["-11", "-proc:none", "-nowarn", "-cp", class_path, "-d", str(classes)]
    subprocess.run([*compiler, *options, str(HERE / "peer" / "Peer.java")], check=True)
    return Peer(java, f"{classes}:{class_path}")


def table(results: dict[tuple[Case, str], list[Figures]]) -> str:
    """Give all results as a Markdown table: median, and least to most, over the rounds."""
    head = (
        "load",
        "client",
        "n",
        "CPU µs/op",
        "achieved ops/s",
        "send lateness p50 ms",
        "p99 ms",
        "max ms",
        "service time p50 ms",
        "p99 ms",
        "failed",
    )
    lines = [head, ("---",) * len(head)]
    for (case, name), runs in results.items():
        late = [one.late_ms for one in runs if one.late_ms]
        lateness = [spread([one[at] for one in late], ".2f") if late else "–" for at in range(3)]
        lines.append(
            (
                case.name,
                name,
                str(len(runs)),
                spread([one.cpu_us for one in runs], ".0f"),
                spread([one.achieved for one in runs], ".0f"),
                *lateness,
                *(spread([one.service_ms[at] for one in runs], ".2f") for at in range(2)),
                str(sum(one.failed for one in runs)),
            )
        )
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def spread(values: Sequence[float], form: str) -> str:
    """Give the median, and the range."""
    least, most = min(values), max(values)
    return f"{statistics.median(values):{form}} ({least:{form}} to {most:{form}})"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KnickpointError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)

"""YCSB core on the Java driver as a client of a comparison, with the binding in Peer.java."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from case import MEASURED_S, RECORDS, WARM_UP_S, Case, Figures
from java_libraries import fetch_jars

from perf.model.records import Operation
from perf.releases.java import find_java
from perf.systems.contract import Target

_JARS = (
    "site.ycsb:core:0.17.0",
    "com.datastax.oss:java-driver-core:4.17.0",
    "org.eclipse.jdt:ecj:3.33.0",  # compiles where Java is a runtime without a compiler
)
_UNBOUNDED = 2_000_000_000
_FIXED_BYTES = 88
_LIMIT_S = WARM_UP_S + MEASURED_S + 120


@dataclass(frozen=True, slots=True)
class YcsbPeer:
    """YCSB core 0.17.0 with the Java driver 4.17.0."""

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
            "operationcount": _UNBOUNDED,
            "fieldcount": 1,
            "fieldlength": RECORDS.payload_bytes - _FIXED_BYTES,
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
            timeout=_LIMIT_S,
            check=False,
        )
        windows = [line for line in done.stdout.splitlines() if line.startswith("window ")]
        if not windows:
            raise RuntimeError(f"YCSB failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        found = json.loads(windows[0].removeprefix("window "))
        p50, p99, most = (one / 1000 for one in found["late_us"])
        return Figures(
            cpu_us=found["cpu_s"] / found["done"] * 1e6,
            achieved=found["done"] / found["wall_s"],
            late_ms=(p50, p99, most) if case.rate else None,
            service_ms=(found["service_us"][0] / 1000, found["service_us"][1] / 1000),
            failed=found["failed"],
        )


def make_ycsb(classes: Path) -> YcsbPeer:
    """Fetch YCSB and the Java driver, and compile the binding.

    Raises:
        KnickpointError: there is no Java, or the libraries cannot be had.

    """
    java = find_java((17, 11), report=print).path
    class_path = ":".join(fetch_jars("engine-peer", _JARS))
    compiler = [java, "-cp", class_path, "org.eclipse.jdt.internal.compiler.batch.Main"]
    options = ["-11", "-proc:none", "-nowarn", "-cp", class_path, "-d", str(classes)]
    source = Path(__file__).with_name("Peer.java")
    subprocess.run([*compiler, *options, str(source)], check=True)
    return YcsbPeer(java, f"{classes}:{class_path}")

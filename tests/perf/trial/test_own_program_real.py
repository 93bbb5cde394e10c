"""YCSB as the load generator of a trial on a real Cassandra, whose table Knickpoint makes."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from java_libraries import compile_peer, fetch_jars
from origin import WIDE, replace

from perf.local.paths import DataPaths
from perf.releases.java import find_java

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[3]
ADDRESS = "127.0.0.69"  # which no other test has
BINDING = ROOT / "tests/peers/YcsbCql.java"
JARS = (
    "site.ycsb:core:0.17.0",
    "com.datastax.oss:java-driver-core:4.17.0",
    "org.eclipse.jdt:ecj:3.33.0",
)
RECORDS, OFFERED = 1000, 200


def ycsb(java: str, class_path: str, *arguments: str) -> list[str]:
    common = {
        "workload": "site.ycsb.workloads.CoreWorkload",
        "recordcount": RECORDS,
        "fieldcount": 1,
        "cql.address": "{address}",
        "cql.port": "{port}",
    }
    properties = (word for name, value in common.items() for word in ("-p", f"{name}={value}"))
    client = [java, "-Xmx256m", "-cp", class_path, "site.ycsb.Client", "-db", "YcsbCql"]
    return [*client, *properties, *arguments]


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    root = tmp_path / "configs"
    shutil.copytree(ROOT / "configs", root)
    replace(root / "testbeds/local.yaml", {"127.0.0.1": ADDRESS, **WIDE})
    java = find_java((17, 11), report=print).path
    class_path = compile_peer(java, BINDING, fetch_jars("ycsb-cql", JARS))
    workload = yaml.safe_load((root / "workloads/own-latte.yaml").read_text())
    workload["records"] |= {
        "schema": ["CREATE TABLE usertable (y_id text PRIMARY KEY, field0 text)"],
        "rows": 1,
        "store": "add",
        "count": "SELECT y_id FROM usertable",
        "values": {"id": {"kind": "uuid"}},
        "statements": {"add": {"text": "INSERT INTO usertable (y_id) VALUES (:id)", "row": "new"}},
    }
    del workload["preload"]
    run = ("-p", "maxexecutiontime={seconds}", "-p", "operationcount=100000000", "-t")
    workload["program"] = {
        "prepare": [ycsb(java, class_path, "-load")],
        "run": ycsb(java, class_path, *run, "-threads", "{in_flight}"),
        "open": ["-target", "{rate}", "-p", "measurement.interval=both"],
        "made_of": class_path.split(":")[1:2],
        "figures": "ycsb",
    }
    for phase in workload["measurements"]:
        phase |= {"warmup_s": 2, "warmup_cap_s": 2, "iteration_s": 10, "iterations": 2}
    workload["measurements"][1]["load"]["offered_load_ops_per_s"] = OFFERED
    (root / "workloads/own-latte.yaml").write_text(yaml.safe_dump(workload))
    return root


def test_ycsb_offers_the_load_of_a_trial(configs: Path, tmp_path: Path) -> None:
    paths = DataPaths(tmp_path / "var")
    asked = ("--suite", "own-programs", "--experiment", "own-latte", "--release", "5.0.9")
    command = [sys.executable, "-m", "perf.commands.main", "measure", *asked]
    command += ["--configs", str(configs), "--data", str(paths.data)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = paths.trials.glob("*/trial.json")
    trial = json.loads(path.read_text())["trial"]
    assert (trial["status"], trial["engine"]) == ("completed", "command"), trial["reasons"]
    found = {
        (one["phase"], one["operation"], one["metric"], one["statistic"]): one["value"]
        for one in trial["samples"]
        if one["iteration"] is None
    }
    # YCSB counts from before it connects, so a run of 10 s comes out lower than what was offered.
    assert 0 < found["steady", "all", "throughput", "mean"] <= 1.05 * OFFERED
    assert found["saturation", "all", "throughput", "mean"] > 0
    for operation in ("read", "update"):
        assert found["steady", operation, "service_time", "p99"] > 0
        assert found["steady", operation, "response_time", "p99"] > 0
    assert found["saturation", "all", "client_cpu", "mean"] > 0
    assert found["saturation", "all", "server_cpu", "mean"] > 0
    facts = {one["name"]: one["value"] for one in trial["environment_before"]}
    assert sum(name.startswith("sha256:") and len(value) == 64 for name, value in facts.items()) == 2

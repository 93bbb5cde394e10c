"""Runs commands of Knickpoint, each in a fork of this process: thousands of runs within minutes.

Reads one request per line of standard input, as JSON, and answers it with a line. One with `argv`,
`cwd`, `environment`, `output` (a directory for what the command prints, and how many changes it made)
and `made_up` (trials are sealed as soon as they are ordered) begins a command: the answer is its
process id. One with `wait`, the id, and `limit_s` waits for its end: the answer is the exit code, minus
the signal that killed it, or None. `disk_shim.c` is preloaded, and told of each command's environment.
"""

import ctypes
import importlib
import json
import os
import signal
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from perf.commands import main as cli
from perf.history import bundle
from perf.jobs import measuring, night
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.identity import named
from perf.model.results import Sample, Trial
from perf.systems.contract import System
from perf.trial.harness import Order

TEMPLATE = Path(__file__).parents[1] / "data/bundles/version-2/2026-03-02-1.01.sensor-write.5.0.5"
_POLL_S = 0.002
SCATTER = (0.0, 0.004, -0.003, 0.002, -0.005, 0.001, 0.003)


def seal(order: Order, _: System, paths: DataPaths, __: Progress) -> Trial:
    """Make a trial up: 1.0.0 does a thousand in a second, later releases 800."""
    template, intervals = bundle.read(TEMPLATE)
    sealed = len(bundle.find(paths))
    level = 1000.0 if order.release.version == "1.0.0" else 800.0
    now = datetime.now(UTC)
    deployment = order.deployment
    trial = replace(
        template,
        id=order.trial,
        night=order.night,
        purpose=order.purpose,
        experiment=deployment.experiment.name,
        release=order.release,
        artifact=order.artifact,
        topology=named(deployment.topology),
        testbed=named(deployment.testbed),
        testbed_class=deployment.testbed.testbed_class,
        workload=named(deployment.workload),
        config=named(deployment.config),
        started_at=now,
        finished_at=now + timedelta(minutes=1),
        samples=(
            Sample(
                phase="saturation",
                operation="write",
                metric="throughput",
                statistic="mean",
                value=level * (1 + SCATTER[sealed % len(SCATTER)]),
            ),
        ),
    )
    bundle.seal(bundle.stage(paths, trial.id), trial, intervals)
    return trial


def run(request: dict[str, Any]) -> int:
    """Be a command as the command line has it; give its exit code."""
    for number, name in ((0, os.devnull), (1, "out"), (2, "err")):
        file = os.open(Path(request["output"], name), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(file, number)
        os.close(file)
    os.chdir(request["cwd"])
    os.environ.update(request["environment"])
    os.environ.pop("LD_PRELOAD", None)  # what the command starts is no part of it
    tempfile.tempdir = None  # of the server
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if request["made_up"]:
        measuring.run_trial = seal
        night.check_ahead = lambda *_: None  # no server is started
    sys.argv = ["knickpoint", *request["argv"]]
    shim = ctypes.CDLL(None)
    shim.disk_counted.restype = ctypes.c_long
    shim.disk_begin()
    code: object = 0
    try:
        cli.main()
    except SystemExit as ended:
        code = ended.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    Path(request["output"], "counted").write_text(str(shim.disk_counted()))
    return code if isinstance(code, int) else 0


def begin(request: dict[str, Any]) -> int:
    """Begin a command, in a session of its own; give its process id once its group can be killed."""
    ready, begun = os.pipe()
    pid = os.fork()
    if not pid:
        os.setsid()
        os.close(begun)
        # Nothing of the server's threads is in this process: their libraries cannot end in order.
        os._exit(run(request))
    os.close(begun)
    os.read(ready, 1)
    os.close(ready)
    return pid


def wait(pid: int, limit_s: float) -> int | None:
    """Wait for a command's end; None if it has not come in time."""
    end_s = time.monotonic() + limit_s
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= end_s:
            return None
        time.sleep(_POLL_S)


def main() -> None:
    """Answer requests until there are no more."""
    for entry in entry_points(group=cli.GROUP):
        entry.load()
    for late in ("reports.pages", "analysis.detection.otava_detector", "jinja2.ext", "filelock"):
        importlib.import_module(late)
    for line in sys.stdin:
        asked = json.loads(line)
        answer = wait(asked["wait"], asked["limit_s"]) if "wait" in asked else begin(asked)
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

"""Runs commands of Knickpoint, each in a fork of this process: thousands of runs within minutes.

Reads one request per line of standard input, as JSON: `argv`, `environment`, `output` (a directory for
what the command prints), `made_up` (trials are sealed as soon as they are ordered). Answers each with a
line: the exit code. `disk_shim.c` is preloaded, and is told of the environment of each command.
"""

import ctypes
import importlib
import json
import os
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from perf.commands import main as cli
from perf.history import bundle
from perf.jobs import measuring, night
from perf.local.places import Places
from perf.local.progress import Progress
from perf.model.identity import named
from perf.model.results import Sample, Trial
from perf.systems.contract import System
from perf.trial.harness import Order

TEMPLATE = Path(__file__).parents[1] / "data/bundles/version-2/2026-03-02-1.01.sensor-write.5.0.5"
SCATTER = (0.0, 0.004, -0.003, 0.002, -0.005, 0.001, 0.003)


def seal(order: Order, _: System, places: Places, __: Progress) -> Trial:
    """Make a trial up: 1.0.0 does a thousand in a second, later releases 800."""
    template, intervals = bundle.read(TEMPLATE)
    sealed = len(bundle.find(places))
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
    bundle.seal(bundle.stage(places, trial.id), trial, intervals)
    return trial


def run(request: dict[str, Any]) -> int:
    """Run a command as the command line does; give its exit code."""
    for number, name in ((1, "out"), (2, "err")):
        file = os.open(f"{request['output']}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(file, number)
        os.close(file)
    os.environ.update(request["environment"])
    if request["made_up"]:
        measuring.run_trial = seal
        night._check_hosts = lambda *_: None  # noqa: SLF001  no server is started
    sys.argv = ["knickpoint", *request["argv"]]
    ctypes.CDLL(None).disk_begin()
    try:
        cli.main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def main() -> None:
    """Answer requests until there are no more."""
    for entry in entry_points(group=cli.GROUP):
        entry.load()
    for late in ("reports.pages", "analysis.detection.otava_detector", "jinja2.ext", "filelock"):
        importlib.import_module(late)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            os._exit(run(json.loads(line)))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

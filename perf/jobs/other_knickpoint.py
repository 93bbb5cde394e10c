"""A trial that another installation of Knickpoint measures, by its own command line.

So an old and a new method of measuring take turns on one release: what differs is what the change of
method did. The other program has a data directory of its own, from which the bundle is taken over.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from signal import SIGTERM

from perf.history import bundle
from perf.hosts import lease
from perf.jobs.measuring import Job
from perf.local.children import environment, tie
from perf.local.paths import DataPaths
from perf.model.access import VARIABLES_BEGIN
from perf.model.errors import MeasureError, UsageError
from perf.model.identity import named
from perf.model.results import Trial
from perf.trial.harness import Order

_ASKED_S = 60
_ENDED_WELL = (0, 3)
"""Exit codes of `measure`: with 3, the trial is there and says why it is not valid."""
_OURS = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
"""What would let the other program run this one's code."""
_OWN_FILES = (bundle.TRIAL, bundle.INTERVALS, bundle.MANIFEST)


def ask_version(program: Path) -> str:
    """Return the version of a program of Knickpoint.

    Raises:
        UsageError: it cannot be run, or is no Knickpoint.

    """
    try:
        done = subprocess.run(  # noqa: S603  no shell; the user names it
            tie([str(program), "--version"]),
            capture_output=True,
            text=True,
            timeout=_ASKED_S,
            check=False,
            env=_environment(),
        )
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"{program} does not give its version within {_ASKED_S} s") from error
    name = done.stdout.strip()
    if done.returncode or not name.startswith("knickpoint, version "):
        why = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["it printed nothing"]
        raise UsageError(
            f"{program} is no knickpoint that runs: {why[0]}; give the program of another installation,"
            " for example /opt/knickpoint-before/bin/knickpoint"
        )
    return name.split()[2]


def measure_by(program: Path, order: Order, suite: str, job: Job) -> Trial:
    """Let another installation measure a trial, and take its bundle over under the id of the order.

    Its data directory stays beside the plan of the comparison; a bundle that a killed run left there
    is taken over.

    Raises:
        MeasureError: it did not measure, or not what was ordered.

    """
    plan, _, _ = order.trial.partition(".")
    home = DataPaths(job.paths.comparisons / plan / "other")
    if not bundle.find(home):
        experiment, version = order.deployment.experiment.name, order.release.version
        asked = ("--suite", suite, "--experiment", experiment, "--release", version)
        places = ("--data", str(home.data.absolute()), "--configs", str(job.catalog.root.absolute()))
        with lease.lend(order.deployment.testbed, job.progress.report):
            code = _run([str(program), "measure", *asked, *places])
        if code not in _ENDED_WELL or not bundle.find(home):
            raise MeasureError(
                f"{program} measured no trial of {experiment} at {version} (exit code {code}); what it"
                " printed stands above. Finished trials are kept; the same command resumes here"
            )
    (found,) = bundle.find(home)
    return _take_over(found, order, job.paths, program)


def _run(command: Sequence[str]) -> int:
    """Run a command that is asked to end when this process ends; return its exit code."""
    child = subprocess.Popen(  # noqa: S603  no shell; the user names it
        tie(command, SIGTERM), stdout=subprocess.DEVNULL, env=_environment()
    )
    try:
        return child.wait()
    except KeyboardInterrupt:
        child.wait()  # the terminal interrupted it, too, and it stops its servers
        raise


def _take_over(found: Path, order: Order, paths: DataPaths, program: Path) -> Trial:
    theirs, intervals = bundle.read(found)
    if differing := _find_difference(theirs, order):
        raise MeasureError(
            f"{program} measured something else than was ordered: {'; '.join(differing)}. Both must"
            f" know the configuration, and install the same bytes; its trial stays in {found}"
        )
    staged = bundle.stage(paths, order.trial)
    shutil.copytree(found, staged, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*_OWN_FILES))
    trial = replace(
        theirs,
        id=order.trial,
        night=order.night,
        purpose=order.purpose,
        remarks=(*order.remarks, *theirs.remarks),
    )
    bundle.seal(staged, trial, intervals)
    shutil.rmtree(found)
    return trial


def _find_difference(theirs: Trial, order: Order) -> list[str]:
    deployment = order.deployment
    measured = (theirs.topology, theirs.testbed, theirs.workload, theirs.config)
    pairs = [
        (order.release.version, theirs.release.version),
        (order.artifact.sha256, theirs.artifact.sha256 if theirs.artifact else "no artifact"),
    ]
    given = [named(deployment.topology), named(deployment.testbed)]
    given += [named(deployment.workload), named(deployment.config)]
    pairs += (
        (f"{ours.name}@{ours.sha256}", f"{their.name}@{their.sha256}")
        for ours, their in zip(given, measured, strict=True)
    )
    return [f"{their} in place of {ours}" for ours, their in pairs if ours != their]


def _environment() -> dict[str, str]:
    """Return what it gets: the passwords of databases, but no other secret of this process.

    An older one may hand all that it gets to its servers.
    """
    passwords = {name: value for name, value in os.environ.items() if name.startswith(VARIABLES_BEGIN)}
    return {name: value for name, value in (environment() | passwords).items() if name not in _OURS}

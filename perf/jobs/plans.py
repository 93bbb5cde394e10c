"""Plans of nights and of comparisons: their ids, how they are read back, and what of them is done."""

import re
from collections.abc import Iterable
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from perf.history.place import start_of_ids
from perf.local.paths import DataPaths
from perf.local.plain_files import read_json
from perf.model.design import Deployment, SystemConfig, Testbed, Topology, Workload
from perf.model.errors import BundleError
from perf.model.shown import list_faults, list_some

T = TypeVar("T")

MOST_BYTES = 16 * 1024**2
"""Of a plan that is read."""


def read_plan(path: Path, form: TypeAdapter[T], what: str) -> T:
    """Read a plan; `what` says of what it should be one.

    Raises:
        BundleError: the file is none; all that is wrong is said at once.

    """
    try:
        return form.validate_json(read_json(path, MOST_BYTES))
    except ValidationError as error:
        raise no_plan(path, what, list_faults(error)) from error
    except OSError as error:
        raise no_plan(path, what, [f"it cannot be read: {error.strerror}"]) from error


def no_plan(path: Path, what: str, problems: list[str]) -> BundleError:
    """Return the error for a file that is no plan."""
    listed = "".join(f"\n  {problem}" for problem in list_some(problems))
    return BundleError(f"{path} is not the plan of {what}; move it away, its trials are kept:{listed}")


def contents(deployment: Deployment) -> tuple[Topology, Testbed, Workload, SystemConfig]:
    """Return what of a deployment decides what is measured, beside the system."""
    return deployment.topology, deployment.testbed, deployment.workload, deployment.config


def is_done(paths: DataPaths, trial: str) -> bool:
    """Return whether a planned trial was measured, however it ended: then its bundle is sealed."""
    return (paths.trials / trial).is_dir()


def next_id(paths: DataPaths, kind: str, now: datetime, planned: Iterable[Path]) -> str:
    """Return the id of a new plan: kind, day, the lab in a shared history, and the next number.

    `planned` are files or folders named after the ids of their plans. Bundles count too: a plan that
    was lost or moved away must not lend its trials to a new one.

    Raises:
        ConfigError: history.yaml is wrong.

    """
    start = start_of_ids(paths, kind, now)
    of_a_plan = re.compile(rf"{re.escape(start)}-(\d+)(?:\.|$)")
    found = (of_a_plan.match(path.name) for path in chain(planned, paths.trials.glob(f"{start}-*")))
    return f"{start}-{1 + max((int(one[1]) for one in found if one), default=0)}"

"""What is known to take too long before anything is started: counted rows and operations; pure."""

import math
from collections.abc import Mapping

from perf.model.design import CountedPhase, Deployment, EngineName, Workload
from perf.model.errors import UsageError
from perf.model.records import Devops, Operation
from perf.workloads.devops.tables import devops_rows
from perf.workloads.loading import preload_rows
from perf.workloads.stages import PRELOAD, expected_s, operations_of

# More than an engine process of each kind has ever stored here, of rows that cost it nothing to make.
FASTEST_PER_S: Mapping[EngineName, int] = {
    "python": 100_000,
    "native": 1_000_000,
    "command": 100_000,  # what is preloaded is stored by the Python one
}


def check_load_time(deployment: Deployment) -> None:
    """Insist that what is preloaded, and each counted phase, can be done within limits.load_s.

    Raises:
        UsageError: at `FASTEST_PER_S` rows per second and engine process it would take longer.

    """
    testbed, workload = deployment.testbed, deployment.workload
    engines = testbed.client_cores * deployment.topology.clients
    rows = {PRELOAD: preload_rows(workload)}
    rows |= {phase.name: _count_rows(workload, phase) for phase in workload.sequence}
    slowest = max(rows, key=lambda name: rows[name])
    fastest_per_s = FASTEST_PER_S[deployment.engine]
    needed_s = rows[slowest] / fastest_per_s / engines
    if needed_s > testbed.limits.load_s:
        raise UsageError(
            f"{deployment.experiment.name}: the phase {slowest} of workload {workload.name} has "
            f"{rows[slowest]:,} rows, which take {math.ceil(needed_s):,} s even at "
            f"{fastest_per_s:,} per second and engine process, {engines} here; limits.load_s of "
            f"testbed {testbed.name} is {testbed.limits.load_s:g}. Raise it to what you can wait, or "
            "say scaled_down_by in the suite"
        )


def _count_rows(workload: Workload, phase: CountedPhase) -> int:
    operations = operations_of(workload, phase)
    if phase.operation is Operation.LOAD and isinstance(workload.records, Devops):
        return min(operations * (workload.batch_rows or 1), devops_rows(workload.records))
    return operations * (workload.batch_rows or 1) if phase.operation is Operation.WRITE else operations


# Measured on two busy cores: boot and end of a three-node ring beside the load itself.
_DEPLOY_S = 45.0

_PRELOAD_ROWS_PER_S = 400.0


def planned_s(deployment: Deployment) -> float:
    """Guess how long a trial takes, in seconds, from its configuration alone."""
    workload = deployment.workload
    rows = preload_rows(workload)
    rows += sum(operations_of(workload, phase) for phase in workload.sequence)
    return _DEPLOY_S + rows / _PRELOAD_ROWS_PER_S + expected_s(workload)

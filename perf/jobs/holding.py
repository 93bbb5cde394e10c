"""One job at a time on a testbed: its leases, taken, renewed and given back."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import filelock

from perf.history import bundle
from perf.hosts import lease
from perf.jobs.feasible import planned_s
from perf.local import durable
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.design import Deployment, Testbed
from perf.model.errors import MeasureError


def renew_lease(deployment: Deployment) -> None:
    """Hold the testbed until the end of a trial that begins now, and long after.

    Raises:
        MeasureError: the lease was lost; says how and to whom.
        StepFailed: a host cannot be reached.

    """
    limits = deployment.testbed.limits
    waits_s = limits.start_s + limits.stop_s + limits.load_s + limits.connect_s + limits.settle_s
    parts = deployment.workload.measurements
    warm_ups_s = sum(part.warmup_cap_s * part.iterations for part in parts)
    for_s = _LEASED_TIMES * planned_s(deployment) + warm_ups_s + waits_s + _LEASED_BEYOND_S
    lease.renew(deployment.testbed, for_s)


@contextmanager
def hold(
    paths: DataPaths, progress: Progress, testbeds: Iterable[Testbed], purpose: str
) -> Iterator[None]:
    """Hold a data directory and all hosts of some testbeds for one job, over its whole span.

    What this process holds already, as a night over its bisections, it holds on.

    Raises:
        MeasureError: another process measures into the data directory or on one of the hosts, and
            keeps doing so; or a host cannot be reached.

    """
    paths.data.mkdir(parents=True, exist_ok=True)
    lock, pid_file = filelock.FileLock(paths.lock, is_singleton=True), paths.lock.with_suffix(".pid")
    try:
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            # A run that was just interrupted may still be stopping its servers.
            progress.report(f"another run measures into {paths.data}; waiting up to {_LOCK_WAIT_S:g} s")
            lock.acquire(timeout=_LOCK_WAIT_S)
    except filelock.Timeout as error:
        pid = pid_file.read_text().strip() if pid_file.exists() else "unknown"
        raise MeasureError(
            f"another run (pid {pid}) measures into {paths.data}; wait for it to end, "
            "or give --data another directory"
        ) from error
    try:
        with durable.naming(pid_file):
            pid_file.write_text(f"{os.getpid()}\n")
        bundle.remove_interrupted(paths)
        with lease.hold(testbeds, purpose, progress.report):
            yield
    finally:
        lock.release()


_LOCK_WAIT_S = 60.0

# A lease outlasts its trial by far: what runs long must not lose its hosts to another job.
_LEASED_TIMES = 3

_LEASED_BEYOND_S = 600.0

"""What a trial finds stored before it measures: the rows of its preload, counted and read back."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from perf.load.offer import Offer
from perf.model.design import Deployment, Workload
from perf.model.errors import KnickpointError, StepFailed
from perf.model.facts import DATASET
from perf.model.records import Devops, Operation, Records, Stored
from perf.model.results import Reason, Release
from perf.systems.contract import System, Target, open_session
from perf.systems.sessions import Session
from perf.trial.servers import Servers
from perf.workloads.loading import preload_rows, row_bytes


def make_offer(servers: Servers, deployment: Deployment) -> Offer:
    """Return what offers the load of a deployment to its servers."""
    workload, cluster = deployment.workload, servers.cluster
    target = servers.system.target(
        cluster, consistency=workload.consistency, timeout_s=workload.operation_timeout_s
    )
    return Offer(deployment=deployment, target=target, clients=cluster.clients, watch=servers.watch)


def expected_rows(workload: Workload) -> Stored:
    """Return what the preload of a workload stores."""
    rows = preload_rows(workload)
    return Stored(rows=rows, payload_bytes=round(rows * row_bytes(workload)))


def store(servers: Servers, offer: Offer, *, is_stored: bool = False) -> tuple[Reason, ...]:
    """Make the tables and store the preload, unless both are there, and read it back.

    Returns a reason where rows or bytes are missing.

    Raises:
        StepFailed: it could not be stored, or lies there and lacks something, or the release cannot be
            asked what a phase asks.

    """
    workload = offer.deployment.workload
    with connect(servers.system, offer.target, workload.records) as session:
        if not is_stored:
            session.create_schema(workload.records)
        _require_answers(workload, session, servers.cluster.release)
        expected = expected_rows(workload)
        if not expected.rows:
            return ()
        size = f", {expected.payload_bytes / 1e6:.1f} MB" if expected.payload_bytes else ""
        what = "read back" if is_stored else "load"
        servers.progress.report(f"{what}: {expected.rows} rows{size}")
        if not is_stored:
            offer.preload()
            servers.watch()
        lacking = compare_stored(session, expected)
    if lacking and is_stored:
        raise StepFailed(DATASET, offer.target.addresses[0], f"of what was kept, {lacking[0].text}")
    return lacking


@contextmanager
def connect(system: System, target: Target, records: Records) -> Iterator[Any]:
    """Connect a client of the data model that records are of.

    A driver's error is a failed step, not a defect.
    """
    try:
        with open_session(system, target, records) as session:
            yield session
    except KnickpointError:
        raise
    except Exception as error:
        raise StepFailed("client", target.addresses[0], repr(error)) from error


def compare_stored(session: Session, expected: Stored) -> tuple[Reason, ...]:
    """Read all rows back; return a reason if they are not what was to be stored."""
    stored = session.stored()
    if stored == expected:
        return ()
    text = (
        f"{stored.rows} of {expected.rows} rows and {stored.payload_bytes} of "
        f"{expected.payload_bytes} bytes were stored after the load phase"
    )
    return (Reason(kind="not-loaded", text=text),)


def _require_answers(workload: Workload, session: Any, release: Release) -> None:  # noqa: ANN401  of the records' data model
    """Raise StepFailed before anything is loaded if the release cannot be asked what a phase asks."""
    if isinstance(workload.records, Devops):
        asked = [one.operation for one in workload.sequence if one.operation is not Operation.LOAD]
        asked += [operation for operation in workload.offered if operation is not Operation.LOAD]
        missing = [str(operation) for operation in asked if not session.can_ask(operation)]
        if missing:
            why = f"{release.system} {release.version} cannot be asked {', '.join(missing)}"
            raise StepFailed("load", "the client", why)

"""The steps of a trial over all nodes of one cluster, with their time limits and their progress.

Systems own none of this: no order, no clock, no polling. `harness` puts the steps in order.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from perf.hosts.canary import run_canary
from perf.hosts.fresh_disk import freshen
from perf.hosts.pinning import prove_pinning
from perf.hosts.remote import make_directory, read_tail, run_repeatable, running_pid
from perf.local.progress import Progress
from perf.model.design import Workload
from perf.model.errors import KnickpointError, NotReady, StepFailed, TimedOut, Unreachable
from perf.model.records import Records
from perf.model.results import Fact, Reason, Release, Sample
from perf.systems.contract import (
    BootstrapsOnce,
    Cluster,
    KnowsVersion,
    Node,
    NodeFigure,
    ReportsFacts,
    ReportsTelemetry,
    Settles,
    System,
    Target,
    open_session,
)
from perf.trial.telemetry import Snapshot, look

POLL_S = 0.25
Answer = TypeVar("Answer")


class NodeDied(StepFailed):
    """A node's process ended while it was being measured; the trial is invalid, not failed."""


@dataclass(slots=True)
class Steps:
    """The steps of a trial over all nodes of one cluster, with their limits and progress."""

    system: System
    cluster: Cluster
    progress: Progress

    def wipe(self) -> None:
        """Remove what any earlier trial left on each node."""
        for node in self.cluster.nodes:
            self.system.wipe(node)

    def freshen_disks(self) -> tuple[Fact, ...]:
        """Do to page cache and disk of each server host what the testbed's policy says; give facts.

        Raises:
            HostUnfit: a host does not let it be done.

        """
        policy = self.cluster.testbed.disk
        if policy is None:
            return ()
        facts: list[Fact] = []
        for node in {node.remote.name: node for node in self.cluster.nodes}.values():
            make_directory(node.remote, node.work_dir)
            found, said = freshen(node.remote, node.work_dir, policy)
            facts += found
            self.progress.tell(f"{node.remote.name}: fresh disk: {'; '.join(said)}")
        return tuple(facts)

    def install(self) -> None:
        """Put the release on each node."""
        for node in self.cluster.nodes:
            self.progress.tell(f"{node.name}: install {_label(self.cluster.release)}")
            make_directory(node.remote, node.work_dir)
            self.system.install(node, self.cluster)

    def configure(self) -> None:
        """Write each node's configuration."""
        for node in self.cluster.nodes:
            self.system.configure(node, self.cluster)

    def facts(self) -> tuple[Fact, ...]:
        """Read the facts that only the system knows, where it reports any."""
        return self.system.facts(self.cluster) if isinstance(self.system, ReportsFacts) else ()

    def start(self) -> None:
        """Start all nodes, then wait until the cluster serves as a whole."""
        limit_s = self.cluster.testbed.limits.start_s
        for node in self.cluster.nodes:
            self.progress.tell(f"{node.name}: start on {node.address} (up to {limit_s:g} s)")
            self.system.start(node, self.cluster)
        started_s = time.monotonic()
        if isinstance(self.system, BootstrapsOnce):
            system = self.system

            def bootstrap(cluster: Cluster) -> None:
                self._require_started()
                system.bootstrap(cluster)

            self._poll(bootstrap, "join the nodes", limit_s)
        self._poll(self.system.check, "wait until the cluster serves", limit_s)
        self.progress.tell(f"cluster serves after {time.monotonic() - started_s:.0f} s")

    def _require_started(self) -> None:
        """Raise StepFailed if a server that was started has ended; some are started only later."""
        for node in self.cluster.nodes:
            was_started = run_repeatable(node.remote, ["test", "-f", node.pid_file], check=False)
            if was_started.returncode == 0 and not self.system.is_running(node):
                raise StepFailed("start", node.name, "the server process ended", self.tail(node))

    def verify_version(self) -> None:
        """Make sure that what answers is the release that the trial is about, on every node.

        Raises:
            StepFailed: a node tells another one, or none.

        """
        if not isinstance(self.system, KnowsVersion):
            return
        running = dict(self.system.running_versions(self.cluster))
        wanted = self.cluster.release.version
        for node in self.cluster.nodes:
            if (told := running.get(node.name)) != wanted:
                runs = f"runs {told}" if told else "does not tell which release it runs"
                why = f"{runs}, but {wanted} was to be measured; is {node.address} another's server?"
                raise StepFailed("version", node.name, why)

    def prove_pinning(self) -> tuple[Fact, ...]:
        """Read back what the processes of pinned nodes are pinned to; give it as facts of the nodes.

        Raises:
            StepFailed: one is not pinned as the testbed says, or has ended.

        """
        facts: list[Fact] = []
        for node in self.cluster.nodes:
            if node.cores or node.numa_node is not None:
                pid = running_pid(node.remote, node.pid_file)
                if pid is None:
                    raise NodeDied("pinning", node.name, "its server process ended", self.tail(node))
                facts += prove_pinning(node.remote, node.name, pid, node.cores, node.numa_node)
        return tuple(facts)

    def target(self, workload: Workload) -> Target:
        """Give what clients of this cluster need to connect."""
        return self.system.target(
            self.cluster, consistency=workload.consistency, timeout_s=workload.operation_timeout_s
        )

    @contextmanager
    def connect(self, target: Target, records: Records) -> Iterator[Any]:
        """Connect the harness's own client of the data model that records are of.

        A driver's error is a failed step, not a defect.
        """
        try:
            with open_session(self.system, target, records) as session:
                yield session
        except KnickpointError:
            raise
        except Exception as error:
            raise StepFailed("client", target.addresses[0], repr(error)) from error

    @contextmanager
    def telemetry(self, tell: Callable[[Reason], None]) -> Iterator[Callable[[], Snapshot]]:
        """Give a function that looks at all hosts and nodes, connected for as long as it is needed.

        What a system cannot say of itself is told of, and the looks go on without it.
        """
        with ExitStack() as connections:
            ask: Callable[[], tuple[NodeFigure, ...]] = tuple
            if isinstance(self.system, ReportsTelemetry):
                try:
                    ask = connections.enter_context(self.system.open_telemetry(self.cluster))
                except StepFailed as failure:
                    tell(_missing(failure))

            def read_levels() -> tuple[NodeFigure, ...]:
                try:
                    return tuple(map(_check_finite, ask()))
                except StepFailed as failure:
                    tell(_missing(failure))
                    return ()

            clients = [client.remote for client in self.cluster.clients]
            yield lambda: look(self.cluster, read_levels, clients)

    def canaries(self, phase: str, tell: Callable[[Reason], None]) -> tuple[Sample, ...]:
        """Do the fixed work that watches the hosts, once on each; tell of a host that cannot."""
        nodes = {node.remote.name: node for node in self.cluster.nodes}
        samples: list[Sample] = []
        for node in nodes.values():
            try:
                samples += run_canary(node.remote, str(Path(node.work_dir).parent), phase)
            except StepFailed as failure:
                text = f"{phase}: no fixed work was done: {sentence(failure)}"
                tell(Reason(kind="canary-missing", text=text))
        return tuple(samples)

    def settle(self) -> None:
        """Wait until background work is idle, where the system can tell."""
        if isinstance(self.system, Settles):
            system, limit_s = self.system, self.cluster.testbed.limits.settle_s

            def settle(cluster: Cluster) -> None:
                self.watch()  # a node that died is idle for ever, and answers nobody
                system.settle(cluster)

            self._poll(settle, "settle: wait until compaction is idle", limit_s)

    def find_change(self) -> tuple[Reason, ...]:
        """Ask after the load whether the cluster serves as a whole, as before; a reason if not.

        A replica set with another primary, or a node that lost sight of the others, was not measured
        as it was deployed.
        """
        limit_s = self.cluster.testbed.limits.connect_s
        try:
            self._poll(self.system.check, "see whether the cluster serves as before", limit_s)
        except TimedOut as failure:
            text = f"after the load the cluster serves no longer as it did: {sentence(failure)}"
            return (Reason(kind="cluster-changed", text=text),)
        return ()

    @contextmanager
    def naming_the_dead(self) -> Iterator[None]:
        """Say of a step that failed because a server process has ended that it has.

        Raises:
            NodeDied: in place of the failure that came of it.

        """
        try:
            yield
        except (NodeDied, Unreachable):
            raise
        except StepFailed:
            with suppress(Unreachable):
                self.watch()
            raise

    def watch(self) -> None:
        """Raise NodeDied if a server process has ended; say now and then that the load goes on."""
        for node in self.cluster.nodes:
            if not self.system.is_running(node):
                raise NodeDied("measure", node.name, "its server process ended", self.tail(node))
        self.progress.tell_sometimes("… under load, all nodes run")

    def tail(self, node: Node) -> str:
        """Give the last lines of a node's most telling log."""
        return read_tail(node.remote, self.system.logs(node)[0])

    def clean_up(self, staged: Path) -> tuple[str, ...]:
        """End all servers, keep their logs, wipe the nodes. Files under a server that lives stay.

        A node of which any of this fails is left as it is, and the others are cleaned all the same.
        Returns what was left undone, in one sentence per node.
        """
        undone = _Undone()
        self._end(undone)
        for node in self.cluster.nodes:
            undone.attempt(node, lambda node: self._collect_logs(node, staged))
            undone.attempt(node, self.system.wipe)
        return tuple(undone.why.values())

    def _end(self, undone: "_Undone") -> None:
        """Stop every node: politely, then by force; return only when all within reach are gone."""
        limit_s = self.cluster.testbed.limits.stop_s

        def find_running() -> list[Node]:
            return [node for node in self.cluster.nodes if undone.attempt(node, self.system.is_running)]

        for force in (False, True):
            if not (running := find_running()):
                return
            how = "kill" if force else "stop"
            self.progress.tell(f"{how} {', '.join(node.name for node in running)}")
            for node in running:
                undone.attempt(node, lambda node: self.system.stop(node, force=force))  # noqa: B023  called at once
            end_s = time.monotonic() + limit_s
            while time.monotonic() < end_s and find_running():
                time.sleep(POLL_S)
        for node in find_running():
            why = f"its server still runs {limit_s:g} s after a kill"
            undone.why[node.name] = sentence(StepFailed("stop", node.name, why))

    def _collect_logs(self, node: Node, staged: Path) -> None:
        """Copy a node's logs into the bundle; a missing log is not a failure."""
        for path in self.system.logs(node):
            target = staged / "logs" / f"{node.name}-{Path(path).name}"
            target.parent.mkdir(parents=True, exist_ok=True)
            if run_repeatable(node.remote, ["test", "-f", path], check=False).returncode == 0:
                node.remote.get(path, target)

    def _poll(self, ask: Callable[[Cluster], None], what: str, limit_s: float) -> None:
        end_s = time.monotonic() + limit_s
        while True:
            try:
                ask(self.cluster)
            except NotReady as reason:
                if time.monotonic() > end_s:
                    node = next((n for n in self.cluster.nodes if n.name == reason.node), None)
                    tail = self.tail(node or self.cluster.nodes[0])
                    why = f"not within {limit_s:g} s: {reason.why}"
                    raise TimedOut(reason.step, reason.node, why, tail) from reason
                self.progress.tell_sometimes(f"{what}: {reason.node}: {reason.why}")
                time.sleep(POLL_S)
            else:
                return


@dataclass(slots=True)
class _Undone:
    """What could not be done on nodes; each is left alone once something has failed there."""

    why: dict[str, str] = field(default_factory=dict)

    def attempt(self, node: Node, do: Callable[[Node], Answer]) -> Answer | None:
        """Do it on a node unless something has failed there; None where it is not done."""
        if node.name not in self.why:
            try:
                return do(node)
            except StepFailed as failure:
                self.why[node.name] = sentence(failure)
            except OSError as error:
                self.why[node.name] = f"{node.name}: {error}"
        return None


def sentence(failure: StepFailed) -> str:
    """Say in one line what failed where, without the log."""
    return f"{failure.step} failed on {failure.node}: {failure.why}"


def _check_finite(level: NodeFigure) -> NodeFigure:
    """Refuse what is no number: no bundle holds it, and the trial would be lost for it."""
    if not isfinite(level.value):
        raise StepFailed("look", level.node, f"its {level.name} is {level.value}")
    return level


def _missing(failure: StepFailed) -> Reason:
    text = f"the servers' own figures are missing from a window: {sentence(failure)}"
    return Reason(kind="telemetry-missing", text=text)


def _label(release: Release) -> str:
    return f"{release.system} {release.version}"

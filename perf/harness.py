"""One trial, from an empty host to a sealed bundle. `run_trial` is the order of everything.

The harness owns order, time limits, polling, verification and cleaning up; systems own none of it.
Expected trouble becomes the trial's status and reason; a defect of ours escapes and is seen.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from perf import deployment as placement
from perf.config import named
from perf.design import Deployment, Measurement, Operation, Workload
from perf.errors import KnickpointError, NotReady, StepFailed, TimedOut
from perf.history import bundle
from perf.hosts.checks import check_hosts
from perf.hosts.facts import read_client_facts, read_facts
from perf.load.engines import LoadOutcome
from perf.load.offer import Offer
from perf.load.summary import summarize
from perf.load.validity import find_faults
from perf.model import Artifact, Fact, Purpose, Reason, Release, Trial, TrialId, TrialStatus
from perf.places import Places
from perf.progress import Progress
from perf.remote import make_directory, read_tail
from perf.systems.contract import (
    BootstrapsOnce,
    Cluster,
    KnowsVersion,
    Node,
    ReportsFacts,
    SensorSession,
    Settles,
    System,
    Target,
)

POLL_S = 0.5
_LOG_LINES = 40


class NodeDied(StepFailed):
    """A node's process ended while it was being measured; the trial is invalid, not failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to measure: a resolved deployment at one release, under an id of its own."""

    trial: TrialId
    night: str
    purpose: Purpose
    deployment: Deployment
    release: Release
    artifact: Artifact


@dataclass(slots=True)
class Draft:
    """What is known of a trial so far; it is worth a bundle at any moment."""

    status: TrialStatus = TrialStatus.COMPLETED
    reasons: list[Reason] = field(default_factory=list)
    before: tuple[Fact, ...] = ()
    after: tuple[Fact, ...] = ()
    outcome: LoadOutcome = field(default_factory=LoadOutcome)
    log_tail: str = ""

    def record(self, status: TrialStatus, kind: str, text: str, log_tail: str = "") -> None:
        """Note why the trial did not complete; the first log tail is the telling one."""
        self.status = status
        self.reasons.append(Reason(kind=kind, text=text))
        self.log_tail = self.log_tail or log_tail


def run_trial(order: Order, system: System, places: Places, progress: Progress) -> Trial:
    """Measure one trial and seal its bundle.

    Raises:
        HostUnfit: the hosts cannot carry any trial; nothing was started and no bundle is left.
        KeyboardInterrupt: passed on after every process was stopped; no bundle is left.

    """
    cluster = placement.place(order.deployment, order.release, order.artifact, places.run)
    steps = Steps(system, cluster, progress)
    started_at = datetime.now(UTC)
    steps.end_leftovers()
    check_hosts(cluster.nodes, system.ports(), cluster.testbed.needs)
    staged = bundle.stage(places, order.trial)
    draft = Draft()
    try:
        draft.before = read_environment(cluster)
        steps.wipe()
        steps.install()
        steps.configure()
        draft.before += steps.facts()
        steps.start()
        steps.verify_version()
        _load(steps, order, places, draft)
        draft.after = read_environment(cluster)
        draft.reasons += find_faults(draft.outcome, cluster.testbed.validity)
        draft.status = TrialStatus.INVALID if draft.reasons else draft.status
    except NodeDied as death:
        draft.record(TrialStatus.INVALID, "node-died", _sentence(death), death.log_tail)
    except StepFailed as failure:
        draft.record(TrialStatus.FAILED, f"{failure.step}-failed", _sentence(failure), failure.log_tail)
    finally:
        steps.clean_up(staged, draft)
    trial = _trial(order, draft, started_at)
    bundle.seal(staged, trial, draft.outcome.intervals)
    return trial


@dataclass(slots=True)
class Steps:
    """The steps of a trial over all nodes of one cluster, with their limits and progress."""

    system: System
    cluster: Cluster
    progress: Progress

    def end_leftovers(self) -> None:
        """End servers that an interrupted run left behind in this testbed's directories."""
        if any(self.system.is_running(node) for node in self.cluster.nodes):
            self.progress.tell("ending servers that an interrupted run left behind")
            self.end()

    def wipe(self) -> None:
        """Remove what any earlier trial left on each node."""
        for node in self.cluster.nodes:
            self.system.wipe(node)

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
            self._poll(self.system.bootstrap, "join the nodes", limit_s)
        self._poll(self.system.check, "wait until the cluster serves", limit_s)
        self.progress.tell(f"cluster serves after {time.monotonic() - started_s:.0f} s")

    def verify_version(self) -> None:
        """Make sure that every node runs the release that the trial is about."""
        if not isinstance(self.system, KnowsVersion):
            return
        for name, running in self.system.running_versions(self.cluster):
            if running != self.cluster.release.version:
                wanted = self.cluster.release.version
                raise StepFailed("check", name, f"runs {running}, but {wanted} was to be measured")

    def target(self, workload: Workload) -> Target:
        """Give what clients of this cluster need to connect."""
        return self.system.target(
            self.cluster, consistency=workload.consistency, timeout_s=workload.operation_timeout_s
        )

    @contextmanager
    def connect(self, target: Target) -> Iterator[SensorSession]:
        """Connect the harness's own client; a driver's error is a failed step, not a defect."""
        try:
            with self.system.connect(target) as session:
                yield session
        except KnickpointError:
            raise
        except Exception as error:
            raise StepFailed("client", target.addresses[0], repr(error)) from error

    def settle(self) -> None:
        """Wait until background work is idle, where the system can tell."""
        if isinstance(self.system, Settles):
            limit_s = self.cluster.testbed.limits.settle_s
            self._poll(self.system.settle, "settle: wait until compaction is idle", limit_s)

    def watch(self) -> None:
        """Raise NodeDied if a server process has ended; say now and then that the load goes on."""
        for node in self.cluster.nodes:
            if not self.system.is_running(node):
                raise NodeDied("measure", node.name, "its server process ended", self.tail(node))
        self.progress.tell_sometimes("… under load, all nodes run")

    def tail(self, node: Node) -> str:
        """Give the last lines of a node's most telling log."""
        return read_tail(node.remote, self.system.logs(node)[0], _LOG_LINES)

    def end(self) -> None:
        """Stop every node: politely, then by force; return only when all are gone."""
        limit_s = self.cluster.testbed.limits.stop_s
        for force, wait_s in ((False, limit_s), (True, limit_s)):
            running = [node for node in self.cluster.nodes if self.system.is_running(node)]
            if not running:
                return
            how = "kill" if force else "stop"
            self.progress.tell(f"{how} {', '.join(node.name for node in running)}")
            for node in running:
                self.system.stop(node, force=force)
            end_s = time.monotonic() + wait_s
            while time.monotonic() < end_s and any(map(self.system.is_running, running)):
                time.sleep(POLL_S)
        for node in self.cluster.nodes:
            if self.system.is_running(node):
                raise StepFailed("stop", node.name, f"its server still runs {limit_s:g} s after a kill")

    def clean_up(self, staged: Path, draft: Draft) -> None:
        """End all servers, keep their logs, wipe the nodes.

        A clean-up that fails is one more reason, and never costs the bundle. Files under a server
        that could not be ended stay.
        """
        try:
            self.end()
            self.collect_logs(staged)
            self.wipe()
        except (StepFailed, OSError) as failure:
            text = _sentence(failure) if isinstance(failure, StepFailed) else str(failure)
            draft.record(TrialStatus.FAILED, "clean-up-failed", text)

    def collect_logs(self, staged: Path) -> None:
        """Copy each node's logs into the bundle; a missing log is not a failure."""
        for node in self.cluster.nodes:
            for path in self.system.logs(node):
                target = staged / "logs" / f"{node.name}-{Path(path).name}"
                target.parent.mkdir(parents=True, exist_ok=True)
                if node.remote.run(["test", "-f", path], check=False).returncode == 0:
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


def _load(steps: Steps, order: Order, places: Places, draft: Draft) -> None:
    """Preload and count; settle; then run each measured phase. The draft gets all that comes."""
    workload = order.deployment.workload
    target = steps.target(workload)
    offer = Offer(
        deployment=order.deployment,
        target=target,
        run_dir=places.run,
        watch=steps.watch,
    )
    with steps.connect(target) as session:
        session.create_schema(workload.records)
        if offer.preload_rows:
            steps.progress.tell(f"load: {offer.preload_rows} rows")
            offer.preload()
            steps.watch()
            stored = session.count()
            if stored != offer.preload_rows:
                text = f"{stored} of {offer.preload_rows} rows were stored after the load phase"
                draft.record(TrialStatus.INVALID, "not-loaded", text)
    steps.settle()
    for place, phase in enumerate(workload.measurements):
        steps.progress.tell(_describe(workload.operation, phase))
        draft.outcome += offer.measure(place)
        steps.watch()


def read_environment(cluster: Cluster) -> tuple[Fact, ...]:
    """Read the facts of every distinct host, and the client's versions."""
    remotes = {node.remote.name: node.remote for node in cluster.nodes}
    facts = [fact for remote in remotes.values() for fact in read_facts(remote)]
    return (*facts, *read_client_facts("client"))


def _describe(operation: Operation, phase: Measurement) -> str:
    load = phase.load
    how = (
        f"closed loop, {load.in_flight} in flight"
        if load.kind == "closed"
        else f"open loop, {load.offered_load_ops_per_s:g} ops/s offered"
    )
    times = f"warm-up {phase.warmup_s:g} s, then {phase.iterations} × {phase.iteration_s:g} s"
    return f"{phase.name}: {operation.value}, {how}: {times}"


def _label(release: Release) -> str:
    return f"{release.system} {release.version}"


def _sentence(failure: StepFailed) -> str:
    return f"{failure.step} failed on {failure.node}: {failure.why}"


def _trial(order: Order, draft: Draft, started_at: datetime) -> Trial:
    deployment = order.deployment
    return Trial(
        id=order.trial,
        night=order.night,
        purpose=order.purpose,
        experiment=deployment.experiment.name,
        release=order.release,
        artifact=replace(order.artifact, location=""),
        topology=named(deployment.topology),
        testbed=named(deployment.testbed),
        testbed_class=deployment.testbed.testbed_class,
        workload=named(deployment.workload),
        config=named(deployment.config),
        engine="python",
        seed=deployment.workload.seed,
        started_at=started_at,
        finished_at=datetime.now(UTC),
        status=draft.status,
        reasons=tuple(draft.reasons),
        environment_before=draft.before,
        environment_after=draft.after,
        samples=summarize(deployment.workload, draft.outcome),
        counters=draft.outcome.counters,
        log_tail=draft.log_tail,
        harness_version=version("knickpoint"),
    )

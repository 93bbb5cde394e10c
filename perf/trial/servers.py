"""The servers of one trial: a system's verbs on all nodes, with their time limits and their progress.

Systems own none of this: no order, no clock, no polling. `harness` puts the steps in order.
"""

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from perf.hosts.pinning import prove_pinning
from perf.hosts.remote import make_directory, read_tail, run_repeatable, running_pid
from perf.local.progress import Progress
from perf.model.errors import HostUnfit, KnickpointError, NotReady, StepFailed, TimedOut, Unreachable
from perf.model.results import Fact, Reason
from perf.model.shown import printable
from perf.model.sources import DEV
from perf.systems.contract import (
    BootstrapsOnce,
    Cluster,
    KnowsVersion,
    Node,
    ReportsFacts,
    Settles,
    System,
)

POLL_S = 0.25
# A killed server is gone in tenths of a second, and nothing is measured meanwhile.
_KILLED_POLL_S = 0.05
_ERROR = re.compile(r"^(?:\[[^\]]*\])?\W{0,2}(ERROR|FATAL|Error)\b")
_BEFORE_MESSAGE = re.compile(r"^(?:ERROR|FATAL)\b.*? - |^(?:\[[^\]]*\] ?)+")
_MOST_QUOTED = 200


def find_error(log_tail: str) -> str:
    """Return the message of the last entry of a server's log that is an error, or "" if none is.

    An entry begins with its level (Cassandra, ScyllaDB), or with a time and its level (CrateDB); a JVM
    that does not start says "Error". Of mongod's JSON, the message and its error are returned. At most
    200 printable characters.
    """
    for line in reversed(log_tail.splitlines()):
        if line.startswith("{"):
            said = _read_json_error(line)
        else:
            said = _BEFORE_MESSAGE.sub("", line) if _ERROR.match(line) else ""
        if said:
            return printable(" ".join(said.split()), _MOST_QUOTED)
    return ""


def _read_json_error(line: str) -> str:
    try:
        entry = json.loads(line)
        if entry["s"] not in ("E", "F"):
            return ""
        error = (entry.get("attr") or {}).get("error", "")
        error = error.get("errmsg", "") if isinstance(error, dict) else error
        return f"{entry.get('msg', '')}: {error}".strip(": ")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return ""


@contextmanager
def _step(step: str, node: Node) -> Iterator[None]:
    """Turn an error that nobody foresaw into a failure of the step: it costs a trial, never a night.

    So does what this release needs and the host lacks, such as its Java: other releases need another.

    Raises:
        StepFailed: in place of these, and of any exception that is none of Knickpoint's own.

    """
    try:
        yield
    except HostUnfit as error:
        raise StepFailed(step, node.name, str(error)) from error
    except KnickpointError:
        raise
    except Exception as error:
        said = printable(str(error), _MOST_QUOTED)
        why = f"an error of Knickpoint: {type(error).__name__}: {said}"
        raise StepFailed(step, node.name, why) from error


class NodeDied(StepFailed):
    """A node's process ended while it was being measured; the trial is invalid, not failed."""


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers of one cluster, from install to clean-up."""

    system: System
    cluster: Cluster
    progress: Progress

    def wipe(self) -> None:
        """Remove what any earlier trial left on each node."""
        for node in self.cluster.nodes:
            self.system.wipe(node)

    def install(self) -> None:
        """Put the release on each node."""
        release = self.cluster.release
        for node in self.cluster.nodes:
            self.progress.report(f"{node.name}: install {release.system} {release.version}")
            with _step("install", node):
                make_directory(node.remote, node.work_dir)
                self.system.install(node, self.cluster)

    def configure(self) -> None:
        """Write each node's configuration."""
        for node in self.cluster.nodes:
            with _step("configure", node):
                self.system.configure(node, self.cluster)

    def start(self) -> None:
        """Start all nodes, then wait until the cluster serves as a whole."""
        limit_s = self.cluster.testbed.limits.start_s
        for node in self.cluster.nodes:
            self.progress.report(f"{node.name}: start on {node.address} (up to {limit_s:g} s)")
            with _step("start", node):
                self.system.start(node, self.cluster)
        started_s = time.monotonic()
        if isinstance(self.system, BootstrapsOnce):
            bootstrap = self.system.bootstrap
            self._poll(bootstrap, "join the nodes", limit_s, before=self._require_started)
        self._poll(self.system.check, "wait until the cluster serves", limit_s)
        self.progress.report(f"cluster serves after {time.monotonic() - started_s:.0f} s")

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
        # A build of a commit may call itself by any version, but by one.
        if self.cluster.release.line.endswith(DEV):
            wanted = next((found for found in running.values() if found), "a version")
        else:
            wanted = self.cluster.release.version
        for node in self.cluster.nodes:
            if (found := running.get(node.name)) != wanted:
                runs = f"runs {found}" if found else "does not report its release"
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
                    raise self._ended("pinning", node)
                facts += prove_pinning(node.remote, node.name, pid, node.cores, node.numa_node)
        return tuple(facts)

    def settle(self) -> tuple[Reason, ...]:
        """Wait until background work is idle, where the system can tell; return what is unknown."""
        if isinstance(self.system, Settles):
            limit_s = self.cluster.testbed.limits.settle_s
            what = "settle: wait until compaction is idle"
            # A node that died is idle for ever, and answers nobody.
            self._poll(self.system.settle, what, limit_s, before=self.watch)
        return ()

    def stop(self) -> None:
        """Ask all servers to end, and wait until they have: what they hold is in their files then."""
        self.progress.report("stop all servers, once they have written all they hold")
        for node in self.cluster.nodes:
            with _step("stop", node):
                self.system.stop(node, force=False)
        limit_s = self.cluster.testbed.limits.stop_s
        self._poll(self._require_ended, "wait until the servers have ended", limit_s)

    def _require_ended(self, cluster: Cluster) -> None:
        for node in cluster.nodes:
            if self.system.is_running(node):
                raise NotReady("stop", node.name, "its server has not ended yet")

    def facts(self) -> tuple[Fact, ...]:
        """Return the facts that only the system knows of its nodes, where it reports any."""
        return self.system.facts(self.cluster) if isinstance(self.system, ReportsFacts) else ()

    def find_change(self) -> tuple[Reason, ...]:
        """Ask after the load whether the cluster serves as a whole, as before; a reason if not.

        A replica set with another primary, or a node that lost sight of the others, was not measured
        as it was deployed.
        """
        limit_s = self.cluster.testbed.limits.connect_s
        try:
            self._poll(self.system.check, "see whether the cluster serves as before", limit_s)
        except TimedOut as failure:
            text = f"after the load the cluster serves no longer as it did: {failure.sentence}"
            return (Reason(kind="cluster-changed", text=text),)
        return ()

    @contextmanager
    def naming_the_dead(self) -> Iterator[None]:
        """Describe of a step that failed because a server process has ended that it has.

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
                raise self._ended("measure", node)
        self.progress.report_sometimes("… under load, all nodes run")

    def _ended(self, step: str, node: Node) -> NodeDied:
        return NodeDied(step, node.name, "its server process ended", self.tail(node))

    def tail(self, node: Node) -> str:
        """Return the last lines of a node's most informative log."""
        return read_tail(node.remote, self.system.logs(node)[0])

    def clean_up(self, staged: Path) -> tuple[str, ...]:
        """End all servers, keep their logs, wipe the nodes. Files under a server that lives stay.

        A node of which any of this fails is left as it is, and the others are cleaned all the same.
        Returns what was left undone, in one sentence per node.
        """
        undone: dict[str, str] = {}

        def attempt(node: Node, do: Callable[[Node], object]) -> bool:
            """Do it on a node unless something has failed there; say whether it gave anything."""
            if node.name not in undone:
                try:
                    return bool(do(node))
                except StepFailed as failure:
                    undone[node.name] = failure.sentence
                except OSError as error:
                    undone[node.name] = f"{node.name}: {error}"
            return False

        self._end(attempt)
        for node in self.cluster.nodes:
            if attempt(node, self.system.is_running):
                why = f"its server still runs {self.cluster.testbed.limits.stop_s:g} s after a kill"
                undone[node.name] = StepFailed("stop", node.name, why).sentence
            attempt(node, lambda node: self._collect_logs(node, staged))
            attempt(node, self.system.wipe)
        return tuple(undone.values())

    def _end(self, attempt: Callable[[Node, Callable[[Node], object]], bool]) -> None:
        """Kill every server; return when all are gone, or time is up.

        All data are wiped next, so a shutdown would only flush and drain for nothing: Cassandra 5.0.9
        takes 11 s for it, and writes to the disk of the next trial meanwhile.
        """

        def find_running() -> list[Node]:
            return [node for node in self.cluster.nodes if attempt(node, self.system.is_running)]

        if not (running := find_running()):
            return
        self.progress.report(f"kill {', '.join(node.name for node in running)}")
        for node in running:
            attempt(node, lambda node: self.system.stop(node, force=True))
        end_s = time.monotonic() + self.cluster.testbed.limits.stop_s
        while time.monotonic() < end_s and find_running():
            time.sleep(_KILLED_POLL_S)

    def _collect_logs(self, node: Node, staged: Path) -> None:
        """Copy a node's logs into the bundle; a missing log is not a failure."""
        for path in self.system.logs(node):
            target = staged / "logs" / f"{node.name}-{Path(path).name}"
            target.parent.mkdir(parents=True, exist_ok=True)
            if run_repeatable(node.remote, ["test", "-f", path], check=False).returncode == 0:
                node.remote.get(path, target)

    def _poll(
        self,
        ask: Callable[[Cluster], None],
        what: str,
        limit_s: float,
        before: Callable[[], None] = lambda: None,
    ) -> None:
        """Ask until it is ready, `before` each time; TimedOut with a log where it never is."""
        end_s = time.monotonic() + limit_s
        while True:
            try:
                before()
                return ask(self.cluster)
            except NotReady as reason:
                if time.monotonic() > end_s:
                    node = next((n for n in self.cluster.nodes if n.name == reason.node), None)
                    nodes = self.cluster.nodes
                    tail = self.tail(node or nodes[0]) if nodes else ""
                    why = f"not within {limit_s:g} s: {reason.why}"
                    raise TimedOut(reason.step, reason.node, why, tail) from reason
                self.progress.report_sometimes(f"{what}: {reason.node}: {reason.why}")
                time.sleep(POLL_S)

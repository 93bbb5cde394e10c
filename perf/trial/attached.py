"""The servers of a trial that are somebody else's: nothing is run, looked at or ended on their hosts.

What is made there is one place for the trial's tables, marked with its owner.
"""

import secrets
import socket
from dataclasses import dataclass
from pathlib import Path

from perf.local import durable
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.errors import ConfigError, NotReady, StepFailed
from perf.model.results import Fact, Reason
from perf.systems.contract import Attaches, Cluster, KnowsVersion, Settles, System, Target
from perf.trial.servers import Servers

_TIMEOUT_S = 30.0


def make_servers(system: System, cluster: Cluster, paths: DataPaths, progress: Progress) -> Servers:
    """Return the servers of a cluster, as they are to be handled.

    Raises:
        ConfigError: it is an attached one, and of its system none can be attached.

    """
    if not cluster.testbed.attached:
        return Servers(system, cluster, progress)
    if not isinstance(system, Attaches):
        why = f"testbed {cluster.testbed.name}: {system.name} cannot be attached; remove attached"
        raise ConfigError([why])
    return AttachedServers(system, cluster, progress, system, name_owner(paths))


def name_owner(paths: DataPaths) -> str:
    """Return who measures: the id of the data directory, into which one job measures at a time.

    It is made by the first who asks. Host and path are for people: containers share both.
    """
    if not paths.owner_id.exists():
        durable.atomic_write(paths.owner_id, secrets.token_hex(8).encode())
    return f"{paths.owner_id.read_text().strip()} on {socket.gethostname()}:{paths.data.resolve()}"


def ask_version(system: System, cluster: Cluster) -> str:
    """Return the one version that all servers of an attached cluster run.

    Raises:
        NotReady: a server does not answer.
        StepFailed: they run several.

    """
    found = dict(system.running_versions(cluster)) if isinstance(system, KnowsVersion) else {}
    if len(set(found.values())) != 1:
        each = ", ".join(f"{name} {version}" for name, version in found.items())
        why = f"its servers run several versions ({each}); wait until the upgrade is over"
        raise StepFailed("version", cluster.testbed.name, why)
    return next(iter(found.values()))


@dataclass(frozen=True)
class AttachedServers(Servers):
    """Servers that run already: the cluster has no nodes, so what is done to each is done to none."""

    attaches: Attaches
    owner: str

    @property
    def _target(self) -> Target:
        return self.system.target(self.cluster, consistency="quorum", timeout_s=_TIMEOUT_S)

    def wipe(self) -> None:
        """Make the place of the trial's tables anew; StepFailed if one is there that is not ours."""
        self.attaches.make_place(self._target, self.owner)

    def facts(self) -> tuple[Fact, ...]:
        """Return none: what a system reads of its nodes are files."""
        return ()

    def start(self) -> None:
        """Wait until all servers answer."""
        limit_s = self.cluster.testbed.limits.connect_s
        self._poll(self._check, "wait until all servers answer", limit_s)

    def _check(self, cluster: Cluster) -> None:
        ask_version(self.system, cluster)

    def verify_version(self) -> None:
        """Make sure that the servers still run what they ran when they were asked.

        Raises:
            StepFailed: they run something else.

        """
        found, wanted = ask_version(self.system, self.cluster), self.cluster.release.version
        if found != wanted:
            why = f"it runs {found} now, but {wanted} was to be measured; start the night anew"
            raise StepFailed("version", self.cluster.testbed.name, why)

    def settle(self) -> tuple[Reason, ...]:
        """Wait until background work is idle; where the servers cannot be asked, say so."""
        if isinstance(self.system, Settles):
            try:
                self.system.settle(self.cluster)
            except NotReady as why:
                if why.step != "settle":
                    text = (
                        f"whether background work was idle before the load is unknown: {why.sentence}"
                    )
                    return (Reason(kind="settle-unknown", text=text),)
        return super().settle()

    def find_change(self) -> tuple[Reason, ...]:
        """Ask after the load whether the servers run what they ran before; a reason if not."""
        limit_s = self.cluster.testbed.limits.connect_s
        try:
            self._poll(lambda _: self.verify_version(), "see whether the cluster is as before", limit_s)
        except StepFailed as failure:
            text = f"after the load the cluster is not what it was: {failure.sentence}"
            return (Reason(kind="cluster-changed", text=text),)
        return ()

    def tail(self, node: object) -> str:
        """Return nothing: logs are on hosts of others."""
        return ""

    def clean_up(self, staged: Path) -> tuple[str, ...]:
        """Drop the place of the trial's tables; return what was left undone."""
        try:
            self.attaches.drop_place(self._target, self.owner)
        except StepFailed as failure:
            return (failure.sentence,)
        return ()

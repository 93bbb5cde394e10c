"""A release on a testbed without a trial: to check a system, or to try a workload."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from perf.config.catalog import Catalog
from perf.jobs.holding import hold
from perf.jobs.measuring import Job
from perf.model.design import Deployment, Experiment, Suite, Topology
from perf.model.errors import UsageError
from perf.model.results import Release
from perf.releases import artifacts as releases
from perf.systems import registry
from perf.systems.contract import System, Target
from perf.trial import placement
from perf.trial.preflight import check_hosts, end_leftovers
from perf.trial.servers import Servers

ONE_SERVER = "one-server"
"""The topology that is there in every catalog."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentAsk:
    """What is asked for: names in a catalog; without a version, the newest that is no preview."""

    system: str
    version: str | None
    testbed: str
    config: str
    topology: str
    workload: str


@contextmanager
def deploy(ask: DeploymentAsk, job: Job, what: str) -> Iterator[tuple[Servers, Target]]:
    """Yield servers that can be installed and started, on a testbed that is leased meanwhile.

    Whoever is given them cleans them up.

    Raises:
        UsageError: a name is unknown, or the testbed has too few hosts.
        HostUnfit: its hosts cannot carry the servers.

    """
    system = registry.load(ask.system)
    release = releases.find_release(system, ask.version) if ask.version else _newest(system)
    asked = _resolve(job.catalog, ask, release)
    purpose = f"{what} {ask.system} {release.version}"
    with hold(job.paths, job.progress, (asked.testbed,), purpose):
        artifact = job.fetch(release.system, release.version).artifact
        # No engine runs: what is asked, a client in this process asks.
        placed = placement.place(asked, release, artifact, job.paths.run)
        cluster = replace(placed, clients=())
        end_leftovers(cluster, job.progress)
        check_hosts(cluster.nodes, system.ports(), asked.testbed.needs)
        workload = asked.workload
        target = system.target(
            cluster, consistency=workload.consistency, timeout_s=workload.operation_timeout_s
        )
        yield Servers(system, cluster, job.progress), target


def _resolve(catalog: Catalog, ask: DeploymentAsk, release: Release) -> Deployment:
    alone = Topology(name=ONE_SERVER, description="one server", servers=1)
    catalog = replace(catalog, topologies={ONE_SERVER: alone, **catalog.topologies})
    experiment = Experiment(
        name=ask.workload,
        system=ask.system,
        config=ask.config,
        topology=ask.topology,
        workload=ask.workload,
        releases=(release.version,),
    )
    name = ask.workload
    suite = Suite(name=name, description=name, testbed=ask.testbed, experiments=(experiment,))
    asked = catalog.resolve(suite, experiment)
    if asked.testbed.attached:
        raise UsageError(
            f"testbed {asked.testbed.name} is attached, and this deploys servers; choose another one"
        )
    present = sum(host.role == "server" for host in asked.testbed.hosts)
    if asked.topology.servers > present:
        raise UsageError(
            f"topology {asked.topology.name} needs {asked.topology.servers} server hosts, but testbed "
            f"{asked.testbed.name} has {present}; choose a smaller topology or another testbed"
        )
    return asked


def _newest(system: System) -> Release:
    known = system.releases()
    return next((one for one in reversed(known) if "-" not in one.version), known[-1])

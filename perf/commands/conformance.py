"""`knickpoint conformance`: the checks of a system, on the product itself and a testbed."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import click

from perf.commands.options import configs_option, data_option
from perf.config.catalog import default_root, load_catalog
from perf.jobs.deploying import ONE_SERVER, DeploymentAsk, deploy
from perf.jobs.measuring import Job
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.design import Workload
from perf.model.errors import MeasureError
from perf.model.records import Operation
from perf.systems.conformance import sensor
from perf.trial.conformance import Conformance

_NAME = "conformance"
_TIMEOUT_S = 10.0


@click.command()
@click.argument("system_name", metavar="SYSTEM")
@click.option("--testbed", "testbed_name", required=True, help="Where to deploy it.")
@click.option("--release", "version", help="Which release.  [default: the newest that is no preview]")
@click.option(
    "--topology", "topology_name", default=ONE_SERVER, help="In which shape.  [default: one server]"
)
@click.option(
    "--config", "config_name", default="default", show_default=True, help="With which settings."
)
@data_option
@configs_option
def conformance(
    *,
    system_name: str,
    testbed_name: str,
    version: str | None,
    topology_name: str,
    config_name: str,
    data: Path,
    configs: Path | None,
) -> None:
    """Check that a database meets all assumptions.

    Deploys one release of SYSTEM as a trial would, runs each check, prints a line for it, cleans up:

    \b
      ✓  passed, with what was seen
      ✗  failed, with what was seen instead
      –  skipped: it does not concern this system or testbed

    The checks are those of the project's own tests: the verbs may be repeated, what clients write
    comes back bit for bit in every data model that the system offers, what is stored is counted, errors
    have names, acknowledged data is there after a restart, nothing is left behind. Where the tests have
    only a stand-in for a product (docs/systems.md says where), this is the test.

    \b
    knickpoint conformance cassandra --testbed local --release 5.0.9
    KNICKPOINT_RELEASE_SCYLLADB_2025_1_9=/srv/scylla-2025.1.9….tar.gz \\
        knickpoint conformance scylladb --testbed my-rack --topology rack-three --release 2025.1.9

    Exits with 0 if no check failed, and with 3 if one did: the system cannot be
    measured there. Nothing is measured, and nothing is added to the history.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    catalog = load_catalog(configs or default_root())
    catalog = replace(catalog, workloads={_NAME: _WORKLOAD, **catalog.workloads})
    job = Job(catalog, DataPaths(data), Progress())
    ask = DeploymentAsk(
        system=system_name,
        version=version,
        testbed=testbed_name,
        config=config_name,
        topology=topology_name,
        workload=_NAME,
    )
    with deploy(ask, job, _NAME) as (servers, target):
        run = Conformance(servers, target, report=lambda one: click.echo(str(one)))
        release = servers.cluster.release
        run.run(job.paths.conformance_logs / f"{release.system}-{release.version}")
    counts = Counter(one.passed for one in run.found)
    conclusion = f"{counts[True]} checks passed, {counts[False]} failed, {counts[None]} skipped"
    if counts[False]:
        raise MeasureError(f"{conclusion}; the servers' logs are in {job.paths.conformance_logs}")
    click.echo(conclusion)


_WORKLOAD = Workload(
    name=_NAME,
    description="nothing is measured",
    purpose="does this database meet Knickpoint's assumptions?",
    owner="Knickpoint",
    source="perf/systems/conformance/",
    not_comparable="it is no workload: nothing is measured",
    records=sensor.RECORDS,
    operation=Operation.READ_LATEST,
    consistency="quorum",
    preload_in_flight=1,
    operation_timeout_s=_TIMEOUT_S,
    seed=1,
)

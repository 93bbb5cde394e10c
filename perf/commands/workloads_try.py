"""The command `workloads try`: each statement of a workload of one's own, ten times."""

from pathlib import Path

import click

from perf.commands.options import configs_option, data_option
from perf.config.catalog import default_root, load_catalog
from perf.jobs.deploying import ONE_SERVER, DeploymentAsk, deploy
from perf.jobs.measuring import Job
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.errors import MeasureError, UsageError
from perf.model.records import Records
from perf.model.statements import Statements
from perf.systems import registry
from perf.trial.trying import try_statements


@click.command("try")
@click.argument("name")
@click.option("--system", help="Which database.  [default: the first that knows the language]")
@click.option("--release", "version", help="Which release.  [default: the newest that is no preview]")
@click.option("--testbed", default="local", show_default=True, help="Where to deploy it.")
@click.option("--config", default="default", show_default=True, help="With which settings.")
@data_option
@configs_option
def try_workload(
    *,
    name: str,
    system: str | None,
    version: str | None,
    testbed: str,
    config: str,
    data: Path,
    configs: Path | None,
) -> None:
    """Run each statement ten times, and print rows.

    Deploys one server, sends the schema of workload NAME, stores a hundred rows, and shows with which
    values each statement was sent and what came back; a ✗ is an error, or an answer that is not as
    `expect` says. Nothing is measured, and nothing is added to the history.

    \b
    knickpoint workloads try own-index
    knickpoint workloads try own-index --release 5.0.0

    Exits with 0 if all answers were right, and with 3 if one was not.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    catalog = load_catalog(configs or default_root())
    workload = catalog.workload(name)
    if not isinstance(workload.records, Statements):
        kind = workload.records.kind
        raise UsageError(f"{name} has records of kind {kind}; only workloads in statements are tried")
    ask = DeploymentAsk(
        system=system or _first_system(workload.records),
        version=version,
        testbed=testbed,
        config=config,
        topology=ONE_SERVER,
        workload=name,
    )
    job = Job(catalog, DataPaths(data), Progress())
    with deploy(ask, job, f"trying {name} on") as (servers, target):
        logs = job.paths.tried_logs / name
        wrong = try_statements(
            servers, target, workload.records, seed=workload.seed, logs=logs, report=click.echo
        )
    if wrong:
        raise MeasureError(f"{wrong} answers were not right; the server's log is in {logs}")


def _first_system(records: Records) -> str:
    return next(one for one in registry.names() if registry.load(one).sessions.find(records))

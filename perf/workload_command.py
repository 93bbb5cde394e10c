"""`knickpoint workloads`: what there is to measure, and what each of it is for."""

from pathlib import Path

import click

from perf import config
from perf.options import configs_option
from perf.workload_texts import describe_workload, list_workloads
from perf.workloads.scaling import unscaled_name


@click.command()
@click.argument("name", required=False)
@configs_option
def workloads(name: str | None, configs: Path | None) -> None:
    """List the workloads, or say everything about one.

    \b
    knickpoint workloads
    knickpoint workloads iot-write
    knickpoint workloads iot-write-by-1000

    Of one: its purpose, its owner, the public source that it follows, and what its figures must not be
    compared with; then its sizes as they are written, and as each suite runs it. A suite that says
    `scaled_down_by: 1000` runs it a thousand times smaller, under a name that ends in -by-1000, and
    never below the floors that the workload states.

    A series goes by the name and a hash of all that decides what is measured, iot-write@0123456789ab:
    whoever changes a workload, but for its prose, begins new series. docs/workloads.md holds the
    procedures of the public reports, and what was chosen where they leave a choice.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    catalog = config.load_catalog(configs or config.default_root())
    if name is None:
        click.echo(list_workloads(catalog.workloads[one] for one in sorted(catalog.workloads)))
    else:
        workload = catalog.workload(unscaled_name(name))
        click.echo(describe_workload(workload, catalog.suites.values()))

"""`knickpoint releases`: which releases there are to measure, and which are new."""

from pathlib import Path

import click

from perf.commands.options import configs_option, data_option
from perf.config.selectors import in_order
from perf.jobs.measuring import ask_sources, open_job
from perf.systems import registry


@click.command()
@click.argument("system", required=False)
@click.option(
    "--refresh", "refreshes", is_flag=True, help="First ask the sources under configs/sources/."
)
@data_option
@configs_option
def releases(system: str | None, data: Path, configs: Path | None, *, refreshes: bool) -> None:
    """List the known releases of a database.

    They come by line, oldest first; without SYSTEM, of all databases. Those that a source offered are
    listed with its name. `nightly` asks the sources by itself; what they said is kept in the data
    directory. A source that cannot be reached is a remark.

    A release comes from its official archive, or from Maven where there is one. To measure a copy of
    your own instead, set

    \b
    KNICKPOINT_RELEASE_<SYSTEM>_<VERSION>=PATH

    to a directory or a tar archive; PATH is then the only place that is looked at. The name is in
    capitals, with _ for all but letters and digits:

    \b
    KNICKPOINT_RELEASE_CASSANDRA_5_0_9=/srv/apache-cassandra-5.0.9-bin.tar.gz
    KNICKPOINT_RELEASE_MONGODB_5_0_31=/srv/mongodb-5.0.31

    What such a copy measures is no point of a series. For builds that are, declare a source:
    docs/releases.md. Releases are kept in the user's cache directory, or in $KNICKPOINT_CACHE.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    job = open_job(data, configs)
    names = (system,) if system else tuple(registry.databases())
    for name in names:
        registry.load(name)
    if refreshes:
        job = ask_sources(job, names)
    for name in names:
        click.echo(name)
        packaged = {one.version for one in registry.load(name).releases()}
        lines: dict[str, list[str]] = {}
        for release in in_order(job.catalog.releases(name)):
            if release.version in packaged:
                lines.setdefault(release.line, []).append(release.version)
        for line, versions in lines.items():
            click.echo(f"  {line:<6} {' '.join(versions)}")
        for build in job.catalog.found.builds:
            release = build.release
            if release.system == name and release.version not in packaged:
                found = f"found {build.found_on} by {build.source}"
                click.echo(f"  {release.line:<6} {release.version}  {found}")

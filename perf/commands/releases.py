"""`knickpoint releases`: which releases there are to measure."""

import click

from perf.systems import registry


@click.command()
@click.argument("system", required=False)
def releases(system: str | None) -> None:
    """List the known releases of a database.

    They come by line, oldest first; without SYSTEM, of all databases.

    A release comes from its official archive, or from Maven where there is one. To measure a copy of
    your own instead, set

    \b
    KNICKPOINT_RELEASE_<SYSTEM>_<VERSION>=PATH

    to a directory or a tar archive; PATH is then the only place that is looked at. The name is in
    capitals, with _ for all but letters and digits:

    \b
    KNICKPOINT_RELEASE_CASSANDRA_5_0_9=/srv/apache-cassandra-5.0.9-bin.tar.gz
    KNICKPOINT_RELEASE_MONGODB_5_0_31=/srv/mongodb-5.0.31

    Releases are kept in the user's cache directory, or in $KNICKPOINT_CACHE.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    for name in (system,) if system else registry.databases():
        lines: dict[str, list[str]] = {}
        for release in registry.load(name).releases():
            lines.setdefault(release.line, []).append(release.version)
        click.echo(name)
        for line, versions in lines.items():
            click.echo(f"  {line:<6} {' '.join(versions)}")

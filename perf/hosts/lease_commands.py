"""`knickpoint host lease`: to whom the hosts of a testbed belong, and how to end that."""

from pathlib import Path

import click

from perf.config import default_root, load_catalog
from perf.errors import MeasureError, UsageError
from perf.hosts.lease import Place, Standing, break_lease, list_places, look
from perf.hosts.this_process import is_known_gone
from perf.options import configs_option


@click.command("lease")
@click.argument("testbed_name", metavar="TESTBED")
@click.option(
    "--break", "breaks", is_flag=True, help="Remove what is shown, so that others may measure."
)
@configs_option
def show_lease(testbed_name: str, configs: Path | None, *, breaks: bool) -> None:
    """Show who holds each host of TESTBED, for what, and until when.

    One job at a time measures on a host. Its lease lies there, in lease.json of the host's work_dir,
    and every job that wants the host looks at it, whatever testbed or machine it comes from. A job
    that ended gives it back. One that was killed is known to be gone on its own machine, and the next
    job there takes over; on other machines when its time is up. To wait for neither:

    \b
    knickpoint host lease example-rack            who holds it?
    knickpoint host lease example-rack --break    take it away

    A job whose lease was taken away while it lives ends before its next trial, says by whom, and the
    trial that ran is invalid. So see first that nothing is lost by that. Each look is a connection to
    hosts that may be measuring.

    Exit codes: 0 shown, or broken; 2 wrong usage; 3 a host cannot be reached.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    testbed = load_catalog(configs or default_root()).testbed(testbed_name)
    places = list_places([testbed])
    if not places:
        text = (
            f"testbed {testbed.name} is this machine, and has no lease: the lock of the data directory "
            "(measuring.lock) and the ports of the servers keep jobs apart here"
        )
        if breaks:
            raise UsageError(text)
        click.echo(text)
        return
    is_reached = [_show(place, breaks=breaks) for place in places]
    if not all(is_reached):
        click.get_current_context().exit(MeasureError.exit_code)


def _show(place: Place, *, breaks: bool) -> bool:
    """Show the lease of one host, and break it if asked to; tell whether the host was reached."""
    name = place.remote.name
    try:
        standing = look(place)
        click.echo(f"{name}: {describe_standing(standing)}")
        if breaks and standing.seen:
            is_done = break_lease(standing)
            click.echo(
                f"{name}: broken" if is_done else f"{name}: it has changed meanwhile; nothing broken"
            )
    except MeasureError as problem:
        click.echo(f"{problem}", err=True)
        return False
    return True


def describe_standing(standing: Standing) -> str:
    """Say how it stands with a host in one line."""
    if standing.fault:
        return f"held by nobody knows whom: {standing.fault}"
    if standing.holder is None:
        return "free"
    held = f"held by {standing.holder.describe()}"
    gone = is_known_gone(standing.holder.process)
    return f"{held}; its process is gone, so the next job here takes over" if gone else held

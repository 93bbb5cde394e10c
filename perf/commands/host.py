"""`knickpoint host`: are the hosts of a testbed tuned? tune them; print what root runs for it."""

from collections.abc import Iterator
from pathlib import Path

import click

from perf.commands.options import configs_option, data_option
from perf.config.catalog import default_root, load_catalog
from perf.hosts.lease import LeasePlace, LeaseStatus, break_lease, hold, list_places
from perf.hosts.lease import look as read_lease
from perf.hosts.tuning.privileged import render_script
from perf.hosts.tuning.profiles import CLIENT, label, list_profiles, load_profile
from perf.hosts.tuning.proof import SettingFinding, SettingState, describe_found, describe_wanted
from perf.hosts.tuning.readiness import MachineCheck, list_machines, look_at, refuse_drifted
from perf.hosts.tuning.readiness import tune as tune_machines
from perf.local.paths import DataPaths
from perf.local.this_process import is_known_gone
from perf.model.design import Testbed
from perf.model.errors import MeasureError, UsageError


@click.group()
def host() -> None:
    """Tune, check and reserve the hosts of a testbed.

    \b
    knickpoint host check example-rack     read every setting back, and explain each difference
    knickpoint host tune example-rack      apply what differs
    knickpoint host script                 the program with which a user without root may tune
    knickpoint host lease example-rack     who measures there, and until when

    What a tuned host is stands in infra/tuning/, and is explained in docs/hosts.md.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"


_testbed_argument = click.argument("testbed_name", metavar="TESTBED")
_profile_option = click.option(
    "--profile",
    "profile_name",
    metavar="NAME",
    help="Profile of the hosts of servers.  [default: the one they were last tuned to]",
)


@host.command()
@_testbed_argument
@_profile_option
@data_option
@configs_option
def check(testbed_name: str, profile_name: str | None, data: Path, configs: Path | None) -> None:
    """Compare the hosts of TESTBED with their profile.

    Reads every setting of every host, and explains each difference.

    Hosts of servers are held to the profile that they were last tuned to, or to --profile; hosts of
    clients to the profile `client`. Nothing is changed, and no root is needed. Ends with 0 if each
    setting is as wanted or declared unavailable by the testbed, else with 3: then no trial would start.

    \b
    knickpoint host check example-rack
    knickpoint host check example-rack --profile mongodb-thp-on
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    testbed = _find(testbed_name, profile_name, configs)
    if testbed.tuning is None and profile_name is None:
        click.echo(f"{_has_no_tuning(testbed)}; with --profile NAME they are read all the same")
        return
    looks = look_at(list_machines(testbed, DataPaths(data).run), testbed, profile_name)
    for look in looks:
        click.echo("\n".join(describe_look(look)) + "\n")
    click.echo(summarize(looks, testbed))
    refuse_drifted(looks, testbed)


@host.command()
@_testbed_argument
@_profile_option
@data_option
@configs_option
def tune(testbed_name: str, profile_name: str | None, data: Path, configs: Path | None) -> None:
    """Tune every host of TESTBED.

    Applies what differs, reads it back, and prints what changed.

    A setting that the testbed declares unavailable is left alone. What only a person can do is listed.
    The user of SSH must be root, or allowed to run /usr/local/sbin/knickpoint-tune with sudo. Safe to
    repeat. A measurement switches the profile by itself when the next release wants another; this is
    for hosts that were never tuned since they booted, and after a repair. It waits for a job that holds
    the testbed, and gives up after a minute.
    """
    testbed = _find(testbed_name, profile_name, configs)
    if testbed.tuning is None and profile_name is None:
        raise UsageError(f"{_has_no_tuning(testbed)}; say with --profile NAME what to tune them to")
    # Not under a job that measures there: what it finds before and after would differ.
    with hold([testbed], "tuning the hosts", click.echo):
        looks = look_at(list_machines(testbed, DataPaths(data).run), testbed, profile_name)
        after = tune_machines(looks, testbed, click.echo)
    refuse_drifted(after, testbed)
    click.echo(summarize(after, testbed))


@host.command()
def script() -> None:
    """Print the program that tunes a host without root.

    It belongs to root, holds all profiles and checks its arguments. Ansible installs it (infra/); by
    hand:

    \b
    knickpoint host script | ssh root@HOST 'install -m 0755 /dev/stdin /usr/local/sbin/knickpoint-tune'
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    click.echo(render_script(), nl=False)


def _find(testbed_name: str, profile_name: str | None, configs: Path | None) -> Testbed:
    if profile_name is not None:
        load_profile(profile_name)
    if profile_name == CLIENT:
        servers = ", ".join(name for name in list_profiles() if name != CLIENT)
        raise UsageError(f"{CLIENT} is the profile of hosts of clients; those of servers: {servers}")
    return load_catalog(configs or default_root()).testbed(testbed_name)


def _has_no_tuning(testbed: Testbed) -> str:
    return f"testbed {testbed.name} has no key `tuning`: its hosts are taken as they are, unchecked"


@click.command("lease")
@click.argument("testbed_name", metavar="TESTBED")
@click.option(
    "--break", "breaks", is_flag=True, help="Remove what is shown, so that others may measure."
)
@configs_option
def show_lease(testbed_name: str, configs: Path | None, *, breaks: bool) -> None:
    """Show who measures on each host of TESTBED.

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
    paths = list_places([testbed])
    if not paths:
        text = (
            f"testbed {testbed.name} is this machine, and has no lease: the lock of the data directory "
            "(measuring.lock) and the ports of the servers keep jobs apart here"
        )
        if breaks:
            raise UsageError(text)
        click.echo(text)
        return
    is_reached = [_show(place, breaks=breaks) for place in paths]
    if not all(is_reached):
        click.get_current_context().exit(MeasureError.exit_code)


def _show(place: LeasePlace, *, breaks: bool) -> bool:
    """Show the lease of one host, and break it if asked to; return whether the host was reached."""
    name = place.remote.name
    try:
        status = read_lease(place)
        click.echo(f"{name}: {describe_lease(status)}")
        if breaks and status.seen:
            is_done = break_lease(status)
            click.echo(
                f"{name}: broken" if is_done else f"{name}: it has changed meanwhile; nothing broken"
            )
    except MeasureError as problem:
        click.echo(f"{problem}", err=True)
        return False
    return True


def describe_lease(status: LeaseStatus) -> str:
    """Describe how it stands with a host in one line."""
    if status.fault:
        return f"held by an unknown job: {status.fault}"
    if status.holder is None:
        return "free"
    held = f"held by {status.holder.describe()}"
    gone = is_known_gone(status.holder.process)
    return f"{held}; its process is gone, so the next job here takes over" if gone else held


_WIDEST = 44


def describe_look(look: MachineCheck) -> Iterator[str]:
    """Yield the table of one host: each setting, what is there, what is wanted, how it stands."""
    roles = " and ".join(look.machine.roles)
    yield f"{look.host} ({roles}), held to {label(look.profile)}: {_mark(look)}"
    if look.answer is None:
        yield f"  {look.problem}"
        return
    rows = [("setting", "there", "wanted", "")]
    rows += [
        (one.setting.name, describe_found(one), describe_wanted(one.setting), _judge(one))
        for one in look.findings
    ]
    widths = [min(_WIDEST, max(len(row[column]) for row in rows)) for column in range(3)]
    for *cells, last in rows:
        padded = "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
        yield f"  {padded}  {last}".rstrip()


def summarize(looks: tuple[MachineCheck, ...], testbed: Testbed) -> str:
    """Describe in a line how many settings of how many hosts are as wanted."""
    findings = [finding for look in looks for finding in look.findings]
    kept = sum(finding.state is SettingState.KEPT for finding in findings)
    excused = sum(finding.state is SettingState.EXCUSED for finding in findings)
    text = f"testbed {testbed.name}: {kept} of {len(findings)} settings on {len(looks)} hosts as wanted"
    if excused:
        text += f", {excused} declared unavailable"
    if testbed.tuning is None:
        text += "; it has no key `tuning`, so its hosts are not checked before a trial"
    return text


def _mark(look: MachineCheck) -> str:
    if look.answer is None:
        return "not reached"
    if not look.marker:
        return "never tuned since it booted"
    if look.is_marked:
        return "last tuned to that"
    return f"last tuned to {look.marker}"


def _judge(finding: SettingFinding) -> str:
    if finding.state is SettingState.EXCUSED and finding.found is not None:
        return f"declared unavailable ({finding.declared}), but it is there and differs"
    if finding.state is SettingState.EXCUSED:
        return f"declared unavailable ({finding.declared})"
    if finding.state is SettingState.KEPT and finding.declared is not None:
        return "as wanted, though declared unavailable: the declaration can go"
    return "as wanted" if finding.state is SettingState.KEPT else finding.state.value.upper()


host.add_command(show_lease)

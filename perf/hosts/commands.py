"""`knickpoint host`: are the hosts of a testbed tuned? tune them; print what root runs for it."""

from pathlib import Path

import click

from perf.config import default_root, load_catalog
from perf.design import Testbed
from perf.errors import UsageError
from perf.hosts.lease import hold
from perf.hosts.lease_commands import show_lease
from perf.hosts.privileged import render_script
from perf.hosts.readiness import list_machines, look_at, refuse_drifted
from perf.hosts.readiness import tune as tune_machines
from perf.hosts.tuning import CLIENT, list_profiles, load_profile
from perf.hosts.tuning_table import describe_look, summarize
from perf.options import configs_option, data_option
from perf.places import Places


@click.group()
def host() -> None:
    """Tune the hosts of a testbed, prove it, and see to whom they belong.

    \b
    knickpoint host check example-rack     read every setting back, and explain each difference
    knickpoint host tune example-rack      apply what differs
    knickpoint host script                 the program with which a user without root may tune
    knickpoint host lease example-rack     who measures there, and until when

    What a tuned host is stands in infra/tuning/, and is explained in docs/hosts.md.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"


host.add_command(show_lease)

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
    """Read every setting of every host of TESTBED back, and explain each difference.

    Hosts of servers are held to the profile that they were last tuned to, or to --profile; hosts of
    clients to the profile `client`. Nothing is changed, and no root is needed. Ends with 0 if each
    setting is as wanted or declared unavailable by the testbed, else with 3: then no trial would start.

    \b
    knickpoint host check example-rack
    knickpoint host check example-rack --profile mongodb-thp-on
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    testbed = _find(testbed_name, profile_name, configs)
    if testbed.tuning is None and profile_name is None:
        click.echo(f"{_nobody_vouches(testbed)}; with --profile NAME they are read all the same")
        return
    looks = look_at(list_machines(testbed, Places(data).run), testbed, profile_name)
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
    """Tune every host of TESTBED: apply what differs, read it back, and say what changed.

    A setting that the testbed declares unavailable is left alone. What only a person can do is listed.
    The user of SSH must be root, or allowed to run /usr/local/sbin/knickpoint-tune with sudo. Safe to
    repeat. A measurement switches the profile by itself when the next release wants another; this is
    for hosts that were never tuned since they booted, and after a repair. It waits for a job that holds
    the testbed, and gives up after a minute.
    """
    testbed = _find(testbed_name, profile_name, configs)
    if testbed.tuning is None and profile_name is None:
        raise UsageError(f"{_nobody_vouches(testbed)}; say with --profile NAME what to tune them to")
    # Not under a job that measures there: what it finds before and after would differ.
    with hold([testbed], "tuning the hosts", click.echo):
        looks = look_at(list_machines(testbed, Places(data).run), testbed, profile_name)
        after = tune_machines(looks, testbed, click.echo)
    refuse_drifted(after, testbed)
    click.echo(summarize(after, testbed))


@host.command()
def script() -> None:
    """Print the program with which a user without root may tune a host.

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


def _nobody_vouches(testbed: Testbed) -> str:
    return (
        f"testbed {testbed.name} has no key `tuning`: its hosts are taken as they are, and nobody "
        "vouches for them"
    )

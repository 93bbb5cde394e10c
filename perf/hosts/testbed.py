"""The hosts of a testbed: how they are reached, where they keep what is ours, what they cost."""

from pathlib import Path

from perf.hosts.remote import LocalHost, Remote, SshHost
from perf.model.design import Host, Testbed


def open_host(testbed: Testbed, host: Host) -> Remote:
    """Give the remote of a host; nothing is connected before it is used.

    Hosts of a local testbed are one machine, so they share one name.
    """
    if testbed.transport == "local":
        return LocalHost()
    options = ("-F", testbed.ssh_config) if testbed.ssh_config else ()
    return SshHost(host.name, host.address, host.user, host.port, options)


def price_per_hour_usd(testbed: Testbed, servers: int) -> float | None:
    """Give what the hosts of so many servers cost in an hour; None where the testbed states no price.

    Hosts of clients are not counted: they are the instrument. In use, the load comes from applications
    that are there anyway, and a faster generator must not make a database look dearer.
    """
    hosts = [host for host in testbed.hosts if host.role == "server"][:servers]
    prices = [host.price_per_hour_usd for host in hosts if host.price_per_hour_usd is not None]
    return sum(prices) if prices and len(prices) == len(hosts) else None


def base_dir(testbed: Testbed, host: Host, run_dir: Path) -> str:
    """Give where files of a host's nodes and engines belong: `run_dir` on a local testbed."""
    return str(run_dir.absolute()) if testbed.transport == "local" else host.work_dir


def client_hosts(testbed: Testbed, count: int) -> tuple[tuple[Host, Remote], ...]:
    """Give the first `count` client hosts of a testbed with their remotes."""
    clients = [host for host in testbed.hosts if host.role == "client"]
    return tuple((host, open_host(testbed, host)) for host in clients[:count])

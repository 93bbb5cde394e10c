"""The hosts of a testbed: how they are reached, where they keep what is ours, what they cost."""

from dataclasses import dataclass
from pathlib import Path

from perf.hosts.remote import LocalHost, Remote, SshHost
from perf.model.design import Host, Testbed


def open_host(testbed: Testbed, host: Host) -> Remote:
    """Return the remote of a host; nothing is connected before it is used.

    Hosts of a local testbed are one machine, so they share one name.
    """
    if testbed.transport == "local":
        return LocalHost()
    options = ("-F", testbed.ssh_config) if testbed.ssh_config else ()
    return SshHost(host.name, host.address, host.user, host.port, options)


def price_per_hour_usd(testbed: Testbed, servers: int) -> float | None:
    """Return what the hosts of so many servers cost in an hour; None where the testbed states no price.

    Hosts of clients are not counted: they are the instrument. In use, the load comes from applications
    that are there anyway, and a faster generator must not make a database look dearer.
    """
    hosts = [host for host in testbed.hosts if host.role == "server"][:servers]
    prices = [host.price_per_hour_usd for host in hosts if host.price_per_hour_usd is not None]
    return sum(prices) if prices and len(prices) == len(hosts) else None


def base_dir(testbed: Testbed, host: Host, run_dir: Path) -> str:
    """Return where files of a host's nodes and engines belong: `run_dir` on a local testbed."""
    return str(run_dir.absolute()) if testbed.transport == "local" else host.work_dir


@dataclass(frozen=True, slots=True)
class Client:
    """A host that load comes from, and where its engines keep their files."""

    host: Host
    remote: Remote
    base_dir: str

    @property
    def engines_dir(self) -> str:
        """The directory of the engines' own directories."""
        return f"{self.base_dir}/engines"


def place_clients(testbed: Testbed, count: int, run_dir: Path) -> tuple[Client, ...]:
    """Return the first `count` client hosts of a testbed; nothing is connected."""
    hosts = [host for host in testbed.hosts if host.role == "client"][:count]
    return tuple(
        Client(host, open_host(testbed, host), base_dir(testbed, host, run_dir)) for host in hosts
    )

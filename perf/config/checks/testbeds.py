"""What the schemas of topologies and testbeds cannot see: keys and hosts that contradict each other."""

import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address

from perf.config.checks.files import ConfigFile, find_repeated
from perf.hosts.tuning.profiles import name_settings
from perf.local.problems import Place, suggest
from perf.model.design import Host, Testbed, Topology

# RFC 1123, 2.1: labels of letters, digits and inner hyphens; the last is not all digits, so that a
# mistyped IP address is no name.
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST_NAME = re.compile(rf"(?=.{{1,253}}\Z)(?:{_LABEL}\.)*(?![0-9]+\Z){_LABEL}")


def check_topology(entry: ConfigFile[Topology]) -> Iterator[str]:
    """Find more copies than servers."""
    topology = entry.value
    if topology is not None and topology.replication_factor > topology.servers:
        why = f"but servers is {topology.servers}; keep no more copies than there are servers"
        yield (entry.top / "replication_factor").say(why)


def check_testbed(entry: ConfigFile[Testbed]) -> Iterator[str]:
    """Find addresses that lead nowhere, and hosts or engines that could not live side by side."""
    testbed, at = entry.value, entry.top
    if testbed is None:
        return
    hosts, engines = testbed.hosts, testbed.client_cores
    yield from find_repeated(at / "hosts", hosts)
    for index, host in enumerate(hosts):
        transport = "ssh" if testbed.attached and host.role == "server" else testbed.transport
        if why := _refuse_address(host, transport):
            yield (at / "hosts" / index / "address").say(why)
        pinned = len(set(host.cores))
        if host.role == "client" and 0 < pinned < engines:
            yield (at / "hosts" / index / "cores").fault(
                f"names {pinned} of the {engines} cores "
                "that client_cores asks for, and the other engine processes would not be pinned; "
                f"name {engines}, lower client_cores, or remove cores to pin none"
            )
    servers = [(index, host) for index, host in enumerate(hosts) if host.role == "server"]
    seen: dict[str, int] = {}
    for index, host in servers:
        first = seen.setdefault(host.address, index)
        if first != index:
            why = f"as in hosts[{first}]; each server needs an address of its own"
            yield (at / "hosts" / index / "address").say(why)
    yield from _check_prices(at, testbed)
    yield from _check_attached(at, testbed)
    known = name_settings()
    for name in testbed.tuning.unavailable if testbed.tuning else ():
        if name not in known:
            yield (at / "tuning" / "unavailable" / name).problem(
                f"tuning.unavailable names {name}, which is a setting of no profile; "
                f"{suggest(name, known)}"
            )
    yield from _check_pinning(at, testbed)
    if testbed.node_dir is not None and testbed.transport != "local":
        why = "but over SSH each host says its own work_dir; set that, and remove this"
        yield (at / "node_dir").say(why)


def _check_attached(at: Place, testbed: Testbed) -> Iterator[str]:
    """Find what would be done on hosts that are somebody else's."""
    if not testbed.attached:
        return
    for key in ("jvm_options", "disk", "node_dir"):
        if getattr(testbed, key):
            yield (at / key).fault(
                "is for servers that are deployed, and these are attached; remove it"
            )
    for index, host in enumerate(testbed.hosts):
        if host.role == "server" and (host.cores or host.numa_node is not None):
            key = "cores" if host.cores else "numa_node"
            why = "pins a server, and this one is attached: nothing is run there; remove it"
            yield (at / "hosts" / index / key).fault(why)


def _check_prices(at: Place, testbed: Testbed) -> Iterator[str]:
    """Insist on a price of all server hosts or of none, and on none that nothing would count."""
    hosts = testbed.hosts
    is_priced = any(host.role == "server" and host.price_per_hour_usd is not None for host in hosts)
    for index, host in enumerate(hosts):
        key = at / "hosts" / index / "price_per_hour_usd"
        if host.role == "client" and host.price_per_hour_usd is not None:
            yield key.say("but only hosts of servers are counted in operations per dollar; remove it")
        elif host.role == "server" and is_priced and host.price_per_hour_usd is None:
            yield key.fault(
                "is missing, and other servers have one; add it, or remove those of the others"
            )
    if testbed.prices_from and all(host.price_per_hour_usd is None for host in hosts):
        yield (at / "prices_from").fault(
            "says where prices come from, but no host has one; add price_per_hour_usd to each "
            "server, or remove it"
        )


def _refuse_address(host: Host, transport: str) -> str | None:
    """Describe why a host cannot have its address; None if it can. No name is looked up."""
    try:
        address = ip_address(host.address)
    except ValueError:
        address = None
    if address is None and not _HOST_NAME.fullmatch(host.address):
        return "which is neither an IP address nor a host name; write one, for example 192.0.2.11"
    is_own = address is not None and address.is_loopback
    if transport == "local" and host.role == "server" and not is_own:
        return (
            "but with transport local the servers run on this machine, with open ports and without "
            "passwords; take an address of 127.0.0.0/8 or ::1, or transport ssh"
        )
    return None


def _check_pinning(at: Place, testbed: Testbed) -> Iterator[str]:
    """Find cores that a host names twice, or that servers and clients of one machine would share."""
    for index, host in enumerate(testbed.hosts):
        # Of a client that names too few, this has been said.
        is_short = host.role == "client" and len(set(host.cores)) < testbed.client_cores
        for place, core in enumerate(() if is_short else host.cores):
            if core in host.cores[:place]:
                why = "for the second time; name each core once"
                yield (at / "hosts" / index / "cores" / place).say(why)
        if host.role == "client":
            yield from _shared_with_servers(at, index, testbed)


def _shared_with_servers(at: Place, index: int, testbed: Testbed) -> Iterator[str]:
    client = testbed.hosts[index]
    for other, server in enumerate(testbed.hosts):
        if server not in testbed.own_hosts:
            continue
        is_one_machine = testbed.transport == "local" or _name(server) == _name(client)
        shared = [core for core in client.cores if core in server.cores]
        if server.role == "server" and is_one_machine and shared:
            yield (at / "hosts" / index / "cores" / client.cores.index(shared[0])).say(
                f"and hosts[{other}], a server on the same machine, has it as well: the load would take"
                " from the server what it measures; give each its own"
            )
            return


def check_leases(testbeds: Mapping[str, ConfigFile[Testbed]]) -> Iterator[str]:
    """Insist on one `work_dir` for each host over SSH: its lease lies there, for all testbeds."""
    seen: dict[tuple[str, int], tuple[str, str, str]] = {}
    for name, entry in testbeds.items():
        if entry.value is None or entry.value.transport != "ssh":
            continue
        for index, host in enumerate(entry.value.hosts):
            if host not in entry.value.own_hosts:
                continue
            here = (host.work_dir, f"hosts[{index}]", name)
            work_dir, place, first = seen.setdefault(_name(host), here)
            if work_dir != host.work_dir:
                where = place if first == name else f"{place} of testbed {first}"
                yield (entry.top / "hosts" / index / "work_dir").say(
                    f"but {where}, the same host, has {work_dir}; the lease that keeps jobs apart lies "
                    "there, so make them equal",
                    host.work_dir,
                )


def _name(host: Host) -> tuple[str, int]:
    return host.address.lower(), host.port

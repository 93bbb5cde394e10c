"""What one file's schema cannot see: keys that contradict each other, and names across files.

The checks of suites are in `suite_checks`, those of what people decided in `triage_checks`.

Each check takes parsed entries and gives complete sentences. A name is dangling only if no *file* of
that name exists: a file that exists but is wrong is complained about once, where it stands.
"""

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Generic, Protocol, TypeVar

from perf.hosts.tuning.profiles import name_settings
from perf.local.document import Steps, YamlDocument, dotted
from perf.local.problems import say, suggest
from perf.model.design import Host, Suite, SystemConfig, Testbed, Topology, Workload
from perf.model.metrics import DIAGNOSTICS, METRICS
from perf.model.rules import Detection

# RFC 1123, 2.1: labels of letters, digits and inner hyphens; the last is not all digits, so that a
# mistyped IP address is no name.
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST_NAME = re.compile(rf"(?=.{{1,253}}\Z)(?:{_LABEL}\.)*(?![0-9]+\Z){_LABEL}")


class HasName(Protocol):
    """A design value that lives in a file of its own name."""

    @property
    def name(self) -> str:
        """The name that other files use for it."""
        ...


T = TypeVar("T")
N = TypeVar("N", bound=HasName)


@dataclass(frozen=True, slots=True)
class ConfigFile(Generic[T]):
    """One file: its document, and its value if it is valid by itself."""

    document: YamlDocument
    value: T | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """All files of a configuration by name; system configs by system and name."""

    topologies: Mapping[str, ConfigFile[Topology]]
    testbeds: Mapping[str, ConfigFile[Testbed]]
    workloads: Mapping[str, ConfigFile[Workload]]
    systems: Mapping[str, Mapping[str, ConfigFile[SystemConfig]]]
    suites: Mapping[str, ConfigFile[Suite]]
    known_systems: Collection[str]
    known_releases: Mapping[str, Mapping[str, str]]
    """Each version's line, by system; a system that cannot be loaded here is absent, not checked."""


def check_name(entry: ConfigFile[N]) -> Iterator[str]:
    """Insist that a file bears the name that it gives inside."""
    if entry.value is not None and entry.value.name != entry.document.path.stem:
        name, file = entry.value.name, entry.document.path.name
        yield say(entry.document, ("name",), name, f"but the file is {file}; make them equal")


def check_testbed(entry: ConfigFile[Testbed]) -> Iterator[str]:
    """Find addresses that lead nowhere, and hosts or engines that could not live side by side."""
    testbed, document = entry.value, entry.document
    if testbed is None:
        return
    hosts, engines = testbed.hosts, testbed.client_cores
    yield from find_repeated(document, ("hosts",), hosts, "name", lambda host: host.name)
    for index, host in enumerate(hosts):
        if why := _refuse_address(host, testbed.transport):
            yield say(document, ("hosts", index, "address"), host.address, why)
        pinned = len(set(host.cores))
        if host.role == "client" and 0 < pinned < engines:
            steps: Steps = ("hosts", index, "cores")
            yield (
                f"{document.locate(steps)}: {dotted(steps)} names {pinned} of the {engines} cores "
                "that client_cores asks for, and the other engine processes would not be pinned; "
                f"name {engines}, lower client_cores, or remove cores to pin none"
            )
    servers = [(index, host) for index, host in enumerate(hosts) if host.role == "server"]
    seen: dict[str, int] = {}
    for index, host in servers:
        first = seen.setdefault(host.address, index)
        if first != index:
            why = f"as in hosts[{first}]; each server needs an address of its own"
            yield say(document, ("hosts", index, "address"), host.address, why)
    yield from _check_prices(document, hosts)
    if testbed.prices_from and all(host.price_per_hour_usd is None for host in hosts):
        steps = ("prices_from",)
        yield (
            f"{document.locate(steps)}: prices_from says where prices come from, but no host has one; "
            "add price_per_hour_usd to each server, or remove it"
        )
    known = name_settings()
    for name in testbed.tuning.unavailable if testbed.tuning else ():
        if name not in known:
            key: Steps = ("tuning", "unavailable", name)
            yield (
                f"{document.locate(key)}: tuning.unavailable names {name}, which is a setting of no "
                f"profile; {suggest(name, known)}"
            )


def _check_prices(document: YamlDocument, hosts: Sequence[Host]) -> Iterator[str]:
    """Insist on a price of all server hosts or of none, and on none that nothing would count."""
    is_priced = any(host.role == "server" and host.price_per_hour_usd is not None for host in hosts)
    for index, host in enumerate(hosts):
        key: Steps = ("hosts", index, "price_per_hour_usd")
        if host.role == "client" and host.price_per_hour_usd is not None:
            why = "but only hosts of servers are counted in operations per dollar; remove it"
            yield say(document, key, host.price_per_hour_usd, why)
        elif host.role == "server" and is_priced and host.price_per_hour_usd is None:
            yield (
                f"{document.locate(key)}: {dotted(key)} is missing, and other servers have one; "
                "add it, or remove those of the others"
            )


def _check_trusted(document: YamlDocument, detection: Detection) -> Iterator[str]:
    """Find what a verdict is to rest on, but is not judged at all."""
    for load, metrics in detection.comparison.trusted.items():
        for metric, statistics in metrics.items():
            place = document.locate(("comparison", "trusted", load, metric))
            if metric not in METRICS:
                known = suggest(metric, METRICS)
                yield f"{place}: comparison.trusted.{load}: {metric} is no metric; {known}"
            # A metric that is not under judged at all is told there.
            for statistic in statistics:
                if statistic not in detection.judged.get(metric, (statistic,)):
                    yield (
                        f"{place}: comparison.trusted.{load}: {statistic} of {metric} is not judged; "
                        "name it under judged as well, or trust one that is there"
                    )


def check_detection(document: YamlDocument, detection: Detection) -> Iterator[str]:
    """Insist on one entry for each metric in each table, on no other, and on weaker first evidence."""
    for first, final in (
        ("provisional_p_value", "max_p_value"),
        ("provisional_rank_p_value", "max_rank_p_value"),
    ):
        early, late = getattr(detection, first), getattr(detection, final)
        if early < late:
            why = (
                f"but {final} is {late:g}; a change is provisional before it is confirmed, so make "
                "this one at least as large"
            )
            yield say(document, (first,), early, why)
    yield from _check_trusted(document, detection)
    for name, table, entry in (
        ("judged", detection.judged, "a list of statistics"),
        ("relevant_change", detection.relevant_change, "a share"),
    ):
        for metric in table:
            place = document.locate((name, metric))
            if metric in DIAGNOSTICS:
                yield f"{place}: {name}.{metric} explains results and is not judged; remove it"
            elif metric not in METRICS:
                yield f"{place}: {name}.{metric} is no metric; {suggest(metric, METRICS)}"
        for metric in METRICS:
            if metric not in table:
                place = document.locate((name,))
                yield f"{place}: the key {name}.{metric} is missing; add it, as {entry}"


def check_system_config(
    folder: str, entry: ConfigFile[SystemConfig], known: Collection[str]
) -> Iterator[str]:
    """Insist that a config belongs to a system that exists, and to the folder that it is in."""
    if folder not in known:
        yield f"{entry.document.path}: there is no system {folder!r}; {suggest(folder, known)}"
    elif entry.value is not None and entry.value.system != folder:
        why = f"but the file is in systems/{folder}/; make them equal"
        yield say(entry.document, ("system",), entry.value.system, why)


def check_topology(entry: ConfigFile[Topology]) -> Iterator[str]:
    """Find more copies than servers."""
    topology = entry.value
    if topology is not None and topology.replication_factor > topology.servers:
        why = f"but servers is {topology.servers}; keep no more copies than there are servers"
        yield say(entry.document, ("replication_factor",), topology.replication_factor, why)


def _refuse_address(host: Host, transport: str) -> str | None:
    """Say why a host cannot have its address; None if it can. No name is looked up."""
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


def find_repeated(
    document: YamlDocument,
    steps: Steps,
    items: Iterable[T],
    key: str,
    identify: Callable[[T], Hashable],
) -> Iterator[str]:
    """Find items of a list that are the same by some key."""
    seen: dict[Hashable, int] = {}
    for index, item in enumerate(items):
        identity = identify(item)
        first = seen.setdefault(identity, index)
        if first != index:
            why = f"as in {dotted((*steps, first))}; give each its own"
            yield say(document, (*steps, index, key), identity, why)

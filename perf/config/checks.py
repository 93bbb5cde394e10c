"""What one file's schema cannot see: keys that contradict each other, and names across files.

Each check takes parsed entries and gives complete sentences. A name is dangling only if no *file* of
that name exists: a file that exists but is wrong is complained about once, where it stands.
"""

import math
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

from perf.config.document import Document, Steps, dotted
from perf.config.problems import suggest, suggest_few
from perf.design import (
    Detection,
    Experiment,
    Host,
    Measurement,
    Operation,
    SearchLoad,
    SteppedLoad,
    Suite,
    SystemConfig,
    Testbed,
    Topology,
    Workload,
)
from perf.load.spec import PRELOAD, WARM_UP
from perf.load.stages import ladder_phase
from perf.metrics import CANARY_PHASES, DIAGNOSTICS, METRICS

# RFC 1123, 2.1: labels of letters, digits and inner hyphens; the last is not all digits, so that a
# mistyped IP address is no name.
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST_NAME = re.compile(rf"(?=.{{1,253}}\Z)(?:{_LABEL}\.)*(?![0-9]+\Z){_LABEL}")

# How a warm-up ends (see `perf.load.engines`): a second is reported a little after its end, looked for
# once a second, and all engines are told of a whole second that is far enough ahead for each of them.
_TELL_S = 3.0
_TELL_EACH_S = 0.5


class HasName(Protocol):
    """A design value that lives in a file of its own name."""

    @property
    def name(self) -> str:
        """The name that other files use for it."""
        ...


T = TypeVar("T")
N = TypeVar("N", bound=HasName)


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """One file: its document, and its value if it is valid by itself."""

    document: Document
    value: T | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """All files of a configuration by name; system configs by system and name."""

    topologies: Mapping[str, Entry[Topology]]
    testbeds: Mapping[str, Entry[Testbed]]
    workloads: Mapping[str, Entry[Workload]]
    systems: Mapping[str, Mapping[str, Entry[SystemConfig]]]
    suites: Mapping[str, Entry[Suite]]
    known_systems: Collection[str]
    known_releases: Mapping[str, Collection[str]]
    """Versions by system; a system that cannot be loaded here is absent, and not checked."""


def check_name(entry: Entry[N]) -> Iterator[str]:
    """Insist that a file bears the name that it gives inside."""
    if entry.value is not None and entry.value.name != entry.document.path.stem:
        name, file = entry.value.name, entry.document.path.name
        yield _say(entry.document, ("name",), name, f"but the file is {file}; make them equal")


def check_testbed(entry: Entry[Testbed]) -> Iterator[str]:
    """Find addresses that lead nowhere, and hosts or engines that could not live side by side."""
    testbed, document = entry.value, entry.document
    if testbed is None:
        return
    hosts, engines = testbed.hosts, testbed.client_cores
    yield from _repeated(document, ("hosts",), hosts, "name", lambda host: host.name)
    for index, host in enumerate(hosts):
        if why := _refuse_address(host, testbed.transport):
            yield _say(document, ("hosts", index, "address"), host.address, why)
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
            yield _say(document, ("hosts", index, "address"), host.address, why)


def check_workload(entry: Entry[Workload]) -> Iterator[str]:
    """Find measurements that would be confused, and reads of rows that were never written."""
    workload, document = entry.value, entry.document
    if workload is None:
        return
    parts = workload.measurements
    yield from _repeated(document, ("measurements",), parts, "name", lambda part: part.name)
    for index, part in enumerate(parts):
        steps: Steps = ("measurements", index)
        if part.name in {WARM_UP, PRELOAD, *CANARY_PHASES}:
            why = "which names a phase of every trial; choose another name"
            yield _say(document, (*steps, "name"), part.name, why)
        if part.warmup_cap_s < part.warmup_s:
            why = f"but warmup_s is {part.warmup_s:g}; make the cap at least as long"
            yield _say(document, (*steps, "warmup_cap_s"), part.warmup_cap_s, why)
        yield from _check_load(document, steps, part)
        yield from _check_objective(document, steps, part, workload.operation_timeout_s)
    yield from _confused_phases(document, parts)
    if workload.batch_rows is not None and workload.operation is not Operation.WRITE:
        why = f"but operation is {workload.operation.value}; only writes have batches, so remove it"
        yield _say(document, ("batch_rows",), workload.batch_rows, why)
    rows, wanted = workload.preload_rows_per_device, workload.records.latest_count
    if workload.operation is Operation.READ_LATEST and rows < wanted:
        why = f"but each read asks for records.latest_count = {wanted} rows; preload at least as many"
        yield _say(document, ("preload_rows_per_device",), rows, why)


def check_detection(document: Document, detection: Detection) -> Iterator[str]:
    """Insist on one entry for each metric in each table, and on none for anything else."""
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
    folder: str, entry: Entry[SystemConfig], known: Collection[str]
) -> Iterator[str]:
    """Insist that a config belongs to a system that exists, and to the folder that it is in."""
    if folder not in known:
        yield f"{entry.document.path}: there is no system {folder!r}; {suggest(folder, known)}"
    elif entry.value is not None and entry.value.system != folder:
        why = f"but the file is in systems/{folder}/; make them equal"
        yield _say(entry.document, ("system",), entry.value.system, why)


def check_suite(entry: Entry[Suite], entries: Entries) -> Iterator[str]:
    """Find names that lead nowhere, and topologies that the testbed cannot carry."""
    suite, document = entry.value, entry.document
    if suite is None:
        return
    if suite.testbed not in entries.testbeds:
        yield _dangling(document, ("testbed",), suite.testbed, "testbeds", entries.testbeds)
    experiments = suite.experiments
    yield from _repeated(document, ("experiments",), experiments, "name", lambda each: each.name)
    testbed = entries.testbeds.get(suite.testbed)
    for index, experiment in enumerate(experiments):
        steps: Steps = ("experiments", index)
        yield from _check_names(document, steps, experiment, entries)
        yield from _repeated_releases(document, steps, experiment)
        yield from _unknown_releases(document, steps, experiment, entries.known_releases)
        topology = entries.topologies.get(experiment.topology)
        if not (testbed and testbed.value and topology and topology.value):
            continue
        yield from _check_room(document, steps, topology.value, testbed.value)
        workload = entries.workloads.get(experiment.workload)
        if workload and workload.value:
            engines = testbed.value.client_cores * topology.value.clients
            yield from _check_warm_ups(document, steps, workload.value, testbed.value, engines)


def check_topology(entry: Entry[Topology]) -> Iterator[str]:
    """Find more copies than servers."""
    topology = entry.value
    if topology is not None and topology.replication_factor > topology.servers:
        why = f"but servers is {topology.servers}; keep no more copies than there are servers"
        yield _say(entry.document, ("replication_factor",), topology.replication_factor, why)


def _check_load(document: Document, steps: Steps, part: Measurement) -> Iterator[str]:
    """Insist that a ladder goes up, each load in a phase of its own, and that a search has room."""
    load = part.load
    if isinstance(load, SteppedLoad):
        rungs: Steps = (*steps, "load", "offered_loads_ops_per_s")
        for place, (before, rung) in enumerate(pairwise(load.offered_loads_ops_per_s), start=1):
            if rung <= before:
                why = f"but the one before it is {before:g}; list them from the lowest up, each once"
                yield _say(document, (*rungs, place), rung, why)
            elif ladder_phase(part, rung) == ladder_phase(part, before):
                why = "which reads like the one before it; let them differ in their first six digits"
                yield _say(document, (*rungs, place), rung, why)
    elif isinstance(load, SearchLoad) and load.lowest_ops_per_s >= load.highest_ops_per_s:
        why = f"but highest_ops_per_s is {load.highest_ops_per_s:g}; make it the lower of the two"
        yield _say(document, (*steps, "load", "lowest_ops_per_s"), load.lowest_ops_per_s, why)


def _check_objective(
    document: Document, steps: Steps, part: Measurement, timeout_s: float
) -> Iterator[str]:
    """Insist that an operation can miss the objective of a search and still have a response time."""
    if isinstance(part.load, SearchLoad):
        objective_ms, longest_ms = part.load.response_time_p99_objective_ms, timeout_s * 1000
        if objective_ms >= longest_ms:
            why = (
                f"but operation_timeout_s is {timeout_s:g}: what takes longer has no response time, so "
                f"no load would ever miss; make it less than {longest_ms:g}"
            )
            place = (*steps, "load", "response_time_p99_objective_ms")
            yield _say(document, place, objective_ms, why)


def _confused_phases(document: Document, parts: Sequence[Measurement]) -> Iterator[str]:
    """Find measurements that are named like a phase of a ladder or of a search."""
    for index, part in enumerate(parts):
        steps: Steps = ("measurements", index, "name")
        for other in parts:
            if isinstance(other.load, SteppedLoad):
                is_taken = any(
                    part.name == ladder_phase(other, rung)
                    for rung in other.load.offered_loads_ops_per_s
                )
            elif isinstance(other.load, SearchLoad):
                is_taken = re.fullmatch(rf"{other.name}-[0-9]{{2,}}", part.name) is not None
            else:
                continue
            if is_taken:
                why = f"which names a phase of the measurement {other.name}; rename one of the two"
                yield _say(document, steps, part.name, why)


def _check_names(
    document: Document, steps: Steps, experiment: Experiment, entries: Entries
) -> Iterator[str]:
    system, topology, workload = experiment.system, experiment.topology, experiment.workload
    if system not in entries.known_systems:
        why = f"and there is no such system; {suggest(system, entries.known_systems)}"
        yield _say(document, (*steps, "system"), system, why)
    else:
        configs, folder = entries.systems.get(system, {}), f"systems/{system}"
        if experiment.config not in configs:
            yield _dangling(document, (*steps, "config"), experiment.config, folder, configs)
    if topology not in entries.topologies:
        known = entries.topologies
        yield _dangling(document, (*steps, "topology"), topology, "topologies", known)
    if workload not in entries.workloads:
        known_workloads = entries.workloads
        yield _dangling(document, (*steps, "workload"), workload, "workloads", known_workloads)


def _check_room(
    document: Document, steps: Steps, topology: Topology, testbed: Testbed
) -> Iterator[str]:
    for role, wanted in (("server", topology.servers), ("client", topology.clients)):
        present = sum(host.role == role for host in testbed.hosts)
        if wanted > present:
            why = (
                f"which needs {wanted} {role} hosts, but testbed {testbed.name} has {present}; "
                "choose a smaller topology or another testbed"
            )
            yield _say(document, (*steps, "topology"), topology.name, why)


def _check_warm_ups(
    document: Document, steps: Steps, workload: Workload, testbed: Testbed, engines: int
) -> Iterator[str]:
    """Find warm-ups that cannot end by rule before their cap; one of fixed length asks for no rule."""
    window_s = testbed.steadiness.window_s
    for part in workload.measurements:
        seen_s = max(math.ceil(part.warmup_s), 2 * window_s)
        needed_s = seen_s + _TELL_S + _TELL_EACH_S * engines
        if part.warmup_s < part.warmup_cap_s < needed_s:
            why = (
                f"whose measurement {part.name} warms up for at most {part.warmup_cap_s:g} s, but on "
                f"testbed {testbed.name} the rule needs {seen_s} s (at least warmup_s and two windows "
                f"of {window_s} s), and {needed_s - seen_s:g} s to be seen and told to all engine "
                f"processes, {engines} here; make warmup_cap_s at least {needed_s:g}, or equal to "
                "warmup_s for a fixed length"
            )
            yield _say(document, (*steps, "workload"), workload.name, why)


def _repeated_releases(document: Document, steps: Steps, experiment: Experiment) -> Iterator[str]:
    for index, release in enumerate(experiment.releases):
        if release in experiment.releases[:index]:
            why = "for the second time; list each release once"
            yield _say(document, (*steps, "releases", index), release, why)


def _unknown_releases(
    document: Document,
    steps: Steps,
    experiment: Experiment,
    known_releases: Mapping[str, Collection[str]],
) -> Iterator[str]:
    system = experiment.system
    known = known_releases.get(system)
    if known is None:
        return
    for index, release in enumerate(experiment.releases):
        if release not in known:
            hint = suggest_few(release, known, f"see `knickpoint releases {system}`")
            why = f"and {system} has no such release; {hint}"
            yield _say(document, (*steps, "releases", index), release, why)


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


def _repeated(
    document: Document,
    steps: Steps,
    items: Iterable[T],
    key: str,
    identify: Callable[[T], Hashable],
) -> Iterator[str]:
    seen: dict[Hashable, int] = {}
    for index, item in enumerate(items):
        identity = identify(item)
        first = seen.setdefault(identity, index)
        if first != index:
            why = f"as in {dotted((*steps, first))}; give each its own"
            yield _say(document, (*steps, index, key), identity, why)


def _dangling(document: Document, steps: Steps, name: str, folder: str, known: Collection[str]) -> str:
    why = f"but there is no {folder}/{name}.yaml; {suggest(name, known)}"
    return _say(document, steps, name, why)


def _say(document: Document, steps: Steps, value: object, why: str) -> str:
    shown = document.show(steps, value)
    return f"{document.locate(steps)}: {dotted(steps)} is {shown}, {why}"

"""What the schema cannot see of hosts: cores that are named twice, or by both sides, and two leases.

Each check gives complete sentences, as those of `checks` do.
"""

from collections.abc import Iterator, Mapping

from perf.config.checks.topologies_and_testbeds import ConfigFile
from perf.local.document import Steps, YamlDocument
from perf.local.problems import say
from perf.model.design import Host, Testbed


def check_pinning(entry: ConfigFile[Testbed]) -> Iterator[str]:
    """Find cores that a host names twice, or that servers and clients of one machine would share."""
    testbed, document = entry.value, entry.document
    if testbed is None:
        return
    for index, host in enumerate(testbed.hosts):
        # Of a client that names too few, `checks` has said so.
        is_short = host.role == "client" and len(set(host.cores)) < testbed.client_cores
        for place, core in enumerate(() if is_short else host.cores):
            if core in host.cores[:place]:
                why = "for the second time; name each core once"
                yield say(document, ("hosts", index, "cores", place), core, why)
        if host.role == "client":
            yield from _shared_with_servers(document, index, testbed)


def _shared_with_servers(document: YamlDocument, index: int, testbed: Testbed) -> Iterator[str]:
    client = testbed.hosts[index]
    for other, server in enumerate(testbed.hosts):
        is_one_machine = testbed.transport == "local" or _name(server) == _name(client)
        shared = [core for core in client.cores if core in server.cores]
        if server.role == "server" and is_one_machine and shared:
            why = (
                f"and hosts[{other}], a server on the same machine, has it as well: the load would take"
                " from the server what it measures; give each its own"
            )
            steps: Steps = ("hosts", index, "cores", client.cores.index(shared[0]))
            yield say(document, steps, shared[0], why)
            return


def check_leases(testbeds: Mapping[str, ConfigFile[Testbed]]) -> Iterator[str]:
    """Insist on one `work_dir` for each host over SSH: its lease lies there, for all testbeds."""
    seen: dict[tuple[str, int], tuple[str, str, str]] = {}
    for name, entry in testbeds.items():
        if entry.value is None or entry.value.transport != "ssh":
            continue
        for index, host in enumerate(entry.value.hosts):
            here = (host.work_dir, f"hosts[{index}]", name)
            work_dir, place, first = seen.setdefault(_name(host), here)
            if work_dir != host.work_dir:
                where = place if first == name else f"{place} of testbed {first}"
                why = (
                    f"but {where}, the same host, has {work_dir}; the lease that keeps jobs apart lies "
                    "there, so make them equal"
                )
                steps: Steps = ("hosts", index, "work_dir")
                yield say(entry.document, steps, host.work_dir, why)


def check_node_dir(entry: ConfigFile[Testbed]) -> Iterator[str]:
    """Find a directory for nodes where each host names its own."""
    testbed = entry.value
    if testbed and testbed.node_dir is not None and testbed.transport != "local":
        why = "but over SSH each host says its own work_dir; set that, and remove this"
        yield say(entry.document, ("node_dir",), testbed.node_dir, why)


def _name(host: Host) -> tuple[str, int]:
    return host.address.lower(), host.port

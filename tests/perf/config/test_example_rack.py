"""The example to copy: with an operator's own name and addresses, a testbed that can be measured."""

import re
import shutil
from pathlib import Path

import pytest

from perf.config.catalog import Catalog, load_catalog
from perf.model.identity import content_hash
from perf.trial.placement import place_nodes

CONFIGS = Path(__file__).parents[3] / "configs"
EXAMPLE = (CONFIGS / "testbeds/example-rack.yaml").read_text()
# One name, one address, a number: what its comments tell an operator to change.
OWN = EXAMPLE.replace("example-rack", "rack").replace("192.0.2.", "10.1.2.").replace("1.5", "0.8")
# What they say of the suite.
RENAMED = {
    "name: nightly": "name: rack",
    "testbed: local": "testbed: rack",
    "topology: local-three": "topology: rack-three",
    "workload: sensor-write": "workload: sensor-write-rack",
    "workload: sensor-read": "workload: sensor-read-rack",
}


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    root = tmp_path_factory.mktemp("own") / "configs"
    shutil.copytree(CONFIGS, root)
    (root / "testbeds/rack.yaml").write_text(OWN)
    suite = (CONFIGS / "suites/nightly.yaml").read_text()
    for old, new in RENAMED.items():
        assert f"{old}\n" in suite
        suite = suite.replace(f"{old}\n", f"{new}\n")
    (root / "suites/rack.yaml").write_text(suite)
    return load_catalog(root)


def test_a_copy_with_other_addresses_loads_and_places_its_nodes(
    catalog: Catalog, tmp_path: Path
) -> None:
    suite = catalog.suite("rack")
    deployment = catalog.resolve(suite, suite.experiments[0])
    nodes = place_nodes(deployment, tmp_path)
    assert [node.address for node in nodes] == ["10.1.2.11", "10.1.2.12", "10.1.2.13"]
    assert {node.work_dir.rpartition("/")[0] for node in nodes} == {"/var/lib/knickpoint/cassandra"}
    assert all(node.cores and node.numa_node == 0 for node in nodes)
    testbed = catalog.testbeds["rack"]
    assert testbed.tuning is not None
    assert testbed.disk is not None
    assert content_hash(testbed) != content_hash(catalog.testbeds["example-rack"])


def test_every_field_of_a_host_is_explained() -> None:
    hosts = EXAMPLE[EXAMPLE.index("\nhosts:") : EXAMPLE.index("\n# Engine processes")]
    fields = set(re.findall(r"^    ([a-z_]+):", hosts, flags=re.MULTILINE))
    explained = set(re.findall(r"^  # ([a-z_]+)(?:, ([a-z]+))?  ", hosts, flags=re.MULTILINE))
    names = {name for pair in explained for name in pair} | set(
        re.findall(r"^  # ([a-z_]+)$", hosts, flags=re.MULTILINE)
    )
    assert fields | {"name", "port"} <= names


def test_clients_and_servers_leave_the_first_cores_to_the_kernel(catalog: Catalog) -> None:
    testbed = catalog.testbeds["example-rack"]
    assert all(min(host.cores) >= 2 for host in testbed.hosts)
    assert all(
        len(host.cores) == testbed.client_cores for host in testbed.hosts if host.role == "client"
    )

"""What the hosts of a deployment cost, and where its nodes keep their files."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from catalogs import shipped

from perf.config.catalog import load_catalog
from perf.hosts.testbed import price_per_hour_usd
from perf.model.design import Testbed
from perf.model.errors import ConfigError
from perf.trial.placement import place_nodes

CONFIGS = Path(__file__).parents[3] / "configs"


@pytest.fixture(scope="module")
def rack() -> Testbed:
    return shipped().testbeds["example-rack"]


def test_the_price_is_that_of_the_server_hosts_in_use(rack: Testbed) -> None:
    assert price_per_hour_usd(rack, servers=3) == 4.5
    assert price_per_hour_usd(rack, servers=1) == 1.5


def test_without_a_price_of_each_there_is_none(rack: Testbed) -> None:
    first, *others = rack.hosts
    partly = replace(rack, hosts=(replace(first, price_per_hour_usd=None), *others))
    assert price_per_hour_usd(partly, servers=3) is None
    assert price_per_hour_usd(shipped().testbeds["local"], servers=3) is None


def test_nodes_of_a_local_testbed_are_where_it_says(tmp_path: Path) -> None:
    catalog = shipped()
    for name, base in (("disk", str(tmp_path)), ("memory", "/dev/shm/knickpoint")):  # noqa: S108  the testbed's
        suite = catalog.suite(f"storage-small-{name}")
        (node,) = place_nodes(catalog.resolve(suite, suite.experiments[0]), tmp_path)
        assert node.work_dir == f"{base}/cassandra/node-1"


def test_the_two_testbeds_of_this_machine_differ_in_storage_alone() -> None:
    testbeds = shipped().testbeds
    disk, memory = testbeds["local-disk"], testbeds["local-memory"]
    assert disk.node_dir is None
    names = {"name": disk.name, "description": disk.description, "testbed_class": disk.testbed_class}
    assert replace(memory, **names, node_dir=None, caveat=disk.caveat) == disk


def test_the_three_examples_differ_in_storage_alone() -> None:
    testbeds = shipped().testbeds
    disks, one, two = (testbeds[f"storage-{name}"] for name in ("hdd", "1ssd", "2ssd"))
    for other in (disks, two):
        named = {key: getattr(one, key) for key in ("name", "description", "testbed_class", "disk")}
        assert replace(other, **named, hosts=one.hosts) == one
    assert disks.disk is not None
    assert not disks.disk.trims


def test_a_directory_for_nodes_is_of_local_testbeds(tmp_path: Path) -> None:
    root = tmp_path / "configs"
    shutil.copytree(CONFIGS, root)
    rack = root / "testbeds" / "example-rack.yaml"
    rack.write_text(f"{rack.read_text()}node_dir: /data\n")
    with pytest.raises(ConfigError, match="but over SSH each host says its own work_dir"):
        load_catalog(root)

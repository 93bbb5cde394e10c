"""Data that is to exceed memory, and does not: said with both sizes."""

from dataclasses import replace

import pytest
from catalogs import shipped

from perf.model.design import Topology, Workload
from perf.model.results import Fact
from perf.model.scaling import scale_down
from perf.trial.data_size import FITS, find_fitting_data

FOUR = Topology(name="four", description="four", servers=4, replication_factor=3)
HOSTS = ("a", "b", "c", "d")


@pytest.fixture(scope="module")
def published() -> Workload:
    return shipped().workloads["storage-ycsb"]


def memory(gigabytes: float) -> list[Fact]:
    return [Fact(host=host, name="memory_kb", value=f"{gigabytes * 1e9 / 1024:.0f}") for host in HOSTS]


def test_what_was_published_exceeds_what_was_published(published: Workload) -> None:
    # 500 million records of 1000 bytes, three copies, four hosts of 256 GB.
    assert find_fitting_data(published, FOUR, memory(256), HOSTS) == ()


def test_data_that_fits_is_reported_with_both_sizes(published: Workload) -> None:
    (reason,) = find_fitting_data(published, FOUR, memory(512), HOSTS)
    assert reason.kind == FITS
    assert "375 GB of data on each server host fit into its 512 GB of memory" in reason.text


def test_scaled_down_it_fits_and_says_so(published: Workload) -> None:
    small = scale_down(published, 50_000)
    (reason,) = find_fitting_data(small, FOUR, memory(16), HOSTS)
    assert reason.text.startswith("storage-ycsb-by-50000: 0.0075 GB of data")


def test_nothing_is_said_of_other_workloads_or_of_hosts_that_do_not_tell(published: Workload) -> None:
    other = replace(published, exceeds_memory=None)
    assert find_fitting_data(other, FOUR, memory(512), HOSTS) == ()
    unknown = [Fact(host="a", name="memory_kb", value="unavailable")]
    assert find_fitting_data(published, FOUR, unknown, HOSTS) == ()
    client = [Fact(host="load-1", name="memory_kb", value="99999999999")]
    assert find_fitting_data(published, FOUR, client, HOSTS) == ()

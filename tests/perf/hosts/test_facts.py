"""Facts of this host and of the Python that drives the load."""

import sys
from importlib.metadata import version
from pathlib import Path
from platform import python_version, release

from perf.hosts.facts import read_client_facts, read_facts
from perf.hosts.remote import LocalHost
from perf.model.facts import UNAVAILABLE


def test_every_fact_has_a_value_or_is_unavailable() -> None:
    facts = {fact.name: fact.value for fact in read_facts(LocalHost())}
    assert all(facts.values())
    assert facts["kernel"] == release()
    for name in ("cpu_cores", "memory_kb", "swap_kb", "swappiness", "max_map_count", "steal_ticks"):
        assert facts[name].isdigit(), name
    assert facts["cpu_quota"] == "none" or float(facts["cpu_quota"]) > 0
    throttled = facts["thermal_throttle_count"]
    assert throttled == UNAVAILABLE or throttled.isdigit()


def test_versions_are_those_of_the_python_that_runs_engines() -> None:
    facts = {fact.name: fact.value for fact in read_client_facts(LocalHost("client-1"), sys.executable)}
    assert facts == {
        "version:python": python_version(),
        **{
            f"version:{package}": version(package)
            for package in ("knickpoint", "pymongo", "cassandra-driver", "hdrhistogram", "numpy")
        },
    }


def test_a_python_without_the_drivers_says_so(tmp_path: Path) -> None:
    # -S leaves out what is installed, as on a host that has only a plain Python.
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec env -u PYTHONPATH "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    facts = {fact.name: fact.value for fact in read_client_facts(LocalHost(), str(bare))}
    assert facts["version:python"] == python_version()
    assert facts["version:pymongo"] == UNAVAILABLE

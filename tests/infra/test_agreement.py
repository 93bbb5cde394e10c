"""Ansible's check mode and `knickpoint host check` say the same of a host, whatever drifted."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from ansible_site import Site, run_text, write_site
from click.testing import CliRunner

from perf.commands.host import host
from perf.config.catalog import load_catalog
from perf.hosts.tuning.privileged import apply_profile
from perf.hosts.tuning.profiles import SERVER, label, load_profile
from perf.hosts.tuning.readiness import MachineCheck, list_machines, look_at
from perf.model.errors import HostUnfit

pytestmark = pytest.mark.slow

SAID = re.compile(r"^changed: \[(\S+)\] => \(item=(\S+)\)", re.MULTILINE)
PLANTED = {
    "disk.read_ahead_kb": "128",
    "fs.aio-max-nr": "65536",
    "kernel.timer_migration": "1",
    "net.ipv4.tcp_keepalive_time": "7200",
    "thp.enabled": "always",
    "vm.dirty_ratio": "20",
    "vm.max_map_count": "65530",
    "vm.swappiness": "33",
}


def look(site: Site) -> dict[str, MachineCheck]:
    testbed = load_catalog(site.home / "configs").testbed("trial-rack")
    looks = look_at(list_machines(testbed, site.home), testbed, None)
    assert [one.problem for one in looks] == ["", ""]
    return {one.host: one for one in looks}


def drift_by_knickpoint(site: Site) -> set[tuple[str, str]]:
    return {(name, one.setting.name) for name, seen in look(site).items() for one in seen.troubles}


def drift_by_ansible(site: Site) -> set[tuple[str, str]]:
    task = site.play("--tags", "tune", "--check").split("TASK [tune : Say what differs]")
    return set(SAID.findall(task[1].partition("\nTASK ")[0])) if len(task) > 1 else set()


def plant(values: Mapping[str, str]) -> None:
    """Set the kernel, which the host shares, to other values than the profile's."""
    for setting in load_profile(SERVER).settings:
        if setting.name in values and setting.apply:
            run_text(setting.apply, values[setting.name])
            assert run_text(setting.read) == values[setting.name]


def tune_what_can_be(site: Site) -> dict[str, str]:
    """Tune the host; give what this machine does not have, as a testbed declares it."""
    server = look(site)["db-1"]
    remote = server.machine.remote
    apply_profile(remote, load_profile(SERVER), str(site.home / "work"), (), is_root=True)
    return {one.setting.name: "not on this machine" for one in look(site)["db-1"].troubles}


@pytest.mark.usefixtures("kept_kernel")
def test_what_ansible_would_change_is_what_the_check_refuses(
    tmp_path: Path, isolated_host: int
) -> None:
    lacking = tune_what_can_be(write_site(tmp_path, isolated_host, {}))
    site = write_site(tmp_path, isolated_host, lacking)
    plant(PLANTED)

    # What is applied once is applied: by the playbook, to each setting that differs.
    said = site.play("--tags", "tune", "--limit", "db-1")
    assert {name for _, name in SAID.findall(said)} == set(PLANTED)
    assert look(site)["db-1"].answer.marker == label(load_profile(SERVER))  # type: ignore[union-attr]
    assert drift_by_ansible(site) == drift_by_knickpoint(site) == set()

    # Drift of values, one setting that these hosts lack, and one that only a person can mend.
    plant(PLANTED)
    undeclared = {"cpu.governor", "kernel.skew_tick"}
    assert undeclared <= set(lacking)
    fewer = {name: why for name, why in lacking.items() if name not in undeclared}
    site = write_site(tmp_path, isolated_host, fewer)
    drift = drift_by_knickpoint(site)
    assert {name for place, name in drift if place == "db-1"} == {*PLANTED, *undeclared}
    assert drift_by_ansible(site) == drift
    command = ["check", "trial-rack", "--configs", str(tmp_path / "configs"), "--data", str(tmp_path)]
    refusal = CliRunner().invoke(host, command).exception
    assert isinstance(refusal, HostUnfit)
    assert refusal.exit_code == 3

    # A run ends with what is left to a person, after all else was done.
    said = site.play("--tags", "tune", "--limit", "db-1", code=2)
    assert (
        "kernel.skew_tick is 0, wanted 1; by hand: add skew_tick=1 to the kernel's command line" in said
    )
    assert "cpu.governor is –, wanted performance; if these hosts cannot have it, say why in" in said
    assert {name for place, name in drift_by_knickpoint(site) if place == "db-1"} == undeclared

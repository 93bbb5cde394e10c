"""`knickpoint host check`, `tune` and `script` as a person meets them; hosts are toys."""

import shutil
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from near_host import NearHost
from toy_hosts import ToyHost, make_hosts, open_toys, write_profiles

from perf.commands import host as commands
from perf.commands.host import host
from perf.hosts import lease
from perf.hosts.lease_file import answer
from perf.hosts.tuning import profiles as tuning
from perf.hosts.tuning import readiness
from perf.hosts.tuning.privileged import render_script
from perf.hosts.tuning.profiles import label, load_profile
from perf.model.errors import HostUnfit, UsageError

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
TESTBED = """name: rack
description: Two servers and a client in directories.
testbed_class: rack
transport: ssh
hosts:
  - {{name: db1, address: 192.0.2.1, role: server, work_dir: {root}/db1}}
  - {{name: db2, address: 192.0.2.2, role: server, work_dir: {root}/db2}}
  - {{name: load1, address: 192.0.2.3, role: client, work_dir: {root}/load1}}
"""


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mapping[str, ToyHost]]:
    write_profiles(tmp_path / "profiles")
    monkeypatch.setattr(tuning, "find_root", lambda: tmp_path / "profiles")
    load_profile.cache_clear()
    found = make_hosts(tmp_path)
    monkeypatch.setattr(readiness, "open_host", open_toys(found))
    monkeypatch.setattr(lease, "open_host", lambda _, place: NearHost(place.name))
    yield found
    load_profile.cache_clear()


def run(tmp_path: Path, *arguments: str, tuning_key: str = "tuning: {}") -> Result:
    configs = tmp_path / "configs"
    shutil.copytree(CONFIGS, configs, dirs_exist_ok=True)
    rest = (CONFIGS / "testbeds/loop.yaml").read_text().partition("client_cores")
    text = TESTBED.format(root=tmp_path) + "".join(rest[1:]) + f"\n{tuning_key}\n"
    (configs / "testbeds/rack.yaml").write_text(text)
    return CliRunner().invoke(host, [*arguments, "--configs", str(configs)])


@pytest.mark.usefixtures("hosts")
def test_hosts_that_a_job_holds_are_not_tuned_under_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by = {"token": "theirs", "owner": "anna@ci-1", "purpose": "a night", "process": "elsewhere:1/2/3"}
    answer(tmp_path / "db2", {"ask": "take", "by": by, "for_s": 3600.0, "gone": ""})
    at_once = partial(lease.hold_places, wait_s=0)
    monkeypatch.setattr(
        commands, "hold", lambda testbeds, *rest: at_once(lease.list_places(testbeds), *rest)
    )
    done = run(tmp_path, "tune", "rack")
    assert isinstance(done.exception, lease.Leased)
    assert "db2 is held by anna@ci-1 for a night" in str(done.exception)
    assert "tuned to" not in done.output


def test_a_tuned_testbed_is_a_table_per_host_and_fine(
    hosts: Mapping[str, ToyHost], tmp_path: Path
) -> None:
    assert run(tmp_path, "tune", "rack").exit_code == 0
    done = run(tmp_path, "check", "rack")
    assert done.exit_code == 0
    server, client = label(load_profile("server")), label(load_profile("client"))
    assert done.output == (
        f"db1 (server), held to {server}: last tuned to that\n"
        "  setting  there   wanted\n"
        "  clock    steady  steady  as wanted\n"
        "  memory   1       1       as wanted\n"
        "  disk     xfs     xfs     as wanted\n\n"
        f"db2 (server), held to {server}: last tuned to that\n"
        "  setting  there   wanted\n"
        "  clock    steady  steady  as wanted\n"
        "  memory   1       1       as wanted\n"
        "  disk     xfs     xfs     as wanted\n\n"
        f"load1 (client), held to {client}: last tuned to that\n"
        "  setting  there   wanted\n"
        "  clock    steady  steady  as wanted\n\n"
        "testbed rack: 7 of 7 settings on 3 hosts as wanted\n"
    )
    assert hosts["db1"].marker == server


@pytest.mark.usefixtures("hosts")
def test_servers_are_held_to_what_they_were_tuned_to_or_to_the_option(tmp_path: Path) -> None:
    run(tmp_path, "tune", "rack", "--profile", "eager")
    done = run(tmp_path, "check", "rack")
    assert f"db1 (server), held to {label(load_profile('eager'))}: last tuned to that" in done.output
    other = run(tmp_path, "check", "rack", "--profile", "server")
    assert f"last tuned to {label(load_profile('eager'))}" in other.output
    assert isinstance(other.exception, HostUnfit)
    assert "db1: memory is 2, wanted 1" in str(other.exception)


def test_all_that_is_wrong_is_reported_with_the_hosts_out_of_reach(
    hosts: Mapping[str, ToyHost], tmp_path: Path
) -> None:
    run(tmp_path, "tune", "rack")
    hosts["db1"].write({"memory": "60"})
    hosts["db2"].is_up = False
    done = run(tmp_path, "check", "rack")
    assert isinstance(done.exception, HostUnfit)
    assert "  memory   60      1       DIFFERS\n" in done.output
    assert "db2 (server)" in done.output
    assert "not reached\n  no route to host\n" in done.output
    for line in ("db1: memory is 60, wanted 1", "why: the memory matters", "db2: no route to host"):
        assert line in str(done.exception)


def test_a_declared_setting_that_is_there_is_reported(
    hosts: Mapping[str, ToyHost], tmp_path: Path
) -> None:
    declared = "tuning: {unavailable: {memory: shared, disk: shared}}"
    done = run(tmp_path, "tune", "rack", tuning_key=declared)
    assert done.exit_code == 0, done.exception
    done = run(tmp_path, "check", "rack", tuning_key=declared)
    assert done.exit_code == 0
    assert "declared unavailable (shared), but it is there and differs" in done.output
    assert "as wanted, though declared unavailable: the declaration can go" in done.output
    assert "2 declared unavailable" in done.output
    (hosts["db1"].directory / "memory").unlink()
    done = run(tmp_path, "check", "rack", tuning_key=declared)
    assert "  memory   –       1       declared unavailable (shared)\n" in done.output


@pytest.mark.usefixtures("hosts")
def test_a_declared_name_that_no_profile_has_is_an_error_of_the_configuration(tmp_path: Path) -> None:
    declared = "tuning: {unavailable: {memori: gone, disc: gone}}"
    said = str(run(tmp_path, "check", "rack", tuning_key=declared).exception)
    assert "tuning.unavailable names memori, which is a setting of no profile" in said
    assert "memory" in said
    assert "tuning.unavailable names disc" in said


def test_tuning_lists_what_only_a_person_can_do(hosts: Mapping[str, ToyHost], tmp_path: Path) -> None:
    hosts["db1"].write({"disk": "ext4"})
    done = run(tmp_path, "tune", "rack")
    assert isinstance(done.exception, HostUnfit)
    assert "db1: memory: 60 → 1" in done.output
    assert "fix: by hand: buy a disk" in str(done.exception)


@pytest.mark.usefixtures("hosts")
def test_nobody_vouches_for_a_testbed_without_the_key(tmp_path: Path) -> None:
    done = run(tmp_path, "check", "rack", tuning_key="")
    assert done.exit_code == 0
    assert "testbed rack has no key `tuning`: its hosts are taken as they are" in done.output
    read = run(tmp_path, "check", "rack", "--profile", "server", tuning_key="")
    assert "its hosts are not checked" in read.output
    assert "db1: memory is 60, wanted 1" in str(read.exception)
    assert "never tuned" not in str(read.exception)
    assert isinstance(run(tmp_path, "tune", "rack", tuning_key="").exception, UsageError)


@pytest.mark.parametrize("command", ["check", "tune"])
def test_unknown_names_are_refused(hosts: Mapping[str, ToyHost], tmp_path: Path, command: str) -> None:
    assert "no testbed 'rock'" in str(run(tmp_path, command, "rock").exception)
    wrong = run(tmp_path, command, "rack", "--profile", "fast").exception
    assert "there is no tuning profile 'fast'; known: client, eager, server" in str(wrong)
    client = run(tmp_path, command, "rack", "--profile", "client").exception
    assert "client is the profile of hosts of clients" in str(client)
    assert all(not one.commands for one in hosts.values())


def test_the_program_of_root_is_printed_as_it_is() -> None:
    done = CliRunner().invoke(host, ["script"])
    assert (done.exit_code, done.output) == (0, render_script())

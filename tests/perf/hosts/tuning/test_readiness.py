"""Hosts before a trial: refused, switched, proven; on hosts in directories (`toy_hosts`)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from toy_hosts import ToyHost, list_hosts, make_hosts, open_toys, write_profiles

from perf.config.catalog import load_catalog
from perf.hosts.tuning import profiles as tuning
from perf.hosts.tuning import readiness
from perf.hosts.tuning.privileged import render_script
from perf.hosts.tuning.profiles import label, load_profile
from perf.hosts.tuning.readiness import Proven, list_machines, look_at, prove, tune
from perf.model.design import Deployment, Testbed, Tuning
from perf.model.errors import HostUnfit, StepFailed
from perf.model.facts import find_drift
from perf.model.results import Fact
from perf.systems import registry
from perf.systems.contract import name_profile

CONFIGS = Path(__file__).parents[3] / "data" / "configs"


@dataclass(frozen=True, slots=True)
class Lab:
    """Toy hosts as a deployment, and what was said of them."""

    hosts: Mapping[str, ToyHost]
    deployment: Deployment
    reported: list[str]

    def declaring(self, **unavailable: str) -> "Lab":
        testbed = replace(self.deployment.testbed, tuning=Tuning(unavailable=unavailable))
        return Lab(self.hosts, replace(self.deployment, testbed=testbed), self.reported)

    @property
    def testbed(self) -> Testbed:
        return self.deployment.testbed

    def prove(self, profile: str) -> Proven:
        return prove(self.deployment, profile, Path("/nowhere"), self.reported.append)

    def tune(self, profile: str | None = None) -> None:
        looks = look_at(list_machines(self.testbed, Path("/nowhere")), self.testbed, profile)
        tune(looks, self.testbed, self.reported.append)

    def refused(self, profile: str) -> str:
        before = {name: (host.settings(), host.marker) for name, host in self.hosts.items()}
        with pytest.raises(HostUnfit) as caught:
            self.prove(profile)
        assert {name: (host.settings(), host.marker) for name, host in self.hosts.items()} == before
        return str(caught.value)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    write_profiles(tmp_path / "profiles")
    monkeypatch.setattr(tuning, "find_root", lambda: tmp_path / "profiles")
    load_profile.cache_clear()
    hosts = make_hosts(tmp_path)
    monkeypatch.setattr(readiness, "open_host", open_toys(hosts))
    catalog = load_catalog(CONFIGS)
    suite = catalog.suite("fake-short")
    deployment = catalog.resolve(suite, suite.experiments[0])
    testbed = replace(
        deployment.testbed, name="rack", transport="ssh", hosts=list_hosts(tmp_path), tuning=Tuning()
    )
    yield Lab(hosts, replace(deployment, testbed=testbed), [])
    load_profile.cache_clear()


def test_a_host_that_was_never_tuned_is_refused(lab: Lab) -> None:
    said = lab.refused("server")
    for name in ("db1", "db2", "load1"):
        assert f"{name}: never tuned since it booted; run: knickpoint host tune rack" in said


def test_tuning_says_each_change_and_repeats_without_any(lab: Lab) -> None:
    lab.tune("server")
    server, client = label(load_profile("server")), label(load_profile("client"))
    assert lab.reported == [
        f"db1: tuned to {server} (not tuned since it booted), 2 settings changed",
        "db1: clock: unsteady → steady",
        "db1: memory: 60 → 1",
        f"db2: tuned to {server} (not tuned since it booted), 2 settings changed",
        "db2: clock: unsteady → steady",
        "db2: memory: 60 → 1",
        f"load1: tuned to {client} (not tuned since it booted), 1 setting changed",
        "load1: clock: unsteady → steady",
    ]
    lab.reported.clear()
    lab.tune()
    assert lab.reported == [
        f"db1: is tuned to {server} already, nothing changed",
        f"db2: is tuned to {server} already, nothing changed",
        f"load1: is tuned to {client} already, nothing changed",
    ]


def test_tuning_mends_what_drifted(lab: Lab) -> None:
    lab.tune("server")
    lab.reported.clear()
    lab.hosts["load1"].write({"clock": "stopped"})
    lab.tune()
    client = label(load_profile("client"))
    assert lab.reported[2:] == [
        f"load1: tuned to {client} (had drifted), 1 setting changed",
        "load1: clock: stopped → steady",
    ]


def test_a_tuned_host_is_proven_with_one_command_and_named_in_the_trial(lab: Lab) -> None:
    lab.tune("server")
    for host in lab.hosts.values():
        host.commands.clear()
    proven = lab.prove("server")
    assert [len(host.commands) for host in lab.hosts.values()] == [1, 1, 1]
    server, client = label(load_profile("server")), label(load_profile("client"))
    tuned = {fact.host: fact.value for fact in proven.facts if fact.name == "tuning"}
    assert tuned == {"db1": server, "db2": server, "load1": client}
    assert proven.remarks == ()
    assert find_drift(proven.facts, proven.read_again()) == ()


def test_another_release_switches_the_profile_and_back(lab: Lab) -> None:
    lab.tune("server")
    lab.reported.clear()
    proven = lab.prove("eager")
    assert lab.hosts["db2"].settings()["memory"] == "2"
    assert "db2: memory: 1 → 2" in lab.reported
    assert Fact(host="db2", name="tuning", value=label(load_profile("eager"))) in proven.facts
    assert not any(line.startswith("load1") for line in lab.reported), "a client is never switched"
    lab.prove("server")
    assert lab.hosts["db2"].settings()["memory"] == "1"


def test_every_drift_of_every_host_is_reported_at_once_and_nothing_is_switched(lab: Lab) -> None:
    lab.tune("server")
    lab.hosts["db1"].write({"memory": "60", "clock": "unsteady"})
    lab.hosts["load1"].write({"clock": "stopped"})
    lab.hosts["db2"].is_up = False
    said = lab.refused("server")
    assert "hosts of testbed rack are not tuned as they are to be" in said
    for line in (
        "db1: memory is 60, wanted 1",
        "db1: clock is unsteady, wanted steady",
        "load1: clock is stopped, wanted steady",
        "db2: no route to host",
    ):
        assert line in said


def test_what_only_a_person_can_do_is_asked_for_before_anything_is_switched(lab: Lab) -> None:
    lab.tune("server")
    lab.hosts["db1"].write({"disk": "ext4"})
    said = lab.refused("eager")
    assert "db1: disk is ext4, wanted xfs" in said
    assert "fix: by hand: buy a disk" in said


def test_a_setting_that_is_not_there_refuses_the_host_unless_it_is_declared(lab: Lab) -> None:
    (lab.hosts["db1"].directory / "memory").unlink()
    lab.tune("server")
    assert "db1: memory cannot be read" in lab.refused("server")
    declared = lab.declaring(memory="a toy has none")
    proven = declared.prove("server")
    facts = {(fact.host, fact.name): fact.value for fact in proven.facts}
    assert facts["db1", "tuning_unavailable"] == "memory"
    assert facts["db2", "tuning_unavailable"] == "none"
    (remark,) = proven.remarks
    assert remark.kind == "tuning-unavailable"
    assert remark.text == "measured without the tuning of memory on db1 (a toy has none)"


def test_a_declared_setting_is_left_alone(lab: Lab) -> None:
    declared = lab.declaring(memory="the kernel is shared")
    declared.tune("server")
    assert {name: host.settings().get("memory") for name, host in lab.hosts.items()} == {
        "db1": "60",
        "db2": "60",
        "load1": None,
    }
    proven = declared.prove("eager")
    assert "memory on db1, db2" in proven.remarks[0].text


def test_drift_during_the_trial_makes_it_invalid(lab: Lab) -> None:
    lab.tune("server")
    proven = lab.prove("server")
    lab.hosts["db2"].write({"memory": "60"})
    (reason,) = find_drift(proven.facts, proven.read_again())
    server = label(load_profile("server"))
    assert reason.kind == "host-drifted"
    assert reason.text == (
        f"db2: tuning was {server} before the trial and {server}, but memory 60 instead of 1 after it"
    )
    lab.hosts["db2"].is_up = False
    with pytest.raises(StepFailed, match="db2: no route to host"):
        proven.read_again()


def test_a_boot_during_the_trial_is_seen(lab: Lab) -> None:
    lab.tune("server")
    proven = lab.prove("server")
    (lab.hosts["db1"].directory / "run/tuning").unlink()
    (reason,) = find_drift(proven.facts, proven.read_again())
    assert "and none after it" in reason.text


def test_a_testbed_that_vouches_for_nothing_is_not_asked(lab: Lab) -> None:
    testbed = replace(lab.testbed, tuning=None)
    plain = Lab(lab.hosts, replace(lab.deployment, testbed=testbed), [])
    proven = plain.prove("server")
    assert (proven.facts, proven.remarks, proven.read_again()) == ((), (), ())
    assert [host.commands for host in lab.hosts.values()] == [[], [], []]


def test_who_is_not_root_tunes_through_the_program_of_root(lab: Lab) -> None:
    for host in lab.hosts.values():
        host.is_root = False
    with pytest.raises(HostUnfit) as caught:
        lab.tune("server")
    for name in ("db1", "db2", "load1"):
        assert f"{name}: it cannot be tuned: sudo: a password is required" in str(caught.value)
    for host in lab.hosts.values():
        host.program = render_script()
    lab.tune("server")
    assert lab.hosts["db1"].settings() == {"clock": "steady", "memory": "1", "disk": "xfs"}
    assert lab.hosts["db1"].marker == label(load_profile("server"))
    lab.prove("eager")


def test_a_program_of_another_version_is_not_trusted(lab: Lab) -> None:
    for host in lab.hosts.values():
        host.is_root = False
        host.program = render_script().replace(label(load_profile("eager")), f"eager@{'0' * 12}")
    lab.tune("server")
    with pytest.raises(HostUnfit, match="belongs to another version of Knickpoint"):
        lab.prove("eager")


def test_hosts_on_one_machine_are_one(make_testbed: Callable[..., Testbed], tmp_path: Path) -> None:
    server, client = list_hosts(tmp_path)[1:]
    here = make_testbed(hosts=(server, client))
    (machine,) = list_machines(here, tmp_path)
    assert (machine.roles, machine.work_dir) == (("server", "client"), str(tmp_path))
    both = make_testbed(transport="ssh", hosts=(client, replace(server, address=client.address)))
    (machine,) = list_machines(both, tmp_path)
    assert machine.is_server
    apart = make_testbed(transport="ssh", hosts=(server, client))
    assert len(list_machines(apart, tmp_path)) == 2
    assert len(list_machines(apart, tmp_path, clients=0)) == 1


def test_a_system_without_wishes_gets_the_profile_of_servers() -> None:
    fake, cassandra = registry.load("fake"), registry.load("cassandra")
    assert name_profile(fake, fake.releases()[0]) == "server"
    assert name_profile(cassandra, cassandra.releases()[0]) == "cassandra"

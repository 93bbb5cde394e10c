"""The lab comes up, is repaired, and goes away: hosts of their own on one machine."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from needs import need_native
from ruamel.yaml import YAML

from perf.config.catalog import load_catalog
from perf.hosts.remote import SshHost
from perf.hosts.testbed import Client
from perf.load.programs import check_engines

from .conftest import HOSTS, ROOT, Lab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
TESTBED = YAML(typ="safe").load((ROOT / "configs" / "testbeds" / "lab.yaml").read_text())
SSH = ("-F", str(ROOT / "var" / "lab" / "ssh_config"))
REMOTES = {
    host["name"]: SshHost(host["name"], host["address"], host["user"], options=SSH)
    for host in TESTBED["hosts"]
}


def say(host: str, command: str) -> str:
    return REMOTES[host].run(["sh", "-c", command]).stdout.strip()


@pytest.mark.usefixtures("lab")
def test_each_host_is_a_host_of_its_own() -> None:
    assert tuple(REMOTES) == HOSTS
    assert [say(host, "hostname") for host in HOSTS] == list(HOSTS)
    boots = {say(host, "cat /proc/sys/kernel/random/boot_id") for host in HOSTS}
    assert len(boots) == len(HOSTS), "each has begun by itself"
    for host in HOSTS:
        say(host, f"echo {host} >/var/lib/knickpoint/mine && echo {host} >/run/mine")
    for host in HOSTS:
        assert say(host, "cat /var/lib/knickpoint/mine /run/mine").split() == [host, host]
        assert say(host, "cat /proc/1/cmdline").split("\0")[-2] == host
    assert say("load-1", "/opt/knickpoint/bin/python -c 'import perf, sys; print(sys.prefix)'") == (
        "/opt/knickpoint"
    )
    cache = "${KNICKPOINT_CACHE:-$HOME/.cache/knickpoint}"
    assert say("db-1", f"ls {cache} | wc -l") == "0", "releases must travel to the hosts"


@pytest.mark.usefixtures("lab")
def test_the_native_engine_is_there_as_it_was_built() -> None:
    need_native()
    hosts = load_catalog(ROOT / "configs").testbed("lab").hosts
    clients = [
        Client(host, REMOTES[host.name], host.work_dir) for host in hosts if host.role == "client"
    ]
    assert len(clients) == 2
    check_engines("native", clients)


def test_up_repairs_what_is_broken_and_leaves_the_rest(lab: Lab) -> None:
    before = {host: lab.first_process(host) for host in HOSTS}
    # As a ring of Cassandra leaves them; those that begin anew have no profile.
    tune = [sys.executable, "-m", "perf.commands.main", "host", "tune", "lab", "--profile", "cassandra"]
    subprocess.run(tune, cwd=ROOT, check=True, capture_output=True)
    lab.do("cut", "db-1")
    assert lab.states()["db-1"].startswith("cut off")
    os.kill(before["db-2"], signal.SIGKILL)
    subprocess.run(["ip", "link", "delete", "kp-db-3"], check=True)
    broken = lab.states()
    assert broken["db-2"] == "down"
    assert broken["db-3"].startswith("without a cable")
    lab.do("up")
    assert lab.is_up()
    after = {host: lab.first_process(host) for host in HOSTS}
    assert [host for host in HOSTS if before[host] != after[host]] == ["db-2", "db-3"]
    assert "knickpoint nightly --suite lab" in lab.do("up")
    assert {host: lab.first_process(host) for host in HOSTS} == after


def test_down_takes_all_away_and_nothing_else(lab: Lab) -> None:
    swappiness = Path("/proc/sys/vm/swappiness")
    kept = (ROOT / "var" / "lab" / "kernel.json").read_text()
    assert swappiness.read_text().strip() == "1", "the hosts are tuned"
    processes = [lab.first_process(host) for host in HOSTS]
    links = {path.name for path in Path("/sys/class/net").iterdir()}
    lab.do("down")
    try:
        assert not [pid for pid in processes if Path(f"/proc/{pid}").exists()]
        gone = links - {path.name for path in Path("/sys/class/net").iterdir()}
        assert gone == {"kp-lab", *(f"kp-{host}" for host in HOSTS)}
        assert not (ROOT / "var" / "lab").exists()
        assert f'"vm.swappiness": "{swappiness.read_text().strip()}"' in kept
        assert set(lab.states().values()) == {"down"}
        lab.do("down")
    finally:
        lab.do("up")
    assert lab.is_up()


def test_addresses_of_others_are_not_taken(lab: Lab) -> None:
    lab.do("down")
    try:
        subprocess.run(["ip", "link", "add", "kp-other", "type", "bridge"], check=True)
        subprocess.run(["ip", "address", "add", "10.77.0.200/25", "dev", "kp-other"], check=True)
        subprocess.run(["ip", "link", "set", "kp-other", "up"], check=True)
        refused = lab.run("up")
        assert refused.returncode == 3
        assert "10.77.0.128/25 by kp-other" in refused.stderr
        assert not Path("/sys/class/net/kp-lab").exists()
    finally:
        subprocess.run(["ip", "link", "delete", "kp-other"], check=False)
        lab.do("up")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("cut", "db-9"), "db-1, db-2, db-3"), (("cut",), "takes a host"), (("up", "x"), "no host")],
)
def test_a_slip_of_the_fingers_is_explained(lab: Lab, arguments: tuple[str, ...], said: str) -> None:
    done = lab.run(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr

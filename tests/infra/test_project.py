"""The Ansible project is sound: it parses, uses builtin modules only, and fits the testbed it names."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_site import ANSIBLE, ROOT, write_yaml
from ruamel.yaml import YAML

from perf.config.catalog import load_catalog
from perf.hosts.tuning.privileged import PROGRAM
from perf.hosts.tuning.proof import MARKER

INFRA = ROOT / "infra"
TASK_FILES = sorted(INFRA.glob("roles/*/tasks/*.yaml")) + sorted(INFRA.glob("roles/*/handlers/*.yaml"))
# What a task may say beside its module.
KEYWORDS = {
    *("become", "changed_when", "check_mode", "delegate_to", "diff", "environment", "failed_when"),
    *("loop", "loop_control", "name", "notify", "register", "run_once", "throttle", "vars", "when"),
}


def read(path: Path) -> Any:  # noqa: ANN401  what a YAML file holds
    return YAML(typ="safe", pure=True).load(path)


def modules(path: Path) -> Iterator[str]:
    for task in read(path):
        assert task["name"][0].isupper(), task
        yield from set(task) - KEYWORDS


def test_the_playbook_parses() -> None:
    command = [ANSIBLE, "-i", "inventory/example.yaml", "site.yml", "--syntax-check"]
    done = subprocess.run(command, cwd=INFRA, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "[WARNING]" not in done.stderr


def test_an_inventory_that_is_not_there_is_a_failure() -> None:
    command = [ANSIBLE, "-i", "inventory/exampel.yaml", "site.yml", "--check"]
    done = subprocess.run(command, cwd=INFRA, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout
    assert "exampel.yaml" in done.stderr


@pytest.mark.parametrize("path", TASK_FILES, ids=lambda path: str(path.relative_to(INFRA)))
def test_tasks_have_names_and_use_builtin_modules(path: Path) -> None:
    assert {name for name in modules(path) if not name.startswith("ansible.builtin.")} == set()


def test_the_example_names_the_hosts_of_the_example() -> None:
    inventory = read(INFRA / "inventory/example.yaml")["all"]
    testbed = load_catalog(ROOT / "configs").testbed(inventory["vars"]["testbed"])
    for group, role in (("clients", "client"), ("servers", "server")):
        named = set(inventory["children"][group]["hosts"])
        assert named == {host.name for host in testbed.hosts if host.role == role}
    assert inventory["vars"]["base_public_keys"] == []
    others = [*inventory["children"]["runners"]["hosts"].values()]
    others += inventory["children"]["token_holders"]["hosts"].values()
    assert all(other["ansible_host"].startswith("192.0.2.") for other in others)
    (python,) = {host.python for host in testbed.hosts if host.role == "client"}
    assert python == read(INFRA / "roles/loadgen/defaults/main.yaml")["loadgen_venv"] + "/bin/python"


def test_ansible_and_knickpoint_mean_the_same_files() -> None:
    defaults = read(INFRA / "roles/tune/defaults/main.yaml")
    assert (defaults["tune_marker"], defaults["tune_script"]) == (MARKER, PROGRAM)
    account = (INFRA / "roles/base/tasks/account.yaml").read_text()
    assert f"ALL=(root) NOPASSWD: {PROGRAM}\n" in account


def play_check(home: Path, host: dict[str, str], *variables: str) -> str:
    """Run what the playbook asks first, against a testbed with such hosts; nobody is connected to."""
    rack = read(ROOT / "configs/testbeds/example-rack.yaml")
    for one in rack["hosts"]:
        del one["user"], one["work_dir"]
        one.update(host)
    write_yaml(home / "configs/testbeds/example-rack.yaml", rack)
    command = [ANSIBLE, "-i", "inventory/example.yaml", "site.yml", "--tags", "base", "--limit", "db-1"]
    settings = {
        "ansible_connection": "local",
        "ansible_become": False,
        "other_configs": str(home / "configs"),
        "base_public_keys": ["ssh-ed25519 AAAA nobody"],
    }
    command += ["--check", "-e", json.dumps(settings), *variables]
    done = subprocess.run(command, cwd=INFRA, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stdout + done.stderr
    return " ".join(done.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize("host", [{"user": "knickpoint"}, {"work_dir": "/var/lib/knickpoint"}])
def test_a_testbed_that_leaves_the_account_open_is_refused(
    tmp_path: Path, host: dict[str, str]
) -> None:
    said = play_check(tmp_path, host)
    assert "the testbed example-rack does not say user and work_dir of db-1" in said


def test_root_is_not_made_the_account_that_measures(tmp_path: Path) -> None:
    said = play_check(tmp_path, {"user": "root", "work_dir": "/var/lib/knickpoint"})
    assert "the testbed has user root for db-1" in said
    assert "TASK [base" not in said, "before anything is changed"

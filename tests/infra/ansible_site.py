"""Ansible as it is run, and the testbed and inventory that it is run with."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
ANSIBLE = ROOT / ".venv/bin/ansible-playbook"
RUN_LIMIT_S = 1200


@dataclass(frozen=True)
class Site:
    """A testbed, its inventory, and how its hosts are reached."""

    home: Path
    inventory: Path
    sockets: Path

    def play(self, *arguments: str, variables: Mapping[str, str] | None = None, code: int = 0) -> str:
        """Run the playbook to its end, and give what it printed; its exit code must be `code`."""
        extra = [word for item in (variables or {}).items() for word in ("-e", "=".join(item))]
        done = subprocess.run(
            [ANSIBLE, "-i", self.inventory, "site.yml", *arguments, *extra],
            cwd=ROOT / "infra",
            env={
                **os.environ,
                "ANSIBLE_HOME": str(self.home / "ansible"),
                "ANSIBLE_NOCOLOR": "1",
                # Sockets of OpenSSH have short paths only, and pytest's are long.
                "ANSIBLE_SSH_CONTROL_PATH": "%(directory)s/%%C",
                "ANSIBLE_SSH_CONTROL_PATH_DIR": str(self.sockets),
            },
            capture_output=True,
            text=True,
            timeout=RUN_LIMIT_S,
            check=False,
        )
        self._hang_up()
        assert done.returncode == code, f"{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def _hang_up(self) -> None:
        """End the connections that Ansible keeps open for its next run."""
        for control in self.sockets.glob("*"):
            subprocess.run(
                ["ssh", "-o", f"ControlPath={control}", "-O", "exit", "nobody"],
                capture_output=True,
                check=False,
            )
        shutil.rmtree(self.sockets, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def await_port(address: str, port: int, limit_s: float) -> None:
    end = time.monotonic() + limit_s
    while True:
        with socket.socket() as probe:
            if probe.connect_ex((address, port)) == 0:
                return
        assert time.monotonic() < end, f"nothing listens on {address}:{port}"
        time.sleep(0.05)


def make_keys(home: Path) -> None:
    for key in ("host", "user"):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / key)]
        subprocess.run(make, check=True)
    shutil.copy(home / "user.pub", home / "authorized_keys")


def write_ssh_config(home: Path, addresses: Sequence[str], port: int) -> None:
    public = (home / "host.pub").read_text().split()[:2]
    lines = (f"[{address}]:{port} {' '.join(public)}\n" for address in addresses)
    (home / "known_hosts").write_text("".join(lines))
    (home / "ssh_config").write_text(
        f"Host *\n  IdentityFile {home}/user\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {home}/known_hosts\n"
    )


def write_yaml(path: Path, tree: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    YAML(typ="safe", pure=True).dump(tree, path)


def write_site(
    home: Path,
    port: int,
    unavailable: Mapping[str, str],
    variables: Mapping[str, Any] | None = None,
    groups: Mapping[str, Any] | None = None,
    host: Mapping[str, str] | None = None,
) -> Site:
    """Write a testbed `trial-rack` of db-1 and load-1 on one port, and an inventory of it."""
    shutil.copytree(ROOT / "configs", home / "configs", dirs_exist_ok=True)
    rack = YAML(typ="safe", pure=True).load(ROOT / "configs/testbeds/example-rack.yaml")
    hosts = {host["name"]: host for host in rack["hosts"]}
    db, load = hosts["db-1"], hosts["load-1"]
    place = {"port": port, "work_dir": str(home / "work"), "user": "root", **(host or {})}
    rack |= {
        "name": "trial-rack",
        "testbed_class": "trial-rack",
        "hosts": [db | place | {"address": "127.0.0.1"}, load | place | {"address": "127.0.0.2"}],
        "client_cores": 1,
        "tuning": {"unavailable": dict(unavailable)},
        "ssh_config": str(home / "ssh_config"),
    }
    write_yaml(home / "configs/testbeds/trial-rack.yaml", rack)
    shared = {
        "testbed": "trial-rack",
        "other_configs": str(home / "configs"),
        "ansible_user": "root",
        "ansible_ssh_common_args": f"-F {home}/ssh_config",
        "ansible_remote_tmp": str(home / "remote"),
        "base_public_keys": [(home / "user.pub").read_text().strip()],
    }
    children = {"servers": {"hosts": {"db-1": {}}}, "clients": {"hosts": {"load-1": {}}}}
    tree = {"all": {"vars": shared | dict(variables or {}), "children": children | dict(groups or {})}}
    write_yaml(home / "inventory.yaml", tree)
    sockets = Path(tempfile.gettempdir(), f"kp-{os.getpid()}")
    return Site(home, home / "inventory.yaml", sockets)


def run_text(text: str, value: str = "") -> str:
    """Run the shell text of a setting on this machine; give the first line that it prints."""
    env = {**os.environ, "value": value, "work_dir": "/"}
    done = subprocess.run(["sh", "-c", text], env=env, capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0] if done.returncode == 0 else ""

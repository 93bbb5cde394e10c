"""A lab on one machine: three database hosts and two client hosts, each reached over SSH.

    up            bring the lab up; one that is up in part is completed, one that is up stays
    down          remove all that `up` made, and put the kernel's settings back
    status        say of each host whether it is up
    cut HOST      let nothing more through the cable of a host
    mend HOST     let everything through it again
    off HOST      take the power from a host; `up` brings it back

A host is a set of namespaces (network, mounts, processes, name) around the first process of `host`.
It has its own address, sshd, /run, /opt, /var/lib/knickpoint and boot id; it shares with the machine
the kernel, the cores and the rest of the file system. All that the lab keeps is in var/lab.
"""

import argparse
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import filelock
import kernel
import network

from perf.hosts.tuning.profiles import SERVER
from perf.local.paths import cache_dir
from perf.model.errors import HostUnfit, KnickpointError, UsageError

ROOT = Path(__file__).parents[2]
HOME = ROOT / "var" / "lab"
ADDRESSES = {
    "db-1": "10.77.0.11",
    "db-2": "10.77.0.12",
    "db-3": "10.77.0.13",
    "load-1": "10.77.0.21",
    "load-2": "10.77.0.22",
}
"""The hosts of configs/testbeds/lab.yaml."""
_WORK_DIR = Path("/var/lib/knickpoint")  # as host.py has it
_NEEDED = {
    "ip": "iproute2",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "sshd": "openssh-server",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mount": "mount",
}
_SBIN = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_OF_A_HOST = ("cut", "mend", "off")
_UP_S = 20.0
_TUNE_S = 120.0
_POLL_S = 0.05
_SSHD = """\
Port 22
ListenAddress 0.0.0.0
AuthorizedKeysFile {home}/keys/user.pub
PidFile none
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM no
# As on the real hosts: whoever is cut off is forgotten, and a rush of connections is let in.
ClientAliveInterval 10
ClientAliveCountMax 3
MaxStartups 100
MaxSessions 100
# Lets bash leave out ~/.bashrc, which is the machine owner's: what it starts may wait for a lock that
# a session which was killed has left (pyenv's does, for a minute).
SetEnv SHLVL=1
"""
_SSH = """\
Host {addresses}
  User root
  IdentityFile "{home}/keys/user"
  IdentitiesOnly yes
  UserKnownHostsFile "{home}/known_hosts"
  StrictHostKeyChecking yes
"""


@dataclass(frozen=True, slots=True)
class LabHost:
    """One host of the lab. Its first process is known by its command line, which no other has."""

    name: str
    address: str

    @property
    def command(self) -> tuple[str, ...]:
        """Return the command of the host's first process."""
        program = str(Path(__file__).with_name("host.py"))
        where = ("--home", str(HOME), "--cache", str(cache_dir()))
        return (sys.executable, program, *where, self.name)

    def pids(self) -> list[int]:
        """Return the pid of the host's first process as the machine counts; more if there are twins."""
        line = b"".join(os.fsencode(word) + b"\0" for word in self.command)
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if path.read_bytes() == line:
                    found.append(int(path.parent.name))
            except OSError:
                continue  # it has just ended
        return found

    def answers(self) -> bool:
        """Return whether the host's sshd says who it is."""
        try:
            # Packets may be lost just after a cable was mended; they are sent again after 1 s and 3 s.
            with socket.create_connection((self.address, 22), timeout=5) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    def is_up(self) -> bool:
        """Return whether the host runs and can be reached."""
        return len(self.pids()) == 1 and network.is_plugged(self.name) and self.answers()

    def power_on(self) -> None:
        """Start the host, in namespaces of its own, and wait until its sshd answers."""
        self.power_off()
        (HOME / "hosts" / self.name).mkdir(parents=True, exist_ok=True)
        namespaces = ("--net", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child")
        with (HOME / f"{self.name}.log").open("ab") as log:
            subprocess.Popen(
                ["unshare", *namespaces, "--", *self.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        _await(lambda: len(self.pids()) == 1, f"{self.name} did not start; see {HOME}/{self.name}.log")
        network.plug(self.name, self.address, self.pids()[0])
        _await(self.answers, f"{self.name} does not answer over SSH; see {HOME}/{self.name}.log")

    def power_off(self) -> None:
        """End the host with all its processes, at once."""
        for pid in self.pids():
            try:
                handle = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            try:
                if pid in self.pids():  # with the handle open, the number cannot be another's
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
            except ProcessLookupError:
                continue
            finally:
                os.close(handle)
        _await(lambda: not self.pids(), f"{self.name} does not end")
        network.unplug(self.name)


HOSTS = tuple(LabHost(name, address) for name, address in ADDRESSES.items())


def up() -> None:
    """Bring the lab up."""
    _check_machine()
    HOME.mkdir(parents=True, exist_ok=True)
    kernel.save(HOME / "kernel.json")
    _write_keys()
    if not _WORK_DIR.exists():
        _WORK_DIR.mkdir(parents=True)
        (HOME / "made-work-dir").touch()
    cache_dir().mkdir(parents=True, exist_ok=True)
    network.build_bridge(HOME)
    for host in HOSTS:
        if host.pids() and network.is_plugged(host.name):
            network.mend(host.name)
        if not host.is_up():
            host.power_on()
        print(f"{host.name:<8}{host.address:<13}up")
    _check_ways()
    _tune()
    print("the lab is up; next: .venv/bin/knickpoint nightly --suite lab")


def down() -> None:
    """Remove all that `up` made."""
    if network.owner() not in {None, "", str(HOME)}:
        raise UsageError(f"the lab that is up is another one's: {network.owner()}; it stays")
    for host in HOSTS:
        host.power_off()
    if network.owner() is not None:
        network.remove_bridge()
    if left := kernel.restore(HOME / "kernel.json"):
        raise HostUnfit(
            f"these kernel settings could not be put back: {', '.join(left)}; how they were stands in "
            f"{HOME}/kernel.json, which stays; see why, and run `down` again"
        )
    if (HOME / "made-work-dir").exists() and _WORK_DIR.is_dir() and not any(_WORK_DIR.iterdir()):
        _WORK_DIR.rmdir()
    shutil.rmtree(HOME, ignore_errors=True)
    print("the lab is down")


def describe() -> list[tuple[str, str, str]]:
    """Return the name, the address and the state of each host."""
    return [(host.name, host.address, _state(host)) for host in HOSTS]


def find(name: str) -> LabHost:
    """Return a host by its name; UsageError if there is none, or if it is not up."""
    host = next((host for host in HOSTS if host.name == name), None)
    if host is None:
        raise UsageError(f"the lab has no host {name!r}; it has {', '.join(ADDRESSES)}")
    if not host.pids() or not network.is_plugged(name):
        raise UsageError(f"{name} is not up; bring it up: make lab-up")
    return host


@contextmanager
def alone() -> Iterator[None]:
    """Let nobody else of this tree change the lab meanwhile."""
    HOME.parent.mkdir(exist_ok=True)
    with filelock.FileLock(HOME.with_suffix(".lock"), timeout=120):
        yield


def _state(host: LabHost) -> str:
    if not (pids := host.pids()):
        return "down"
    if not network.is_plugged(host.name):
        return "without a cable: run make lab-up"
    if network.is_cut(host.name):
        return f"cut off, first process {pids[0]}; run lab.py mend {host.name}"
    return f"up, first process {pids[0]}" if host.answers() else "its sshd does not answer"


def _check_root() -> None:
    if os.geteuid():
        raise HostUnfit("the lab is made of namespaces, which needs root: run it with sudo")


def _check_machine() -> None:
    missing = {package for program, package in _NEEDED.items() if not shutil.which(program, path=_SBIN)}
    if missing:
        packages = " ".join(sorted(missing))
        raise HostUnfit(f"programs of these packages are missing: apt-get install {packages}")
    hidden = [path for path in (Path("/run"), Path("/opt"), cache_dir()) if ROOT.is_relative_to(path)]
    if hidden:
        raise HostUnfit(f"hosts of the lab do not see {hidden[0]}, but this tree lies there; move it")
    if network.owner() not in {None, "", str(HOME)}:
        raise HostUnfit(
            f"another lab is up on this machine: {network.owner()}; take it down there: make lab-down"
        )
    network.check_free()


def _write_keys() -> None:
    """Make the keys that are missing, and what SSH's two sides read."""
    keys = HOME / "keys"
    keys.mkdir(mode=0o700, exist_ok=True)
    for name in ("user", *ADDRESSES):
        if not ((keys / name).exists() and (keys / f"{name}.pub").exists()):
            (keys / name).unlink(missing_ok=True)
            comment = f"lab-{name}-{secrets.token_hex(3)}"
            key = ("-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(keys / name))
            network.run("ssh-keygen", *key)
    known = (f"{host.address} {(keys / f'{host.name}.pub').read_text()}" for host in HOSTS)
    (HOME / "known_hosts").write_text("".join(known))
    (HOME / "sshd_config").write_text(_SSHD.format(home=HOME))
    addresses = " ".join(ADDRESSES.values())
    (HOME / "ssh_config").write_text(_SSH.format(home=HOME, addresses=addresses))
    if "SUDO_UID" in os.environ:  # who asked by sudo measures as themselves
        for path in (HOME, keys, keys / "user", HOME / "known_hosts", HOME / "ssh_config"):
            os.chown(path, int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"]))


def _check_ways() -> None:
    """Prove that the machine reaches each host by its key, and that hosts reach each other."""
    ask = "import socket,sys; [socket.create_connection((a, 22), 5).close() for a in sys.argv[1:]]"
    command = f"python3 -c '{ask}' {' '.join(ADDRESSES.values())}"
    for host in HOSTS:
        ssh = ("ssh", "-F", str(HOME / "ssh_config"), "-o", "BatchMode=yes", host.address)
        try:
            network.run(*ssh, command)
        except HostUnfit as problem:
            text = f"{host.name} does not reach all hosts; does a firewall filter bridges? {problem}"
            raise HostUnfit(text) from problem


def _tune() -> None:
    """Let Knickpoint tune the hosts, as those of any testbed."""
    # All to one profile: hosts that were last tuned to different ones would undo each other's settings
    # of the kernel that they share.
    command = [sys.executable, "-m", "perf.commands.main", "host", "tune", "lab", "--profile", SERVER]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=_TUNE_S, check=False
    )
    (HOME / "tune.log").write_text(done.stdout + done.stderr)
    if done.returncode:
        raise HostUnfit(f"the hosts could not be tuned; see {HOME}/tune.log\n{done.stderr.strip()}")


def _await(condition: Callable[[], bool], otherwise: str) -> None:
    end_s = time.monotonic() + _UP_S
    while not condition():
        if time.monotonic() > end_s:
            raise HostUnfit(f"within {_UP_S:g} s: {otherwise}")
        time.sleep(_POLL_S)


def main(arguments: Sequence[str]) -> int:
    """Do what is asked; give the exit code."""
    parser = argparse.ArgumentParser(
        prog="lab.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("verb", choices=("up", "down", "status", *_OF_A_HOST))
    parser.add_argument("host", nargs="?", help=f"of {', '.join(_OF_A_HOST)}")
    given = parser.parse_args(arguments)
    if (given.host is not None) != (given.verb in _OF_A_HOST):
        parser.error(f"{given.verb} takes {'no' if given.host else 'a'} host")
    try:
        if given.verb == "status":
            print("\n".join(f"{name:<8}{address:<13}{state}" for name, address, state in describe()))
            return 0
        _check_root()
        with alone():
            match given.verb:
                case "up":
                    up()
                case "down":
                    down()
                case "cut":
                    network.cut(find(given.host).name)
                case "mend":
                    network.mend(find(given.host).name)
                case _:
                    find(given.host).power_off()
    except KnickpointError as error:
        print(f"lab: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

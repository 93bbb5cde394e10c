"""Settings of this machine's kernel are moved, one by one and all at once: `host check` finds each.

Over a real sshd, with the shipped profile of Cassandra. All that is not planted here is declared
unavailable, so that nothing else of this machine is touched; what is, is restored.
"""

import os
import resource
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from needs import need

from perf.commands.host import host
from perf.hosts.connections import SHARED
from perf.hosts.remote import SshHost
from perf.hosts.tuning.profiles import label, load_profile
from perf.model.errors import HostUnfit

pytestmark = pytest.mark.alone

CONFIGS = Path(__file__).parents[3] / "data" / "configs"
PROFILE = load_profile("cassandra")
THP = "/sys/kernel/mm/transparent_hugepage"
VM = "/proc/sys/vm"
# What is planted in which file; the values are neither those of the profile nor dangerous for a minute.
PLANTED = {
    "vm.swappiness": (f"{VM}/swappiness", "55"),
    "vm.max_map_count": (f"{VM}/max_map_count", "70000"),
    "vm.overcommit_memory": (f"{VM}/overcommit_memory", "1"),
    "vm.dirty_ratio": (f"{VM}/dirty_ratio", "33"),
    "vm.dirty_background_ratio": (f"{VM}/dirty_background_ratio", "7"),
    "vm.stat_interval": (f"{VM}/stat_interval", "2"),
    "thp.enabled": (f"{THP}/enabled", "always"),
    "thp.defrag": (f"{THP}/defrag", "defer"),
    "thp.max_ptes_none": (f"{THP}/khugepaged/max_ptes_none", "100"),
    "net.ipv4.tcp_keepalive_time": ("/proc/sys/net/ipv4/tcp_keepalive_time", "7000"),
}
LIMIT = "limit.core"
"""The one that is no file: that of the sshd, which its sessions inherit."""
DISK = "/var/tmp"  # noqa: S108  whichever disk this is on
WORK_DIR = f"{DISK}/knickpoint-drifts"


def find_read_ahead() -> dict[str, tuple[str, str]]:
    """Return where the read-ahead of that disk stands; nothing where that is no disk."""
    device = Path(DISK).stat().st_dev
    disk = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
    path = next(
        disk.parent.glob(f"{disk.name}/queue/read_ahead_kb"), disk.parent / "queue/read_ahead_kb"
    )
    return {"disk.read_ahead_kb": (str(path), "64")} if path.exists() else {}


PLANTED |= find_read_ahead()


def current(path: Path) -> str:
    text = path.read_text().strip()
    return text.partition("[")[2].partition("]")[0] or text


def find_sshd() -> int:
    """Return the pid of the sshd that this process started."""
    for children in Path("/proc/self/task").glob("*/children"):
        for pid in children.read_text().split():
            if Path(f"/proc/{pid}/comm").read_text().strip() == "sshd":
                return int(pid)
    raise AssertionError("there is no sshd")


class Machine:
    """This machine: one setting at a time can be moved away, and back to what the profile wants."""

    def __init__(self, server: int) -> None:
        self.server = server
        self.wanted = {setting.name: setting.value for setting in PROFILE.settings}

    def drift(self, name: str) -> None:
        if name == LIMIT:
            self._limit(4096)
        else:
            path, value = PLANTED[name]
            Path(path).write_text(value)

    def mend(self, name: str) -> None:
        if name == LIMIT:
            self._limit(int(self.wanted[name]))
        else:
            Path(PLANTED[name][0]).write_text(self.wanted[name])

    def _limit(self, soft: int) -> None:
        _, hard = resource.prlimit(self.server, resource.RLIMIT_CORE)
        resource.prlimit(self.server, resource.RLIMIT_CORE, (soft, hard))


@pytest.fixture
def check(sshd: SshHost, tmp_path: Path) -> Callable[..., str]:
    """Return `check()`: what `knickpoint host check` complains of, nothing if it is content."""
    (tmp_path / "ssh_config").write_text(
        f"Host *\n  IdentityFile {sshd.options[1]}\n  {sshd.options[3].replace('=', ' ')}\n"
    )
    configs = tmp_path / "configs"
    shutil.copytree(CONFIGS, configs)
    rest = (CONFIGS / "testbeds/loop.yaml").read_text().partition("client_cores")
    declared = "".join(
        f"    {setting.name}: not planted here\n"
        for setting in PROFILE.settings
        if setting.name not in {*PLANTED, LIMIT}
    )
    (configs / "testbeds/planted.yaml").write_text(
        "name: planted\ndescription: This machine, over SSH.\ntestbed_class: planted\ntransport: ssh\n"
        f"ssh_config: {tmp_path}/ssh_config\nhosts:\n"
        f"  - {{name: db1, address: 127.0.0.1, role: server, user: {sshd.user}, port: {sshd.port}, "
        f"work_dir: {WORK_DIR}}}\n"
        f"tuning:\n  unavailable:\n{declared}{''.join(rest[1:])}"
    )

    def run(command: str = "check", *options: str) -> str:
        done = CliRunner().invoke(host, [command, "planted", *options, "--configs", str(configs)])
        # A command is a process of its own: what it shared of connections ends with it.
        SHARED.close()
        if done.exception is not None and not isinstance(done.exception, HostUnfit):
            raise done.exception
        return str(done.exception or "")

    return run


@pytest.fixture
def machine(sshd: SshHost) -> Iterator[Machine]:
    """Yield this machine; everything is as it was before, afterwards."""
    need(os.geteuid() == 0, "moving settings of the kernel needs root")
    before = {Path(path): current(Path(path)) for path, _ in PLANTED.values()}
    marker = Path("/run/knickpoint/tuning")
    old_marker = marker.read_text() if marker.exists() else None
    assert sshd.run(["true"]).returncode == 0
    server = find_sshd()
    old_limit = resource.prlimit(server, resource.RLIMIT_CORE)
    try:
        yield Machine(server)
    finally:
        resource.prlimit(server, resource.RLIMIT_CORE, old_limit)
        for path, value in before.items():
            path.write_text(value)
        marker.unlink(missing_ok=True)
        shutil.rmtree(WORK_DIR, ignore_errors=True)
        if old_marker is not None:
            marker.write_text(old_marker)


def complaints(said: str) -> Mapping[str, str]:
    """Return each complaint's line by the setting that it is of."""
    lines = (line.strip() for line in said.splitlines())
    return {line.split()[1]: line for line in lines if line.startswith("db1: ")}


@pytest.mark.slow
def test_each_planted_drift_is_found_alone_and_with_all_others(
    check: Callable[..., str], machine: Machine
) -> None:
    machine.mend(LIMIT)
    assert check("tune", "--profile", "cassandra") == ""
    assert Path("/run/knickpoint/tuning").read_text().strip() == label(PROFILE)
    assert check() == ""
    names = (*PLANTED, LIMIT)
    for name in names:
        machine.drift(name)
        said = check()
        machine.mend(name)
        assert list(complaints(said)) == [name]
        assert "why: " in said
        assert "fix: knickpoint host tune planted" in said
    for name in names:
        machine.drift(name)
    found = complaints(check())
    assert set(found) == set(names)
    for name, (_, value) in PLANTED.items():
        assert f"{name} is {value}, wanted " in found[name]
    machine.mend(LIMIT)  # a session keeps its limit, whatever is applied in it
    assert check("tune") == ""
    assert check() == ""

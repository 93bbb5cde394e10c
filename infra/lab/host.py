"""The first process of one host of the lab: its mounts, its name, its sshd.

`lab.py` starts it in namespaces of its own (network, mounts, processes, name). It waits for every
process that loses its parent, as the first process of any machine does. When it ends, the kernel ends
all processes of the host and takes its network away: that is how a host of the lab loses its power.
"""

import argparse
import contextlib
import os
import resource
import shutil
import socket
import subprocess
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path

from perf.load.native_binary import find_native
from perf.model.errors import UsageError

WORK_DIR = Path("/var/lib/knickpoint")
PYTHON_HOME = Path("/opt/knickpoint")
# As the tuning profiles want them of each SSH session; Ansible sets them on real hosts.
_LIMITS = {
    resource.RLIMIT_NOFILE: 1_048_576,
    resource.RLIMIT_NPROC: resource.RLIM_INFINITY,
    resource.RLIMIT_MEMLOCK: resource.RLIM_INFINITY,
    resource.RLIMIT_CORE: 0,
}
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def main(arguments: Sequence[str]) -> int:
    """Become a host; end when its sshd ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, required=True, help="directory of the lab")
    parser.add_argument("--cache", type=Path, required=True, help="the machine's cache of downloads")
    parser.add_argument("name")
    given = parser.parse_args(arguments)
    socket.sethostname(given.name)
    _mount(given.home / "hosts" / given.name, given.cache)
    Path("/run/sshd").mkdir()
    for limit, value in _LIMITS.items():
        with contextlib.suppress(ValueError):  # more than this machine lets even root have
            resource.setrlimit(limit, (value, value))
    keys = given.home / "keys"
    # -D: stay in the foreground; -e: log to standard error, which is the host's log.
    command = ["/usr/sbin/sshd", "-D", "-e", "-f", str(given.home / "sshd_config")]
    server = subprocess.Popen([*command, "-h", str(keys / given.name)])
    while os.wait()[0] != server.pid:
        pass
    return 1


def _mount(own: Path, cache: Path) -> None:
    """Mount what a machine has for itself alone; all else is the machine's own file system."""
    _run("mount", "-t", "proc", "proc", "/proc")
    _run("mount", "--bind", str(own), str(WORK_DIR))
    # Last, for the lab itself may lie below one of them.
    for path in (Path("/run"), Path("/opt")):
        _mount_empty(path)
    _install_engines()
    # The cache is hidden, so that releases really travel to the hosts.
    _mount_empty(cache)
    # Hosts that share a kernel share its boot; so that a host that lost its power is seen to have
    # begun anew, each has an id of its own.
    own_id = Path("/run/boot_id")
    own_id.write_text(f"{uuid.uuid4()}\n")
    _run("mount", "--bind", str(own_id), str(_BOOT_ID))


def _mount_empty(path: Path) -> None:
    _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(path))


def _install_engines() -> None:
    """Show this tree's Python as that of the host; beside it the native engine, if that is built."""
    programs = PYTHON_HOME / "bin"
    programs.mkdir(parents=True)
    for path in (*Path(sys.prefix).iterdir(), *Path(sys.prefix, "bin").iterdir()):
        if path.name != programs.name:
            (PYTHON_HOME / path.relative_to(sys.prefix)).symlink_to(path)
    with contextlib.suppress(UsageError):
        shutil.copy(find_native(), programs)


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

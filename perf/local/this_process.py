"""Who measures here, as hosts and other people see it: user, machine and the very process.

A process is named so that the name means it alone, wherever and whenever it is read: by its kernel
(boot and pid namespace), pid and birth. Machines made from one image share a machine id, containers
share a kernel, and pids are used again: none of them would do by itself.
"""

import getpass
import os
import socket
from pathlib import Path


def name_owner() -> str:
    """Return who this is, as others are to read it: user@machine."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = f"uid-{os.getuid()}"
    return f"{user}@{socket.gethostname()}"


def name_process(pid: int | str = "self") -> str:
    """Return the name of a process of this machine.

    Raises:
        OSError: there is no such process any more.

    """
    number, _, rest = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").partition(" ")
    fields = rest.rpartition(") ")[2].split()
    if fields[0] == "Z":
        raise ProcessLookupError(number)
    return f"{_name_kernel()}/{number}/{fields[19]}"


def is_known_gone(process: str) -> bool:
    """Return whether a process of that name has ended; of those of other machines nothing is known."""
    kernel, _, pid = process.rpartition("/")[0].rpartition("/")
    if kernel != _name_kernel():
        return False
    try:
        return name_process(pid) != process
    except ProcessLookupError:
        return True
    except OSError:
        return not _is_there(int(pid))


def _is_there(pid: int) -> bool:
    """Return whether a process is there, also where /proc hides those of other users (hidepid)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _name_kernel() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot}:{Path('/proc/self/ns/pid').stat().st_ino}"

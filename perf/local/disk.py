"""What a person can do where the operating system refuses a file: one next step per cause.

DuckDB passes the system's reason on inside its own text, so both kinds of errors are told apart here.
"""

import errno
import os
import re

_PERMISSION = "Let this user read and write there, or choose another data directory with --data"
_ROOM = "Make room on that disk, then run the command again"
_FILE_IN_THE_WAY = (
    "Move away the file that stands where a directory is needed, or choose another --data"
)

_BROKEN = (
    "That disk fails: see the kernel's log (dmesg), copy the data directory to a sound one and name "
    "the copy with --data"
)

_NEXT_STEPS = {
    errno.EACCES: _PERMISSION,
    errno.EPERM: _PERMISSION,
    errno.EROFS: "That file system is read-only: mount it for writing, or copy the data directory to "
    "another disk and name the copy with --data",
    errno.EISDIR: "A directory stands where a file is needed: move it away, then run the command again",
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EIO: _BROKEN,
    errno.ENOTDIR: _FILE_IN_THE_WAY,
    errno.EEXIST: _FILE_IN_THE_WAY,
}
_BY_REASON = {os.strerror(code): step for code, step in _NEXT_STEPS.items()}
_BY_REASON["fsync failed!"] = _BROKEN  # all that DuckDB says then
# The reason ends a line; the paths before it may hold any words.
_REASON = re.compile(f": ({'|'.join(map(re.escape, _BY_REASON))})$", re.MULTILINE)


def next_step(error: Exception) -> str | None:
    """Say what to do about a refusal by the operating system; None if the error is something else."""
    if isinstance(error, OSError):
        return _NEXT_STEPS.get(error.errno or 0)
    found = _REASON.search(str(error))
    return _BY_REASON[found[1]] if found else None


def explain(error: OSError) -> str:
    """Return the error with its next step, where there is one."""
    step = next_step(error)
    return f"{error}\n{step}" if step else str(error)

"""Child processes: they do not outlive a killed Knickpoint, and get no secret of it."""

import ctypes
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from perf.model.access import VARIABLES_BEGIN

_SECRETS = (
    f"{VARIABLES_BEGIN}*",
    *("KNICKPOINT_WEBHOOK_URL", "KNICKPOINT_GITHUB_TOKEN"),
    *("GITHUB_TOKEN", "GH_TOKEN", "ACTIONS_*TOKEN"),
    *("PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
)
"""What no program has to know that Knickpoint runs."""
_MEASURED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR"),
    *("LANG", "LANGUAGE", "LC_*", "TZ"),
    *("LD_LIBRARY_PATH", "JAVA_HOME", "PYTHON*"),
)
# PR_SET_PDEATHSIG is 1. The parent is compared to close the race at the start. A signal that the parent
# holds back just now must not be held back in the child for good.
_DIE_WITH_PARENT = (
    "import ctypes,os,signal,sys;"
    "signal.pthread_sigmask(signal.SIG_SETMASK,());"
    "ctypes.CDLL(None).prctl(1,int(sys.argv[1]),0,0,0);"
    "os.getppid()==int(sys.argv[2]) or os._exit(1);"
    "os.execvp(sys.argv[3],sys.argv[3:])"
)


def tie(command: Sequence[str], ending: signal.Signals = signal.SIGKILL) -> list[str]:
    """Return a command that is sent `ending` when the thread that started it ends.

    The kernel's parent-death signal follows the *thread* that started the child, so start it from the
    main thread.
    """
    guard = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT]
    return [*guard, str(ending.value), str(os.getpid()), *command]


def end_with_parent(parent: int) -> None:
    """Have this process, forked by the process `parent`, killed when the thread that forked it ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def environment() -> dict[str, str]:
    """Return this process's environment without the secrets of Knickpoint: what each program gets."""
    return {name: value for name, value in os.environ.items() if not _is_any(name, _SECRETS)}


def measured_environment() -> dict[str, str]:
    """Return what of this process's environment servers and engines get.

    A list of what they may have, so that neither a secret nor an option of the caller's shell (as
    JAVA_TOOL_OPTIONS) is part of what is measured. An engine that logs in gets its password beside it.
    """
    return {name: value for name, value in environment().items() if _is_any(name, _MEASURED)}


def _is_any(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, one) for one in patterns)

"""Child processes: they do not outlive a killed Knickpoint, and get no password of a database."""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

from perf.model.access import VARIABLES_BEGIN

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
    """Return this process's environment without passwords of databases: what every child gets.

    An engine that logs in gets its own one beside it.
    """
    return {name: value for name, value in os.environ.items() if not name.startswith(VARIABLES_BEGIN)}

"""Processes that an interrupted run left running on a host: servers of any system, and engines.

On this machine they end with the run that started them; over SSH they go on, and would hold ports and
cores of the next trial. They are found by the mark in their environment, which they have from their
start, wherever it was interrupted.
"""

import signal
import time
from collections.abc import Callable

from perf.hosts.remote import MARK, Remote, run_repeatable
from perf.local.progress import Progress
from perf.model.errors import StepFailed

_POLL_S = 0.25
# Signals those below a directory, prints their pids, and removes passwords that were on their way to an
# engine. What has ended, and only waits to be reaped, has no environment any more.
_SIGNAL = (
    f'for file in $(grep -lsazF "{MARK}=$2/" /proc/[0-9]*/environ); do '
    "pid=${file#/proc/}; pid=${pid%/environ}; "
    'kill -s "$1" "$pid" 2>/dev/null && echo "$pid"; done; rm -f "$2"/engines/*/password'
)


def end_leftovers(remote: Remote, base: str, limit_s: float, progress: Progress) -> None:
    """End what an interrupted run left running below `base`: politely, then by force.

    Raises:
        StepFailed: something still runs `limit_s` after a kill, or the host cannot be reached.

    """

    def tell(count: int) -> None:
        progress.report(f"{remote.name}: ending {count} processes that an interrupted run left behind")

    if left := end_marked(remote, base, limit_s, tell):
        why = f"left behind by an interrupted run, and still there after a kill: pids {', '.join(left)}"
        raise StepFailed("stop", remote.name, why)


def end_marked(
    remote: Remote, base: str, limit_s: float, tell: Callable[[int], None] = lambda _: None
) -> list[str]:
    """End all processes that were started below `base`, and what they started; return who would not.

    Raises:
        StepFailed: the host cannot be reached.

    """
    for ending in (signal.SIGTERM, signal.SIGKILL):
        if not (left := _signal(remote, base, str(ending.value))):
            return []
        tell(len(left))
        end_s = time.monotonic() + limit_s
        while _signal(remote, base, "0") and time.monotonic() < end_s:
            time.sleep(_POLL_S)
    return _signal(remote, base, "0")


def _signal(remote: Remote, base: str, signal_number: str) -> list[str]:
    argv = ["sh", "-c", _SIGNAL, "leftovers", signal_number, base]
    return run_repeatable(remote, argv).stdout.splitlines()

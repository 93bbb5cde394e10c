"""Processes that an interrupted run left running on a host: servers of any system, and engines.

On this machine they end with the run that started them; over SSH they go on, and would hold ports and
cores of the next trial. They are found by the pid files below the directory that is Knickpoint's own.
"""

import signal
import time

from perf.hosts.remote import ALIVE, Remote, run_repeatable, send_signal
from perf.local.progress import Progress
from perf.model.errors import StepFailed

_POLL_S = 0.25
# As Node.pid_file and Engine have them below a host's base directory. Prints those whose process lives,
# and removes passwords that were on their way to an engine.
_FIND = (
    f"alive() {{ {ALIVE}; }}; "
    'for file in "$1"/*/*/server.pid "$1"/engines/*/engine.pid; do '
    '(alive "$file") >/dev/null && echo "$file"; done; rm -f "$1"/engines/*/password'
)


def end_leftovers(remote: Remote, base: str, limit_s: float, progress: Progress) -> None:
    """End what an interrupted run left running below `base`: politely, then by force.

    Raises:
        StepFailed: something still runs `limit_s` after a kill, or the host cannot be reached.

    """
    for ending in (signal.SIGTERM, signal.SIGKILL):
        if not (left := _find(remote, base)):
            return
        progress.tell(
            f"{remote.name}: ending {len(left)} processes that an interrupted run left behind"
        )
        for pid_file in left:
            send_signal(remote, pid_file, ending)
        end_s = time.monotonic() + limit_s
        while _find(remote, base) and time.monotonic() < end_s:
            time.sleep(_POLL_S)
    if left := _find(remote, base):
        why = f"left behind by an interrupted run, and still there after a kill: {', '.join(left)}"
        raise StepFailed("stop", remote.name, why)


def _find(remote: Remote, base: str) -> list[str]:
    return run_repeatable(remote, ["sh", "-c", _FIND, "leftovers", base]).stdout.splitlines()

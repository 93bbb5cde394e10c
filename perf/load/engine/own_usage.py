"""What an engine process itself uses: looks at its CPU time and waiting, and the usage between them."""

import resource
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perf.load.engine.recorder import IterationWindow
from perf.load.spec import Usage

_TASKS = Path("/proc/self/task")


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """One look. Both totals only ever grow; `at_s` is in the engine's time, as windows are."""

    at_s: float
    cpu_s: float
    waited_s: float


class OwnUsage:
    """Looks at this process, and remembers what threads that have ended had waited."""

    def __init__(self, tasks: Path = _TASKS) -> None:
        """Read run-queue waits from `tasks`, a directory like /proc/self/task."""
        self._tasks = tasks
        self._waits_ns: dict[str, int] = {}
        self._ended_ns = 0

    def look(self, at_s: float) -> Used:
        """Look now; a kernel that keeps no run-queue waits counts as none."""
        now_ns = dict(self._read())
        for thread, waited_ns in self._waits_ns.items():
            # A number is given again after its thread has ended; then its wait starts anew.
            if now_ns.get(thread, -1) < waited_ns:
                self._ended_ns += waited_ns
        self._waits_ns = now_ns
        own = resource.getrusage(resource.RUSAGE_SELF)
        return Used(
            at_s=at_s,
            cpu_s=own.ru_utime + own.ru_stime,
            waited_s=(self._ended_ns + sum(now_ns.values())) / 1e9,
        )

    def _read(self) -> Iterable[tuple[str, int]]:
        for task in self._tasks.iterdir():
            try:
                _, waited_ns, _ = (task / "schedstat").read_text().split()
            except (OSError, ValueError):  # the thread has just ended, or the kernel has no schedstat
                continue
            yield task.name, int(waited_ns)


def use_between(windows: Sequence[IterationWindow], looks: Sequence[Used]) -> tuple[Usage, ...]:
    """Return the usage per phase and iteration, straight between the looks around each edge.

    A window counts from the first look to the last; the warm-ups of a phase count as one.
    """
    at_s = [look.at_s for look in looks]
    totals: dict[tuple[str, int], list[float]] = {}
    for window in windows:
        edges = np.clip((window.start_s, window.end_s), at_s[0], at_s[-1])
        cpu_s = np.interp(edges, at_s, [look.cpu_s for look in looks])
        waited_s = np.interp(edges, at_s, [look.waited_s for look in looks])
        total = totals.setdefault((window.phase, window.iteration), [0.0, 0.0, 0.0])
        for place, values in enumerate((edges, cpu_s, waited_s)):
            total[place] += float(values[1] - values[0])
    return tuple(
        Usage(phase=phase, iteration=iteration, wall_s=wall_s, cpu_s=cpu_s, waited_s=waited_s)
        for (phase, iteration), (wall_s, cpu_s, waited_s) in totals.items()
    )

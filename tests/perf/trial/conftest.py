"""Windows for tests of the rules: a test names only what it is about."""

from collections.abc import Callable

import pytest

from perf.hosts.usage import HostUsage
from perf.trial.telemetry import Process, Snapshot, Window


def _look(at_s: float, busy_s: float, changes: dict[str, float]) -> Snapshot:
    usage = HostUsage(
        host="box",
        at_s=at_s,
        cores=2,
        busy_s=busy_s,
        steal_s=changes.get("steal_s", 0.0),
        throttled_s=changes.get("throttled_s", 0.0),
        clock_offset_s=1000.0 + changes.get("clock_s", 0.0),
        sent_bytes=0,
    )
    cpu_s = changes.get("server_s", 0.0)
    process = Process(node="one", host="box", cpu_s=cpu_s, read_bytes=0, written_bytes=0)
    return Snapshot(hosts=(usage,), processes=(process,), levels=())


@pytest.fixture(scope="session")
def make_window() -> Callable[..., Window]:
    """Return `make_window(iteration, phase, busy_s, **changes)`: 4 s of the host "box" with two cores.

    `busy_s` is its CPU time; `server_s`, `steal_s`, `throttled_s` and `clock_s` what changed in it.
    """

    def make(
        iteration: int = 1, phase: str = "steady", busy_s: float = 0.0, **changes: float
    ) -> Window:
        before, after = _look(100.0, 50.0, {}), _look(104.0, 50.0 + busy_s, changes)
        return Window(phase=phase, iterations=(iteration,), before=before, after=after)

    return make

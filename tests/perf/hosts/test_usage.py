"""Looks at this host: totals that grow with what is done, and a clock offset that stays."""

import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from perf.hosts.remote import Completed, LocalHost
from perf.hosts.usage import HostUsage, read_usage
from perf.model.errors import StepFailed

STAT = "stat cpu  100 20 30 4000 50 6 7 800 9 10"
FIXED = (
    "ticks 100",
    "cores 4",
    "at 49.97",
    "clock 50.00 1000.015",
    "clock 50.01 1000.018",
    "clock 50.01 1000.045",
)


class Answering(LocalHost):
    """A host that answers every command with fixed lines."""

    def __init__(self, *lines: str) -> None:
        super().__init__()
        self.lines = lines

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = 60.0,
        stdin: str | None = None,
        check: bool = True,
    ) -> Completed:
        return Completed(0, "\n".join(self.lines), "")


def grown(do: Callable[[], object]) -> tuple[HostUsage, HostUsage]:
    before = read_usage(LocalHost())
    do()
    return before, read_usage(LocalHost())


def test_what_is_done_shows_in_the_totals() -> None:
    def work() -> None:
        end_s = time.process_time() + 0.3
        while time.process_time() < end_s:
            pass

    before, after = grown(work)
    assert 0.25 < after.busy_s - before.busy_s <= (after.at_s - before.at_s + 0.1) * after.cores
    assert after.at_s - before.at_s >= 0.29
    assert after.steal_s >= before.steal_s
    assert after.throttled_s >= before.throttled_s


def test_bytes_over_loopback_count_as_sent() -> None:
    def send() -> None:
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(server.getsockname()) as client,
            server.accept()[0] as peer,
        ):
            for _ in range(100):
                client.sendall(bytes(10_000))
                assert peer.recv(10_000, socket.MSG_WAITALL)

    before, after = grown(send)
    assert after.sent_bytes - before.sent_bytes >= 1_000_000


def test_the_clock_offset_stays_where_no_clock_is_set() -> None:
    before, after = grown(lambda: None)
    assert abs(after.clock_offset_s - before.clock_offset_s) < 0.2
    assert abs(after.at_s + after.clock_offset_s - time.time()) < 1.0


class SlowToStart(LocalHost):
    """This host, where programs start slowly; `log` gets the times at which they did, since boot."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self.shell = f'getconf() {{ cat /proc/uptime >>"{log}"; sleep 0.05; command getconf "$@"; }}'

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = 60.0,
        stdin: str | None = None,
        check: bool = True,
    ) -> Completed:
        *shell, script = argv
        argv = [*shell, f"{self.shell}\n{script}"]
        return super().run(argv, timeout_s=timeout_s, stdin=stdin, check=check)


def test_cpu_times_and_their_time_are_read_before_any_program_is_started(tmp_path: Path) -> None:
    log = tmp_path / "started"
    usage = read_usage(SlowToStart(log))
    assert usage.at_s <= float(log.read_text().split()[0])


def test_figures_are_taken_as_the_kernel_means_them() -> None:
    usage = read_usage(Answering(STAT, *FIXED))
    assert usage.busy_s == (100 + 20 + 30 + 6 + 7) / 100
    assert usage.steal_s == 8.0
    assert (usage.cores, usage.throttled_s, usage.sent_bytes) == (4, 0.0, 0)
    assert usage.at_s == 49.97
    assert usage.clock_offset_s == pytest.approx(950.008)


@pytest.mark.parametrize(
    ("lines", "throttled_s"),
    [
        (("throttled_usec 1500000", "throttled_usec 200"), 1.5),
        (("throttled_time 2500000000",), 2.5),
        (("throttled_usec 0", "throttled_time 0"), 0.0),
    ],
)
def test_the_tightest_quota_around_a_process_counts(lines: tuple[str, ...], throttled_s: float) -> None:
    assert read_usage(Answering(STAT, *FIXED, *lines)).throttled_s == pytest.approx(throttled_s)


def test_bytes_of_a_bond_are_those_of_its_cards() -> None:
    figures = "1 2 3 4 5 6 7 8 {} 10 11 12 13 14 15 16"
    names = {"lo": 5, "eth0": 70, "eth1": 900, "bond0": 970}
    lines = [f"network {name}: {figures.format(sent)}" for name, sent in names.items()]
    header = "network face |bytes    packets errs drop fifo frame compressed multicast|bytes"
    usage = read_usage(Answering(STAT, *FIXED, header, *lines, "layered bond0"))
    assert usage.sent_bytes == 975


@pytest.mark.parametrize("missing", range(4))
def test_a_host_that_does_not_say_is_named_with_what_it_said(missing: int) -> None:
    lines = [STAT, *FIXED[:3]]
    del lines[missing]
    with pytest.raises(StepFailed, match=r"look failed on local: .*it printed: (stat|ticks)"):
        read_usage(Answering(*lines, *FIXED[3:]))

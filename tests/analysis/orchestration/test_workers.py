import io
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from analysis.orchestration.workers import Pace, work_through
from perf.local.progress import Progress
from perf.model.errors import ConfigError, UsageError


def test_small_work_stays_in_this_process() -> None:
    places: list[int] = []
    answers = work_through(lambda _: os.getpid(), [1, 2], places.append, is_small=True)
    assert set(answers) == {os.getpid()}
    assert places == [0, 1]
    assert work_through(lambda _: 1, [], places.append) == ()


@pytest.mark.slow
def test_progress_says_how_far_it_is_and_how_long_it_may_take() -> None:
    stream, seconds = io.StringIO(), iter(range(0, 10_000, 20))
    pace = Pace(Progress(stream=stream, clock=lambda: float(next(seconds))), [1] * 10, "series")
    work_through(math.sqrt, [1.0] * 10, pace.report)
    assert "1 of 10 series" in stream.getvalue()
    assert "left]" in stream.getvalue()


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have two cores, on whatever machine."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})


def ignore(_: int) -> None:
    """Be told, and do nothing."""


@pytest.mark.usefixtures("two_cores")
def test_forked_work_needs_no_pickling_and_answers_in_order() -> None:
    places: list[int] = []
    answers = work_through(lambda item: (item, os.getpid()), list("abcdef"), places.append)
    assert [item for item, _ in answers] == list("abcdef")
    assert os.getpid() not in {process for _, process in answers}
    assert sorted(places) == list(range(6))


@pytest.mark.usefixtures("two_cores")
def test_what_an_answer_shares_with_its_item_stays_the_very_same() -> None:
    items = [[datetime(2026, 3, day, tzinfo=UTC), "other"] for day in range(1, 4)]
    answers = work_through(
        lambda item: {"first": item[0], "new": [1]}, items, ignore, lambda item: item
    )
    assert all(answer["first"] is item[0] for answer, item in zip(answers, items, strict=True))
    assert answers[0]["new"] == [1]


@pytest.mark.usefixtures("two_cores")
def test_what_forked_work_raises_is_raised_and_ends_all() -> None:
    def fail(item: int) -> None:
        if item == 1:
            raise UsageError("item 1 does not exist")

    with pytest.raises(UsageError, match="item 1 does not exist"):
        work_through(fail, range(4), ignore)

    def fail_oddly(_: int) -> None:
        raise ConfigError(["a problem that does not survive pickling"])

    with pytest.raises(RuntimeError, match="a problem that does not survive pickling"):
        work_through(fail_oddly, range(4), ignore)
    assert not multiprocessing.active_children()


@pytest.mark.slow
@pytest.mark.usefixtures("two_cores")
def test_a_forked_process_that_is_killed_is_reported() -> None:
    with pytest.raises(ChildProcessError, match="exit code -9"):
        work_through(lambda _: os.kill(os.getpid(), signal.SIGKILL), range(4), ignore)
    assert not multiprocessing.active_children()


@pytest.mark.usefixtures("two_cores")
def test_an_interruption_ends_forked_work_at_once() -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work_through(lambda item: time.sleep(item and 600), [0, 1], interrupt)
    assert not multiprocessing.active_children()


ORPHANS = """
import os
from analysis.orchestration.workers import work_through

os.sched_getaffinity = lambda _: {0, 1}
print("started", flush=True)
work_through(lambda item: bytes(20_000), range(1_000_000), lambda _: None)
"""


@pytest.mark.keeps("a-kill-needs-no-hand")
def test_processes_end_soon_after_their_parent_was_killed() -> None:
    parent = subprocess.Popen([sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE)
    assert parent.stdout
    assert parent.stdout.readline() == b"started\n"
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    until(lambda: len(children.read_text().split()) == 2)
    parent.kill()
    parent.wait()
    # Each of them has this end of a pipe open; it is closed once the last one is gone.
    gone = threading.Thread(target=parent.stdout.read, daemon=True)
    gone.start()
    gone.join(timeout=30)
    assert not gone.is_alive()
    parent.stdout.close()


def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so, for half a minute at most."""
    ends_s = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < ends_s
        time.sleep(0.01)

import threading
import time
from pathlib import Path

import pytest

from perf.load.engine.own_usage import OwnUsage, Used, use_between
from perf.load.engine.recorder import IterationWindow


def set_wait(tasks: Path, thread: int, waited_ns: int) -> None:
    (tasks / str(thread)).mkdir(exist_ok=True)
    (tasks / str(thread) / "schedstat").write_text(f"123 {waited_ns} 45\n")


def end(tasks: Path, thread: int) -> None:
    (tasks / str(thread) / "schedstat").unlink()
    (tasks / str(thread)).rmdir()


def test_what_a_thread_waited_stays_when_it_has_ended(tmp_path: Path) -> None:
    usage = OwnUsage(tmp_path)
    set_wait(tmp_path, 1, 3_000_000_000)
    set_wait(tmp_path, 2, 500_000_000)
    assert usage.look(0.0).waited_s == 3.5
    end(tmp_path, 2)
    assert usage.look(1.0).waited_s == 3.5
    set_wait(tmp_path, 2, 100_000_000)  # the number is given again, to a new thread
    assert usage.look(2.0).waited_s == pytest.approx(3.6)
    set_wait(tmp_path, 2, 900_000_000)
    assert usage.look(3.0).waited_s == pytest.approx(4.4)
    set_wait(tmp_path, 2, 200_000_000)  # ended and given again between two looks
    assert usage.look(4.0).waited_s == pytest.approx(4.6)


def test_a_kernel_without_run_queue_waits_counts_as_none(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    assert OwnUsage(tmp_path).look(0.0).waited_s == 0


def test_cpu_time_of_all_threads_counts() -> None:
    usage = OwnUsage()
    before = usage.look(0.0)

    def burn() -> None:
        end_s = time.thread_time() + 0.05
        while time.thread_time() < end_s:
            pass

    threads = [threading.Thread(target=burn) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0.09 < usage.look(1.0).cpu_s - before.cpu_s < 5


def test_usage_lies_straight_between_the_looks_around_each_edge() -> None:
    cells = (
        IterationWindow(phase="p", iteration=0, start_s=0.0, end_s=1.5),
        IterationWindow(phase="p", iteration=1, start_s=1.5, end_s=3.0),
        IterationWindow(phase="p", iteration=0, start_s=3.0, end_s=3.5),
        IterationWindow(phase="q", iteration=0, start_s=3.5, end_s=float("inf")),
    )
    looks = [
        Used(at_s=at_s, cpu_s=10 + cpu_s, waited_s=waited_s)
        for at_s, cpu_s, waited_s in ((0, 0, 0), (1, 1, 0), (2, 3, 0.5), (3, 3.5, 1), (4, 4.5, 1))
    ]
    found = {(one.phase, one.iteration): one for one in use_between(cells, looks)}
    assert set(found) == {("p", 0), ("p", 1), ("q", 0)}
    values = {
        key: tuple(round(value, 9) for value in (one.wall_s, one.cpu_s, one.waited_s))
        for key, one in found.items()
    }
    assert values["p", 0] == (2.0, 2.5, 0.25)
    assert values["p", 1] == (1.5, 1.5, 0.75)
    assert values["q", 0] == (0.5, 0.5, 0.0)
    assert sum(one.cpu_s for one in found.values()) == pytest.approx(4.5)

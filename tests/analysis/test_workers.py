import io
import math
import multiprocessing
import time

import pytest

from analysis.workers import SMALL, work_through
from perf.progress import Progress


def large(_: object) -> int:
    return SMALL


def test_answers_come_in_the_order_of_the_items() -> None:
    items = [float(number) for number in range(40)]
    assert work_through(math.sqrt, items, large, Progress(stream=io.StringIO())) == tuple(
        map(math.sqrt, items)
    )


def test_small_work_stays_in_this_process() -> None:
    unpicklable = lambda item: item + 1  # noqa: E731  it is the point that this cannot be sent away
    assert work_through(unpicklable, [1, 2], lambda _: 1, Progress(stream=io.StringIO())) == (2, 3)
    assert work_through(unpicklable, [], large, Progress(stream=io.StringIO())) == ()


def test_an_error_ends_all_work_once_each_process_is_done_with_its_item() -> None:
    started_s = time.monotonic()
    items: list[float | str] = ["no number", 0.01, *[0.5] * 500]
    with pytest.raises(TypeError):
        work_through(time.sleep, items, large, Progress(io.StringIO()))
    assert multiprocessing.active_children() == []
    assert time.monotonic() - started_s < 60  # all items take 125 s and more


def test_progress_says_how_far_it_is_and_how_long_it_may_take() -> None:
    stream, seconds = io.StringIO(), iter(range(0, 10_000, 20))
    progress = Progress(stream=stream, clock=lambda: float(next(seconds)))
    work_through(math.sqrt, [1.0] * 10, lambda _: 1, progress)
    assert "1 of 10 series" in stream.getvalue()
    assert "left]" in stream.getvalue()

"""Work spread over all cores: answers in order, progress told, soon ended by an interruption."""

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, ProcessPoolExecutor
from functools import partial
from multiprocessing.synchronize import Event
from typing import TypeVar

from perf.progress import Progress

_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM)
_stop: Event | None = None

Item = TypeVar("Item")
Answer = TypeVar("Answer")

SMALL = 10_000
"""Up to so many values are searched in this process: starting others would take as long."""
_CHUNK = 20_000
"""Values that a process gets at a time: many against the handing over, few against the whole."""


def work_through(
    work: Callable[[Item], Answer],
    items: Sequence[Item],
    cost: Callable[[Item], int],
    progress: Progress,
) -> tuple[Answer, ...]:
    """Do the work on all items and give the answers in the order of the items.

    `cost` is the number of values to be searched for an item. Where there is much to do, work, items
    and answers are pickled. After an error or an interruption, each process ends once it is done with
    its item.
    """
    costs = [cost(item) for item in items]
    cores = min(len(os.sched_getaffinity(0)), len(items))
    if cores < 2 or sum(costs) <= SMALL:  # noqa: PLR2004  there is nothing to share
        return tuple(_told(map(work, items), costs, progress))
    per_chunk = max(1, _CHUNK * len(items) // sum(costs))
    fair_share = -(-len(items) // cores)
    stop = multiprocessing.Event()
    with ProcessPoolExecutor(cores, initializer=_begin, initargs=(stop,)) as pool:
        try:
            with _undisturbed():
                chunk = min(per_chunk, fair_share)
                answers = pool.map(partial(_unless_stopped, work), items, chunksize=chunk)
            return tuple(_told(answers, costs, progress))
        except BaseException:  # an interruption too: nobody waits for answers that nobody wants
            with _undisturbed():
                stop.set()
                pool.shutdown(cancel_futures=True)
            raise


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Put interruptions off: amid the start or the end of processes, one leaves them waiting forever.

    By handlers, not by a signal mask: a mask holds for one thread, and another is interrupted then.
    """
    came: list[int] = []
    before = {one: signal.signal(one, lambda number, _: came.append(number)) for one in _INTERRUPTIONS}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        for number in came[:1]:
            signal.raise_signal(number)


def _begin(stop: Event) -> None:
    """Set a process up. Ctrl-C reaches all processes of a terminal; it is the parent's to answer."""
    global _stop  # noqa: PLW0603  a process can be given an event only when it starts
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _unless_stopped(work: Callable[[Item], Answer], item: Item) -> Answer:
    """Do the work; once all is to stop, do none: killed amid an answer, it could block the parent."""
    if _stop is not None and _stop.is_set():
        raise CancelledError
    return work(item)


def _told(answers: Iterable[Answer], costs: Sequence[int], progress: Progress) -> Iterator[Answer]:
    """Pass the answers on, saying how far the work is and how long it may still take."""
    started_s, done, total = progress.clock(), 0, sum(costs)
    for number, (answer, cost) in enumerate(zip(answers, costs, strict=True), start=1):
        done += cost
        if done:
            progress.expect((progress.clock() - started_s) * (total - done) / done)
        progress.tell_sometimes(f"{number:,} of {len(costs):,} series")
        yield answer

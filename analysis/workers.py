"""Work spread over all cores: answers in order, progress told, ended at once by an interruption."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import active_children
from typing import TypeVar

from perf.progress import Progress

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
    and answers are pickled.
    """
    costs = [cost(item) for item in items]
    cores = min(len(os.sched_getaffinity(0)), len(items))
    if cores < 2 or sum(costs) <= SMALL:  # noqa: PLR2004  there is nothing to share
        return tuple(_told(map(work, items), costs, progress))
    per_chunk = max(1, _CHUNK * len(items) // sum(costs))
    fair_share = -(-len(items) // cores)
    pool = ProcessPoolExecutor(cores, initializer=_leave_signals_to_parent)
    try:
        answers = pool.map(work, items, chunksize=min(per_chunk, fair_share))
        return tuple(_told(answers, costs, progress))
    except BaseException:  # an interruption too: nobody waits for work that nobody wants
        pool.shutdown(wait=False, cancel_futures=True)
        for process in active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown()


def _told(answers: Iterable[Answer], costs: Sequence[int], progress: Progress) -> Iterator[Answer]:
    """Pass the answers on, saying how far the work is and how long it may still take."""
    started_s, done, total = progress.clock(), 0, sum(costs)
    for number, (answer, cost) in enumerate(zip(answers, costs, strict=True), start=1):
        done += cost
        if done:
            progress.expect((progress.clock() - started_s) * (total - done) / done)
        progress.tell_sometimes(f"{number:,} of {len(costs):,} series")
        yield answer


def _leave_signals_to_parent() -> None:
    """Let Ctrl-C, which reaches all processes of a terminal, be answered by one of them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

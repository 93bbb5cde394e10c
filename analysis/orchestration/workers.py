"""Work spread over all cores: answers in order, progress reported, soon ended by an interruption.

By processes that inherit all there is, so that neither work nor items are copied. Each has a pipe of
its own, whose end is its end: the pool of the standard library has one pipe for all, and waits for good
for the rest of an answer amid which a process was killed, say for want of memory.
"""

import gc
import io
import multiprocessing
import os
import pickle
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from multiprocessing.sharedctypes import Synchronized
from typing import TypeVar

from perf.local.children import end_with_parent
from perf.local.progress import QUIET_S, Progress

_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM)

Item = TypeVar("Item")
Answer = TypeVar("Answer")

SMALL = 10_000
"""Up to so many values are searched in this process: starting others would take as long."""
_OLDEST_AFTER = 10
"""Python's own measure of how often garbage is looked for among all objects."""


@contextmanager
def undisturbed() -> Iterator[None]:
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


class Pace:
    """Reports how far work is, by what each item costs, once it has taken a while."""

    def __init__(self, progress: Progress, costs: Sequence[int], what: str) -> None:
        """Begin now; `what` says what the items are, and what becomes of them."""
        self._progress, self._costs, self._what = progress, costs, what
        self._started_s, self._total = progress.clock(), sum(costs)
        self._items = self._cost = 0

    def report(self, place: int) -> None:
        """State that the item at this place is done."""
        self._items += 1
        self._cost += self._costs[place]
        passed_s = self._progress.clock() - self._started_s
        if passed_s >= QUIET_S and self._cost:
            self._progress.expect(passed_s * (self._total - self._cost) / self._cost)
            self._progress.report_sometimes(f"{self._items:,} of {len(self._costs):,} {self._what}")


def nothing(_: object) -> Sequence[object]:
    """State that items and answers have nothing in common."""
    return ()


def work_through(
    work: Callable[[Item], Answer],
    items: Sequence[Item],
    report: Callable[[int], None],
    shares: Callable[[Item], Sequence[object]] = nothing,
    *,
    is_small: bool = False,
) -> tuple[Answer, ...]:
    """Do the work on all items in forked processes; return the answers in the order of the items.

    The processes inherit work and items; answers are pickled. `shares` gives the parts of an item that
    its answer refers to: the answer will refer to the very same objects, they are not copied. `report`
    is called with the place of each item that is done. Small work, or any with one core, is done in
    this process.

    Raises:
        ChildProcessError: a process was killed, say for want of memory.

    What the work raises is raised here, and ends all; so does an interruption.

    """
    cores = min(len(os.sched_getaffinity(0)), len(items))
    if is_small or cores < 2:  # noqa: PLR2004  there is nothing to share
        return tuple(_each(work, items, report))
    context = multiprocessing.get_context("fork")
    turn, parent = context.Value("L", 0), os.getpid()

    def serve(sender: Connection) -> None:
        _begin(parent)
        while (place := _take(turn)) < len(items):
            try:
                answer = _Writer.write(work(items[place]), shares(items[place]))
            except Exception as error:  # noqa: BLE001  the parent raises it
                sender.send((None, _pickle_error(error)))
                return
            sender.send((place, answer))

    answers: dict[int, Answer] = {}
    running: dict[Connection, ForkProcess] = {}
    # Marking what is there already would copy every page of it. It is not collected first: that takes
    # up to a second, and what garbage there is goes when the work is done.
    gc.freeze()
    try:
        with undisturbed():
            for _ in range(cores):
                receiver, sender = context.Pipe(duplex=False)
                running[receiver] = context.Process(target=serve, args=(sender,))
                running[receiver].start()
                sender.close()
        for place, pickled in _receive(running):
            answers[place] = _Reader(pickled, shares(items[place])).load()
            report(place)
    finally:
        with undisturbed():
            for receiver, process in running.items():
                process.kill()
                process.join()
                receiver.close()
        gc.unfreeze()
    return tuple(answers[place] for place in range(len(items)))


def _each(
    work: Callable[[Item], Answer], items: Sequence[Item], report: Callable[[int], None]
) -> Iterator[Answer]:
    for place, item in enumerate(items):
        yield work(item)
        report(place)


def _begin(parent: int) -> None:
    """Set a process up. Ctrl-C reaches all processes of a terminal; it is the parent's to answer."""
    # It has inherited the locks of its parent: they must not outlive that.
    end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for ending in (signal.SIGTERM, signal.SIGPIPE):
        signal.signal(ending, signal.SIG_DFL)
    # Of what it makes much is garbage; what was there already is not looked at.
    gc.set_threshold(*gc.get_threshold()[:2], _OLDEST_AFTER)


def _take(turn: "Synchronized[int]") -> int:
    """Take the place of the next item."""
    with turn.get_lock():
        turn.value += 1
        return turn.value - 1


def _receive(running: dict[Connection, ForkProcess]) -> Iterator[tuple[int, bytes]]:
    """Yield pickled answers and their items' places, until each process has ended as it should."""
    while running:
        ready = wait(tuple(running))
        for receiver in [one for one in running if one in ready]:
            try:
                place, pickled = receiver.recv()
            except EOFError:
                _end(receiver, running.pop(receiver))
                continue
            if place is None:
                raise pickle.loads(pickled)  # noqa: S301  our own process wrote it
            yield place, pickled


def _end(receiver: Connection, process: ForkProcess) -> None:
    """Part with a process that has ended; complain if it did not end as it should."""
    process.join()
    receiver.close()
    if process.exitcode:
        raise ChildProcessError(
            f"a process that did a part of the work was ended (exit code {process.exitcode}), "
            "perhaps for want of memory"
        ) from None


def _pickle_error(error: Exception) -> bytes:
    """Pickle an error; one that does not come back as it was becomes its own text."""
    try:
        pickled = pickle.dumps(error)
        if str(pickle.loads(pickled)) == str(error):  # noqa: S301  written in the line before
            return pickled
    except Exception:  # noqa: BLE001, S110  errors may refuse in any way
        pass
    return pickle.dumps(RuntimeError("".join(traceback.format_exception(error))))


class _Writer(pickle.Pickler):
    """Pickles an answer; of what is shared it writes the places only."""

    def __init__(self, stream: io.BytesIO, shared: Sequence[object]) -> None:
        super().__init__(stream, pickle.HIGHEST_PROTOCOL)
        self._places = {id(one): place for place, one in enumerate(shared)}

    def persistent_id(self, one: object) -> int | None:
        return self._places.get(id(one))

    @staticmethod
    def write(answer: object, shared: Sequence[object]) -> bytes:
        stream = io.BytesIO()
        _Writer(stream, shared).dump(answer)
        return stream.getvalue()


class _Reader(pickle.Unpickler):
    """Reads what `_Writer` wrote, with the very objects that are shared."""

    def __init__(self, pickled: bytes, shared: Sequence[object]) -> None:
        super().__init__(io.BytesIO(pickled))
        self._shared = shared

    def persistent_load(self, place: int) -> object:
        return self._shared[place]

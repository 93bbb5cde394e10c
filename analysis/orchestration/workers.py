"""Work spread over all cores: answers in order, progress told, soon ended by an interruption.

In two ways: `work_through` hands items to processes that know nothing, `work_forked` to ones that
inherit all there is, so that neither work nor items are copied.
"""

import contextlib
import gc
import io
import multiprocessing
import os
import pickle
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from multiprocessing.synchronize import Event, Lock
from typing import Any, TypeVar

from perf.local.children import end_with_parent
from perf.local.progress import QUIET_S, Progress

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
    context = multiprocessing.get_context("fork")
    stop = context.Event()
    with ProcessPoolExecutor(cores, context, _begin, (stop, os.getpid())) as pool:
        try:
            with undisturbed():
                chunk = min(per_chunk, fair_share)
                answers = pool.map(partial(_unless_stopped, work), items, chunksize=chunk)
            return tuple(_told(answers, costs, progress))
        except BaseException:  # an interruption too: nobody waits for answers that nobody wants
            with undisturbed():
                stop.set()
                pool.shutdown(cancel_futures=True)
            raise


@contextlib.contextmanager
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


def _begin(stop: Event, parent: int) -> None:
    """Set a process up. Ctrl-C reaches all processes of a terminal; it is the parent's to answer."""
    global _stop  # noqa: PLW0603  a process can be given an event only when it starts
    # Else it would wait for work for good.
    end_with_parent(parent)
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


class Pace:
    """Tells how far work is, by what each item costs, once it has taken a while."""

    def __init__(self, progress: Progress, costs: Sequence[int], what: str) -> None:
        """Begin now; `what` says what the items are, and what becomes of them."""
        self._progress, self._costs, self._what = progress, costs, what
        self._started_s, self._total = progress.clock(), sum(costs)
        self._items = self._cost = 0

    def tell(self, place: int) -> None:
        """Say that the item at this place is done."""
        self._items += 1
        self._cost += self._costs[place]
        passed_s = self._progress.clock() - self._started_s
        if passed_s >= QUIET_S and self._cost:
            self._progress.expect(passed_s * (self._total - self._cost) / self._cost)
            self._progress.tell_sometimes(f"{self._items:,} of {len(self._costs):,} {self._what}")


def nothing(_: object) -> Sequence[object]:
    """Say that items and answers have nothing in common."""
    return ()


def work_forked(
    work: Callable[[Item], Answer],
    items: Sequence[Item],
    told: Callable[[int], None],
    shares: Callable[[Item], Sequence[object]] = nothing,
) -> tuple[Answer, ...]:
    """Do the work on all items in forked processes; give the answers in the order of the items.

    The processes inherit work and items; answers are pickled. `shares` gives the parts of an item that
    its answer refers to: the answer will refer to the very same objects, they are not copied. `told`
    is called with the place of each item that is done. With one core all is done in this process.

    Raises:
        ChildProcessError: a process was killed, say for want of memory.

    What the work raises is raised here, and ends all; so does an interruption.

    """
    cores = min(len(os.sched_getaffinity(0)), len(items))
    if cores < 2:  # noqa: PLR2004  there is nothing to share
        return tuple(_each(work, items, told))
    context = multiprocessing.get_context("fork")
    turn = context.RawValue("L", 0)
    lock = context.Lock()
    answers: dict[int, Answer] = {}
    running: dict[Connection, ForkProcess] = {}
    # What is there already is garbage of nobody: marking it would copy every page of it.
    gc.collect()
    gc.freeze()
    try:
        with undisturbed():
            for _ in range(cores):
                receiver, sender = context.Pipe(duplex=False)
                mine = _Share(os.getpid(), turn, lock, sender, (*running, receiver))
                process = context.Process(target=_serve, args=(work, items, shares, mine))
                process.start()
                sender.close()
                running[receiver] = process
        while running:
            ready = wait(tuple(running))
            for receiver in [one for one in running if one in ready]:
                place, answer = _receive(receiver, items, shares, running)
                if place is not None:
                    answers[place] = answer
                    told(place)
    finally:
        with undisturbed():
            for receiver, process in running.items():
                process.kill()
                process.join()
                receiver.close()
        gc.unfreeze()
    return tuple(answers[place] for place in range(len(items)))


def _each(
    work: Callable[[Item], Answer], items: Sequence[Item], told: Callable[[int], None]
) -> Iterator[Answer]:
    for place, item in enumerate(items):
        yield work(item)
        told(place)


def _receive(
    receiver: Connection,
    items: Sequence[Item],
    shares: Callable[[Item], Sequence[object]],
    running: dict[Connection, ForkProcess],
) -> tuple[int | None, Any]:
    """Take an answer and the place of its item; None once the process has ended, as it should."""
    try:
        place, pickled = receiver.recv()
    except EOFError:
        process = running.pop(receiver)
        process.join()
        receiver.close()
        if process.exitcode:
            raise ChildProcessError(
                f"a process that did a part of the work was ended (exit code {process.exitcode}), "
                "perhaps for want of memory"
            ) from None
        return None, None
    if place is None:
        raise pickle.loads(pickled)  # noqa: S301  our own process wrote it
    return place, _Reader(pickled, shares(items[place])).load()


@dataclass(frozen=True, slots=True)
class _Share:
    """What a forked process takes part with; `inherited` are ends of pipes that are not its own."""

    parent: int
    turn: Any
    lock: Lock
    answers: Connection
    inherited: Sequence[Connection]


def _serve(
    work: Callable[[Item], Answer],
    items: Sequence[Item],
    shares: Callable[[Item], Sequence[object]],
    mine: _Share,
) -> None:
    """Do the work on one item after the other, whichever is next, until there is none."""
    # It has inherited the locks of its parent: they must not outlive that.
    end_with_parent(mine.parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # A pipe breaks once nobody can read it: with these open, not even if the parent is killed.
    for one in mine.inherited:
        one.close()
    # If the parent is gone nobody wants the answers, and nobody would read an error either.
    with contextlib.suppress(BrokenPipeError):
        while True:
            with mine.lock:
                place = mine.turn.value
                mine.turn.value += 1
            if place >= len(items):
                return
            try:
                answer = _Writer.write(work(items[place]), shares(items[place]))
            except Exception as error:  # noqa: BLE001  the parent raises it
                mine.answers.send((None, _pickle_error(error)))
                return
            mine.answers.send((place, answer))


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

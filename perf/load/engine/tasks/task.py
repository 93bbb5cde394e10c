"""What one operation is: made ready beforehand, sent, and its answer judged, in three steps.

Only the step in the middle is timed; making the data and checking the answer is the client's own
work and must not count as the system's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar

from perf.model.records import Answer, Operation

Prepared = TypeVar("Prepared")
Reply = TypeVar("Reply")

Soon: TypeAlias = Callable[[Prepared, Callable[[Reply | None, Exception | None], None]], None]
"""Sends without waiting: takes what was prepared, and what to call with the answer or the error."""


def trust(_: object, __: object) -> Answer:
    """Take what is acknowledged for complete; what is stored is verified by counting and by reading."""
    return Answer.COMPLETED


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(Generic[Prepared, Reply]):
    """One kind of operation, used by many threads at once."""

    rows: int = 1
    """How many rows a completed operation writes or reads."""
    prepare: Callable[[int], Prepared]
    """Makes operation number n ready; a pure function of the seed and the number."""
    send: Callable[[Prepared], Reply]
    """Sends it and gives the answer; raises what the driver raises."""
    soon: Soon[Prepared, Reply] | None = None
    """Sends it without waiting, if the driver can."""
    judge: Callable[[Prepared, Reply], Answer] = trust
    """Verifies the answer."""
    describe: Callable[[Prepared], str]
    """Names the operation in a message."""


class OperationPart(Protocol):
    """Where a task notes how long a part of its operation took, by the clock of the load."""

    def now(self) -> float:
        """Return the time, in seconds."""
        ...

    def note(self, begin_s: float, end_s: float) -> None:
        """Note one part, from its send to its answer; times are from `now`."""
        ...


Parts: TypeAlias = Callable[[Operation, str], OperationPart]
"""Gives the place for the times of a part, by its operation and the part's own name."""

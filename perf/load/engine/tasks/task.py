"""What one operation is: made ready beforehand, sent, and its answer judged, in three steps.

Only the step in the middle is timed; making the data and checking the answer is the client's own
work and must not count as the system's.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias, TypeVar

from perf.model.records import Answer, Operation

Prepared = TypeVar("Prepared")
Reply = TypeVar("Reply")

Soon: TypeAlias = Callable[[Prepared, Callable[[Reply | None, Exception | None], None]], None]
"""Sends without waiting: takes what was prepared, and what to call with the answer or the error."""


class Task(Protocol[Prepared, Reply]):
    """One kind of operation, used by many threads at once."""

    @property
    def rows(self) -> int:
        """How many rows a completed operation writes or reads."""
        ...

    def prepare(self, number: int) -> Prepared:
        """Make operation `number` ready; a pure function of the seed and the number."""
        ...

    def send(self, prepared: Prepared) -> Reply:
        """Send it and return the answer; raise what the driver raises."""
        ...

    def soon(self) -> Soon[Prepared, Reply] | None:
        """Give the call that sends it without waiting, if the driver has one."""
        ...

    def judge(self, prepared: Prepared, reply: Reply) -> Answer:
        """Say what the answer is worth."""
        ...

    def describe(self, prepared: Prepared) -> str:
        """Name the operation in a message."""
        ...


class OperationPart(Protocol):
    """Where a task notes how long a part of its operation took, by the clock of the load."""

    def now(self) -> float:
        """Give the time, in seconds."""
        ...

    def note(self, begin_s: float, end_s: float) -> None:
        """Note one part, from its send to its answer; times are from `now`."""
        ...


Parts: TypeAlias = Callable[[Operation, str], OperationPart]
"""Gives the place for the times of a part, by its operation and the part's own name."""

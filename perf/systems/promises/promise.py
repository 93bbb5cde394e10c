"""One promise: a sentence that holds for every system, and a function that finds out whether it does.

Each module beside this one ends in `PROMISES`, a tuple of them for one protocol of
`perf.systems.sessions`, and has the `RECORDS` that the schema is created with before the first is
asked. They are asked in any order, on data that others wrote, so each has devices, keys or hosts of its
own, and counts differences.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from perf.systems.sessions import ShowsLater

Asked = TypeVar("Asked")


class Broken(Exception):  # noqa: N818  says what happened, of a product and not of our code
    """A promise does not hold; the text says what was seen instead."""


class NotAsked(Exception):  # noqa: N818  says what happened, and is no fault
    """A promise does not concern this session: it lacks the ability; the text says which."""


@dataclass(frozen=True, slots=True)
class Promise(Generic[Asked]):
    """`sentence` is what holds; `ask` returns what was seen, in a few words.

    It raises Broken or NotAsked; what else it raises is an error of the driver, and breaks the promise
    as well. A promise that `reads_back` needs a system that stores what it is given.
    """

    sentence: str
    ask: Callable[[Asked], str]
    reads_back: bool = True


def show(session: object) -> None:
    """Make what was written visible to queries, where a system does that a little later by itself."""
    if isinstance(session, ShowsLater):
        session.finish_load()


def require(claim: bool, seen: str) -> None:  # noqa: FBT001  reads as a sentence
    """Raise Broken with what was seen, unless the claim holds."""
    if not claim:
        raise Broken(seen)

"""One promise: a sentence that holds for every system, and a function that finds out whether it does.

Each module beside this one but `models` ends in `PROMISES`, a tuple of them for one protocol of
`perf.systems.sessions`, and has the `RECORDS` that the schema is created with before the first is
asked. They are asked in any order, on data that others wrote, so each has devices, keys or hosts of its
own, and counts differences.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from perf.model.errors import KnickpointError, StepFailed
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


_MARKS = {True: "✓", False: "✗", None: "–"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseFinding:
    """A promise, whether it was kept (None: it was not asked), and what was seen."""

    promise: str
    kept: bool | None
    seen: str

    def __str__(self) -> str:
        """Say it in one line."""
        return f"{_MARKS[self.kept]} {self.promise} · {self.seen}"


def find_out(promise: str, question: Callable[[], str]) -> PromiseFinding:
    """Ask whether a promise is kept; `question` says what it saw, or raises."""
    kept: bool | None = False
    try:
        seen, kept = question(), True
    except NotAsked as reason:
        seen, kept = str(reason), None
    except StepFailed as failure:
        seen = failure.sentence
    except (Broken, KnickpointError) as error:
        seen = str(error)
    except Exception as error:  # noqa: BLE001  a driver may raise anything; that breaks the promise
        seen = f"{type(error).__name__}: {error}"
    return PromiseFinding(promise=promise, kept=kept, seen=" ".join(seen.split()))

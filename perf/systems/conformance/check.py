"""A conformance check: a sentence that holds for every system, and what finds out whether it does.

Each module beside this one but `models` ends in `CHECKS`, a tuple of them for one protocol of
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


class Failed(Exception):  # noqa: N818  says what happened, of a product and not of our code
    """A check fails; the text says what was seen instead."""


class Skipped(Exception):  # noqa: N818  says what happened, and is no fault
    """A check does not concern this session: it lacks the ability; the text says which."""


@dataclass(frozen=True, slots=True)
class Check(Generic[Asked]):
    """`sentence` is what holds; `ask` returns what was seen, in a few words.

    It raises Failed or Skipped; what else it raises is an error of the driver, and fails the check
    as well. A check that `reads_back` needs a system that stores what it is given.
    """

    sentence: str
    ask: Callable[[Asked], str]
    reads_back: bool = True


def show(session: object) -> None:
    """Make what was written visible to queries, where a system does that a little later by itself."""
    if isinstance(session, ShowsLater):
        session.finish_load()


def require(claim: bool, seen: str) -> None:  # noqa: FBT001  reads as a sentence
    """Raise Failed with what was seen, unless the claim holds."""
    if not claim:
        raise Failed(seen)


_MARKS = {True: "✓", False: "✗", None: "–"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """A check, whether it passed (None: it was not run), and what was seen."""

    check: str
    passed: bool | None
    seen: str

    def __str__(self) -> str:
        """Say it in one line."""
        return f"{_MARKS[self.passed]} {self.check} · {self.seen}"


def find_out(check: str, question: Callable[[], str]) -> CheckResult:
    """Find out whether a check passes; `question` says what it saw, or raises."""
    passed: bool | None = False
    try:
        seen, passed = question(), True
    except Skipped as reason:
        seen, passed = str(reason), None
    except StepFailed as failure:
        seen = failure.sentence
    except (Failed, KnickpointError) as error:
        seen = str(error)
    except Exception as error:  # noqa: BLE001  a driver may raise anything; that fails the check
        seen = f"{type(error).__name__}: {error}"
    return CheckResult(check=check, passed=passed, seen=" ".join(seen.split()))

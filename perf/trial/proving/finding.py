"""What was found of each promise, and how it is said."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from perf.model.errors import KnickpointError, StepFailed
from perf.systems.promises.promise import Broken, NotAsked
from perf.trial.steps import sentence

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


class Ended(Exception):  # noqa: N818  says what happened
    """Nothing that follows can be asked."""


@dataclass(slots=True)
class PromiseFindings:
    """All that was found, in order; each is told when it is known."""

    tell: Callable[[PromiseFinding], None]
    found: list[PromiseFinding] = field(default_factory=list)

    def ask(self, promise: str, question: Callable[[], str], *, needed: bool = False) -> None:
        """Ask whether a promise is kept; `question` says what it saw, or raises.

        Raises:
            Ended: it is not kept, and all that follows needs it.

        """
        kept: bool | None = False
        try:
            seen, kept = question(), True
        except NotAsked as reason:
            seen, kept = str(reason), None
        except Broken as broken:
            seen = str(broken)
        except StepFailed as failure:
            seen = sentence(failure)
        except KnickpointError as error:
            seen = str(error)
        except Exception as error:  # noqa: BLE001  a driver may raise anything; that breaks the promise
            seen = f"{type(error).__name__}: {error}"
        self.add(PromiseFinding(promise=promise, kept=kept, seen=" ".join(seen.split())))
        if needed and not kept:
            raise Ended

    def add(self, finding: PromiseFinding) -> None:
        """Keep a finding, and tell it."""
        self.found.append(finding)
        self.tell(finding)


def conclude(found: Sequence[PromiseFinding]) -> str:
    """Say how many promises were kept, broken and not asked."""
    kept, broken, unasked = (sum(one.kept is state for one in found) for state in (True, False, None))
    return f"{kept} promises kept, {broken} broken, {unasked} not asked"

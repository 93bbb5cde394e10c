"""What differs between a trial and the one before it, and between its hosts before and after it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from perf.model.facts import MAY_MOVE
from perf.model.results import Fact, Trial
from reports.wording.wording import NOTHING, named


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing before and after; `where` is a host, if it is of one; `differs` if that counts."""

    name: str
    where: str
    before: str
    after: str
    differs: bool = True


def list_differences(before: Trial, after: Trial) -> list[Difference]:
    """Compare all that is recorded of the surroundings of two trials, before each of them."""
    parts = zip(_list_parts(before), _list_parts(after), strict=True)
    heads = [
        Difference(name=name, where="", before=was or NOTHING, after=now or NOTHING)
        for (name, was), (_, now) in parts
        if was != now
    ]
    if not before.environment_before or not after.environment_before:
        return heads
    # What goes on by itself differs between any two trials.
    return heads + [
        Difference(name=name, where=host, before=was, after=now)
        for (host, name), was, now in _pair(before.environment_before, after.environment_before)
        if was != now and name not in MAY_MOVE
    ]


def _list_parts(trial: Trial) -> tuple[tuple[str, str], ...]:
    return (
        ("release", trial.release.version),
        ("artifact", trial.artifact.sha256 if trial.artifact else ""),
        ("topology", named(trial.topology)),
        ("testbed", named(trial.testbed)),
        ("workload", named(trial.workload)),
        ("config", named(trial.config)),
        ("load engine", trial.engine),
        ("seed", str(trial.seed)),
        ("harness", trial.harness_version),
        ("purpose", trial.purpose.value),
    )


def compare_facts(trial: Trial) -> list[Difference]:
    """Return all facts of the hosts before and after a trial, what differs first.

    A trial that failed early has no second reading: unknown, which is no difference. Nor is it one that
    what measures something that goes on has gone on.
    """
    facts = [
        Difference(
            name=name,
            where=host,
            before=was,
            after=now,
            differs=bool(trial.environment_after) and was != now and name not in MAY_MOVE,
        )
        for (host, name), was, now in _pair(trial.environment_before, trial.environment_after)
    ]
    return sorted(facts, key=lambda one: (not one.differs, one.where))


def _pair(before: Iterable[Fact], after: Iterable[Fact]) -> Iterator[tuple[tuple[str, str], str, str]]:
    """Yield host and name of each fact, with its values before and after."""
    first = {(fact.host, fact.name): fact.value for fact in before}
    second = {(fact.host, fact.name): fact.value for fact in after}
    for at in dict.fromkeys((*first, *second)):
        yield at, first.get(at, NOTHING), second.get(at, NOTHING)

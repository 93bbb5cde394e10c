"""What differs between a trial and the one before it, and between its hosts before and after it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from perf.model.facts import MAY_MOVE
from perf.model.results import Fact, Purpose, Trial, TrialHead, TrialId, TrialStatus
from reports.wording.wording import NOTHING, named


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing before and after; `where` is a host, if it is of one; `differs` if that counts."""

    name: str
    where: str
    before: str
    after: str
    differs: bool = True


def find_previous(heads: Iterable[TrialHead]) -> Mapping[TrialId, TrialId]:
    """Return the trial to compare each with: the last completed one of its experiment and config name.

    Of the same release where there is one, else of another; both on the same class of testbed. An
    invalid trial may be of anything, and one that failed may have ended before its hosts were read.
    Results of other programs are passed over. `heads` are in the order of their start.
    """
    latest: dict[tuple[str, ...], TrialId] = {}
    found: dict[TrialId, TrialId] = {}
    for head in heads:
        if head.purpose is Purpose.IMPORTED:
            continue
        of_kind = head.release.system, head.experiment, head.config.name, head.testbed_class
        of_release = *of_kind, head.release.version
        if before := latest.get(of_release) or latest.get(of_kind):
            found[head.id] = before
        if head.status is TrialStatus.COMPLETED:
            latest[of_kind] = latest[of_release] = head.id
    return found


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
    facts = _pair(before.environment_before, after.environment_before)
    # What goes on by itself differs between any two trials.
    return heads + [one for one in facts if one.before != one.after and one.name not in MAY_MOVE]


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
    facts = _pair(trial.environment_before, trial.environment_after)
    return sorted(facts, key=lambda one: (not one.differs, one.where))


def _pair(before: Iterable[Fact], after: Iterable[Fact]) -> list[Difference]:
    first = {(fact.host, fact.name): fact.value for fact in before}
    second = {(fact.host, fact.name): fact.value for fact in after}
    return [
        Difference(
            name=at[1],
            where=at[0],
            before=first.get(at, NOTHING),
            after=second.get(at, NOTHING),
            differs=bool(second) and first.get(at) != second.get(at) and at[1] not in MAY_MOVE,
        )
        for at in dict.fromkeys((*first, *second))
    ]

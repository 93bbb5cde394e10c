"""What differs between a trial and the one before it: files, versions, facts of the hosts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from perf.model.facts import MAY_MOVE
from perf.model.results import Purpose, Trial, TrialHead, TrialId, TrialStatus
from reports.wording import links
from reports.wording.wording import NOTHING, count, moment, named


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceRow:
    """One thing that is not as it was in the trial before; `where` is a host, if it is of one."""

    name: str
    where: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviousView:
    """How a trial differs from the one before it; `page` is the page of that, empty without one."""

    page: str
    name: str
    text: str
    rows: tuple[DifferenceRow, ...]


def find_previous(heads: Iterable[TrialHead]) -> Mapping[TrialId, TrialId]:
    """Give the trial before each: of the same experiment and config on the same class of testbed.

    One that failed is passed over: it may have ended before its hosts were read. So are results of
    other programs. `heads` are in the order of their start.
    """
    latest: dict[tuple[str, ...], TrialId] = {}
    found: dict[TrialId, TrialId] = {}
    for head in heads:
        if head.purpose is Purpose.IMPORTED:
            continue
        of_kind = head.release.system, head.experiment, head.config.name, head.testbed_class
        if of_kind in latest:
            found[head.id] = latest[of_kind]
        if head.status is not TrialStatus.FAILED:
            latest[of_kind] = head.id
    return found


def view_previous(trial: Trial, previous: Trial | None) -> PreviousView:
    """Compare all that is recorded of the surroundings of two trials, before each of them."""
    if previous is None:
        return PreviousView(
            page="",
            name="",
            text="No earlier trial of this experiment and config can be compared with.",
            rows=(),
        )
    rows = (*_compare_heads(previous, trial), *_compare_facts(previous, trial))
    equal = "Nothing that is recorded of files, versions and hosts differs from"
    if not trial.environment_before or not previous.environment_before:
        equal = "The facts of the hosts are not recorded of both; no file or version differs from"
    return PreviousView(
        page=links.trial_page(previous.id),
        name=f"{previous.release.version}, {moment(previous.started_at).text}",
        text=f"{count(len(rows), 'difference')} from" if rows else equal,
        rows=rows,
    )


def _compare_heads(before: Trial, after: Trial) -> Iterable[DifferenceRow]:
    return (
        DifferenceRow(name=name, where="", before=was or NOTHING, after=now or NOTHING)
        for (name, was), (_, now) in zip(_list_parts(before), _list_parts(after), strict=True)
        if was != now
    )


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


def _compare_facts(before: Trial, after: Trial) -> Iterable[DifferenceRow]:
    if not before.environment_before or not after.environment_before:
        return ()
    old = {(fact.host, fact.name): fact.value for fact in before.environment_before}
    new = {(fact.host, fact.name): fact.value for fact in after.environment_before}
    return (
        DifferenceRow(name=at[1], where=at[0], before=old.get(at, NOTHING), after=new.get(at, NOTHING))
        for at in dict.fromkeys((*old, *new))
        # What goes on by itself differs between any two trials.
        if at[1] not in MAY_MOVE and old.get(at) != new.get(at)
    )

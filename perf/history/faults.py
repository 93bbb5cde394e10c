"""What a trial may not hold, since JSON or the history would change it, double it or lose it. Pure."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import UTC, datetime

from perf.model.metrics import LARGEST
from perf.model.results import LoadStep, Reason, Trial, TrialStatus
from perf.model.shown import list_some

_MUST = f"not a finite number of at most {LARGEST:g}"


def find_faults(trial: Trial) -> list[str]:
    """Find what JSON or the history cannot hold without changing or doubling it."""
    faults = [
        f"{name} {fault}"
        for name in ("started_at", "finished_at")
        if (fault := _find_fault_of_time(getattr(trial, name)))
    ]
    faults += [
        f"sample {s.phase}/{s.operation}/{s.metric}/{s.statistic} is {s.value}, {_MUST}"
        for s in trial.samples
        if not abs(s.value) <= LARGEST
    ]
    faults += [
        f"{name} of load step {step.phase} is {value}, {_MUST}"
        for step in trial.steps
        for name, value in _figures(step)
        if not abs(value) <= LARGEST
    ]
    identities = Counter(
        (
            s.phase,
            s.operation,
            s.metric,
            s.statistic,
            *((s.host,) if s.host else ()),
            "all iterations" if s.iteration is None else s.iteration,
        )
        for s in trial.samples
    )
    faults += [
        "sample " + "/".join(map(str, identity)) + f" is there {count} times"
        for identity, count in identities.items()
        if count > 1
    ]
    return faults


def _find_fault_of_time(time: datetime) -> str | None:
    if time.utcoffset() is None:
        return "has no time zone"
    try:
        time.astimezone(UTC)
    except OverflowError:
        return "lies outside of the years 1 to 9999 in UTC"
    return None


def _figures(step: LoadStep) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a load step that are there, by the names of their fields."""
    for field in fields(step):
        value = getattr(step, field.name)
        if isinstance(value, float):
            yield field.name, value


def drop_faulty(trial: Trial) -> Trial:
    """Return a trial as a bundle can hold it: one with faults is no result, but its story is kept."""
    faults = find_faults(trial)
    if not faults:
        return trial
    text = "figures that no bundle holds were left out: " + "; ".join(list_some(faults))
    reason = Reason(kind="figures-unusable", text=text)
    return replace(
        trial,
        status=TrialStatus.FAILED,
        reasons=(*trial.reasons, reason),
        samples=(),
        steps=(),
    )

"""Facts of hosts by name; those of before and after a trial say whether a host changed meanwhile.

Every fact must be the same at both ends, versions included, but for those that measure something that
goes on.
"""

from collections.abc import Iterable

from perf.model.results import Fact, Reason, Trial

UNAVAILABLE = "unavailable"

LOAD_AVERAGE = "load_average_1min"

STEAL_TICKS = "steal_ticks"

CLOCK_OFFSET = "clock_offset_ms"
"""Of each client host where there are several: its wall clock against that of who measures."""

BOOT_ID = "boot_id"

MEMORY_KB = "memory_kb"

METHOD = "method:"
"""How facts begin that are digests of what Knickpoint itself runs and writes when it measures."""

DATASET = "dataset"
"""Which kept files a trial started from; a trial that stored its own rows has no such fact."""

VERSION = "version:"
"""How facts begin that are versions of programs and libraries."""

THERMAL_THROTTLE_COUNT = "thermal_throttle_count"

TUNING, TUNING_UNAVAILABLE = "tuning", "tuning_unavailable"
"""Read by `readiness`: what a tuned host was tuned to, and what of that it does not have."""

FOLLOW_THE_RELEASE = (TUNING, TUNING_UNAVAILABLE, "thp", "max_map_count")
"""What the tuning profile of a release decides: on a tuned host, releases that take turns change it."""

MAY_MOVE = (LOAD_AVERAGE, STEAL_TICKS, CLOCK_OFFSET)
"""How busy a host is is judged while it is measured, by two looks at its use; those are for readers.
Offsets of clocks have a rule of their own."""
_ABSENT = "not read"


def find_drift(before: Iterable[Fact], after: Iterable[Fact]) -> tuple[Reason, ...]:
    """Give a reason for each fact that differs, and one for each host whose CPU was slowed by heat."""
    old = {(fact.host, fact.name): fact.value for fact in before}
    new = {(fact.host, fact.name): fact.value for fact in after}
    reasons = []
    for host, name in dict.fromkeys((*old, *new)):
        was, now = old.get((host, name), _ABSENT), new.get((host, name), _ABSENT)
        if was == now or name in MAY_MOVE:
            continue
        kind, text = "host-drifted", f"{host}: {name} was {was} before the trial and {now} after it"
        if name == THERMAL_THROTTLE_COUNT and was.isdigit() and now.isdigit() and int(now) > int(was):
            kind = "cpu-overheated"
            text = f"{host}: its CPU was slowed by heat; {name} went from {was} to {now} in the trial"
        reasons.append(Reason(kind=kind, text=text))
    return tuple(reasons)


def find_dataset(trial: Trial) -> str | None:
    """Return which kept files a trial started from; None if it stored its own rows."""
    found = (fact.value for fact in trial.environment_before if fact.name == DATASET)
    return next(found, None)

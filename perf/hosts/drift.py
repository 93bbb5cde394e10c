"""Did a host change while a trial ran? Facts from before and after it, as reasons to doubt it; pure.

Every fact must be the same at both ends, versions included, but for those that measure something that
goes on.
"""

from collections.abc import Iterable

from perf.hosts.facts import LOAD_AVERAGE, STEAL_TICKS, THERMAL_THROTTLE_COUNT
from perf.model import Fact, Reason

MAY_MOVE = (LOAD_AVERAGE, STEAL_TICKS)
"""How busy a host is is judged while it is measured, by two looks at its use; these are for readers."""
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

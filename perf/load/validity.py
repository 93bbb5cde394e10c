"""Is a trial valid? Faults found in its counters, as reasons with numbers. Pure.

Whether the client kept up (lateness, saturation) will be judged here too.
"""

from perf.design import Validity
from perf.load.engines import LoadOutcome
from perf.model import Reason

_ERRORS = ("timeouts", "error:")
_MISSES = ("not_found", "wrong_data")


def find_faults(outcome: LoadOutcome, limits: Validity) -> tuple[Reason, ...]:
    """Compare errors and misses of the measured iterations with the testbed's limits.

    An error is an operation that was answered with one, or not at all; a miss is an operation whose
    answer lacked a row or held a wrong one.
    """
    counted: dict[tuple[str, str], dict[str, int]] = {}
    for counter in outcome.counters:
        if counter.iteration:
            totals = counted.setdefault((counter.phase, counter.operation), {})
            totals[counter.name] = totals.get(counter.name, 0) + counter.value
    reasons = []
    for (phase, operation), totals in counted.items():
        where = f"{phase}, {operation}"
        attempted = totals.get("attempted", 0)
        if not totals.get("completed", 0):
            text = f"{where}: none of {attempted} operations completed"
            reasons.append(Reason(kind="nothing-completed", text=text + _example(outcome)))
            continue
        for kind, prefixes, limit in (
            ("errors-above-limit", _ERRORS, limits.max_error_share),
            ("misses-above-limit", _MISSES, limits.max_miss_share),
        ):
            found = {name: n for name, n in totals.items() if n and name.startswith(prefixes)}
            share = sum(found.values()) / attempted
            if share > limit:
                each = ", ".join(f"{n} × {name.removeprefix('error:')}" for name, n in found.items())
                text = (
                    f"{where}: {share:.2%} of {attempted} operations ({each}); the limit is {limit:.2%}"
                )
                reasons.append(Reason(kind=kind, text=text + _example(outcome)))
    return tuple(reasons)


def _example(outcome: LoadOutcome) -> str:
    return f"; the first: {outcome.examples[0]}" if outcome.examples else ""

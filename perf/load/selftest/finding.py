"""What one check found: what was planted, what was reported, and whether the two agree; pure.

A difference above the tolerance fails, unless this machine's own delays, measured meanwhile, are large
enough to explain it: then nobody can tell. Nor can anybody where delays alone would look like what was
planted. Neither is fine.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class CheckOutcome(StrEnum):
    """How a check ended."""

    OK = "ok"
    FAILED = "FAILED"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class SelftestFinding:
    """One line of the self-test. `topic` groups lines: schedule, service time, merge and so on."""

    topic: str
    check: str
    planted: str
    reported: str
    tolerance: str
    outcome: CheckOutcome


def compare(
    topic: str,
    check: str,
    *,
    planted: float,
    reported: float,
    tolerance: float,
    unit: str = "",
    delays: float = 0.0,
    done: float | None = None,
    unlike: float | None = None,
) -> SelftestFinding:
    """Compare what was reported with what was planted, or with what the server has `done` of that.

    `delays` is how much of a difference the machine's own delays may make. `unlike` is what the fault
    that is looked for would report on a machine without any, where delays move it towards the truth.
    """
    true = planted if done is None else done
    off = abs(reported - true)
    outcome = CheckOutcome.FAILED
    if off <= tolerance:
        is_proof = unlike is None or abs(unlike - true) > tolerance + delays
        outcome = CheckOutcome.OK if is_proof else CheckOutcome.CANNOT_TELL
    elif off <= tolerance + delays:
        outcome = CheckOutcome.CANNOT_TELL
    return SelftestFinding(
        topic=topic,
        check=check,
        planted=_say(planted, unit) + ("" if done is None else f", done {_say(done, unit)}"),
        reported=_say(reported, unit),
        tolerance=f"± {_say(tolerance, unit)}" if tolerance else "exactly",
        outcome=outcome,
    )


def bound(
    topic: str,
    check: str,
    *,
    limit: float,
    reported: float,
    unit: str = "",
    delays: float = 0.0,
) -> SelftestFinding:
    """Compare a number with the most that it may be."""
    outcome = CheckOutcome.FAILED
    if reported <= limit:
        outcome = CheckOutcome.OK
    elif reported <= limit + delays:
        outcome = CheckOutcome.CANNOT_TELL
    return SelftestFinding(
        topic=topic,
        check=check,
        planted=f"at most {_say(limit, unit)}",
        reported=_say(reported, unit),
        tolerance="–",
        outcome=outcome,
    )


def merge_outcomes(findings: Iterable[SelftestFinding]) -> CheckOutcome:
    """Return the worst outcome; no finding at all is no success."""
    outcomes = {finding.outcome for finding in findings}
    for outcome in (CheckOutcome.FAILED, CheckOutcome.CANNOT_TELL, CheckOutcome.OK):
        if outcome in outcomes:
            return outcome
    return CheckOutcome.CANNOT_TELL


def _say(value: float, unit: str) -> str:
    text = f"{value:.0f}" if float(value).is_integer() else f"{value:.2f}"
    return f"{text} {unit}".rstrip()

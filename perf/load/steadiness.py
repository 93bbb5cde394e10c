"""Is a load steady? Decided from what all engines together completed, second by second. Pure.

The rule compares two adjacent windows at the end of what has been seen: the load is steady when their
throughput and their mean service time are alike. That a measurement begins where adjacent windows stop
differing, and not after a number of seconds chosen beforehand, follows A. Georges, D. Buytaert and
L. Eeckhout, "Statistically rigorous Java performance evaluation", OOPSLA 2007, section 3.2.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from perf.model.design import Steadiness
from perf.model.shown import printable

_LINE = re.compile(
    r"[0-9]{1,9},[0-9]{1,9},(?P<completed>[0-9]{1,15}),(?P<service>[0-9]{1,15}(?:\.[0-9]{1,20})?(?:e-?[0-9]{1,2})?)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSecond:
    """What ended in one second of a stage: operations, and the sum of their service times."""

    completed: int
    service_s: float


def merge_progress(texts: Sequence[str], stage: int) -> tuple[StageSecond, ...]:
    """Add up the lines of PROGRESS of all engines for one stage (its place, from 0).

    Only whole seconds that every engine has reported count; a last line without an end is ignored.

    Raises:
        ValueError: a line is none of PROGRESS; it is in the message.

    """
    engines = [_read_seconds(text, stage) for text in texts]
    reported = min((len(seconds) for seconds in engines), default=0)
    return tuple(
        StageSecond(
            completed=sum(seconds[second].completed for seconds in engines),
            service_s=sum(seconds[second].service_s for seconds in engines),
        )
        for second in range(reported)
    )


def is_steady(seconds: Sequence[StageSecond], rule: Steadiness, warmup_s: float) -> bool:
    """Return whether the last two windows are alike, and at least `warmup_s` have passed.

    A window in which nothing completed is never like another.
    """
    window = rule.window_s
    if len(seconds) < max(ceil(warmup_s), 2 * window):
        return False
    earlier, later = seconds[-2 * window : -window], seconds[-window:]
    before, after = (sum(one.completed for one in part) for part in (earlier, later))
    if not before or not after:
        return False
    mean_before_s = sum(one.service_s for one in earlier) / before
    mean_after_s = sum(one.service_s for one in later) / after
    return (
        abs(after - before) <= rule.tolerance * after
        and abs(mean_after_s - mean_before_s) <= rule.tolerance * mean_after_s
    )


def _read_seconds(text: str, stage: int) -> list[StageSecond]:
    seconds = []
    for line in text.splitlines(keepends=True):
        if line.endswith("\n") and line.startswith(f"{stage},"):
            match = _LINE.fullmatch(line.rstrip("\n"))
            if match is None:
                raise ValueError(f"wrote what is no line of progress: {printable(line)}")
            seconds.append(
                StageSecond(completed=int(match["completed"]), service_s=float(match["service"]))
            )
    return seconds

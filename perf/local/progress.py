"""Tell a person what is going on: one line per step, with the time passed and the time still to go.

Plain lines on standard error, so that a terminal, a CI log and `tee` read the same.
"""

import contextlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TextIO

from perf.model.shown import format_duration

WIDTH = 84
QUIET_S = 10.0


def note(text: str) -> None:
    """Write a line to standard error, for what happens outside of a job with a `Progress`."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


@dataclass(slots=True)
class Progress:
    """Writes progress lines. `expected_s` is the whole job's expected duration, if known."""

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    clock: Callable[[], float] = time.monotonic
    expected_s: float | None = None
    _started_s: float = field(init=False)
    _last_s: float = field(init=False)

    def __post_init__(self) -> None:
        """Start the clock."""
        self._started_s = self._last_s = self.clock()

    def heading(self, text: str) -> None:
        """Start a new part of the job, for example one trial."""
        self._write(f"\n{text}")

    def report(self, text: str) -> None:
        """Say what happens now."""
        passed_s = self.clock() - self._started_s
        self._last_s = self.clock()
        left = ""
        if self.expected_s is not None:
            left_s = self.expected_s - passed_s
            left = f", about {format_duration(left_s)} left" if left_s > 0 else ", nearly done"
        first, *more = text.splitlines() or [""]
        lines = [f"  {first:<{WIDTH}} [{format_duration(passed_s)}{left}]", *(f"    {m}" for m in more)]
        self._write("\n".join(lines))

    def report_sometimes(self, text: str) -> None:
        """Say it only if nothing was said for a while, so that a long step is seen to live."""
        if self.clock() - self._last_s >= QUIET_S:
            self.report(text)

    def expect(self, remaining_s: float) -> None:
        """Correct the expectation: so many seconds are still to go from now."""
        self.expected_s = self.clock() - self._started_s + remaining_s

    def _write(self, text: str) -> None:
        # A reader that went away, or a log on a full disk, must not keep a trial from being measured
        # and cleaned up.
        with contextlib.suppress(OSError):
            self.stream.write(f"{text}\n")
            self.stream.flush()

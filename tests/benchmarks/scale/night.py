"""Keep, judge and tell a night in a process of its own, and say as JSON what each stage took.

    python night.py DATA NIGHTS [no-site]

The last line on standard output has seconds that passed and seconds of CPU of all processes together,
for each stage, and the largest memory of this process so far, in MB.
"""

import json
import os
import sys
import time
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Self

sys.path[:0] = [str(Path(__file__).parents[3]), str(Path(__file__).parents[1] / "site")]

from large_history import now_after  # noqa: E402  found by the line above

from perf.commands.main import look_at_all_rarely  # noqa: E402
from perf.config.catalog import load_catalog  # noqa: E402
from perf.history import store  # noqa: E402
from perf.local.paths import DataPaths  # noqa: E402
from reports.pages.report import write_report  # noqa: E402
from reports.site.context import judge_state  # noqa: E402

CONFIGS = Path(__file__).parents[3] / "configs"


def main(data: str, nights: str, *less: str) -> None:
    """Append, judge, write the site unless told not to."""
    paths, now = DataPaths(Path(data)), now_after(int(nights))

    class OnThatNight(datetime):
        """The clock of the made-up night: by that of today all bundles were due to be read."""

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromtimestamp(now.timestamp(), tz)

    look_at_all_rarely()  # as the command line does
    store.datetime = OnThatNight
    reported: dict[str, float] = {}

    def lap(stage: str, began: tuple[float, float]) -> tuple[float, float]:
        ended = time.monotonic(), sum(os.times()[:4])
        reported[f"{stage}_s"], reported[f"{stage}_cpu_s"] = (
            b - a for a, b in zip(began, ended, strict=True)
        )
        reported[f"{stage}_rss_mb"] = most_mb()
        return ended

    at = time.monotonic(), sum(os.times()[:4])
    store.append_all(paths, lambda _: None)
    at = lap("append", at)
    catalog = load_catalog(CONFIGS)
    judged = judge_state(paths, catalog, now.date())
    at = lap("judge", at)
    if not less:
        write_report(paths, catalog, now, judged=judged)
        lap("site", at)
    sys.stdout.write(f"{json.dumps(reported)}\n")


def most_mb() -> float:
    """Give the most memory of this process so far; ru_maxrss would be that of its parent, if larger."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    main(*sys.argv[1:])

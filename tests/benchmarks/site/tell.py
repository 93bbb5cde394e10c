"""Tell a made-up history in a process of its own, and say as JSON what each stage took.

    python tell.py DATA NIGHTS

The last line on standard output is {"judge_s", "judge_cpu_s", "write_s", "write_cpu_s"}: seconds that
passed, and seconds of CPU of all processes together.
"""

import json
import os
import sys
import time
from pathlib import Path

from large_history import now_after

from perf.config.catalog import load_catalog
from perf.local.paths import DataPaths
from reports.pages.report import write_report
from reports.site.context import judge_state

CONFIGS = Path(__file__).parents[3] / "configs"


def main(data: str, nights: str) -> None:
    """Judge, then write the site."""
    paths, now = DataPaths(Path(data)), now_after(int(nights))
    started_s = time.monotonic()
    catalog = load_catalog(CONFIGS)
    judged = judge_state(paths, catalog, now.date())
    judged_s, judged_cpu_s = time.monotonic(), sum(os.times()[:4])
    write_report(paths, catalog, now, judged=judged)
    reported = {
        "judge_s": judged_s - started_s,
        "judge_cpu_s": judged_cpu_s,
        "write_s": time.monotonic() - judged_s,
        "write_cpu_s": sum(os.times()[:4]) - judged_cpu_s,
    }
    sys.stdout.write(f"{json.dumps(reported)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

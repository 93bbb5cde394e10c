"""Nights of a real Cassandra, some with a handicap in a named method: what do hints see, what throughput?

    python tests/planting/planted_hints.py --data DIR --nights 14x0,8x8,8x4 \\
        --method org.apache.cassandra.db.commitlog.CommitLog.add

measures 14 nights without a handicap, 8 with 8 µs and 8 with 4, each a plain trial and one with a
profiler.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from perf.jobs.holding import hold
from perf.jobs.measuring import describe, open_job, order_point
from perf.local import durable  # noqa: F401
from perf.model.results import Purpose
from perf.trial.profiling import PROFILED

sys.path[:0] = [str(Path(__file__).parent)]
from planted_code import pair  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--configs", type=Path)
    parser.add_argument("--suite", default="single")
    parser.add_argument("--experiment", default="cassandra-single-write")
    parser.add_argument("--method", required=True)
    parser.add_argument("--nights", required=True)
    given = parser.parse_args()
    job = open_job(given.data, given.configs)
    number = 0
    for part in given.nights.split(","):
        times, micros = part.split("x")
        # A handicap of less than a nanosecond: the agent is there, and does nothing.
        side = pair(
            job, given.suite, given.experiment, method=given.method, micros=float(micros)
        ).candidate
        deployment = side.deployment
        with hold(job.paths, job.progress, [deployment.testbed], "planted nights"):
            fetched = job.fetch("cassandra", "5.0.9")
            for _ in range(int(times)):
                number += 1
                for kind, purpose, remarks in (
                    ("plain", Purpose.SCHEDULED, ()),
                    ("profiled", Purpose.PROFILE, (PROFILED,)),
                ):
                    name = f"2026-11-27-{number}.{kind}.{micros}"
                    if (job.paths.trials / name).exists():
                        continue
                    order = order_point(name, f"2026-11-27-{number}", deployment, fetched)
                    trial = job.measure(replace(order, purpose=purpose, remarks=remarks))
                    print(name, describe(trial), flush=True)


main()

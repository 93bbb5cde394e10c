"""Nights of a real Cassandra, some with a handicap in a named method: what do hints and throughput see?

    python tests/planting/planted_hints.py --data DIR --nights 12x0,8x8,8x3 \\
        --method org.apache.cassandra.db.commitlog.CommitLog.add

measures 12 nights without a handicap, 8 with 8 µs and 8 with 3, a trial with a profiler each, and
judges each handicap's nights behind those without. Nights that were measured are not measured again.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

from planted_code import pair

from analysis.detection.step_detector import StepDetector
from analysis.judging.description import describe_hint
from analysis.judging.hints import find_hints
from perf.history import bundle
from perf.jobs.holding import hold
from perf.jobs.measuring import Job, open_job, order_point
from perf.jobs.plans import is_done
from perf.model.columns import Observations, gather
from perf.model.metrics import METHOD_CPU, PACKAGE_CPU, THROUGHPUT
from perf.model.results import Observation, Purpose, SeriesKey, Trial, TrialId, TrialStatus
from perf.trial.profiling import PROFILED

RELEASE = "5.0.9"


def measure(job: Job, given: argparse.Namespace) -> dict[str, list[Trial]]:
    """Return the trials by handicap."""
    number, found = 0, dict[str, list[Trial]]()
    for part in given.nights.split(","):
        times, micros = part.split("x")
        # Without a handicap, too, the agent is there: it does nothing.
        pairing = pair(job, given.suite, given.experiment, method=given.method, micros=float(micros))
        deployment = pairing.candidate.deployment
        with hold(job.paths, job.progress, [deployment.testbed], "planted nights"):
            fetched = job.fetch("cassandra", RELEASE)
            for _ in range(int(times)):
                number += 1
                night = f"planted-{number}"
                name = TrialId(f"{night}.{micros}")
                if not is_done(job.paths, name):
                    order = order_point(name, night, deployment, fetched)
                    remarks = (*pairing.candidate.remarks, PROFILED)
                    job.measure(replace(order, purpose=Purpose.PROFILE, remarks=remarks))
                trial, _ = bundle.read(job.paths.trials / name)
                found.setdefault(micros, []).append(trial)
    return found


def observe(trials: list[Trial], *metrics: str) -> Iterator[Observation]:
    """Yield what whole phases came to, as of one configuration: the handicap is the secret."""
    for trial in trials:
        for sample in trial.samples:
            if sample.metric in metrics and sample.iteration is None and not sample.host:
                yield Observation(
                    key=SeriesKey(
                        system=trial.release.system,
                        line=trial.release.line,
                        topology=trial.topology.name,
                        testbed_class=trial.testbed_class,
                        config="planted",
                        workload=trial.workload.name,
                        engine=trial.engine,
                        phase=sample.phase,
                        operation=sample.operation,
                        metric=sample.metric,
                        statistic=sample.statistic,
                    ),
                    trial=trial.id,
                    release=trial.release,
                    started_at=trial.started_at,
                    status=trial.status,
                    value=sample.value,
                    night=trial.night,
                )


def describe(job: Job, micros: str, before: list[Trial], after: list[Trial]) -> Iterator[str]:
    """Yield what hints and throughput say of nights with a handicap behind nights without."""
    settings = job.catalog.detection
    detector = StepDetector(settings=settings)
    nights = [one for one in (*before, *after) if one.status is TrialStatus.COMPLETED]
    code = gather(observe(nights, METHOD_CPU.name, PACKAGE_CPU.name))
    yield f"{micros} µs: {len(before)} nights and {len(after)}"
    for hint in find_hints(code, Observations(()), settings.minimum_points, detector):
        yield f"  hint: {describe_hint(hint)}; of {hint.asked} series, p = {hint.change.p_value:.1g}"
    for series in gather(observe(nights, THROUGHPUT.name)).series:
        values = list(series.columns.values)
        old = values[: len(before)]
        scatter = f"{fmean(old):.0f} ± {stdev(old):.0f}"
        shifts = detector.read(values).shifts
        yield f"  throughput, {series.key.phase}: {scatter} ops/s before; changes: {len(shifts)}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--configs", type=Path)
    parser.add_argument("--suite", default="single")
    parser.add_argument("--experiment", default="cassandra-single-write")
    parser.add_argument("--method", required=True)
    parser.add_argument("--nights", required=True, help="TIMESxMICROS, separated by commas; 0 first.")
    given = parser.parse_args()
    job = open_job(given.data, given.configs)
    found = measure(job, given)
    calm = found.pop("0")
    for micros, trials in (("0", []), *found.items()):
        sys.stdout.write("\n".join(describe(job, micros, calm, trials)) + "\n")


if __name__ == "__main__":
    main()

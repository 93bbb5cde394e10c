"""Fixed work, done before and after each trial, which shows whether the machine has changed.

Four parts, each of which something else disturbs: computing (clock speed, heat, neighbours on the
same core), copying memory (neighbours on the same socket), fsync (the disk), a round trip over loopback
(the scheduler, the power states of idle cores). The work is in `probe`.
"""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from statistics import median

from perf.hosts.remote import Remote
from perf.model.errors import StepFailed
from perf.model.metrics import CANARY_CPU, CANARY_FSYNC, CANARY_LOOPBACK, CANARY_MEMORY
from perf.model.results import Sample
from perf.model.shown import printable

_METRICS = (CANARY_CPU, CANARY_MEMORY, CANARY_FSYNC, CANARY_LOOPBACK)


def run_canary(
    remote: Remote, directory: str, phase: str, python: str = "python3"
) -> tuple[Sample, ...]:
    """Do the fixed work on a host, with one command of about a second; write below `directory`.

    Raises:
        StepFailed: the host has no such Python, or the work failed there.

    """
    program = files("perf.hosts").joinpath("probe.py").read_text(encoding="utf-8")
    # -I -S: what is installed on the host, or set in its environment, has no part in the work.
    done = remote.run([python, "-I", "-S", "-", directory], stdin=program, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        why = f"{python} ended with exit {done.returncode}: {last}"
        raise StepFailed("canary", remote.name, why)
    try:
        return summarize_work(json.loads(done.stdout), remote.name, phase)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = f"{python} printed something else than its times: {printable(done.stdout)}"
        raise StepFailed("canary", remote.name, why) from error


def summarize_work(
    repetitions: Mapping[str, Sequence[float]], host: str, phase: str
) -> tuple[Sample, ...]:
    """Return median, least and greatest of the repetitions of each part."""
    return tuple(
        Sample(
            phase=phase,
            operation="canary",
            metric=metric.name,
            statistic=statistic,
            value=choose(repetitions[metric.name]),
            host=host,
        )
        for metric in _METRICS
        for statistic, choose in (("p50", median), ("min", min), ("max", max))
    )

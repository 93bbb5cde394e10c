"""What a trial's response times and its hosts did, as data to put beside those of another trial.

One script per trial, which never changes: pages load those that they show.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from perf.history.distributions import Recording, distribute
from perf.history.observed import ALWAYS_NEW
from perf.model.metrics import CANARY_PHASES
from perf.model.results import Interval, Trial
from perf.trial.seconds import ServerSecond
from reports.pages.trial.values import is_diagnostic
from reports.wording.wording import heading, metric_words, number, phase_words, unit_words

KINDS = ("response_time", "duration")
"""The kinds of histogram that are shown: the second is what other programs measured."""
_US_PER_MS = 1000
_MB = 1_000_000
_OF_CANARIES = "p50"
_KEPT_DIGITS = 6


def describe_curves(
    trial: Trial, recordings: Iterable[Recording], seconds: Sequence[ServerSecond] = ()
) -> dict[str, Any]:
    """Return all that is shown of a trial beside another one; times in ms, rates in ops/s.

    A level is [percentile, ms]; a second is [iteration, start in s, ops/s, p50 ms, p99 ms, max ms]. One
    of a server is [iteration, start in s, name, cores, MB/s written, MB/s read, MB of memory].
    """
    return {
        "times": [
            _describe_recording(one) | {"servers": list(_describe_servers(one, seconds))}
            for one in recordings
        ],
        "diagnostics": list(_describe_diagnostics(trial)),
        "facts": [
            [fact.host, fact.name, fact.value]
            for fact in trial.environment_before
            if fact.name not in ALWAYS_NEW
        ],
    }


def _describe_recording(recording: Recording) -> dict[str, Any]:
    """Describe of one operation in one phase; `problem` says why nothing can be reported."""
    title = f"{heading(recording.operation)} {phase_words(recording.phase)}"
    try:
        found = distribute(recording.intervals)
    except ValueError as error:
        return {"title": title, "problem": str(error)}
    return {
        "title": title,
        "problem": "",
        "count": found.spectrum.count,
        "levels": [
            [round(level.percentile, _KEPT_DIGITS), level.value_us / _US_PER_MS]
            for level in found.spectrum.levels
        ],
        "course": [
            [
                second.iteration,
                second.at_s,
                round(second.ops_per_s, 1),
                second.p50_us / _US_PER_MS,
                second.p99_us / _US_PER_MS,
                second.max_us / _US_PER_MS,
            ]
            for second in found.course
        ],
    }


def _describe_servers(
    recording: Recording, seconds: Sequence[ServerSecond]
) -> Iterator[Sequence[object]]:
    """Yield what servers did while an operation was measured, by iteration and time in it."""
    iterations: defaultdict[int, list[Interval]] = defaultdict(list)
    for one in recording.intervals:
        iterations[one.iteration].append(one)
    for iteration, intervals in sorted(iterations.items()):
        begin_s = min(one.start_s for one in intervals)
        end_s = max(one.start_s + one.length_s for one in intervals)
        for second in seconds:
            # One that began before the iteration, or ended after it, is of other work, too.
            if begin_s <= second.start_s and second.end_s <= end_s:
                yield (
                    iteration,
                    round(second.start_s - begin_s, 1),
                    second.node,
                    round(second.cores, 3),
                    round(second.written_per_s / _MB, 3),
                    round(second.read_per_s / _MB, 3),
                    round(second.memory_bytes / _MB),
                )


def _describe_diagnostics(trial: Trial) -> Iterator[Sequence[str]]:
    """Yield rows of phase, quantity, unit and value: of all hosts together, and canaries by host."""
    for sample in trial.samples:
        is_canary = sample.phase in CANARY_PHASES
        is_shown = sample.statistic == _OF_CANARIES if is_canary else not sample.host
        if is_shown and sample.iteration is None and is_diagnostic(sample):
            where = f"canary on {sample.host}" if is_canary else sample.operation
            yield (
                f"{heading(where)} {phase_words(sample.phase)}",
                metric_words(sample.metric, "" if is_canary else sample.statistic).strip(),
                unit_words(sample.metric),
                number(sample.value),
            )

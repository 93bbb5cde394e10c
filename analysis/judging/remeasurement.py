"""Re-measurement: what two releases that took turns say about a change that nights suspect. Pure.

Between trials that take turns on the same hosts, neither a drift of the hosts nor the order of nights
passes for a difference; what is left is how trials scatter. So where such an answer contradicts the
nights, it is the nights that something else has moved.

An answer belongs to one series, two artifacts and one content of the config. It holds on every later
night, as long as these are the same.
"""

import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from analysis.comparing.blocks import Measure
from analysis.comparing.results import ComparisonResult
from analysis.detection.detection import ChangePoint, ChangeState
from analysis.detection.effects import Effect
from perf.model.results import Observation, Purpose, Release, SeriesKey, TrialId

CONFIG = "config "
"""The circumstance that is the hash of the system's settings; the name of the config follows."""
ARTIFACT = "artifact"
"""The circumstance that is the hash of what was installed; a local copy of a release has its own."""
PURPOSES = (Purpose.CONFIRMATION, Purpose.COMPARISON)
"""Of the comparisons that answer: the night's own, and those that somebody asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemeasurementQuestion:
    """What could be put to the hosts about changes of one experiment between the same two releases.

    The first change is the strongest; there is at least one.
    """

    changes: tuple[ChangePoint, ...]

    @property
    def key(self) -> SeriesKey:
        """Return the series of the strongest change; its experiment is that of all."""
        return self.changes[0].series.key

    @property
    def baseline(self) -> Release:
        """Return the last release before the changes."""
        return self.changes[0].last_before.release

    @property
    def candidate(self) -> Release:
        """Return the first release after them."""
        return self.changes[0].first_after.release

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Return the measures that should decide it."""
        return tuple(measure_of(change.series.key) for change in self.changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesAnswer:
    """What a side-by-side comparison says of one series, of which `comparison` is the name.

    `effect` is None where nothing could be computed; `relevant_change` is the share it was to show.
    """

    key: SeriesKey
    baseline: str
    candidate: str
    config_sha256: str
    artifacts_sha256: tuple[str, str]
    effect: Effect | None
    relevant_change: float
    baseline_trials: int
    candidate_trials: int
    comparison: str
    finished_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer, held against a change that it is about.

    `agrees` is True if the releases differ in the direction of the change, False if a difference of its
    size is ruled out, None if the trials cannot tell.
    """

    answer: SeriesAnswer
    agrees: bool | None


def measure_of(key: SeriesKey) -> Measure:
    """Return the measure of a series."""
    return Measure(phase=key.phase, operation=key.operation, metric=key.metric, statistic=key.statistic)


def read_answers(
    results: Iterable[ComparisonResult], observations: Iterable[Observation]
) -> tuple[SeriesAnswer, ...]:
    """Read what comparisons say of series; `observations` are of the trials that took turns.

    All measures count, also those on which the verdict of the comparison did not rest: whichever series
    nights suspect, it is one measure that is asked, and its own interval holds. A comparison of two
    configs, or one whose trials carry a remark (something was planted), answers another question. A
    probe of a bisection counts trials of nights as well, so that it is no second witness.
    """
    keys: defaultdict[str, set[SeriesKey]] = defaultdict(set)
    for one in observations:
        keys[one.trial].add(one.key)
    return tuple(
        SeriesAnswer(
            key=key,
            baseline=result.baseline.version,
            candidate=result.candidate.version,
            config_sha256=result.baseline.config.sha256,
            artifacts_sha256=(result.baseline.artifact_sha256, result.candidate.artifact_sha256),
            effect=seen.effect,
            relevant_change=seen.relevant_change,
            baseline_trials=len(seen.baseline),
            candidate_trials=len(seen.candidate),
            comparison=result.id,
            finished_at=result.finished_at,
        )
        for result in results
        if result.purpose in PURPOSES
        and result.baseline.config == result.candidate.config
        and not result.remarks
        for key in sorted({key for trial in result.trials for key in keys[trial.id]})
        for seen in result.measures
        if seen.measure == measure_of(key)
    )


def find_reply(
    change: ChangePoint,
    answers: Sequence[SeriesAnswer],
    environments: Mapping[TrialId, Mapping[str, str]],
) -> Reply | None:
    """Give what is known side by side of a change: the newest answer that decides, else the newest."""
    replies = [
        Reply(answer=one, agrees=agreement(change, one))
        for one in sorted(answers, key=lambda one: (one.finished_at, one.comparison))
        if _is_about(one, change, environments)
    ]
    decided = [reply for reply in replies if reply.agrees is not None]
    return next(reversed(decided or replies), None)


def _is_about(
    answer: SeriesAnswer, change: ChangePoint, environments: Mapping[TrialId, Mapping[str, str]]
) -> bool:
    """Return whether it is an answer for this change: its releases, as they were measured last.

    The workload's hash is part of the key. What is not recorded of a trial has to be taken as equal.
    """
    if answer.key != change.series.key:
        return False
    measured = zip(
        (change.last_before.release.version, change.first_after.release.version),
        (answer.baseline, answer.candidate),
        answer.artifacts_sha256,
        strict=True,
    )
    for version, answered, artifact in measured:
        if version != answered:
            return False
        newest = max(
            (when for when in change.series.points.occasions if when.release.version == version),
            key=lambda when: (when.started_at, when.trial),
        )
        facts = environments.get(newest.trial, {})
        config = facts.get(f"{CONFIG}{answer.key.config}", answer.config_sha256)
        if (config, facts.get(ARTIFACT, artifact)) != (answer.config_sha256, artifact):
            return False
    return True


def agreement(change: ChangePoint, answer: SeriesAnswer) -> bool | None:
    """Read off the interval whether it agrees with a change: True, False, or None for "cannot tell".

    False needs the whole interval to be smaller than the change, and it must not show a difference in
    the same direction that may still be large enough to matter.
    """
    if answer.effect is None:
        return None
    low, high = answer.effect.low, answer.effect.high
    if change.relative_change < 0:
        low, high = -high, -low
    is_smaller = high < abs(change.relative_change)
    if is_smaller and (low <= 0 or high < answer.relevant_change):
        return False
    return True if low > 0 else None


def settle(change: ChangePoint, reply: Reply | None) -> ChangePoint:
    """Return a change as it stands after a reply: confirmed if that agrees, else as nights have it."""
    if reply is not None and reply.agrees:
        return replace(change, state=ChangeState.CONFIRMED)
    return change


def ask(change: ChangePoint, reply: Reply | None) -> RemeasurementQuestion | None:
    """Describe what could be put to the hosts: nothing once it is decided, or within one release."""
    if change.last_before.release == change.first_after.release or is_decided(reply):
        return None
    return RemeasurementQuestion(changes=(change,))


def is_decided(reply: Reply | None) -> bool:
    """Return whether a side-by-side comparison has said yes or no."""
    return reply is not None and reply.agrees is not None


def compare_command(question: RemeasurementQuestion, suite: str, experiment: str) -> str:
    """Return the command line that puts a question to the hosts; `suite` may be empty."""
    return shlex.join(
        (
            *("knickpoint", "compare", *(("--suite", suite) if suite else ())),
            *("--experiment", experiment),
            *("--baseline", question.baseline.version, "--candidate", question.candidate.version),
            *(part for one in question.measures for part in ("--measure", str(one))),
        )
    )

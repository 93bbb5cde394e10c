"""Bisections as the command saves them, one for each situation a reader can meet."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from analysis.bisecting.bisection import Chance, Culprit, Ending, Inconclusive, Step
from analysis.bisecting.probing import Probed, ReleaseStatus
from analysis.bisecting.record import BisectionRecord, ProbeRecord
from analysis.comparing.blocks import Measure
from analysis.comparing.paired import Estimate
from analysis.comparing.results import TrialRecord
from analysis.detection.effects import Effect
from analysis.detection.verdict import Outcome
from perf.model.results import Purpose, Reason, Release, SideName, TrialStatus

RATE = Measure(phase="saturation", operation="write", metric="throughput", statistic="mean")
STARTED = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
RELEASES = tuple(
    Release(system="fake", version=f"2.0.{ordinal}", line="2.0", ordinal=ordinal)
    for ordinal in range(8)
)
_ORDER: tuple[SideName, ...] = ("baseline", "candidate", "candidate", "baseline")


def effect(change: float, half: float = 0.03) -> Effect:
    return Effect(relative_change=change, low=change - half, high=change + half, confidence=0.99)


def trials(number: int, ordinal: int, blocks: tuple[int, ...]) -> tuple[TrialRecord, ...]:
    return tuple(
        TrialRecord(
            id=f"cmp-2026-03-01-{number}.{block:02d}{letter}.{side}"
            f".2.0.{0 if side == 'baseline' else ordinal}",
            side=side,
            block=block,
            status=TrialStatus.COMPLETED,
            duration_s=74.0,
        )
        for block in blocks
        for letter, side in zip("abcd", _ORDER, strict=True)
    )


def probe(
    number: int, ordinal: int, change: float, standing: ReleaseStatus | None, outcome: Outcome
) -> ProbeRecord:
    taken = trials(number, ordinal, (1, 2))
    estimate = Estimate(
        log_ratio=change,
        standard_error=0.01,
        degrees_of_freedom=6,
        baseline_trials=4,
        candidate_trials=4,
    )
    return ProbeRecord(
        asked="it parts what is left best",
        probed=Probed(
            release=RELEASES[ordinal],
            trials=len(taken),
            estimate=estimate,
            effect=effect(change),
            relevant_change=0.05,
        ),
        standing=standing,
        lower="2.0.0",
        upper="2.0.7",
        comparison=f"cmp-2026-03-01-{number}",
        outcome=outcome,
        before=1000.0,
        after=1000.0 * (1 + change),
        trials=taken,
    )


_END = probe(1, 7, -0.2, None, Outcome.REGRESSED)
_FAILED = TrialRecord(
    id="cmp-2026-03-01-2.01b.candidate.2.0.4",
    side="candidate",
    block=1,
    status=TrialStatus.FAILED,
    duration_s=9.0,
    reasons=(Reason(kind="start-failed", text="start failed on node-1: <no> such class"),),
)
_SKIPPED = ProbeRecord(
    asked="it parts what is left best",
    probed=Probed(release=RELEASES[4], trials=1, reason="start failed on node-1: <no> such class\nlog"),
    standing=ReleaseStatus.SKIPPED,
    comparison="cmp-2026-03-01-2",
    trials=(_FAILED,),
)
_CHANCES = tuple(
    Chance(release=release, probability=chance)
    for release, chance in zip(RELEASES[1:], (0, 0, 0, 0.4, 0.55, 0.001, 0.001), strict=True)
)
RECORD = BisectionRecord(
    id="bis-2026-03-01-1",
    question_sha256="0123456789ab",
    purpose=Purpose.BISECTION,
    suite="fake-short",
    experiment="fake-blink",
    system="fake",
    measure=RATE,
    releases=RELEASES,
    most_trials=160,
    most_minutes=960.0,
    trials_per_probe=40,
    started_at=STARTED,
    updated_at=STARTED + timedelta(minutes=40),
    probes=(
        _END,
        _SKIPPED,
        probe(3, 3, 0.004, ReleaseStatus.GOOD, Outcome.UNCHANGED),
        probe(4, 5, -0.19, ReleaseStatus.BAD, Outcome.REGRESSED),
    ),
    found=Culprit(
        step=Step(
            predecessor=RELEASES[3],
            release=RELEASES[5],
            skipped=(RELEASES[4],),
            unmeasured=(),
            effect=effect(-0.19),
        ),
        is_improvement=False,
        probability=0.95,
        other_steps=(),
        chances=_CHANCES,
        trials=25,
        sentence="The regression came with one of 2.0.4 (could not be measured), 2.0.5 (after 2.0.3).",
    ),
    command="knickpoint bisect fake 2.0.0..2.0.7 --suite fake-short",
    caveat="These numbers say nothing.",
    remarks=("2.0.5, 2.0.7: a handicap was planted in this trial: <slow>",),
)
_OPEN = Inconclusive(
    ending=Ending.BUDGET,
    good=RELEASES[3],
    bad=RELEASES[7],
    skipped=(RELEASES[4],),
    chances=_CHANCES,
    steps=(),
    cost_to_finish=16,
    trials=17,
    sentence="The budget is used up. The change came after 2.0.3 and up to 2.0.7.",
)
INCONCLUSIVE = replace(RECORD, probes=RECORD.probes[:3], found=_OPEN, remarks=())
UNCHANGED = replace(
    RECORD,
    probes=(probe(1, 7, 0.002, None, Outcome.UNCHANGED),),
    found=replace(
        _OPEN,
        ending=Ending.NOTHING_CHANGED,
        chances=(),
        cost_to_finish=None,
        sentence="Nothing changed between 2.0.0 and 2.0.7.",
    ),
    remarks=(),
)
UNFINISHED = replace(RECORD, probes=RECORD.probes[:1], found=None, remarks=())

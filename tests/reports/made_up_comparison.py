"""Comparison files as candidate and compare write them, one for each situation a reader can meet."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from statistics import median

from analysis.comparing.blocks import Measure, TrialValue
from analysis.comparing.results import (
    SCHEMA_VERSION,
    Attribution,
    CodeDifference,
    ComparisonFile,
    ComparisonResult,
    DiagnosticResult,
    ExperimentChange,
    KnobValues,
    LogDifference,
    MeasureResult,
    Revision,
    SideRecord,
    TrialRecord,
)
from analysis.comparing.turns import conclude
from analysis.detection.effects import Effect
from analysis.detection.verdict import Outcome
from analysis.detection.words import percent, signed_percent
from perf.model.results import Named, Purpose, Reason, SideName, TrialStatus

P99 = Measure(phase="steady", operation="write", metric="response_time", statistic="p99")
RATE = Measure(phase="saturation", operation="write", metric="throughput", statistic="mean")
MEDIAN = Measure(phase="steady", operation="write", metric="response_time", statistic="p50")
BASE = Revision(ref="main", sha="3f1c9a27d5e84b60a1c2d3e4f5061728394a5b6c")
HEAD = Revision(ref="fewer-writers", sha="b7e2d1c0f9a83746556473829100aabbccddeeff")
KNOB = KnobValues(
    path="systems/cassandra/default: settings.concurrent_writes",
    key="concurrent_writes",
    before="32",
    after="8",
)
CACHE = KnobValues(
    path="systems/cassandra/default: settings.key_cache_size",
    key="key_cache_size",
    before='"100MiB"',
    after='"0MiB"',
)
SYNC = KnobValues(
    path="systems/cassandra/default: settings.commitlog_sync",
    key="commitlog_sync",
    before='"periodic"',
    after='"batch"',
)
STARTED = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
TRIAL_S = 74.0
_ORDER: tuple[SideName, ...] = ("baseline", "candidate", "candidate", "baseline")
_LEVELS = {P99: 8.4, MEDIAN: 1.9, RATE: 3600.0}
_RELEVANT = {P99: 0.1, MEDIAN: 0.1, RATE: 0.05}


def side(label: str, config: str = "default", sha256: str = "a8f3c1d2e4b5") -> SideRecord:
    return SideRecord(
        label=label,
        version="5.0.6",
        config=Named(name=config, sha256=sha256),
        topology=Named(name="single", sha256="0c1d2e3f4a5b"),
        testbed=Named(name="loopback", sha256="9e8d7c6b5a49"),
        workload=Named(name="put-get", sha256="77aa66bb55cc"),
        artifact_sha256="5d41402abc4b2a76b9719d911017c592ae2f0c3b4d5e6f708192a3b4c5d6e7f8",
    )


def measured(
    measure: Measure,
    change: float,
    *,
    half: float = 0.03,
    trials: int = 6,
    outcome: Outcome = Outcome.UNCHANGED,
    is_trusted: bool = True,
) -> MeasureResult:
    """One measure whose candidate differs by `change`, within `half` to either side."""
    level, scatter = _LEVELS[measure], random.Random(f"{measure}")  # noqa: S311  no secret
    deviation = half * math.sqrt(trials / 2) / 3  # an interval of 99 % is about so much narrower
    before = _draw(level, deviation, trials, scatter)
    after = _draw(level * (1 + change), deviation, trials, scatter)
    return MeasureResult(
        measure=measure,
        is_trusted=is_trusted,
        outcome=outcome,
        reason=_explain(outcome, trials, change, half, _RELEVANT[measure]),
        relevant_change=_RELEVANT[measure],
        before=level,
        after=level * (1 + change),
        effect=Effect(relative_change=change, low=change - half, high=change + half, confidence=0.99),
        detectable=1.2 * half,
        baseline=before,
        candidate=after,
    )


def _explain(outcome: Outcome, trials: int, change: float, half: float, relevant: float) -> str:
    """Say it as `sequential` does."""
    interval = f"{signed_percent(change - half)} to {signed_percent(change + half)}"
    of = f"after {trials} trials of each side the candidate"
    reported = f"{signed_percent(change)} ({interval})"
    match outcome:
        case Outcome.UNCHANGED:
            return f"{of} is shown to lie within ±{percent(relevant)} of the baseline: {reported}"
        case Outcome.UNDECIDED:
            doubt = f"which could be nothing and could be more than ±{percent(relevant)}"
            return f"{of} differs by {reported}, {doubt}"
        case _:
            side = "better" if outcome is Outcome.IMPROVED else "worse"
            return f"{of} is {side} than the baseline: {reported}"


def _draw(
    level: float, deviation: float, trials: int, scatter: random.Random
) -> tuple[TrialValue, ...]:
    """Draw trials whose median is `level`."""
    drawn = [scatter.gauss(0, deviation) for _ in range(trials)]
    parts = [[math.exp(scatter.gauss(0, deviation / 2)) for _ in range(3)] for _ in drawn]
    values = [level * math.exp(one - median(drawn)) for one in drawn]
    return tuple(
        TrialValue(value=value, iterations=tuple(value * part for part in of_trial))
        for value, of_trial in zip(values, parts, strict=True)
    )


def turns(
    trials: int,
    faults: dict[int, tuple[TrialStatus, str]] | None = None,
    name: str = "cmp-2026-03-01-1",
) -> tuple[TrialRecord, ...]:
    """Trials in their turns; `faults` says which of them ended badly, counted from 0, and why."""
    found = []
    for turn in range(trials):
        status, text = (faults or {}).get(turn, (TrialStatus.COMPLETED, ""))
        which, block = _ORDER[turn % 4], turn // 4 + 1
        found.append(
            TrialRecord(
                id=f"{name}.{block:02d}{'abcd'[turn % 4]}.{which}.5.0.6",
                side=which,
                block=block,
                status=status,
                duration_s=TRIAL_S,
                reasons=(Reason(kind="made_up", text=text),) if text else (),
            )
        )
    return tuple(found)


def compared(
    measures: Sequence[MeasureResult],
    *,
    unmeasured: str = "",
    trials: tuple[TrialRecord, ...] | None = None,
    experiment: str = "put-get-single",
    ended: str = "decided after 3 blocks, 12 trials",
    remarks: tuple[str, ...] = (),
    name: str = "cmp-2026-03-01-1",
) -> ComparisonResult:
    took = turns(12, name=name) if trials is None else trials
    outcome, reason = conclude(measures)
    return ComparisonResult(
        id=name,
        purpose=Purpose.CANDIDATE,
        suite="pull-request",
        experiment=experiment,
        system="cassandra",
        baseline=side(f"base {BASE.sha[:8]}"),
        candidate=side(f"head {HEAD.sha[:8]}", sha256="b91e77d0c3f2"),
        seed=7,
        question_sha256="c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00",
        outcome=outcome,
        reason=unmeasured or reason,
        ended=ended,
        measures=tuple(measures),
        trials=took,
        started_at=STARTED,
        finished_at=STARTED + timedelta(seconds=TRIAL_S * len(took)),
        command=f"knickpoint candidate --base {BASE.sha} --head {HEAD.sha} --suite pull-request",
        caveat="Client and database share one host: compare these numbers only with themselves.",
        remarks=remarks,
    )


def made(
    *comparisons: ComparisonResult,
    knobs: tuple[KnobValues, ...] = (KNOB,),
    changes: tuple[ExperimentChange, ...] | None = None,
    attributions: tuple[Attribution, ...] = (),
    problems: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
) -> ComparisonFile:
    listed = tuple(
        ExperimentChange(suite=one.suite, experiment=one.experiment, knobs=knobs) for one in comparisons
    )
    return ComparisonFile(
        schema_version=SCHEMA_VERSION,
        created_at=STARTED + timedelta(hours=1),
        knickpoint="0.1.0",
        base=BASE,
        head=HEAD,
        changes=listed if changes is None else changes,
        comparisons=comparisons,
        attributions=attributions,
        problems=problems,
        notes=notes,
    )


REGRESSED_RESULT = compared(
    (
        measured(P99, 0.315, half=0.09, outcome=Outcome.REGRESSED),
        measured(RATE, -0.123, half=0.04, outcome=Outcome.REGRESSED),
        measured(MEDIAN, 0.02, half=0.015, is_trusted=False),
    ),
)
IMPROVED_RESULT = compared(
    (
        measured(P99, -0.03, half=0.05),
        measured(RATE, 0.142, half=0.03, outcome=Outcome.IMPROVED),
        measured(MEDIAN, -0.01, half=0.015, is_trusted=False),
    ),
)
UNCHANGED_RESULT = compared(
    (measured(P99, 0.011, half=0.06), measured(RATE, -0.004, half=0.02)),
)
UNDECIDED_RESULT = compared(
    (
        measured(P99, 0.08, half=0.14, outcome=Outcome.UNDECIDED, trials=20),
        measured(RATE, -0.01, half=0.03, trials=20),
    ),
    trials=turns(40),
    ended="the budget was used up after 10 blocks, 40 trials",
)
REGRESSED = made(REGRESSED_RESULT)


def of_servers(
    metric: str, before: float, after: float, half: float, statistic: str = "mean"
) -> DiagnosticResult:
    """What servers did on both sides; `half` is half the interval of the difference."""
    return DiagnosticResult(
        measure=Measure(phase="steady", operation="write", metric=metric, statistic=statistic),
        before=before,
        after=after,
        low=after - before - half,
        high=after - before + half,
    )


ALIKE = (of_servers("gc_pause", 1.2, 1.4, 0.9), of_servers("network_sent", 310.0, 309.0, 4.0))
EXPLAINED = made(
    replace(
        REGRESSED_RESULT,
        diagnostics=(
            of_servers("storage_written", 1180.0, 2478.0, 90.0),
            of_servers("server_cpu", 62.0, 103.0, 11.0),
            *ALIKE,
        ),
        logs=(
            LogDifference(
                level="warning", text="<i>Slow</i> sync: # ms", before=(0, 0), after=(3, 1200)
            ),
        ),
        method=(KnobValues(path="method:load", before="1f0a", after="<b>77c1</b>"),),
        code=(
            CodeDifference(
                phase="steady",
                kind="cpu",
                method="CommitLog.sync",
                before=4.1,
                after=42.3,
                low=31.0,
                high=45.4,
            ),
        ),
        defaults=(
            KnobValues(
                path="cassandra.yaml: storage_compatibility_mode",
                key="storage_compatibility_mode",
                before='"CASSANDRA_4"',
                after='"NONE"',
            ),
            KnobValues(
                path="jvm*-server.options: -XX:+UseConcMarkSweepGC",
                key="-XX:+UseConcMarkSweepGC",
                before="true",
                after="",
            ),
        ),
    )
)
UNEXPLAINED = made(replace(REGRESSED_RESULT, diagnostics=ALIKE))
IMPROVED = made(IMPROVED_RESULT)
UNCHANGED = made(UNCHANGED_RESULT)
UNDECIDED = made(UNDECIDED_RESULT)
MIXED = made(
    REGRESSED_RESULT,
    replace(
        IMPROVED_RESULT,
        id="cmp-2026-03-01-2",
        experiment="ycsb-b-single",
        trials=turns(12, name="cmp-2026-03-01-2"),
    ),
)
ATTRIBUTED = made(
    REGRESSED_RESULT,
    knobs=(KNOB, CACHE, SYNC),
    attributions=(
        Attribution(knob=KNOB, comparison=replace(REGRESSED_RESULT, id="cmp-2026-03-01-2")),
        Attribution(knob=CACHE, comparison=replace(UNCHANGED_RESULT, id="cmp-2026-03-01-3")),
        Attribution(knob=SYNC, comparison=replace(UNDECIDED_RESULT, id="cmp-2026-03-01-4")),
    ),
)
SEVERAL_KNOBS = replace(ATTRIBUTED, attributions=())
_DRIFTED = "the CPU canary is 9.3 % slower after the trial than before; at most 5 % is allowed"
_REFUSED = (
    "start failed on node-1: the server process ended; the last error in the log: Exception "
    "encountered during startup: concurrent_writes must be at least 2, but was 1"
)
SOME_INVALID = made(
    replace(
        UNCHANGED_RESULT,
        trials=turns(
            14,
            {2: (TrialStatus.INVALID, _DRIFTED), 7: (TrialStatus.FAILED, "wipe timed out after 60 s")},
        ),
    )
)
INVALID = made(
    compared(
        (),
        trials=turns(8, dict.fromkeys(range(8), (TrialStatus.INVALID, _DRIFTED))),
        ended="no trial of the baseline completed after 2 blocks, 8 trials",
    )
)
_UNMEASURED = replace(
    measured(P99, 0.0),
    outcome=Outcome.INVALID,
    reason="no block has a value of both sides",
    before=None,
    after=None,
    effect=None,
    detectable=None,
    baseline=(),
    candidate=(),
)
FAILED = made(
    compared(
        (_UNMEASURED, replace(_UNMEASURED, measure=RATE)),
        unmeasured=f"the candidate, head {HEAD.sha[:8]}, could not be measured: {_REFUSED}",
        trials=turns(
            6,
            dict.fromkeys(
                (1, 2, 5),
                (TrialStatus.FAILED, _REFUSED),
            ),
        ),
        ended="the candidate could not be measured",
    ),
    knobs=(replace(KNOB, after="1"),),
)
_NAME = "put-get-single of suite pull-request at 5.0.6"
_NOT_FETCHED = (
    f"{_NAME} could not be measured: cassandra 5.0.6 cannot be fetched from any of its origins:\n"
    "  published: https://archive.example/5.0.6: HTTP 503 (attempt 5)\nCheck the network."
)
PROBLEMS = made(
    changes=(ExperimentChange(suite="pull-request", experiment="put-get-single", knobs=(KNOB,)),),
    problems=(_NOT_FETCHED,),
)
NOTHING = made(
    changes=(), notes=("triage.yaml differs: no measurement and no comparison depends on it",)
)
UNCOMPARABLE = made(
    changes=(
        ExperimentChange(
            suite="pull-request",
            experiment="put-get-wide",
            knobs=(),
            text="new at head: base has nothing to compare it with",
        ),
        ExperimentChange(
            suite="pull-request",
            experiment="put-get-single",
            knobs=(
                KnobValues(
                    path="workloads/put-get: record.value_bytes",
                    key="record.value_bytes",
                    before="100",
                    after="1000",
                ),
            ),
            text=(
                "it measures something else at head, since its workload put-get (record.value_bytes) "
                "differs: its numbers begin a new series and do not compare with base"
            ),
        ),
        ExperimentChange(
            suite="pull-request",
            experiment="ycsb-a-single",
            knobs=(),
            text="removed at head",
        ),
    )
)
PLANTED = made(
    replace(
        REGRESSED_RESULT,
        remarks=(
            "candidate: each write is handed to the disk with 2 ms of delay by a wrapper, on purpose",
        ),
    )
)
_HOSTILE = (
    "</details><script>alert(1)</script> | **bold** `tick` [click](https://evil.example) "
    "![i](https://evil.example/p.png) @octocat @org/team #1 GH-2 www.evil.example "
    "3f1c9a27d5e84b60a1c2d3e4f5061728394a5b6c octo/cat#3 octo@cat.example :tada: <!-- x\n"
    "# A heading\n\n| a | b |\n|---|---|\n```\n\u202egnp.exe ~~gone~~ $x$ &lt;b&gt; "
    "<https://evil.example> "
)
HOSTILE = made(
    replace(
        REGRESSED_RESULT,
        id=f"cmp {_HOSTILE}",
        suite=_HOSTILE,
        experiment=_HOSTILE,
        system=_HOSTILE,
        reason=_HOSTILE,
        ended=_HOSTILE,
        command=_HOSTILE,
        caveat=_HOSTILE,
        remarks=(_HOSTILE, "@everyone " * 200),
        baseline=replace(side(_HOSTILE, _HOSTILE, _HOSTILE), version=_HOSTILE),
        candidate=replace(side(_HOSTILE, "`" * 40, "|" * 9), artifact_sha256=_HOSTILE),
        measures=(
            *REGRESSED_RESULT.measures,
            replace(
                measured(P99, 0.2, outcome=Outcome.REGRESSED),
                measure=Measure(
                    phase=_HOSTILE, operation=_HOSTILE, metric=_HOSTILE, statistic=_HOSTILE
                ),
                reason=_HOSTILE,
                before=math.nan,
                after=math.inf,
                effect=Effect(
                    relative_change=math.nan, low=-math.inf, high=math.inf, confidence=math.nan
                ),
                detectable=math.nan,
            ),
        ),
        trials=turns(8, {1: (TrialStatus.FAILED, _HOSTILE), 2: (TrialStatus.INVALID, _HOSTILE)}),
        diagnostics=(
            replace(
                of_servers("server_cpu", -4e14, 4e14, 0.0),
                measure=Measure(
                    phase=_HOSTILE, operation=_HOSTILE, metric=_HOSTILE, statistic=_HOSTILE
                ),
            ),
        ),
        defaults=(KnobValues(path=_HOSTILE, key=_HOSTILE, before=_HOSTILE, after="`" * 30),),
    ),
    changes=(
        ExperimentChange(
            suite=_HOSTILE,
            experiment=_HOSTILE,
            knobs=(KnobValues(path=_HOSTILE, key=_HOSTILE, before=_HOSTILE, after="`" * 30),),
        ),
        ExperimentChange(suite=_HOSTILE, experiment="x", knobs=(), text=_HOSTILE),
    ),
    problems=(_HOSTILE,),
    notes=(_HOSTILE,),
)
TOO_LONG = made(
    *(
        replace(
            REGRESSED_RESULT,
            id=f"cmp-2026-03-01-{turn}",
            experiment=f"put-get-{turn}",
            trials=turns(
                48,
                {2: (TrialStatus.INVALID, _DRIFTED), 9: (TrialStatus.FAILED, "x" * 300)},
                name=f"cmp-2026-03-01-{turn}",
            ),
        )
        for turn in range(1, 101)
    )
)
SOME_UNCOMPARED = replace(
    UNCHANGED,
    changes=(*UNCHANGED.changes, replace(UNCOMPARABLE.changes[1], experiment="put-get-large")),
)
SOME_PROBLEMS = replace(UNCHANGED, problems=PROBLEMS.problems)
_NO_ROOM = "node-1: the disk is full: 0 of 2,147,483,648 bytes are free"
NEITHER_RUNS = made(
    compared(
        (),
        trials=turns(8, dict.fromkeys(range(8), (TrialStatus.FAILED, _NO_ROOM))),
        ended="no trial of the baseline completed after 2 blocks, 8 trials",
    )
)
UNTRIED = replace(
    ATTRIBUTED,
    attributions=(ATTRIBUTED.attributions[1],),
    notes=tuple(
        f"not attributed: {knob.path} of {_NAME}, since the budget is used up" for knob in (KNOB, SYNC)
    ),
)
EMPTY = replace(NOTHING, base=None, head=None, notes=())
SITUATIONS = {
    "some-uncompared": SOME_UNCOMPARED,
    "some-problems": SOME_PROBLEMS,
    "neither-runs": NEITHER_RUNS,
    "untried": UNTRIED,
    "empty": EMPTY,
    "regressed": REGRESSED,
    "several-knobs": SEVERAL_KNOBS,
    "attributed": ATTRIBUTED,
    "improved": IMPROVED,
    "unchanged": UNCHANGED,
    "undecided": UNDECIDED,
    "mixed": MIXED,
    "some-invalid": SOME_INVALID,
    "invalid": INVALID,
    "failed": FAILED,
    "problems": PROBLEMS,
    "nothing-differs": NOTHING,
    "uncomparable": UNCOMPARABLE,
    "hostile": HOSTILE,
    "too-long": TOO_LONG,
    "planted": PLANTED,
    "explained": EXPLAINED,
    "unexplained": UNEXPLAINED,
}
RESULTS = tuple(
    replace(one.comparisons[0], id=f"cmp-2026-03-0{day}-1", finished_at=STARTED + timedelta(days=day))
    for day, one in enumerate((REGRESSED, SOME_INVALID, UNDECIDED, PLANTED), start=1)
)
"""Comparisons of a data directory, oldest first."""

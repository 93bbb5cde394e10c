"""Profiles of both sides of a made-up comparison, with a method that became slower."""

from datetime import UTC, datetime

from made_up_comparison import RESULTS

from analysis.comparing.profiles import Profile, ProfileComparison, compare_profiles
from perf.model.results import SIDES

THREAD = ("java.lang.Thread.run()", "org.apache.cassandra.concurrent.SEPWorker.run()")
SYNC = (*THREAD, "org.apache.cassandra.db.commitlog.CommitLog.sync()", "<fsync>")
STACKS = {
    SYNC: 100.0,
    (*THREAD, "org.apache.cassandra.db.memtable.SkipListMemtable.put()"): 300.0,
    ("start_thread", "G1ParTask::work"): 40.0,
}


def _profiles() -> list[Profile]:
    return [
        Profile(
            side=side,
            stacks=STACKS | {SYNC: STACKS[SYNC] + number + (400.0 if side == "candidate" else 0.0)},
            unit=0.1,
            grain=0.1,
        )
        for side in SIDES
        for number in range(4)
    ]


_CPU = compare_profiles("steady", "cpu", _profiles())
assert _CPU is not None
_OF = next(one for one in RESULTS if one.outcome == "regressed")
PROFILED = ProfileComparison(
    id="cmp-2026-03-02-1",
    experiment=_OF.experiment,
    baseline=_OF.baseline,
    candidate=_OF.candidate,
    measured_at=datetime(2026, 3, 2, 4, tzinfo=UTC),
    trials=(),
    differences=(_CPU,),
    gaps=("node-1: not profiled: <b>no JVM</b>",),
)
"""Of what the first regressed comparison compared: 40 µs more per operation."""

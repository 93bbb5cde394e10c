"""A made-up history night by night: what throughput drops on one night and comes back on another."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import cache

from made_up_judgement import SETTINGS

from analysis.detection.step_detector import StepDetector
from analysis.judging.judgement import Judgement, judge
from perf.model.results import (
    Named,
    Observation,
    Purpose,
    Release,
    SeriesKey,
    TrialHead,
    TrialId,
    TrialStatus,
)
from perf.model.rules import TriageEntry
from reports.notifications.notification import Notification, view_notifications

FIRST = datetime(2026, 1, 1, 2, 0, tzinfo=UTC)
HOSTILE = "<script>alert('x')</script> & \x00\x1b[31m \u202egnp.exe @everyone |`*#1 😀"
"""What a name can hold at its worst: markup, controls, a turned direction, a mention."""
HALF = "\ud800"
"""Half of a pair: no history can hold one, but an error of a process can."""
RELEASE = Release(system="cassandra", version="5.0.4", line="5.0", ordinal=4)
KEY = SeriesKey(
    system="cassandra",
    line="5.0",
    topology="local-three",
    testbed_class="local",
    config="default",
    workload="sensor-write@0123456789ab",
    engine="python",
    phase="saturation",
    operation="write",
    metric="throughput",
    statistic="mean",
)


@dataclass(frozen=True, kw_only=True)
class Course:
    """How one series goes: `drop` from night `at` on, back from night `back` on."""

    key: SeriesKey = KEY
    at: int = 16
    back: int = 10**6
    drop: float = 0.86
    experiment: str = "cassandra-sensor-write"

    def value(self, night: int, generator: random.Random) -> float:
        level = 4000 * (self.drop if self.at <= night < self.back else 1.0)
        return level * generator.gauss(1, 0.004)


@dataclass(frozen=True, kw_only=True)
class Nights:
    """A judgement after some nights, with the trials behind it."""

    judgement: Judgement
    heads: Mapping[TrialId, TrialHead]

    @property
    def notices(self) -> tuple[Notification, ...]:
        return view_notifications(self.judgement, self.heads)


@cache
def judge_nights(
    count: int, courses: tuple[Course, ...] = (Course(),), triage: tuple[TriageEntry, ...] = ()
) -> Nights:
    """Judge the first `count` nights of these courses."""
    observations = []
    heads = {}
    for number, course in enumerate(courses):
        generator = random.Random(20260101 + number)  # noqa: S311  test data, not a secret
        for night in range(count):
            head = make_head(course, number, night)
            heads[head.id] = head
            observations.append(
                Observation(
                    key=course.key,
                    trial=head.id,
                    release=head.release,
                    started_at=head.started_at,
                    status=head.status,
                    night=head.night,
                    value=course.value(night, generator),
                )
            )
    judgement = judge(
        observations,
        SETTINGS,
        StepDetector(settings=SETTINGS),
        triage=triage,
        today=date(2026, 3, 1),
    )
    return Nights(judgement=judgement, heads=heads)


def make_head(course: Course, number: int, night: int) -> TrialHead:
    """Return one trial of a course."""
    started = FIRST + timedelta(days=night, minutes=10 * number)
    name = f"{started:%Y-%m-%d}-1"
    return TrialHead(
        id=TrialId(f"{name}.{number:02d}.{course.experiment}"),
        night=name,
        purpose=Purpose.SCHEDULED,
        experiment=course.experiment,
        release=RELEASE,
        artifact=None,
        topology=Named(name="local-three", sha256="0" * 12),
        testbed=Named(name="local", sha256="0" * 12),
        testbed_class="local",
        workload=Named(name="sensor-write", sha256="0123456789ab"),
        config=Named(name="default", sha256="0" * 12),
        engine="python",
        seed=1,
        started_at=started,
        finished_at=started + timedelta(minutes=5),
        status=TrialStatus.COMPLETED,
    )


def hostile_course() -> Course:
    """Return a course whose every name is hostile."""
    key = replace(
        KEY,
        testbed_class="hostile",
        config=HOSTILE,
        workload=f"{HOSTILE}@ab",
        operation=HOSTILE,
        topology=10_000 * "x",
    )
    return Course(key=key, experiment=HOSTILE)

"""Where bisections are tried: trials are made up, at a level for each release."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from analysis.bisecting.bisection import Culprit
from analysis.bisecting.description import describe_bisection
from analysis.bisecting.record import BisectionRecord
from analysis.comparing.blocks import Measure
from analysis.orchestration.bisecting import BisectionQuestion, releases_between, run_bisection
from analysis.orchestration.comparing import Budget
from perf.config.catalog import Catalog, find_experiment
from perf.jobs.measuring import Job
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.results import Purpose, Trial, TrialId

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
THROUGHPUT = Measure(phase="saturation", operation="write", metric="throughput", statistic="mean")
SCATTER = (0.0, 0.004, -0.003, 0.002, -0.005, 0.001, 0.003)
GOOD, SLOW, BROKEN = 1000.0, 800.0, 0.0
MANY = Budget(trials=400, minutes=10_000)


@dataclass(slots=True)
class Lab:
    """Where made-up trials are measured: a level for each release, and who was measured, in order."""

    paths: DataPaths
    catalog: Catalog
    seal: Callable[..., Trial]
    levels: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(map(version, range(8)), GOOD)
    )
    measured: list[str] = field(default_factory=list)
    stop_after: int = 10_000
    break_after: dict[str, int] = field(default_factory=dict)
    """So many trials of a release complete, and then no more."""
    said: io.StringIO = field(default_factory=io.StringIO)

    def bisect(self, budget: Budget = MANY, first: int = 0, last: int = 7) -> BisectionRecord:
        suite = self.catalog.suite("fake-short")
        question = BisectionQuestion(
            suite=suite,
            experiment=find_experiment(suite, "fake-blink"),
            measure=THROUGHPUT,
            releases=releases_between(
                self.catalog.releases("fake"), "fake", version(first), version(last)
            ),
        )
        return run_bisection(Job(self.catalog, self.paths, Progress(self.said)), question, budget)

    def slow_from(self, ordinal: int, level: float = SLOW) -> None:
        self.levels |= {version(each): level for each in range(ordinal, 8)}

    def hold_nights(self, *ordinals: int, **changes: object) -> None:
        for day in range(1, 9):
            self.hold_night(f"2026-02-0{day}-1", ordinals, **changes)

    def hold_night(self, night_id: str, ordinals: Sequence[int], /, **changes: object) -> None:
        for ordinal in ordinals:
            trial = TrialId(f"{night_id}.01.fake-blink.{version(ordinal)}")
            said = {"night": night_id, "purpose": Purpose.SCHEDULED, **changes}
            self.seal(self, version(ordinal), id=trial, **said)


def version(ordinal: int) -> str:
    return f"2.0.{ordinal}"


def reported(record: BisectionRecord) -> str:
    return "\n".join(describe_bisection(record))


def culprit_of(record: BisectionRecord) -> str:
    assert isinstance(record.found, Culprit), reported(record)
    return record.found.step.release.version

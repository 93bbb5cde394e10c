"""The directories that killed commands begin with, and the commands."""

import shutil
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from git_repository import GitRepository
from writing import remember

from analysis.orchestration.judging import judge_history
from perf.config.catalog import load_catalog
from perf.history import bundle
from perf.history.store import append_all
from perf.local.paths import DataPaths
from perf.model.results import Interval, Sample, Trial, TrialId

CONFIGS = Path(__file__).parents[1] / "data" / "configs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A command: `{here}` is its directory, `{incident}` one of its history.

    `prepare` names a method of `Beginnings`. `quick` and `full` are how many kills there are to be;
    `again` is how often what goes on after a kill is killed as well; `fine` are the codes with which it
    may exit; `is_same` says that each run comes to the same history; `later` is what it leaves only
    where it has run before.
    """

    argv: str
    prepare: str
    made_up: bool = False
    cwd: str = "."
    fine: tuple[int, ...] = (0,)
    is_same: bool = False
    quick: int = 2
    full: int = 20
    again: float = 0.3
    later: frozenset[str] = frozenset()


_WHERE = "--suite fake-short --experiment fake-blink"
LONG = {
    "history import": Scenario(
        argv="history import --format csv --system mydb {here}/results.csv",
        prepare="results",
        is_same=True,
    ),
    "matrix": Scenario(argv=f"matrix {_WHERE}", prepare="configs", made_up=True, full=15),
    "compare": Scenario(
        argv=f"compare {_WHERE} --baseline 1.0.0 --candidate 1.0.1",
        prepare="configs",
        made_up=True,
        fine=(1,),
        full=15,
    ),
    "bisect": Scenario(
        argv=f"bisect fake 1.0.0..1.0.2 {_WHERE} --metric throughput",
        prepare="configs",
        made_up=True,
        fine=(1,),
    ),
    "candidate": Scenario(
        argv="candidate --base main --head topic --testbed loop --suite fake-short",
        prepare="repository",
        cwd="work",
        made_up=True,
        full=15,
    ),
    "nightly": Scenario(
        argv="nightly --suite night", prepare="nights", made_up=True, fine=(1,), full=12, again=0.5
    ),
    "report": Scenario(argv="report", prepare="nights", full=10),
    "triage add": Scenario(
        argv="triage add {incident} --state expected --owner tests --note planned",
        prepare="drops",
        full=15,
    ),
}
REAL = {
    "measure": Scenario(
        argv="measure --suite fake-short",
        prepare="configs",
        full=8,
        again=0.8,
        later=frozenset({"var/known-nights.json"}),  # a first night has no plans to keep
    ),
    "nightly on servers": Scenario(
        argv="nightly --suite fake-short", prepare="configs", full=5, again=0.8
    ),
}


@dataclass(frozen=True, slots=True)
class Beginnings:
    """Makes directories, of trials like this one."""

    like: Trial
    intervals: tuple[Interval, ...]

    def bundles(self, here: Path) -> None:
        """Seal eight trials, with histograms of each second."""
        for number in range(8):
            started = self.like.started_at + timedelta(days=number)
            night = f"{started:%Y-%m-%d}"
            changes = {"id": TrialId(f"trial-{number}"), "night": night, "started_at": started}
            self._seal(here, self.intervals, **changes, finished_at=started + timedelta(minutes=3))

    def history(self, here: Path) -> None:
        """Seal them, and append them."""
        self.bundles(here)
        append_all(DataPaths(here / "var"), lambda _: None)

    def results(self, here: Path) -> None:
        """Write what another program measured."""
        rows = (f"2026-03-0{day},1.{day},writes,throughput,{1000 + day}\n" for day in range(1, 9))
        (here / "results.csv").write_text(f"time,release,workload,metric,value\n{''.join(rows)}")

    def configs(self, here: Path) -> None:
        """Copy the tests' configuration, on addresses that no other test has."""
        shutil.copytree(CONFIGS, here / "configs")
        testbed = here / "configs" / "testbeds" / "loop.yaml"
        testbed.write_text(testbed.read_text().replace("127.0.0.", "127.0.83."))

    def repository(self, here: Path) -> None:
        """Make a repository with a change of the configuration."""
        repository = GitRepository(here / "work")
        repository.branch("topic")
        repository.edit("systems/fake/default.yaml", "_ms: 1", "_ms: 2")
        repository.commit("slower")

    def nights(self, here: Path) -> None:
        """Remember twelve nights of a suite, all of 1.0.0."""
        remember(here)

    def drops(self, here: Path) -> None:
        """Remember twenty nights of three systems, each of which became slower one night."""
        self.configs(here)
        for night in range(20):
            started = self.like.started_at + timedelta(days=night)
            for place, (system, drops_at) in enumerate((("alpha", 10), ("beta", 13), ("gamma", 16))):
                level = 4000 if night < drops_at else 3200
                sample = Sample(
                    phase="saturation",
                    operation="write",
                    metric="throughput",
                    statistic="mean",
                    value=level * (1 + 0.004 * (night * 7 % 5 - 2)),
                )
                self._seal(
                    here,
                    (),
                    id=TrialId(f"{started:%Y-%m-%d}-1.0{place}"),
                    night=f"{started:%Y-%m-%d}-1",
                    release=replace(self.like.release, system=system),
                    experiment=f"{system}-write",
                    started_at=started,
                    finished_at=started + timedelta(minutes=5),
                    samples=(sample, *(replace(sample, iteration=one) for one in (1, 2))),
                )
        append_all(DataPaths(here / "var"), lambda _: None)
        judgement = judge_history(
            DataPaths(here / "var"), load_catalog(here / "configs"), started.date()
        )
        (here / "incident").write_text(judgement.incidents[0].name)

    def _seal(self, here: Path, intervals: tuple[Interval, ...], **changes: object) -> None:
        trial = replace(self.like, **changes)  # type: ignore[arg-type]
        bundle.seal(bundle.stage(DataPaths(here / "var"), trial.id), trial, intervals)

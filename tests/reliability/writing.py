"""Every kind of command that writes, each with the place it begins from and what it must come to.

`JOBS` names them. A `Bench` makes the place of a job once, and copies it for each try.
`find_sealed` and `find_appended` tell what nobody may lose, `describe` all that a job has to come to.
"""

import gzip
import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from command_server import SCATTER, TEMPLATE
from disks import Commands, Done

from analysis.orchestration.bisecting import read_bisections
from analysis.orchestration.comparing import read_results
from analysis.orchestration.judging import judge_history
from perf.config.catalog import load_catalog
from perf.history import bundle
from perf.history.store import append_all, open_history
from perf.jobs.night import find_missing, read_nights
from perf.local.paths import DataPaths
from perf.model.identity import named
from perf.model.results import Purpose, Sample, Trial, TrialId
from perf.systems.fake.system import Fake

DATA = Path(__file__).parents[1] / "data"
SUITE = """\
name: night
description: Two releases with one between them.
testbed: loop
remeasure_minutes: 60
bisect: auto
bisect_minutes: 120
experiments:
  - {name: blink, system: fake, config: default, topology: three, workload: blink,
      releases: ["1.0.0", "1.0.2"]}
"""
RELEASES = {release.version: release for release in Fake().releases()}
NIGHTS = 12


@dataclass(frozen=True, slots=True)
class Job:
    """A command that writes. `argv` may name places below its own: {data}, {configs}, {place}."""

    argv: tuple[str, ...]
    prepare: Callable[[Path], None]
    code: int = 0
    made_up: bool = False
    is_timed: bool = False
    """What it writes holds the time, so two runs are alike in what they come to, not byte by byte."""


def _template() -> tuple[Trial, Any]:
    return bundle.read(TEMPLATE)


def seal_three(place: Path, appended: int = 0) -> None:
    """Seal three trials of one series, of which some are in the history."""
    trial, intervals = _template()
    paths = DataPaths(place / "var")
    for number in range(3):
        one = replace(trial, id=TrialId(f"trial-{number}"), started_at=trial.started_at, log_tail="x")
        staged = bundle.stage(paths, one.id)
        (staged / bundle.LOGS / "node-1-system.log").write_text("INFO started\n")
        bundle.seal(staged, one, intervals)
        if number + 1 == appended:
            append_all(paths, lambda _: None)


def unpack_older(place: Path) -> None:
    """Put a history of an older schema beside its bundle."""
    paths = DataPaths(place / "var")
    paths.trials.mkdir(parents=True)
    packed = DATA / "histories/version-2.duckdb.gz"
    paths.history.write_bytes(gzip.decompress(packed.read_bytes()))
    for one in (DATA / "bundles/version-2").iterdir():
        shutil.copytree(one, paths.trials / one.name)


def write_results(place: Path) -> None:
    """Write results of another program."""
    shutil.copy(DATA / "imports/results.csv", place / "results.csv")


def remember(place: Path, *, is_slower: bool = False) -> None:
    """Seal and append what earlier nights measured; of late, releases that do a fifth less."""
    paths, configs = DataPaths(place / "var"), place / "configs"
    shutil.copytree(DATA / "configs", configs, ignore=shutil.ignore_patterns("fake-*.yaml", "tiny-*"))
    (configs / "suites/night.yaml").write_text(SUITE)
    catalog = load_catalog(configs)
    suite = catalog.suite("night")
    deployment = catalog.resolve(suite, suite.experiments[0])
    trial, intervals = _template()
    for night in range(NIGHTS * (2 if is_slower else 1)):
        version, level = ("1.0.0", 1000.0) if night < NIGHTS else ("1.0.2", 800.0)
        started_at = datetime.now(UTC) - timedelta(days=2 * NIGHTS - night, hours=1)
        sample = Sample(
            phase="saturation",
            operation="write",
            metric="throughput",
            statistic="mean",
            value=level * (1 + SCATTER[night % len(SCATTER)]),
        )
        one = replace(
            trial,
            id=TrialId(f"{started_at:%Y-%m-%d}-1.01.blink.{version}"),
            night=f"{started_at:%Y-%m-%d}-1",
            purpose=Purpose.SCHEDULED,
            experiment="blink",
            release=RELEASES[version],
            topology=named(deployment.topology),
            testbed=named(deployment.testbed),
            testbed_class=deployment.testbed.testbed_class,
            workload=named(deployment.workload),
            config=named(deployment.config),
            started_at=started_at,
            finished_at=started_at + timedelta(minutes=1),
            samples=(sample,),
        )
        bundle.seal(bundle.stage(paths, one.id), one, intervals[:2])
    append_all(paths, lambda _: None)


def regress(place: Path) -> None:
    """Let the history hold one regression, whose name a file tells."""
    remember(place, is_slower=True)
    judgement = judge_history(
        DataPaths(place / "var"), load_catalog(place / "configs"), datetime.now(UTC).date()
    )
    (place / "incident").write_text(judgement.incidents[0].name)


def write_series(place: Path) -> None:
    """Write series of another origin."""
    values = [1000.0 + 3 * (number % 5) for number in range(12)]
    one = {"name": "one", "better": "higher", "values": values}
    (place / "series.json").write_text(json.dumps({"series": [one]}))


_DATA = ("--data", "{data}")
_BOTH = (*_DATA, "--configs", "{configs}")
JOBS = {
    "append": Job(("append", *_DATA), seal_three),
    "append to a history": Job(("append", *_DATA), partial(seal_three, appended=1)),
    "rebuild": Job(("history", "rebuild", *_DATA), partial(seal_three, appended=2)),
    "prune": Job(("history", "prune", "--older-than", "30", *_DATA), partial(seal_three, appended=3)),
    "upgrade": Job(("append", *_DATA), unpack_older),
    "import": Job(
        ("history", "import", "--format", "csv", "--system", "mydb", "{place}/results.csv", *_DATA),
        write_results,
    ),
    "report": Job(("report", *_BOTH), remember),
    "one page": Job(
        ("report", *_BOTH, "--single-file", "blink", "--output", "{place}/blink.html"),
        remember,
        is_timed=True,
    ),
    "changes": Job(
        ("detect", "--input", "{place}/series.json", "--output", "{place}/changes.json"), write_series
    ),
    "triage": Job(
        (
            *("triage", "add", "{incident}", "--state", "expected", "--owner", "storage"),
            *("--note", "Ticket 12.", *_BOTH),
        ),
        regress,
    ),
    "notices": Job(("notify", "--save", "{place}/notices.json", *_BOTH), regress, is_timed=True),
    "nightly": Job(("nightly", "--suite", "night", *_BOTH), remember, 1, made_up=True, is_timed=True),
    "compare": Job(
        (
            *("compare", "--suite", "night", "--baseline", "1.0.0", "--candidate", "1.0.2"),
            *(
                "--experiment",
                "blink",
                "--trials",
                "8",
                "--measure",
                "saturation/write/throughput/mean",
            ),
            *("--output", "{place}/result.json", *_BOTH),
        ),
        remember,
        code=1,
        made_up=True,
        is_timed=True,
    ),
}


@dataclass(slots=True)
class Bench:
    """Places of jobs, made once and copied for each try."""

    commands: Commands
    root: Path
    made: dict[str, Path] = field(default_factory=dict)
    tries: int = 0

    def copy(self, name: str) -> Path:
        """Return a fresh place of a job."""
        if name not in self.made:
            place = self.root / "made" / name.replace(" ", "-")
            place.mkdir(parents=True)
            JOBS[name].prepare(place)
            self.made[name] = place
        self.tries += 1
        return Path(shutil.copytree(self.made[name], self.root / f"try-{self.tries}"))

    def run(self, name: str, place: Path, **faults: Any) -> Done:  # noqa: ANN401  those of Commands.run
        """Run a job's command in a place; `faults` as in `Commands.run`."""
        argv = fill_in(name, place, place)
        return self.commands.run(*argv, made_up=JOBS[name].made_up, under=place, **faults)

    def twice(self, name: str) -> dict[str, object]:
        """Return what a job comes to that is done two times."""
        place = self.copy(name)
        for _ in range(2):
            assert self.run(name, place).code == JOBS[name].code
        return describe(name, place)


def has_answered(name: str, place: Path) -> bool:
    """Return whether a comparison came to its answer: it is not made again, the next one is another."""
    return name == "compare" and bool(read_results(DataPaths(place / "var")))


def fill_in(name: str, place: Path, made: Path) -> list[str]:
    """Return the command line of a job for a place that begins as what was made."""
    incident = made / "incident"
    reported = {
        "data": str(place / "var"),
        "configs": str(place / "configs"),
        "place": str(place),
        "incident": incident.read_text() if incident.exists() else "",
    }
    return [one.format(**reported) for one in JOBS[name].argv]


def find_sealed(place: Path) -> set[str]:
    """Return the trials that a place holds in bundles, all of which must be sound."""
    return {str(bundle.read(one)[0].id) for one in bundle.find(DataPaths(place / "var"))}


def find_appended(place: Path) -> set[str]:
    """Return the trials of a place's history, which must be readable."""
    path = DataPaths(place / "var").history
    if not path.exists():
        return set()
    with open_history(path, read_only=True) as history:
        return {str(head.id) for head in history.heads()}


def find_reported(done: Done) -> set[str]:
    """Return the trials that a command said it had appended."""
    return {line.split()[1] for line in done.err.splitlines() if line.strip().startswith("appended ")}


def describe(name: str, place: Path) -> dict[str, object]:
    """Return all that a job has come to, alike for two runs of it."""
    paths = DataPaths(place / "var")
    is_timed = JOBS[name].is_timed
    said: dict[str, object] = {}
    if paths.history.exists():
        with open_history(paths.history, read_only=True) as history:
            said["history"] = len(history.heads()) if is_timed else history.tables_digest()
            kept = {str(head.id) for head in history.heads()}
        said["in bundles"] = kept == {one.name for one in bundle.find(paths)}
    if is_timed:
        said["nights"] = [
            len(night.trials) - len(find_missing(night, paths)) for night in read_nights(paths)
        ]
        said["compared"] = [one.outcome for one in read_results(paths)]
        found = [one.found.sentence if one.found else "" for one in read_bisections(paths)]
        said["bisected"] = found
        said["pages"] = (paths.site / "index.html").exists()
    said |= {
        one.name: "there" if is_timed else hashlib.sha256(one.read_bytes()).hexdigest()
        for one in (*place.glob("*.json"), *place.glob("*.html"), place / "configs/triage.yaml")
        if one.exists()
    }
    said["files"] = _count_files(place) if is_timed else _list_files(place)
    return said


def _list_files(place: Path) -> list[str]:
    # What is only kept to be quicker is kept where the disk lets us, and said to be missing by nobody.
    quick = ("/answer.json", "/readings.json", "/observations.npz", "/site-stamp.json")
    beside = (".lock", ".wal", *quick)
    names = (str(one.relative_to(place)) for one in place.rglob("*"))
    return sorted(one for one in names if not one.endswith(beside))


def _count_files(place: Path) -> dict[str, int]:
    """Count by folder of the data directory: names hold the time."""
    counts: dict[str, int] = {}
    for path in _list_files(place):
        top = "/".join(path.split("/")[:2])
        counts[top] = counts.get(top, 0) + 1
    return counts

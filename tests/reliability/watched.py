"""What is known to be kept in a directory while commands are killed there, and held against it."""

import hashlib
import random
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from disks import Commands, Done, dying
from killed_commands import Scenario

from perf.history import bundle
from perf.history.place import has_history
from perf.history.store import open_history, rebuild
from perf.local.paths import DataPaths

# Not the last line of a killed command, which may be half a line.
_TOLD = re.compile(r"^\s*appended (\S+).*\n", re.MULTILINE)
_OF_THE_SYSTEM = re.compile(r"tmp/(knickpoint-|[a-z0-9_]{8}$)")
_OF_OTHERS = "host-drifted"
"""What the other tests of a machine may do to a trial: they change its settings for a while."""


def digest_tree(place: Path) -> str:
    """Return what stands for all files of a bundle."""
    whole = hashlib.sha256()
    for path in sorted(place.rglob("*")):
        whole.update(path.relative_to(place).as_posix().encode())
        if path.is_file():
            whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def list_kinds(here: Path) -> set[str]:
    """Return the names of all files and directories, without numbers and hashes.

    Not those of git, which are in its own care, and not what is the system's to remove: ours, and the
    file of eight letters with which Python tries whether a directory for such things can be written.
    """
    names = (path.relative_to(here).as_posix() for path in here.rglob("*") if ".git" not in path.parts)
    kept = (name for name in names if not _OF_THE_SYSTEM.match(name))
    return {re.sub(r"[0-9a-f]{7,}|\d+", "#", name).replace("+", "") for name in kept}


def digest_history(path: Path) -> str:
    with open_history(path, read_only=True) as history:
        return history.tables_digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What an undisturbed run took and left."""

    seconds: float
    changes: int
    kinds: set[str]
    digest: str


@dataclass(slots=True)
class Watched:
    """A directory whose command is killed, and what is known to be kept there."""

    scenario: Scenario
    here: Path
    launcher: Commands
    sealed: dict[str, str] = field(default_factory=dict)
    reported: set[str] = field(default_factory=set)

    @property
    def paths(self) -> DataPaths:
        return DataPaths(self.here / "var")

    def run(
        self, environment: Mapping[str, str] | None = None, change: int = 0, **moment: object
    ) -> Done:
        incident = self.here / "incident"
        words = {"here": self.here, "incident": incident.read_text() if incident.exists() else ""}
        argv = [word.format_map(words) for word in self.scenario.argv.split()]
        argv += ["--data", str(self.paths.data)]
        if (configs := self.here / "configs").is_dir():
            argv += ["--configs", str(configs)]
        aside = self.here / "tmp"
        aside.mkdir(exist_ok=True)
        ended = self.launcher.run(
            *argv,
            under=self.here,
            fail=dying(change),
            cwd=self.here / self.scenario.cwd,
            made_up=self.scenario.made_up,
            environment={"TMPDIR": str(aside), **(environment or {})},
            **moment,  # type: ignore[arg-type]
        )
        self.reported |= set(_TOLD.findall(ended.said))
        return ended

    def check_kept(self) -> None:
        """Hold what is there against what was there before, and what was reported."""
        now = {place.name: digest_tree(place) for place in bundle.find(self.paths)}
        assert {name: now.get(name) for name in self.sealed} == self.sealed
        self.sealed = now
        assert len(list(self.paths.trials.glob(".*"))) <= 1
        kept = self.read_ids() if has_history(self.paths) else []
        assert len(kept) == len(set(kept))
        assert self.reported <= set(kept) <= set(now)

    def read_ids(self) -> list[str]:
        with open_history(self.paths.history, read_only=True) as history:
            return [name for (name,) in history.query("SELECT trial_id FROM trials").rows]

    def check_whole(self, ended: Done, expected: Expected) -> None:
        """Hold a directory in which the command succeeded against one in which it was never killed."""
        trials = [bundle.read(place)[0] for place in bundle.find(self.paths)]
        for trial in trials:
            kinds = {reason.kind for reason in trial.reasons}
            assert kinds <= {_OF_OTHERS}, (trial.id, trial.reasons, trial.log_tail)
        fine = {*self.scenario.fine, *([3] if any(trial.reasons for trial in trials) else [])}
        assert ended.code in fine, ended
        self.check_kept()
        left = list_kinds(self.here) - expected.kinds - self.scenario.later
        assert not left, left
        if self.paths.history.exists():
            assert digest_history(self.paths.history) == (expected.digest or self.digest_rebuilt())

    def digest_rebuilt(self) -> str:
        elsewhere = self.here / "rebuilt" / "history.duckdb"
        rebuild(elsewhere, bundle.find(self.paths), lambda _: None)
        return digest_history(elsewhere)


def choose_moment(generator: random.Random, expected: Expected) -> dict[str, object]:
    """Choose when to kill: at a time, the whole group or not, or at a change of a file."""
    if generator.random() < 0.5:
        return {"change": generator.randint(1, expected.changes)}
    seconds = generator.uniform(0, expected.seconds)
    return {"after_s": seconds, "with_group": generator.random() < 0.3}


def observe(scenario: Scenario, begin: Path, here: Path, launcher: Commands) -> Expected:
    """Run the command without a kill."""
    shutil.copytree(begin, here)
    watched = Watched(scenario, here, launcher)
    ended = watched.run()
    assert ended.code in scenario.fine, ended
    return Expected(
        seconds=ended.seconds,
        changes=ended.changes,
        kinds=list_kinds(here),
        digest=digest_history(watched.paths.history) if scenario.is_same else "",
    )

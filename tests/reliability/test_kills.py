"""Commands that are killed with SIGKILL at random moments lose nothing, double nothing, and go on.

Each command begins with a copy of a prepared directory. There it is killed, by the clock or at a change
of a file, and all that it had told or sealed must be there. Then the very same command must succeed,
and leave what an undisturbed run leaves. What is killed is the real entry point; "made up" commands
order trials that are sealed at once, the others of the fake system's servers.
"""

import hashlib
import random
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from killed_commands import LONG, QUICK, REAL, Beginnings, Scenario
from killing import Ended, Launcher, launching
from needs import need

from perf.history import bundle
from perf.history.store import open_history, rebuild
from perf.model import Interval, Trial
from perf.places import Places

_TOLD = re.compile(r"^\s*appended (\S+)", re.MULTILINE)
_MEMORY = Path("/dev/shm")  # noqa: S108  a file system without a disk: more kills in less time
KEEPS = pytest.mark.keeps("a-kill-loses-no-trial", "a-kill-needs-no-hand")


def digest_tree(place: Path) -> str:
    """Give what stands for all files of a bundle."""
    whole = hashlib.sha256()
    for path in sorted(place.rglob("*")):
        whole.update(path.relative_to(place).as_posix().encode())
        if path.is_file():
            whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def list_kinds(here: Path) -> set[str]:
    """Give the names of all files and directories, without numbers and hashes."""
    names = (path.relative_to(here).as_posix() for path in here.rglob("*") if ".git" not in path.parts)
    return {re.sub(r"[0-9a-f]{7,}|\d+", "#", name).replace("+", "") for name in names}


def digest_history(path: Path) -> str:
    with open_history(path, read_only=True) as history:
        return history.tables_digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What an undisturbed run took and left."""

    seconds: float
    calls: int
    kinds: set[str]
    digest: str


@dataclass(slots=True)
class Watched:
    """A directory whose command is killed, and what is known to be kept there."""

    scenario: Scenario
    here: Path
    launcher: Launcher
    sealed: dict[str, str] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)

    @property
    def places(self) -> Places:
        return Places(self.here / "var")

    def run(self, **moment: object) -> Ended:
        argv = [word.format(here=self.here) for word in self.scenario.argv.split()]
        argv += ["--data", str(self.places.data)]
        if (configs := self.here / "configs").is_dir():
            argv += ["--configs", str(configs)]
        ended = self.launcher.run(
            argv,
            cwd=self.here / self.scenario.cwd,
            made_up=self.scenario.made_up,
            **moment,  # type: ignore[arg-type]
        )
        self.told |= set(_TOLD.findall(ended.output))
        return ended

    def check_kept(self) -> None:
        """Hold what is there against what was there before, and what was told."""
        now = {place.name: digest_tree(place) for place in bundle.find(self.places)}
        assert {name: now.get(name) for name in self.sealed} == self.sealed
        self.sealed = now
        assert len(list(self.places.trials.glob(".*"))) <= 1
        kept = self.read_ids() if self.places.history.exists() else []
        assert len(kept) == len(set(kept))
        assert self.told <= set(kept) <= set(now)

    def read_ids(self) -> list[str]:
        with open_history(self.places.history, read_only=True) as history:
            return [name for (name,) in history.query("SELECT trial_id FROM trials").rows]

    def check_whole(self, ended: Ended, expected: Expected) -> None:
        """Hold a directory in which the command succeeded against one in which it was never killed."""
        assert ended.code in self.scenario.fine, ended.output
        self.check_kept()
        assert list_kinds(self.here) <= expected.kinds
        for place in bundle.find(self.places):
            bundle.read(place)
        if self.places.history.exists():
            assert digest_history(self.places.history) == (expected.digest or self.digest_rebuilt())

    def digest_rebuilt(self) -> str:
        elsewhere = self.here / "rebuilt" / "history.duckdb"
        rebuild(elsewhere, bundle.find(self.places), lambda _: None)
        return digest_history(elsewhere)


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    need(shutil.which("cc"), "no C compiler here: install gcc")
    place = tmp_path_factory.mktemp("launcher")
    with launching(place, str(place)) as launcher:
        yield launcher


@pytest.fixture(scope="module")
def beginnings(
    make_trial: Callable[..., Trial], make_intervals: Callable[..., tuple[Interval, ...]]
) -> Beginnings:
    return Beginnings(make_trial(), make_intervals(seconds=4))


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Path]:
    """Give a place for many copies."""
    above = _MEMORY if _MEMORY.is_dir() else tmp_path
    with tempfile.TemporaryDirectory(prefix="knickpoint-kills-", dir=above) as place:
        yield Path(place)


def choose_moment(generator: random.Random, expected: Expected) -> dict[str, object]:
    """Choose when to kill: at a time, the whole group or not, or at a change of a file."""
    if generator.random() < 0.5:
        return {"call": generator.randint(1, expected.calls)}
    seconds = generator.uniform(0, expected.seconds)
    return {"after_s": seconds, "with_group": generator.random() < 0.3}


def observe(scenario: Scenario, begin: Path, here: Path, launcher: Launcher) -> Expected:
    """Run the command without a kill."""
    shutil.copytree(begin, here)
    watched = Watched(scenario, here, launcher)
    ended = watched.run()
    assert ended.code in scenario.fine, ended.output
    return Expected(
        seconds=ended.seconds,
        calls=ended.calls,
        kinds=list_kinds(here),
        digest=digest_history(watched.places.history) if scenario.is_same else "",
    )


def kill_often(name: str, scenario: Scenario, begin: Path, launcher: Launcher, wanted: int) -> int:
    """Kill a command so often, checking after each kill and at the end of each try; count the kills."""
    generator, kills, number = random.Random(name), 0, 0  # noqa: S311  moments, no secret
    expected = observe(scenario, begin, begin.with_name("undisturbed"), launcher)
    while kills < wanted:
        number += 1
        here = begin.with_name(f"try-{number}")
        shutil.copytree(begin, here)
        watched = Watched(scenario, here, launcher)
        watched.check_kept()
        ended = watched.run(**choose_moment(generator, expected))
        while ended.is_killed:
            kills += 1
            watched.check_kept()
            is_again = generator.random() < scenario.again
            ended = watched.run(**(choose_moment(generator, expected) if is_again else {}))
        watched.check_whole(ended, expected)
        shutil.rmtree(here)
    assert launcher.find_left() == []
    return kills


@KEEPS
@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.long) for name in (*LONG, *REAL))]
)
def test_a_killed_command_loses_nothing_and_goes_on(
    name: str,
    room: Path,
    launcher: Launcher,
    beginnings: Beginnings,
    effort: Callable[[int, int], int],
    figures: dict[str, object],
) -> None:
    scenario = (QUICK | LONG | REAL)[name]
    begin = room / "begin"
    begin.mkdir()
    getattr(beginnings, scenario.prepare)(begin)
    wanted = effort(scenario.quick, scenario.full)
    figures[f"kills of {name}"] = kill_often(name, scenario, begin, launcher, wanted)

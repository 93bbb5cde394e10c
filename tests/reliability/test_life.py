"""The life of a data directory, in any order: nothing acknowledged is lost or doubled, all goes on.

A machine of states (Hypothesis) measures, appends, rebuilds, prunes and reports by the real commands,
on a new history or one of an older schema, kills them at any changes of the disk, runs several at
once, damages bundles and the history, and restores from a backup. A model beside it says what each
step must come to. After its kills the same command runs once more, undisturbed: it works.
"""

import shutil
import tempfile
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from disks import Commands, Done, dying
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from killed_commands import CONFIGS
from watched import digest_tree
from writing import find_appended, find_reported, unpack_older

from perf.history import bundle
from perf.history.store import open_history, rebuild, replace_damaged
from perf.local.paths import DataPaths
from perf.model.errors import DamagedHistory, HistoryError
from perf.model.results import Interval, Trial, TrialId

STEPS = 10
MOST_CHANGES = 90
"""Changes of the disk after which a command is killed, at most."""
MOMENTS = st.lists(st.integers(1, MOST_CHANGES), max_size=2)
"""The changes at which a command, run again after each kill, is killed."""
AT_ONCE = (
    "append",
    "detect",
    "history prune --older-than 30",
    "history rebuild",
    "history show",
    "report",
)


def cut(place: Path) -> None:
    content = (place / bundle.TRIAL).read_bytes()
    (place / bundle.TRIAL).write_bytes(content[: len(content) // 2])


def flip(place: Path) -> None:
    content = bytearray((place / bundle.INTERVALS).read_bytes())
    content[len(content) // 2] ^= 1
    (place / bundle.INTERVALS).write_bytes(content)


def lose_trial(place: Path) -> None:
    (place / bundle.TRIAL).unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


class Life(RuleBasedStateMachine):
    """A data directory, and what is known of it: `intact` bundles, `known` trials of the history.

    The history may be `ruined`: not to be read; `older`: of an earlier schema; or `pruned`: rolled up.
    """

    def __init__(
        self, commands: Commands, like: Trial, intervals: tuple[Interval, ...], above: Path
    ) -> None:
        super().__init__()
        self.commands, self.like, self.intervals = commands, like, intervals
        self.room = Path(tempfile.mkdtemp(dir=above))
        self.here = self.room / "here"
        self.paths = DataPaths(self.here / "var")
        self.intact: dict[str, str] = {}
        self.damaged: set[str] = set()
        self.known: set[str] = set()
        self.is_ruined = self.is_older = self.is_pruned = False
        self.has_site = False
        self.measured = 0

    def teardown(self) -> None:
        is_the_same = not (self.is_ruined or self.is_older or self.is_pruned)
        if is_the_same and self.known and self.known == self.intact.keys():
            fresh = self.room / "fresh.duckdb"
            rebuild(fresh, [self.paths.trials / name for name in self.known], lambda _: None)
            with (
                open_history(fresh, read_only=True) as one,
                open_history(self.paths.history, read_only=True) as other,
            ):
                assert one.tables_digest() == other.tables_digest()
        shutil.rmtree(self.room)

    # What the machine does.

    @initialize(is_older=st.booleans())
    def begin(self, *, is_older: bool) -> None:
        self.is_older = is_older
        if is_older:
            unpack_older(self.here)
            for place in bundle.find(self.paths):
                self.keep(place)
            self.known = set(self.intact)

    @rule(count=st.integers(1, 3))
    def measure(self, count: int) -> None:
        for _ in range(count):
            begun = self.like.started_at + timedelta(days=self.measured)
            trial = replace(
                self.like,
                id=TrialId(f"trial-{self.measured}"),
                night=f"{begun:%Y-%m-%d}",
                started_at=begun,
                finished_at=begun + timedelta(minutes=3),
            )
            sealed = bundle.seal(bundle.stage(self.paths, trial.id), trial, self.intervals)
            self.keep(sealed)
            self.measured += 1

    @precondition(lambda self: self.has_bundles() or self.known)
    @rule(moments=MOMENTS)
    def append(self, moments: list[int]) -> None:
        done = self.run("append", moments=moments)
        if self.is_ruined:
            assert done.code == 3, done
            assert "knickpoint history rebuild" in done.said
            return
        # A bundle that was damaged before it was appended is refused, one that is known said to be bad.
        assert done.code == (3 if self.find_bad() else 0), done
        self.known |= self.intact.keys()

    @precondition(lambda self: self.has_bundles())
    @rule(moments=MOMENTS, drops_lost=st.booleans())
    def rebuild(self, moments: list[int], *, drops_lost: bool) -> None:
        lost = set() if self.is_ruined else self.known - self.intact.keys()
        ruined = self.paths.history.read_bytes() if self.is_ruined else b""
        done = self.run("history", "rebuild", *(["--drop-lost"] if drops_lost else []), moments=moments)
        if lost and not drops_lost:
            assert done.code == 3, done
            assert all(one in done.said for one in sorted(lost)[:3]), done
            return
        assert done.code == (3 if self.find_bad() else 0), done
        kept = {one.read_bytes() for one in self.paths.data.glob("history.damaged*.duckdb")}
        assert not ruined or ruined in kept
        self.known, self.is_ruined, self.is_pruned = set(self.intact), False, False

    @precondition(lambda self: self.known and not self.is_ruined)
    @rule(moments=MOMENTS)
    def prune(self, moments: list[int]) -> None:
        done = self.run("history", "prune", "--older-than", "30", moments=moments)
        assert done.code == 0, done
        self.is_pruned = True

    @precondition(lambda self: self.known and not self.is_ruined)
    @rule(moments=MOMENTS)
    def report(self, moments: list[int]) -> None:
        done = self.run("report", "--configs", CONFIGS, moments=moments)
        assert done.code == 0, done
        self.has_site = True

    @precondition(lambda self: self.known and not self.is_ruined and not self.find_bad())
    @rule(commands=st.lists(st.sampled_from(AT_ONCE), min_size=2, max_size=3))
    def run_several_at_once(self, commands: list[str]) -> None:
        if self.known - self.intact.keys():
            return  # what a rebuild refuses is tried alone
        running = [
            self.commands.begin(*one.split(), *self.where(one), under=self.here) for one in commands
        ]
        for one in [self.commands.end(each) for each in running]:
            assert one is not None
            assert one.code == 0 or one.is_refused, one
        self.is_pruned = self.is_pruned or any("prune" in one for one in commands)
        self.append([])
        self.has_site = (self.paths.site / "index.html").exists()

    # What befalls it.

    @precondition(lambda self: self.intact)
    @rule(draw=st.data(), how=st.sampled_from([cut, flip, lose_trial, shutil.rmtree]))
    def damage_bundle(self, draw: st.DataObject, how: Callable[[Path], None]) -> None:
        name = draw.draw(st.sampled_from(sorted(self.intact)))
        how(self.paths.trials / name)
        del self.intact[name]
        self.damaged.add(name)

    @precondition(lambda self: self.damaged)
    @rule()
    def restore_bundles(self) -> None:
        for name in self.damaged:
            place = self.paths.trials / name
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(self.room / "backup" / name, place)
            self.intact[name] = digest_tree(place)
        self.damaged.clear()

    @precondition(lambda self: self.known and not self.is_ruined)
    @rule(how=st.sampled_from([empty, halve]))
    def ruin_history(self, how: Callable[[Path], None]) -> None:
        how(self.paths.history)
        self.is_ruined = True

    @precondition(lambda self: self.is_ruined)
    @rule()
    def mend_as_a_nightly_does(self) -> None:
        before = self.paths.history.read_bytes()
        is_whole = self.has_bundles() and not self.find_bad()
        with suppress(HistoryError):
            replace_damaged(self.paths, DamagedHistory("ruined"), lambda _: None)
            assert is_whole
            self.known, self.is_ruined, self.is_pruned = set(self.intact), False, False
        assert self.is_ruined is not is_whole
        if self.is_ruined:
            assert self.paths.history.read_bytes() == before

    # What holds all the time.

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        now = {name: digest_tree(self.paths.trials / name) for name in self.intact}
        assert now == self.intact
        if not self.is_ruined and not self.is_older:
            assert find_appended(self.here) == self.known
        assert (self.paths.site / "index.html").exists() or not self.has_site
        assert not list(self.paths.data.glob("*.new"))

    def run(self, *argv: object, moments: list[int]) -> Done:
        """Run a command to its end; after each kill it is run once more."""
        where = self.where(str(argv[0]))
        for moment in moments:
            done = self.commands.run(*argv, *where, under=self.here, fail=dying(moment))
            if not done.is_killed:
                break
            if not self.is_ruined and not self.is_older and argv[0] == "append":
                assert find_reported(done) <= find_appended(self.here)
            assert self.paths.site.exists() or not self.has_site
        else:
            done = self.commands.run(*argv, *where, under=self.here)
        self.is_older = False
        return done

    def keep(self, sealed: Path) -> None:
        self.intact[sealed.name] = digest_tree(sealed)
        shutil.copytree(sealed, self.room / "backup" / sealed.name)

    def where(self, command: str) -> tuple[str, ...]:
        configs = ("--configs", str(CONFIGS)) if command in {"report", "detect"} else ()
        return ("--data", str(self.paths.data), *configs)

    def has_bundles(self) -> bool:
        return bool(bundle.find(self.paths))

    def find_bad(self) -> Collection[str]:
        """Return the bundles that are there and damaged."""
        return {name for name in self.damaged if (self.paths.trials / name).exists()}


@pytest.mark.slow
@pytest.mark.timeout(7200)  # a thousand lives take an hour
@pytest.mark.keeps("a-kill-loses-no-trial", "a-kill-needs-no-hand", "several-at-once-harm-nothing")
def test_a_life_in_any_order_loses_nothing_that_was_acknowledged(
    room: Path,
    launcher: Commands,
    make_trial: Callable[..., Trial],
    make_intervals: Callable[..., tuple[Interval, ...]],
    effort: Callable[[int, int], int],
    figures: dict[str, object],
) -> None:
    lives = effort(20, 1000)
    like, intervals = make_trial(), make_intervals(seconds=2)
    run_state_machine_as_test(
        lambda: Life(launcher, like, intervals, room),
        settings=settings(
            max_examples=lives,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert launcher.find_left() == []
    figures["lives"] = lives
    figures["steps of each, at most"] = STEPS

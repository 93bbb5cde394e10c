"""Several commands at once on one data directory: each waits, or is refused in a sentence; none harms.

All are real processes of the real entry point, begun within moments of each other. Afterwards every
trial has one sealed bundle and is once in the history, which equals one that is made of the bundles.
What only reads and writes a history is tried in test_life.py.
"""

import random
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from disks import Commands, Done
from killed_commands import CONFIGS, Beginnings

from analysis.orchestration.judging import judge_history
from perf.config.catalog import load_catalog, read_triage
from perf.history import bundle
from perf.history.store import append_all, open_history, rebuild
from perf.jobs.night import find_missing, read_nights
from perf.local.paths import DataPaths
from perf.model.results import Interval, Trial

KEEPS = pytest.mark.keeps("several-at-once-harm-nothing")


@dataclass(frozen=True, slots=True)
class Together:
    """Starts commands together, each group in a fresh copy of a prepared directory."""

    beginnings: Beginnings
    commands: Commands
    place: Path

    def prepare(self, how: str) -> Path:
        """Return a directory that is prepared in one of the ways of `Beginnings`."""
        original, here = self.place / how, self.place / "here"
        if not original.exists():
            original.mkdir()
            getattr(self.beginnings, how)(original)
        shutil.rmtree(here, ignore_errors=True)
        shutil.copytree(original, here, symlinks=True)
        testbed = here / "configs" / "testbeds" / "loop.yaml"
        if testbed.exists():  # on addresses that no other test has
            testbed.write_text(testbed.read_text().replace("127.0.83.", "127.0.84."))
        return here

    def run(
        self,
        here: Path,
        commands: Sequence[str],
        chance: random.Random,
        *,
        cwd: str = ".",
        made_up: bool = True,
    ) -> list[Done]:
        """Run commands at once; give how each ended."""
        configs = here / "configs" if (here / "configs").is_dir() else CONFIGS
        where = ["--data", str(here / "var")]
        running = []
        for command in commands:
            argv = [*command.split(), *where]
            if not command.startswith(("append", "history", "candidate")):
                argv += ["--configs", str(configs)]
            running.append(self.commands.begin(*argv, cwd=here / cwd, made_up=made_up))
            time.sleep(chance.choice((0, 0, chance.uniform(0, 0.5))))
        ended = [self.commands.end(one) for one in running]
        assert None not in ended, f"{commands} do not end"
        return [one for one in ended if one]


@pytest.fixture
def together(
    tmp_path: Path,
    make_trial: Callable[..., Trial],
    make_intervals: Callable[..., tuple[Interval, ...]],
    launcher: Commands,
) -> Together:
    return Together(Beginnings(make_trial(), make_intervals()), launcher, tmp_path)


def count_refused(ended: Sequence[Done], fine: Sequence[int] = (0,)) -> int:
    """Hold that each command succeeded or was refused in a sentence; give how many were refused."""
    assert not [one for one in ended if "Traceback" in one.said]
    others = [one for one in ended if one.code not in fine]
    assert all(one.is_refused for one in others), others
    return len(others)


def check_history(here: Path) -> int:
    """Hold that what is kept is whole, once, and the same in bundles and history; count trials."""
    paths = DataPaths(here / "var")
    found = bundle.find(paths)
    assert not list(paths.trials.glob(".staging-*"))
    assert not list(paths.data.glob("history.duckdb.*.new")) + list(paths.data.glob("*.new"))
    append_all(paths, lambda _: None)  # what was refused is done now
    with open_history(paths.history, read_only=True) as history:
        digests, whole = history.bundle_digests(), history.tables_digest()
    assert digests == {place.name: bundle.digest(place) for place in found}
    for place in found:
        bundle.read(place)
    fresh = here / "elsewhere.duckdb"
    rebuild(fresh, found, lambda _: None)
    with open_history(fresh, read_only=True) as history:
        assert history.tables_digest() == whole
    return len(found)


@KEEPS
@pytest.mark.slow
def test_two_imports_of_the_same_results(
    together: Together, effort: Callable[[int, int], int], figures: dict[str, object]
) -> None:
    chance = random.Random(16)  # noqa: S311  no secret
    tries = effort(1, 5)
    for _ in range(tries):
        here = together.prepare("results")
        command = f"history import --format csv --system mydb {here}/results.csv"
        assert count_refused(together.run(here, [command] * 3, chance)) == 0
        assert check_history(here) == 8
    figures["three imports"] = f"{tries} times"


_WHERE = "--suite fake-short --experiment fake-blink"


@KEEPS
@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "made_by_one"),
    [
        pytest.param(f"measure {_WHERE} --release 1.0.0", 1, id="measure"),
        pytest.param(f"matrix {_WHERE}", None, id="matrix"),
        pytest.param(f"compare {_WHERE} --baseline 1.0.0 --candidate 1.0.1", None, id="compare"),
        pytest.param(f"bisect fake 1.0.0..1.0.2 {_WHERE} --metric throughput", None, id="bisect"),
    ],
)
def test_two_of_what_measures(
    together: Together,
    command: str,
    made_by_one: int | None,
    effort: Callable[[int, int], int],
    figures: dict[str, object],
) -> None:
    chance = random.Random(11)  # noqa: S311  no secret
    tries = effort(1, 2)
    refused = 0
    for _ in range(tries):
        here = together.prepare("configs")
        refused += count_refused(together.run(here, (command, command), chance), (0, 1))
        made = check_history(here)
        assert made_by_one is None or made == (2 - refused) * made_by_one
    figures[f"two of {command.split(maxsplit=1)[0]}"] = f"{tries} times, {refused} commands refused"


@KEEPS
@pytest.mark.slow
def test_two_candidates(together: Together, figures: dict[str, object]) -> None:
    here = together.prepare("repository")
    command = "candidate --base main --head topic --testbed loop --suite fake-short"
    ended = together.run(here, (command, command), random.Random(12), cwd="work")  # noqa: S311
    figures["two of candidate"] = f"1 time, {count_refused(ended, (0, 1))} commands refused"
    check_history(here)


@KEEPS
@pytest.mark.slow
def test_two_nightlies_beside_readers_and_writers(
    together: Together, effort: Callable[[int, int], int], figures: dict[str, object]
) -> None:
    """The second night begins after the report of the first: no trial is of both, none is missing."""
    chance = random.Random(13)  # noqa: S311  no secret
    tries, refused = effort(1, 2), 0
    commands = ("nightly --suite fake-short", "nightly --suite fake-short", "append", "report")
    for _ in range(tries):
        here = together.prepare("configs")
        open_history(DataPaths(here / "var").history).__exit__(None, None, None)
        ended = together.run(here, commands, chance)
        refused += count_refused(ended, (0, 1))
        nightlies = sum(one.code in (0, 1) for one in ended[:2])
        nights = read_nights(DataPaths(here / "var"))
        assert [find_missing(night, DataPaths(here / "var")) for night in nights] == [()] * nightlies
        assert check_history(here) == 2 * nightlies
        assert not list((here / "var" / "nights").glob("*.untold"))
    figures["two nightlies, append, report"] = f"{tries} times, {refused} commands refused"


@KEEPS
@pytest.mark.slow
def test_two_real_nightlies(together: Together, figures: dict[str, object]) -> None:
    """With servers of the fake system, on the same addresses."""
    here = together.prepare("configs")
    commands = ("nightly --suite fake-short", "nightly --suite fake-short")
    ended = together.run(here, commands, random.Random(14), made_up=False)  # noqa: S311  no secret
    refused = count_refused(ended, (0, 1))
    assert check_history(here) == 2 * (2 - refused)
    with open_history(DataPaths(here / "var").history, read_only=True) as history:
        assert {trial.status.value for trial in history.trials()} == {"completed"}
    figures["two nightlies with servers"] = f"1 time, {refused} refused"


@KEEPS
@pytest.mark.slow
def test_decisions_of_several_people_are_all_kept(
    together: Together, effort: Callable[[int, int], int], figures: dict[str, object]
) -> None:
    chance = random.Random(15)  # noqa: S311  no secret
    tries = effort(1, 5)
    for _ in range(tries):
        here = together.prepare("drops")
        judgement = judge_history(
            DataPaths(here / "var"), load_catalog(here / "configs"), datetime.now(UTC).date()
        )
        names = [one.name for one in judgement.incidents]
        assert len(names) > 1
        ended = together.run(
            here,
            [f"triage add {name} --state expected --owner me --note planned" for name in names],
            chance,
        )
        assert [one.code for one in ended] == [0] * len(names), ended
        problems: list[str] = []
        entries = read_triage(here / "configs" / "triage.yaml", problems)
        assert not problems
        assert all(any(entry.name.startswith(name) for entry in entries) for name in names)
    figures[f"{len(names)} decisions at once"] = f"{tries} times"

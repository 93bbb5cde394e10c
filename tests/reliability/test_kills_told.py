"""Kills of what reaches beyond the data directory: a chat channel, and a lake of several labs."""

import random
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import channel_server
import pytest
from channel_server import Channel
from disks import Commands
from killed_commands import Beginnings, Scenario
from lake_of_labs import LakeOfLabs, drop_lake, make_lake
from needs import need
from postgres_server import PASSWORD, PostgresServer, find_programs, serving
from watched import Expected, Watched, choose_moment, digest_history, list_kinds

from perf.local.paths import DataPaths
from perf.model.errors import HistoryError
from reports.clients.webhook import VARIABLE
from reports.notifications.sent_log import SentLog

pytestmark = pytest.mark.slow
NOTIFY = Scenario(argv="notify --webhook --site-url https://example.org", prepare="drops")
MOVES = {
    "to lake": Scenario(argv="history migrate --to lake", prepare="history"),
    "to file": Scenario(argv="history migrate --to file", prepare="history"),
}
_NAME = re.compile(r"https://example.org/incidents/([0-9a-f]+)")


def list_names(channel: Channel) -> list[str]:
    """Return the incident that each message is about, in order."""
    return [_NAME.findall(str(message))[0] for message in channel.heard]


@pytest.mark.keeps("a-kill-sends-nothing-twice")
def test_what_was_written_down_as_reported_is_not_reported_again(
    room: Path,
    launcher: Commands,
    beginnings: Beginnings,
    effort: Callable[[int, int], int],
    figures: dict[str, object],
) -> None:
    begin, generator, kills, repeated = room / "begin", random.Random("notify"), 0, 0  # noqa: S311
    begin.mkdir()
    beginnings.drops(begin)
    expected = None
    for number in range(10_000):
        if kills >= effort(2, 10):
            break
        here = room / f"try-{number}"
        shutil.copytree(begin, here)
        watched = Watched(NOTIFY, here, launcher)
        with channel_server.serve() as channel:
            environment = {VARIABLE: channel.url}
            ended = watched.run(environment, **(choose_moment(generator, expected) if expected else {}))
            own = 0
            while ended.is_killed:
                own += 1
                written, heard = set(SentLog(watched.paths.sent_log).sent), len(channel.heard)
                assert written <= set(list_names(channel))
                ended = watched.run(environment)
                assert not written & set(list_names(channel)[heard:])
        assert ended.code == 0, ended
        names = list_names(channel)
        assert len(set(names)) == 3
        assert set(SentLog(watched.paths.sent_log).sent) == set(names)
        assert len(names) - 3 <= own
        kills, repeated = kills + own, repeated + len(names) - 3
        expected = expected or Expected(
            seconds=ended.seconds, changes=ended.changes, kinds=list_kinds(here), digest=""
        )
        assert list_kinds(here) <= expected.kinds
    figures["kills of notify"] = kills
    figures["messages sent when killed, and again"] = repeated


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    programs = find_programs()
    need(programs, "no PostgreSQL here; install postgresql")
    assert programs is not None
    with serving(programs) as server:
        yield server


@pytest.fixture
def lakes(
    postgres: PostgresServer, room: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], LakeOfLabs]]:
    """Return what makes an empty lake."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    made: list[LakeOfLabs] = []

    def make() -> LakeOfLabs:
        made.append(make_lake(postgres, f"{room}/parquet-{len(made)}/"))
        return made[-1]

    yield make
    for lake in made:
        drop_lake(lake)


def begin_move(name: str, begin: Path, here: Path, lake: LakeOfLabs, launcher: Commands) -> Watched:
    """Copy a directory whose history is about to be moved; "to file" it is in the lake alone."""
    shutil.copytree(begin, here)
    lake.join(DataPaths(here / "var"))
    if name == "to file":
        filled = Watched(MOVES["to lake"], here, launcher).run(SECRET)
        assert filled.code == 0, filled
        DataPaths(here / "var").history.unlink()
    return Watched(MOVES[name], here, launcher)


def read_lake(watched: Watched) -> set[str]:
    """Return the trials of a lake; none where it has no tables yet, which is reported."""
    try:
        return set(watched.read_ids())
    except HistoryError as missing:
        if "there is no history" not in str(missing).lower():
            raise
        return set()


SECRET: Mapping[str, str] = {"PGPASSWORD": PASSWORD}


@pytest.mark.keeps("a-kill-loses-no-trial", "a-kill-needs-no-hand")
@pytest.mark.parametrize("name", MOVES)
def test_a_killed_move_is_whole_or_nothing_and_goes_on(
    name: str,
    room: Path,
    launcher: Commands,
    beginnings: Beginnings,
    lakes: Callable[[], LakeOfLabs],
    effort: Callable[[int, int], int],
    figures: dict[str, object],
) -> None:
    begin, generator, kills = room / "begin", random.Random(name), 0  # noqa: S311  moments, no secret
    begin.mkdir()
    beginnings.history(begin)
    content = digest_history(begin / "var" / "history.duckdb")
    expected = None
    for number in range(10_000):
        if kills >= effort(1, 7):
            break
        watched = begin_move(name, begin, room / f"try-{number}", lakes(), launcher)
        file = watched.paths.history
        ended = watched.run(SECRET, **(choose_moment(generator, expected) if expected else {}))
        while ended.is_killed:
            kills += 1
            if name == "to lake":
                assert read_lake(watched) in (set(), {f"trial-{one}" for one in range(8)})
            ended = watched.run(SECRET)
        assert ended.code == 0, ended
        # Through history.yaml that is the lake, without it the file.
        assert digest_history(file) == content
        (watched.here / "var" / "history.yaml").rename(watched.here / "history.yaml")
        assert digest_history(file) == content
        expected = expected or Expected(
            seconds=ended.seconds, changes=ended.changes, kinds=list_kinds(watched.here), digest=""
        )
        assert list_kinds(watched.here) <= expected.kinds
    figures[f"kills of history migrate {name}"] = kills

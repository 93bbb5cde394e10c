"""Reports that are killed with SIGKILL at any moment leave one whole site, byte for byte.

Each kill is of a real process. Some die at the n-th call that could change anything on the disk, each n
in its turn, so that no moment is left out; others from outside, at moments drawn by chance.
"""

import functools
import itertools
import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime, timedelta
from multiprocessing.context import ForkProcess
from pathlib import Path

import pytest

from perf.config.catalog import load_catalog
from perf.history import bundle
from perf.history.store import append_all
from perf.local.paths import DataPaths
from perf.model.results import Interval, Release, Trial, TrialId
from reports.pages.report import write_report
from reports.site.publishing import exchange
from reports.site.writing import Batch, SiteFile, write_site

CONFIGS = Path(__file__).parents[1] / "data" / "configs"
NOW = datetime(2026, 3, 9, 6, 0, tzinfo=UTC)
_FORK = multiprocessing.get_context("fork")
_OWN = {".knickpoint-site", ".knickpoint-site.lock"}

Build = Callable[[], object]
Pages = dict[str, bytes]


def read_pages(site: Path) -> Pages:
    """Return all that a reader may find in a site."""
    return {
        path.relative_to(site).as_posix(): path.read_bytes()
        for path in site.rglob("*")
        if path.is_file() and path.name not in _OWN
    }


def read_pages_outside_of_rooms(site: Path) -> Pages:
    return {name: page for name, page in read_pages(site).items() if not name.startswith(".new-site-")}


def start(build: Build) -> ForkProcess:
    """Run a build in a process of its own, in a group of its own."""

    def run() -> None:
        # What it tells is nobody's business, and pytest's own handlers neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        build()
        os._exit(0)

    process = _FORK.Process(target=run)
    process.start()
    return process


def end(process: ForkProcess) -> bool:
    """Wait for a process; return whether it was killed, the alternative being that it succeeded."""
    process.join(120)
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def die_at(moment: int, build: Build) -> None:
    """Do a build that is killed just before the n-th call to the system that may change the disk."""
    calls = itertools.count(1)

    def count(event: str, _: object) -> None:
        if event.startswith(("os.", "open", "ctypes.dlsym")) and next(calls) == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    build()


def make_sites(size: int) -> tuple[Callable[[Path], object], Callable[[Path], object]]:
    """Return two builds: some files are the same, some differ, some folders come and go."""

    def build(which: str, site: Path) -> None:
        names = [f"{folder}/{n}.html" for folder in ("series", "trials") for n in range(size)]
        names += [f"only-{which}/deep/{n}.js" for n in range(size)]
        content = {
            path: f"{path} {'same' if n % 3 else which}\n".encode() * 50 for n, path in enumerate(names)
        }
        content["index.html"] = f"front of {which}".encode()

        def make(wanted: Collection[str]) -> Iterator[SiteFile]:
            yield from (SiteFile(path, content[path]) for path in sorted(wanted))

        write_site(site, [Batch(dict.fromkeys(content, which), make)])

    return functools.partial(build, "a"), functools.partial(build, "b")


@pytest.mark.slow
@pytest.mark.keeps("site-whole-or-old")
def test_a_report_killed_at_any_call_leaves_one_whole_site(
    tmp_path: Path, effort: Callable[[int, int], int], figures: dict[str, object]
) -> None:
    one, other = make_sites(6)
    site = tmp_path / "site"
    other(site)
    new = read_pages(site)
    one(site)
    old = read_pages(site)
    moments, found = 0, {"old": 0, "new": 0}
    for moment in itertools.count(1, effort(17, 1)):
        if not end(start(functools.partial(die_at, moment, functools.partial(other, site)))):
            break
        left = read_pages(site)
        assert left in (old, new), f"killed at call {moment}"
        found["old" if left == old else "new"] += 1
        one(site)  # without any other work, and nothing stays
        assert read_pages(site) == old
        assert [*tmp_path.iterdir()] == [site]
        moments += 1
    assert min(found.values()) > 1
    figures["kills, one at each call that may write"] = moments


@pytest.mark.keeps("site-changed-file-by-file")
def test_where_no_step_is_to_be_had_each_file_is_whole_and_the_next_report_mends(
    tmp_path: Path,
    effort: Callable[[int, int], int],
    figures: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("reports.site.publishing.exchange", refuse)
    one, other = make_sites(4)
    site = tmp_path / "site"
    other(site)
    new = read_pages(site)
    one(site)
    old = read_pages(site)
    kills = mixed = 0
    for moment in itertools.count(1, effort(23, 1)):
        if not end(start(functools.partial(die_at, moment, functools.partial(other, site)))):
            break
        left = read_pages_outside_of_rooms(site)
        assert all(page in (old.get(name), new.get(name)) for name, page in left.items())
        assert old.keys() & new.keys() <= left.keys()
        mixed += left not in (old, new)
        one(site)
        assert read_pages(site) == old
        assert [*tmp_path.iterdir()] == [site]
        kills += 1
    assert mixed
    figures["kills"] = kills
    figures["of which left pages of both until the next report"] = mixed


@pytest.mark.keeps("site-whole-or-old")
def test_a_large_report_killed_from_outside_leaves_one_whole_site(
    tmp_path: Path, effort: Callable[[int, int], int], figures: dict[str, object]
) -> None:
    """More files than one process makes: the forked ones outlive their parent, and hold its lock."""
    site = tmp_path / "site"
    builds = [functools.partial(build, site) for build in make_sites(effort(100, 700))]
    figures["kills of reports that make thousands of files"] = kill_often(site, builds, effort(2, 60))
    assert [*tmp_path.iterdir()] == [site]


@pytest.fixture
def paths(
    tmp_path: Path,
    make_trial: Callable[..., Trial],
    make_intervals: Callable[..., tuple[Interval, ...]],
) -> DataPaths:
    """Return a data directory with a history of twelve trials."""
    paths = DataPaths(tmp_path / "var")
    for day in range(1, 13):
        release = Release(system="cassandra", version=f"5.0.{day}", line="5.0", ordinal=day)
        at = make_trial().started_at + timedelta(days=day)
        trial = make_trial(
            id=TrialId(f"trial-{day:02d}"), release=release, started_at=at, finished_at=at
        )
        bundle.seal(bundle.stage(paths, trial.id), trial, make_intervals())
    append_all(paths, lambda _: None)
    return paths


@pytest.mark.slow
@pytest.mark.keeps("site-whole-or-old")
def test_a_real_report_killed_from_outside_leaves_one_whole_site(
    paths: DataPaths, effort: Callable[[int, int], int], figures: dict[str, object]
) -> None:
    builds = [
        functools.partial(write_report, paths, load_catalog(CONFIGS), NOW + timedelta(days=days))
        for days in (0, 3)
    ]
    figures["kills of reports of a history"] = kill_often(paths.site, builds, effort(2, 60))
    assert not [*paths.data.glob(".site*")]


def kill_often(site: Path, builds: list[Build], kills: int) -> int:
    """Kill builds by turns, most of them while what they made is put in place; give how many."""
    whole, took_s = [], 0.0
    for build in (*builds, *builds):
        began_s = time.monotonic()
        build()
        took_s = time.monotonic() - began_s
        whole.append(read_pages(site))
    assert whole[:2] == whole[2:]
    assert whole[0] != whole[1]
    chance = random.Random(10)  # noqa: S311  no secret
    killed = 0
    for turn in itertools.count():
        if killed == kills:
            break
        assert turn < 20 * kills, "too few builds lasted until they were killed"
        process = start(builds[turn % 2])
        if turn % 4:
            wait_until(lambda: is_put_in_place(site) or not process.is_alive())  # noqa: B023  at once
            wait_s = chance.uniform(0, 0.05)
        else:
            wait_s = chance.uniform(0, took_s)
        process.join(wait_s)
        process.kill()
        killed += end(process)
        assert read_pages(site) in whole, f"killed after {wait_s:.4f} s"
    for build, pages in zip(builds, whole, strict=False):
        build()
        assert read_pages(site) == pages
    return killed


def is_put_in_place(site: Path) -> bool:
    """Return whether a stand-in of the site is being put together, or stands in."""
    return any(site.parent.glob(f".{site.name}.knickpoint-*/site/*"))


def wait_until(is_so: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.001)


@pytest.mark.keeps("site-whole-or-old")
def test_this_file_system_exchanges_in_one_step(tmp_path: Path) -> None:
    """Else the tests above would be of the other way alone."""
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    exchange(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "a" / "b").exists()
    assert (tmp_path / "b" / "a").exists()

"""A real sshd on loopback addresses, and data directories with sealed bundles in them."""

import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lake_of_labs import LakeOfLabs, each_lake
from needs import need
from postgres_server import PASSWORD, PostgresServer, find_programs, serving

from perf.history import bundle
from perf.history.store import History, open_history
from perf.history.tables import Tables
from perf.hosts.connections import SHARED
from perf.hosts.remote import SshHost
from perf.local.paths import DataPaths
from perf.model.results import Interval, Trial, TrialId

ADDRESSES = ("127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.75")
"""The last one for a real server of its own."""


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHost]:
    program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    need(program and shutil.which("ssh"), "no sshd and ssh here; install openssh-server")
    assert program is not None
    home = tmp_path_factory.mktemp("ssh")
    for key in ("host", "user"):
        make_key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / key)]
        subprocess.run(make_key, check=True)
    shutil.copy(home / "user.pub", home / "authorized_keys")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (home / "sshd.conf").write_text(
        f"Port {port}\nHostKey {home}/host\n"
        + "".join(f"ListenAddress {address}\n" for address in ADDRESSES)
        + f"AuthorizedKeysFile {home}/authorized_keys\nPidFile none\nStrictModes no\n"
        "PasswordAuthentication no\nUsePAM no\nPermitRootLogin prohibit-password\n"
        "SetEnv SHLVL=1\n"  # bash leaves out ~/.bashrc, which may take a minute
    )
    public = (home / "host.pub").read_text().split(maxsplit=2)
    known = (f"[{address}]:{port} {public[0]} {public[1]}\n" for address in ADDRESSES)
    (home / "known_hosts").write_text("".join(known))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen(
        [program, "-D", "-e", "-f", str(home / "sshd.conf")], stderr=subprocess.PIPE
    )
    options = ("-i", str(home / "user"), "-o", f"UserKnownHostsFile={home}/known_hosts")
    host = SshHost("db1", "127.0.0.1", getpass.getuser(), port, options)
    try:
        end = time.monotonic() + 10
        while not is_open(port):
            assert time.monotonic() < end, "sshd did not start"
            time.sleep(0.02)
        yield host
    finally:
        SHARED.close()
        server.terminate()
        server.communicate(timeout=10)


VERSIONS = ("5.0.3", "5.0.4", "5.0.5")


@pytest.fixture
def paths(tmp_path: Path) -> DataPaths:
    """Return an empty data directory."""
    return DataPaths(tmp_path / "var")


def seal(paths: DataPaths, trial: Trial, intervals: Sequence[Interval]) -> Path:
    staged = bundle.stage(paths, trial.id)
    (staged / bundle.LOGS / "node-1-system.log").write_text("INFO started\n", encoding="utf-8")
    return bundle.seal(staged, trial, intervals)


@pytest.fixture
def make_bundle(
    paths: DataPaths,
    make_trial: Callable[..., Trial],
    make_intervals: Callable[..., tuple[Interval, ...]],
) -> Callable[..., Path]:
    """Return `make_bundle(trial=None, intervals=None)`: it seals one and gives its place."""

    def make(trial: Trial | None = None, intervals: Sequence[Interval] | None = None) -> Path:
        return seal(paths, trial or make_trial(), make_intervals() if intervals is None else intervals)

    return make


@pytest.fixture(scope="session")
def filled_once(
    tmp_path_factory: pytest.TempPathFactory,
    make_trial: Callable[..., Trial],
    make_intervals: Callable[..., tuple[Interval, ...]],
) -> DataPaths:
    """Return a data directory that nobody may change; see `filled`."""
    paths = DataPaths(tmp_path_factory.mktemp("filled") / "var")
    release = make_trial().release
    with open_history(paths.history) as history:
        for ordinal, version in enumerate(VERSIONS, start=3):
            of_version = replace(release, version=version, ordinal=ordinal)
            trial = make_trial(id=TrialId(f"trial-{ordinal}"), release=of_version)
            history.append(seal(paths, trial, make_intervals()))
    return paths


@pytest.fixture
def bundles(paths: DataPaths, filled_once: DataPaths) -> tuple[Path, ...]:
    """Return three sealed bundles, one per release."""
    shutil.copytree(filled_once.trials, paths.trials, dirs_exist_ok=True)
    return tuple(bundle.find(paths))


@pytest.fixture
def filled(paths: DataPaths, bundles: tuple[Path, ...], filled_once: DataPaths) -> DataPaths:
    """Return a data directory whose history holds the three trials."""
    assert len(bundles) == len(VERSIONS)
    shutil.copy(filled_once.history, paths.history)
    return paths


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Yield a PostgreSQL of the tests' own; tests that stop it start it again."""
    programs = find_programs()
    need(programs, "no PostgreSQL here; install postgresql")
    assert programs is not None
    with serving(programs) as server:
        yield server


@pytest.fixture
def lake(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LakeOfLabs]:
    """Yield an empty history of several labs; its password is in the environment."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    yield from each_lake(postgres, tmp_path)


@pytest.fixture
def joined(paths: DataPaths, lake: LakeOfLabs) -> DataPaths:
    """Return an empty data directory of a lab whose history is in the lake."""
    return lake.join(paths)


@pytest.fixture
def append_between(monkeypatch: pytest.MonkeyPatch) -> Callable[[History, Path], None]:
    """Return `append_between(history, bundle)`: it is appended after the next query that is asked.

    The history is one that is open a second time: the one that asks must not see it yet.
    """

    def prepare(history: History, place: Path) -> None:
        rows, stream, waiting = Tables.rows, Tables.stream, [place]

        def asked(tables: Tables) -> None:
            if tables is not history.tables and waiting:
                assert history.append(waiting.pop())

        def rows_then(tables: Tables, sql: str, values: Sequence[object] = ()) -> list[Any]:
            found = rows(tables, sql, values)
            asked(tables)
            return found

        def stream_then(tables: Tables, sql: str, values: Sequence[object] = ()) -> Iterator[Any]:
            yield from stream(tables, sql, values)
            asked(tables)

        monkeypatch.setattr(Tables, "rows", rows_then)
        monkeypatch.setattr(Tables, "stream", stream_then)

    return prepare

"""A lake comes back from a dump of its catalog and a copy of its files: docs/shared-history.md."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from lake_of_labs import LakeOfLabs
from postgres_server import PASSWORD

from perf.history.store import append_all, open_history
from perf.local.paths import DataPaths
from perf.model.results import Trial, TrialId

# Several programs at once, for many seconds; what one lake answers is in test_lake.py.
pytestmark = pytest.mark.slow


def silent(_text: str) -> None:
    """Swallow progress."""


def digest(paths: DataPaths) -> str:
    with open_history(paths.history, read_only=True) as opened:
        return opened.tables_digest()


def flush(paths: DataPaths) -> None:
    with open_history(paths.history) as opened:
        opened._storage.flush()  # type: ignore[attr-defined]  # noqa: SLF001


def run(lake: LakeOfLabs, program: str, *arguments: str) -> None:
    done = subprocess.run(
        [str(lake.server.programs / program), *arguments], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_dump_and_a_later_copy_of_the_files_give_the_lake_back_as_it_was_dumped(
    joined: DataPaths,
    bundles: tuple[Path, ...],
    lake: LakeOfLabs,
    make_bundle: Callable[..., Path],
    make_trial: Callable[..., Trial],
    tmp_path: Path,
) -> None:
    with open_history(joined.history) as opened:
        opened.append(bundles[0])
        opened.append(bundles[1])
    flush(joined)
    with open_history(joined.history) as opened:
        opened.append(bundles[2])  # in the catalog, while the others are in files
    before = digest(joined)
    dump = tmp_path / "catalog.dump"
    run(lake, "pg_dump", "--format=custom", f"--file={dump}", lake.address)
    # Labs go on between the two: with rows in the catalog, and rows moved into files.
    make_bundle(make_trial(id=TrialId("trial-9")))
    append_all(joined, silent)
    flush(joined)
    after = digest(joined)
    copy = shutil.copytree(lake.data_path, tmp_path / "copy")

    shutil.rmtree(lake.data_path)
    with psycopg.connect(lake.server.address, password=PASSWORD, autocommit=True) as session:
        session.execute(f"DROP DATABASE {lake.database} WITH (FORCE)".encode())
        session.execute(f"CREATE DATABASE {lake.database}".encode())
    restored = ("--no-owner", "--single-transaction", f"--dbname={lake.address}", str(dump))
    run(lake, "pg_restore", *restored)
    shutil.copytree(copy, lake.data_path)

    assert digest(joined) == before != after
    done = append_all(joined, silent)
    assert (done.new, done.known) == (1, 3)
    flush(joined)
    assert digest(joined) == after

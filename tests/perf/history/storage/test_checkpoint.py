"""Checkpoints: a file whose checkpoint was torn is as it was before it, with all that was appended."""

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from perf.history.storage import checkpoint, file
from perf.history.store import open_history

pytestmark = pytest.mark.keeps("power-loss-loses-nothing")
HEADERS, BLOCK = 3 * 4096, 2**18


@pytest.fixture
def torn(tmp_path: Path) -> Path:
    """Return a history with rows in its log, whose checkpoint ended in the middle of a block."""
    path = tmp_path / "history.duckdb"
    file.create(path)
    insert(path, 1)
    connection = file.connect(path, read_only=False)
    connection.execute("INSERT INTO reasons VALUES ('t', 2, 'k', 'text')")
    before = path.read_bytes()
    log = path.with_name("history.duckdb.wal").read_bytes()
    spare = keep_spare(connection, path)
    connection.close()
    after = path.read_bytes()
    changed = [
        place
        for place in range(HEADERS, len(before), BLOCK)
        if before[place : place + BLOCK] != after[place : place + BLOCK]
    ]
    assert changed, "no block was written in place: there is nothing to be torn"
    half = changed[0] + BLOCK // 2
    path.write_bytes(before[: changed[0]] + after[changed[0] : half] + before[half:])
    path.with_name("history.duckdb.wal").write_bytes(log)
    checkpoint.backup_of(path).write_bytes(spare)
    return path


def insert(path: Path, number: int) -> None:
    with open_history(path) as history:
        history.tables.execute("INSERT INTO reasons VALUES ('t', ?, 'k', 'text')", [number])


def keep_spare(connection: duckdb.DuckDBPyConnection, path: Path) -> bytes:
    """Make a checkpoint and give what was kept meanwhile."""
    kept = []
    real = checkpoint.durable.remove
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            checkpoint.durable, "remove", lambda one: (kept.append(one.read_bytes()), real(one))
        )
        checkpoint.run(connection, path)
    return kept[0]


def count(path: Path) -> int:
    with open_history(path, read_only=True) as history:
        return len(history.tables.rows("SELECT * FROM reasons"))


def test_without_what_was_kept_it_cannot_be_read(torn: Path) -> None:
    checkpoint.backup_of(torn).unlink()
    with pytest.raises(Exception, match="checksum"):
        count(torn)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_torn_checkpoint_is_mended(torn: Path, *, read_only: bool) -> None:
    file.connect(torn, read_only=read_only).close()
    assert count(torn) == 2
    assert not checkpoint.backup_of(torn).exists()
    insert(torn, 3)
    assert count(torn) == 3


def test_a_file_with_a_newer_header_stays_as_it_is(torn: Path) -> None:
    file.connect(torn, read_only=False).close()
    spare = checkpoint.backup_of(torn)
    insert(torn, 3)
    whole = torn.read_bytes()
    spare.write_bytes(b'{"places": [12288], "sha256": ""}\n')
    checkpoint.repair(torn)
    assert torn.read_bytes() == whole
    assert not spare.exists()


def test_what_was_kept_of_another_checkpoint_is_not_put_back(torn: Path) -> None:
    old = checkpoint.backup_of(torn).read_bytes()
    insert(torn, 3)
    whole = torn.read_bytes()
    checkpoint.backup_of(torn).write_bytes(old)
    assert count(torn) == 3
    assert torn.read_bytes() == whole


def test_a_file_that_another_process_has_open_is_left_alone(torn: Path) -> None:
    spare = checkpoint.backup_of(torn).read_bytes()
    checkpoint.repair(torn)
    checkpoint.backup_of(torn).write_bytes(spare)
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(1, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, torn], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        other.stdout.readline()
        checkpoint.repair(torn)
        assert checkpoint.backup_of(torn).exists()
        other.stdin.close()


def test_a_checkpoint_keeps_the_lock_of_the_file(tmp_path: Path) -> None:
    """A second descriptor of it, closed, would give it up."""
    path = tmp_path / "history.duckdb"
    file.create(path)
    connection = file.connect(path, read_only=False)
    connection.execute("INSERT INTO reasons VALUES ('t', 1, 'k', 'text')")
    checkpoint.run(connection, path)
    code = "import duckdb, sys; duckdb.connect(sys.argv[1])"
    other = subprocess.run([sys.executable, "-c", code, path], capture_output=True, check=False)
    assert b"lock" in other.stderr
    connection.close()


def test_nothing_is_checkpointed_unprotected(tmp_path: Path) -> None:
    path = tmp_path / "history.duckdb"
    file.create(path)
    header = path.read_bytes()[:HEADERS]
    connection = file.connect(path, read_only=False)
    connection.execute("INSERT INTO reasons SELECT 't', range, 'k', 'text' || range FROM range(300000)")
    connection.close()
    assert path.read_bytes()[:HEADERS] == header
    assert path.with_name("history.duckdb.wal").stat().st_size > 0

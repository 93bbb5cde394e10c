"""One history for several labs answers as a file does, keeps each trial once, and lets no query out."""

import re
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from lake_of_labs import LakeOfLabs
from postgres_server import PASSWORD

from perf.history.storage import lake as lake_module
from perf.history.store import History, append_all, open_history, rebuild
from perf.local.paths import DataPaths
from perf.model.errors import BundleError, ConfigError, HistoryError, UsageError
from perf.model.results import Fact, Move, Purpose, Trial, TrialId, find_moves

pytestmark = pytest.mark.slow


def silent(_text: str) -> None:
    """Swallow progress."""


@pytest.fixture
def as_file(bundles: tuple[Path, ...], tmp_path: Path) -> Path:
    """Return a history file of the same bundles."""
    path = tmp_path / "elsewhere.duckdb"
    rebuild(path, bundles, silent)
    return path


def test_it_answers_every_question_as_a_file_does(joined: DataPaths, as_file: Path) -> None:
    assert append_all(joined, silent).new == 3
    assert append_all(joined, silent).known == 3
    assert not joined.history.exists()
    trials = [TrialId(f"trial-{ordinal}") for ordinal in (3, 4, 5)]
    with (
        open_history(joined.history, read_only=True) as shared,
        open_history(as_file, read_only=True) as alone,
    ):
        assert shared.tables_digest() == alone.tables_digest()
        assert shared.trials() == alone.trials() != ()
        assert shared.trials(trials[1:]) == alone.trials(trials[1:])
        assert shared.heads() == alone.heads()
        assert shared.observations() == alone.observations() != ()
        assert shared.observations(*Purpose) == alone.observations(*Purpose)
        assert shared.environments() == alone.environments() != {}
        assert shared.search_bounds() == alone.search_bounds()
        assert shared.bundle_digests() == alone.bundle_digests()
        assert shared.find_trials(version="5.0.4") == alone.find_trials(version="5.0.4") != ()
        assert shared.recordings(trials, "service_time") == alone.recordings(trials, "service_time")
        names = shared.histogram_names(trials[:1], "response_time")
        assert names == alone.histogram_names(trials[:1], "response_time") != ()
        asked = {"phase": names[0][0], "operation": names[0][1], "kind": "response_time"}
        assert shared.percentile(trials[:1], percentile=99.0, **asked) == alone.percentile(
            trials[:1], percentile=99.0, **asked
        )
        with pytest.raises(UsageError, match="no such trial"):
            shared.percentile([TrialId("x")], percentile=99.0, **asked)


def test_what_moved_between_trials_is_found(
    joined: DataPaths, make_bundle: Callable[..., Path], make_trial: Callable[..., Trial]
) -> None:
    for number, kernel in enumerate(("6.1.0", "6.1.1")):
        facts = (Fact(host="localhost", name="kernel", value=kernel),)
        make_bundle(make_trial(id=TrialId(f"trial-{number}"), environment_before=facts))
    append_all(joined, silent)
    with open_history(joined.history, read_only=True) as history:
        moves = find_moves([TrialId("trial-0"), TrialId("trial-1")], history.environments())
    assert moves == (Move(place=1, name="kernel of localhost", before="6.1.0", after="6.1.1"),)


@pytest.mark.keeps("reads-are-of-one-moment")
def test_what_another_lab_appends_meanwhile_moves_no_answer(
    joined: DataPaths,
    bundles: tuple[Path, ...],
    make_bundle: Callable[..., Path],
    make_trial: Callable[..., Trial],
    append_between: Callable[[History, Path], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert append_all(joined, silent).new == len(bundles)
    monkeypatch.setattr(lake_module, "MOST_INLINED", 1)
    release = replace(make_trial().release, version="5.0.1", ordinal=1)
    samples = tuple(replace(one, value=1e9) for one in make_trial().samples)
    earlier = make_bundle(make_trial(id=TrialId("trial-1"), release=release, samples=samples))
    with open_history(joined.history, read_only=True) as asking:
        before = asking.observations()
        with asking.snapshot():
            with open_history(joined.history) as other:
                append_between(other, earlier)
                assert asking.observations() == before
            # By now all rows have been moved into files.
            assert asking.observations() == before
        assert len(asking.observations()) == len(before) * 4 // 3


def test_odd_values_come_back_as_they_were(
    joined: DataPaths,
    make_bundle: Callable[..., Path],
    make_trial: Callable[..., Trial],
    tmp_path: Path,
) -> None:
    odd = "a\0b '\"\\x41 é😀\n\\N"
    trial = make_trial(log_tail=odd, seed=2**62)
    path = tmp_path / "elsewhere.duckdb"
    rebuild(path, [make_bundle(trial)], silent)
    append_all(joined, silent)
    with open_history(path, read_only=True) as history:
        expected = history.tables_digest()
    with open_history(joined.history) as history:
        assert history.trials() == (trial,)
        assert history.tables_digest() == expected


def test_many_trials_are_moved_into_few_files(
    joined: DataPaths,
    as_file: Path,
    lake: LakeOfLabs,
    make_bundle: Callable[..., Path],
    make_trial: Callable[..., Trial],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    append_all(joined, silent)
    assert len(lake.files()) == 1  # the schema's version, so that a bad path is reported at once
    monkeypatch.setattr(lake_module, "MOST_INLINED", 4)
    make_bundle(make_trial(id=TrialId("trial-9")))
    append_all(joined, silent)
    assert 4 < len(lake.files()) < 10
    rebuild(as_file, sorted(joined.trials.iterdir()), silent)
    with (
        open_history(joined.history, read_only=True) as shared,
        open_history(as_file, read_only=True) as alone,
    ):
        assert shared.tables_digest() == alone.tables_digest()


def test_another_content_under_the_same_id_is_refused(
    joined: DataPaths,
    lake: LakeOfLabs,
    make_bundle: Callable[..., Path],
    make_trial: Callable[..., Trial],
) -> None:
    make_bundle()
    append_all(joined, silent)
    other = lake.join(DataPaths(joined.data.parent / "other"), lab="rack-b")
    (other.data / "trials").mkdir()
    joined.trials.rename(joined.data / "aside")
    made = make_bundle(make_trial(seed=7))
    made.rename(other.trials / made.name)
    with (
        open_history(other.history) as history,
        pytest.raises(BundleError, match="give each lab a name of its own"),
    ):
        history.append(other.trials / made.name)


def test_a_lab_cannot_replace_what_all_labs_have(joined: DataPaths, bundles: tuple[Path, ...]) -> None:
    append_all(joined, silent)
    with pytest.raises(UsageError, match=r"(?s)several labs.*knickpoint append"):
        rebuild(joined.history, bundles, silent)


@pytest.mark.usefixtures("bundles")
def test_a_query_can_neither_write_nor_reach_elsewhere(
    joined: DataPaths, lake: LakeOfLabs, tmp_path: Path
) -> None:
    append_all(joined, silent)
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n", encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    with open_history(joined.history, read_only=True) as history:
        for sql in (
            "DELETE FROM trials",
            "CREATE TABLE x (y INTEGER)",
            f"FROM read_csv('{secret}')",
            f"FROM '{secret}'",
            f"FROM glob('{tmp_path}/*')",
            f"COPY trials TO '{tmp_path}/out.csv'",
            f"COPY trials TO '{lake.data_path}out.csv'",
            f"EXPLAIN ANALYZE COPY trials TO '{lake.data_path}out.csv'",
            f"PREPARE x AS COPY trials TO '{lake.data_path}out.csv'",
            f"EXPORT DATABASE '{lake.data_path}out'",
            f"ATTACH '{tmp_path}/other.duckdb'",
            f"ATTACH '{lake.address}' AS x (TYPE postgres)",
            f"FROM postgres_scan('{lake.address}', 'public', 'ducklake_snapshot')",
            "FROM postgres_query('__ducklake_metadata_history', 'SELECT 1')",
            "SELECT (SELECT max(x) FROM system.main.postgres_query('a', 'SELECT 1') AS y(x))",
            "FROM \"Postgres_Query\"('a', 'SELECT 1')",
            "FROM query('FROM postgres' || '_query(''a'', ''SELECT 1'')')",
            "WITH x AS (FROM postgres_execute('a', 'DROP TABLE x')) FROM x",
            "FROM __ducklake_metadata_history.ducklake_snapshot",
            "CALL ducklake_expire_snapshots('history', older_than => now())",
            "FROM ducklake_expire_snapshots('history', older_than => now())",
            "SELECT 1; DETACH history",
            "INSTALL httpfs",
            "LOAD httpfs",
            "SET enable_external_access = true",
            "SELEKT",
        ):
            with pytest.raises(UsageError, match="the query failed"):
                history.query(sql)
        assert history.query("SELECT count(*) AS trials FROM trials").rows == ((3,),)
        assert history.query("WITH x AS (SELECT 1 AS y) FROM x SELECT max(y)").rows == ((1,),)
        for sql in (
            "FROM range(1)",
            "SELECT x FROM (SELECT ['a'] AS y), LATERAL unnest(y) AS z(x)",
            "FROM json_each('[1]')",
            "SELECT unnest(generate_series(1, 1))",
            "SELECT table_name FROM duckdb_tables() WHERE table_name = 'trials'",
        ):
            assert len(history.query(sql).rows) == 1
        assert history.query("SUMMARIZE trials").rows
        assert history.query("DESCRIBE trials").rows
    assert sorted(tmp_path.rglob("*")) == before


def test_a_query_that_is_hidden_in_a_text_sends_no_password_to_another_server(
    joined: DataPaths,
) -> None:
    with open_history(joined.history):
        pass
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        open_history(joined.history, read_only=True) as history,
    ):
        other.setblocking(False)  # noqa: FBT003  the name is socket's
        address = f"host=127.0.0.1 port={other.getsockname()[1]} user=u dbname=x connect_timeout=2"
        hidden = f"FROM postgres_scan('{address}', 'public', 't')".replace("'", "''")
        for sql in (
            f"FROM json_execute_serialized_sql(json_serialize_sql('{hidden}'))",
            f"SELECT 1 WHERE 1 IN (FROM json_execute_serialized_sql(json_serialize_sql('{hidden}')))",
            f"FROM system.main.JSON_Execute_Serialized_SQL(json_serialize_sql('{hidden}'))",
            f"PRAGMA json_execute_serialized_sql(json_serialize_sql('{hidden}'))",
            f"FROM query('{hidden}')",
        ):
            with pytest.raises(UsageError, match="the query failed"):
                history.query(sql)
        with pytest.raises(BlockingIOError):
            other.accept()


@pytest.mark.usefixtures("bundles")
def test_a_role_that_may_only_read_reads(
    joined: DataPaths, lake: LakeOfLabs, make_bundle: Callable[..., Path]
) -> None:
    append_all(joined, silent)
    with lake.connect() as session:
        session.execute(f"DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'")
        session.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    address = lake.address.replace("user=knickpoint", "user=reader")
    lake.join(joined, history=f"ducklake:postgres:{address}")
    with open_history(joined.history, read_only=True) as history:
        assert len(history.trials()) == 3
    make_bundle()
    with pytest.raises(HistoryError, match="permission denied"):
        append_all(joined, silent)
    with lake.connect() as session:
        session.execute("DROP OWNED BY reader; DROP ROLE reader")


def test_even_a_writer_reaches_nothing_else(joined: DataPaths, tmp_path: Path) -> None:
    with open_history(joined.history) as history:
        # Past the check of queries: what DuckDB itself refuses.
        connection = history._storage.connection  # noqa: SLF001
        with pytest.raises(lake_module.duckdb.PermissionException):
            connection.execute(f"COPY trials TO '{tmp_path}/out.csv'")
        with pytest.raises(lake_module.duckdb.Error, match="locked"):
            connection.execute("SET enable_external_access = true")


def test_a_forged_extension_is_not_loaded(
    joined: DataPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = lake_module._find_extension("ducklake")  # noqa: SLF001
    forged = tmp_path / real.name
    content = bytearray(real.read_bytes())
    content[4096] ^= 1
    forged.write_bytes(content)
    monkeypatch.setattr(lake_module, "_find_extension", lambda _name: forged)
    with pytest.raises(HistoryError, match="signature"):
        open_history(joined.history)


def test_there_is_nothing_to_read_yet(joined: DataPaths) -> None:
    with pytest.raises(HistoryError, match="knickpoint append"):
        open_history(joined.history, read_only=True)


def test_another_data_path_is_refused(joined: DataPaths, lake: LakeOfLabs, tmp_path: Path) -> None:
    with open_history(joined.history):
        pass
    lake.join(joined, data_path=f"{tmp_path}/elsewhere/")
    with pytest.raises(HistoryError, match="must be the one that the history was made with"):
        open_history(joined.history)


@pytest.mark.parametrize(
    ("change", "password", "said"),
    [
        (("port=", "port=1"), "right", "Connection refused"),
        (("user=knickpoint", "user=nobody-here"), "right", "password authentication failed"),
        (("", ""), "wrong-and-secret", "password authentication failed"),
        (("dbname=", "dbname=no_"), "right", "does not exist"),
        (("host=127.0.0.1", "host=nowhere.invalid"), "right", "nowhere.invalid"),
    ],
)
def test_a_catalog_that_does_not_let_us_in(
    joined: DataPaths,
    lake: LakeOfLabs,
    monkeypatch: pytest.MonkeyPatch,
    change: tuple[str, str],
    password: str,
    said: str,
) -> None:
    if change[0] == "port=":
        change = (f"port={lake.server.port}", "port=1")
    address = f"ducklake:postgres:{lake.address.replace(*change)}"
    lake.join(joined, history=address)
    if password != "right":  # noqa: S105  a word of this test
        monkeypatch.setenv("PGPASSWORD", password)
    for read_only in (False, True):
        with pytest.raises(HistoryError, match=said) as caught:
            open_history(joined.history, read_only=read_only)
        assert re.search(r"PGPASSWORD or PGPASSFILE", str(caught.value))
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("package", ["psycopg", "duckdb_extension_ducklake"])
def test_the_extra_is_named_where_it_is_missing(
    joined: DataPaths, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(lake_module.importlib.sys.modules, package, None)
    with pytest.raises(UsageError, match=re.escape("--require-hashes -r requirements/lake.lock")):
        open_history(joined.history)


def test_a_wrong_history_yaml_is_reported_before_anything_else(paths: DataPaths) -> None:
    paths.data.mkdir(parents=True)
    (paths.data / "history.yaml").write_text("lab: Rack A\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"(?s)history.yaml:1.*Rack A"):
        open_history(paths.history)


def test_bundles_that_wait_are_appended_together_and_a_bad_one_stops_no_other(
    joined: DataPaths,
    lake: LakeOfLabs,
    make_bundle: Callable[..., Path],
    make_trial: Callable[..., Trial],
) -> None:
    made = "SELECT commit_message FROM ducklake_snapshot_changes ORDER BY snapshot_id DESC LIMIT 1"
    counted = "SELECT count(*) FROM ducklake_snapshot"
    with open_history(joined.history):
        pass
    for name in ("a", "b"):
        make_bundle(make_trial(id=TrialId(name)))
    with lake.connect() as session:
        (before,) = session.execute(counted).fetchall()[0]
        assert append_all(joined, silent).new == 2
        assert session.execute(counted).fetchall() == [(before + 1,)]
        assert session.execute(made).fetchall() == [("append a, b",)]
    beyond = replace(make_trial().counters[0], value=2**64)
    make_bundle(make_trial(id=TrialId("c")))
    make_bundle(make_trial(id=TrialId("d"), counters=(beyond,)))
    done = append_all(joined, silent)
    assert (done.new, done.known, len(done.bad)) == (1, 2, 1)
    assert "/d has a value that the history cannot hold" in done.bad[0]
    with open_history(joined.history, read_only=True) as history:
        assert [head.id for head in history.heads()] == ["a", "b", "c"]

"""The Parquet files of a history of several labs in a bucket: an S3 on this machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from lake_of_labs import LakeOfLabs, drop_lake, make_lake
from postgres_server import PASSWORD, PostgresServer

from perf.history.storage import lake as lake_module
from perf.history.store import append_all, open_history, rebuild
from perf.local.paths import DataPaths
from perf.model.errors import HistoryError, UsageError

# Several programs at once, for many seconds; what one lake answers is in test_lake.py.
pytestmark = pytest.mark.slow

KEYS = {"AWS_ACCESS_KEY_ID": "lab", "AWS_SECRET_ACCESS_KEY": "hidden-from-all"}


def silent(_text: str) -> None:
    """Swallow progress."""


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield host and port of an S3 with an empty bucket."""
    from moto.server import ThreadedMotoServer  # noqa: PLC0415  half a second, in each run that asks for none

    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"{host}:{port}"
    finally:
        server.stop()


@pytest.fixture
def in_bucket(
    postgres: PostgresServer, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LakeOfLabs]:
    """Yield a lake whose files are in a bucket."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    settings = f's3: {{endpoint: "{endpoint}", region: us-east-1, url_style: path, use_ssl: false}}'
    lake = make_lake(postgres, "s3://histories/knickpoint/", settings)
    yield lake
    drop_lake(lake)


def test_files_are_in_the_bucket(
    in_bucket: LakeOfLabs,
    endpoint: str,
    paths: DataPaths,
    bundles: tuple[Path, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_bucket.join(paths)
    with pytest.raises(
        HistoryError, match=r"(?s)histories.*s3://histories/knickpoint/ be read"
    ) as caught:
        append_all(paths, silent)  # there is no bucket yet
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in str(caught.value)
    import boto3  # noqa: PLC0415  as above

    client = boto3.client("s3", endpoint_url=f"http://{endpoint}", region_name="us-east-1")
    client.create_bucket(Bucket="histories")
    monkeypatch.setattr(lake_module, "MOST_INLINED", 3)
    assert append_all(paths, silent).new == 3
    kept = [one["Key"] for one in client.list_objects_v2(Bucket="histories")["Contents"]]
    assert 4 < len(kept) < 12
    assert all(key.startswith("knickpoint/") and key.endswith(".parquet") for key in kept)
    elsewhere = tmp_path / "elsewhere.duckdb"
    rebuild(elsewhere, bundles, silent)
    with (
        open_history(paths.history, read_only=True) as shared,
        open_history(elsewhere, read_only=True) as alone,
    ):
        assert shared.tables_digest() == alone.tables_digest()
        for sql in (
            "FROM read_parquet('s3://others/x.parquet')",
            f"FROM read_csv('http://{endpoint}/histories')",
        ):
            with pytest.raises(UsageError, match="may reach beyond the history"):
                shared.query(sql)
            # Past the check of queries: what DuckDB itself refuses.
            with pytest.raises(lake_module.duckdb.PermissionException):
                shared._storage.connection.execute(sql)  # noqa: SLF001


@pytest.mark.parametrize("missing", sorted(KEYS))
def test_keys_are_asked_for(
    in_bucket: LakeOfLabs, paths: DataPaths, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_bucket.join(paths)
    monkeypatch.delenv(missing)
    with pytest.raises(UsageError, match=f"needs keys; set in the environment: {missing}"):
        open_history(paths.history)

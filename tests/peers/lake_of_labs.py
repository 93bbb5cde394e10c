"""A history of several labs on this machine: a database, and data directories that name it."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
from postgres_server import PASSWORD, PostgresServer

from perf.local.paths import DataPaths

_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class LakeOfLabs:
    """`address` is libpq's; `data_path` is where the Parquet files are."""

    server: PostgresServer
    database: str
    data_path: str
    s3: str = ""

    @property
    def address(self) -> str:
        """How libpq finds the catalog."""
        return self.server.address.replace("dbname=postgres", f"dbname={self.database}")

    def join(self, paths: DataPaths, lab: str = "rack-a", **changes: str) -> DataPaths:
        """Let a data directory keep its history here."""
        values = {"history": f"ducklake:postgres:{self.address}", "data_path": self.data_path}
        lines = [f'{name}: "{value}"' for name, value in (values | changes).items()]
        paths.data.mkdir(parents=True, exist_ok=True)
        text = "\n".join((*lines, f"lab: {lab}", self.s3)) + "\n"
        (paths.data / "history.yaml").write_text(text, encoding="utf-8")
        return paths

    def connect(self) -> "psycopg.Connection":
        """Look into the catalog."""
        return psycopg.connect(self.address, password=PASSWORD, autocommit=True)

    def files(self) -> list[Path]:
        """List the Parquet files."""
        return sorted(Path(self.data_path).rglob("*.parquet"))


def make_lake(server: PostgresServer, data_path: str, s3: str = "") -> LakeOfLabs:
    """Return a lake with nothing in it, not even a table."""
    database = f"lake_{next(_NUMBERS)}"
    with psycopg.connect(server.address, password=PASSWORD, autocommit=True) as session:
        session.execute(f"CREATE DATABASE {database}".encode())
    return LakeOfLabs(server, database, data_path, s3)


def drop_lake(lake: LakeOfLabs) -> None:
    """Remove its database, with all sessions."""
    with psycopg.connect(lake.server.address, password=PASSWORD, autocommit=True) as session:
        session.execute(f"DROP DATABASE {lake.database} WITH (FORCE)".encode())


def each_lake(server: PostgresServer, place: Path) -> Iterator[LakeOfLabs]:
    """Yield a lake with a directory of its own, and remove it afterwards."""
    lake = make_lake(server, f"{place}/parquet/")
    yield lake
    drop_lake(lake)

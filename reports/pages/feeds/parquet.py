"""The export as Parquet, made by DuckDB of the documents. An edge: a directory of its own."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from glob import escape
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from perf.model.errors import SiteError
from reports.pages.feeds.export import FOLDER, PointsDocument, write_document
from reports.pages.feeds.tables import FORMAT, TABLES, Row, list_columns

_TRIAL = (
    "STRUCT(trial VARCHAR, night VARCHAR, purpose VARCHAR, release VARCHAR, release_line VARCHAR,"
    " release_ordinal BIGINT, started_at TIMESTAMP)[]"
)
_POINTS = """
    WITH document AS MATERIALIZED (SELECT * FROM {source}),
    known AS (SELECT unnest(trials, max_depth := 2), generate_subscripts(trials, 1) - 1 AS place
        FROM document),
    names AS (SELECT unnest(points).series AS series, generate_subscripts(points, 1) - 1 AS place
        FROM document)
    SELECT names.series, position, known.* EXCLUDE (place), value
    FROM numbers JOIN names ON names.place = numbers.series JOIN known ON known.place = numbers.trial
    ORDER BY numbers.series, position
"""


def parquet_path(table: str) -> str:
    """Return the path of a table, relative to the root of the site."""
    return f"{FOLDER}/{table}.parquet"


class ParquetWriter:
    """Makes Parquet of documents, one after the other. Only inside of `open_writer`.

    Equal documents give equal files. Each says in its key-value metadata which format it has, and what
    its columns mean.
    """

    def __init__(self, db: duckdb.DuckDBPyConnection, place: Path) -> None:
        """Use a connection and a directory of its own."""
        self._db, self._place = db, place

    def write_table(self, table: str, document: bytes) -> bytes:
        """Return a table of the document of what is judged."""
        listed = ", ".join(f"{one.name} {one.sql_type}" for one in list_columns(TABLES[table]))
        source = self._read(document, {table: f"STRUCT({listed})[]"})
        return self._copy(table, f"SELECT unnest({table}, max_depth := 2) FROM {source}")  # noqa: S608  names of columns

    def write_points(self, document: PointsDocument) -> bytes:
        """Return the points of a document as rows: those of an experiment are too many for JSON."""
        series = document.points
        numbers = {
            "series": np.repeat(np.arange(len(series)), [len(one.trials) for one in series]),
            "position": _join([np.arange(one.first, one.first + len(one.trials)) for one in series]),
            "trial": _join([one.trials for one in series]),
            "value": _join([one.values for one in series], np.float64),
        }
        self._db.register("numbers", numbers)
        rest = [replace(one, trials=(), values=()) for one in series]
        types = {"trials": _TRIAL, "points": "STRUCT(series VARCHAR)[]"}
        source = self._read(write_document(replace(document, points=tuple(rest))), types)
        return self._copy("points", _POINTS.format(source=source))

    def _read(self, document: bytes, types: dict[str, str]) -> str:
        """Write a document to where DuckDB can read it; give the expression that does."""
        path = self._place / "document.json"
        path.write_bytes(document)
        listed = ", ".join(f"'{name}': '{kind}'" for name, kind in types.items())
        return (
            f"read_json({_literal(escape(f'{path}'))}, format = 'unstructured', columns = {{{listed}}},"
            f" maximum_object_size = {len(document) + 1})"
        )

    def _copy(self, table: str, query: str) -> bytes:
        path = self._place / "table.parquet"
        options = f"FORMAT parquet, COMPRESSION zstd, KV_METADATA {_metadata(TABLES[table])}"
        self._db.execute(f"COPY ({query}) TO {_literal(f'{path}')} ({options})")
        return path.read_bytes()


@contextmanager
def open_writer() -> Iterator[ParquetWriter]:
    """Yield a writer; what it needs on disk is gone afterwards.

    Raises:
        SiteError: DuckDB cannot write, say for want of room among the temporary files.

    """
    with tempfile.TemporaryDirectory(prefix="knickpoint-export-") as name, duckdb.connect() as db:
        try:
            db.execute("SET threads = 1")  # several could put the rows in any order
            yield ParquetWriter(db, Path(name))
        except duckdb.Error as error:
            said = str(error).partition("\n")[0].strip()
            raise SiteError(
                f"the export cannot be written: {said}; give room and rights in {Path(name).parent}, "
                "or choose another place with $TMPDIR, and run it again"
            ) from error


def _join(parts: Sequence[Any], kind: type[np.generic] = np.int64) -> NDArray[Any]:
    return np.concatenate([np.array(part, dtype=kind) for part in (*parts, ())])


def _literal(text: str) -> str:
    """Write a text as a literal of DuckDB."""
    return f"'{text.replace(chr(39), chr(39) * 2)}'"


def _metadata(table: type[Row]) -> str:
    """Write the metadata of a file as a literal of DuckDB."""
    reported = {"knickpoint_format": str(FORMAT)}
    for one in list_columns(table):
        reported[one.name] = f"{one.about} ({one.unit})" if one.unit else one.about
    listed = (f"'{name}': {_literal(text)}" for name, text in reported.items())
    return f"{{{', '.join(listed)}}}"

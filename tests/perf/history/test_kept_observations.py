"""Observations that are kept: the same as those that are read, and read again if in doubt."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from large_history import Size, grow
from numpy.typing import NDArray

from perf.history import observed
from perf.history.store import open_history
from perf.history.tables import Tables
from perf.local.paths import DataPaths
from perf.model.columns import Observations

LATE = """
    UPDATE trials SET ordinal = 1, version = '5.0.1', started_at = started_at + INTERVAL 1 HOUR
    WHERE trial_id = (SELECT max(trial_id) FROM trials)
"""
"""The newest trial is one of the first release: in each of its series it lies between the others."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note how many trials' values are read each time."""
    counts: list[int] = []
    columns = Tables.columns

    def noting(tables: Tables, sql: str, values: Sequence[object] = ()) -> dict[str, NDArray[Any]]:
        if sql == observed.VALUES:
            counts.append(len(json.loads(str(values[1]))))
        return columns(tables, sql, values)

    monkeypatch.setattr(Tables, "columns", noting)
    return counts


def read(paths: DataPaths, kept: Path | None) -> tuple[Any, ...]:
    with open_history(paths.history, read_only=True) as history:
        return flatten(history.observed_series(kept=kept))


def flatten(observations: Observations) -> tuple[Any, ...]:
    return tuple(
        (one.key, one.columns.places, one.columns.values, one.columns.iterations, one.columns.ends)
        for one in observations.series
    )


def change(paths: DataPaths, sql: str) -> None:
    with duckdb.connect(paths.history) as connection:
        connection.execute(sql)


def test_a_night_reads_its_own_trials_and_the_answer_is_that_of_reading_all(
    paths: DataPaths, asked: list[int]
) -> None:
    for first, nights in ((0, 3), (3, 4), (4, 30)):
        grow(paths, Size(100, nights), first=first)
        if nights == 30:
            change(paths, LATE)
        assert read(paths, paths.observations) == read(paths, None)
    assert asked == [6, 6, 2, 8, 52, 60]
    assert read(paths, paths.observations) == read(paths, None)
    assert asked[6:] == [60]


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE trials SET bundle_sha256 = 'other' WHERE trial_id = (SELECT min(trial_id) FROM trials)",
        "DELETE FROM trials WHERE trial_id = (SELECT min(trial_id) FROM trials)",
    ],
)
def test_what_is_kept_of_other_bundles_is_not_believed(
    paths: DataPaths, asked: list[int], sql: str
) -> None:
    grow(paths, Size(50, 4))
    read(paths, paths.observations)
    change(paths, sql)
    assert read(paths, paths.observations) == read(paths, None)
    assert asked[1] == asked[2] >= 3


def test_what_is_kept_of_another_history_is_not_believed(paths: DataPaths, asked: list[int]) -> None:
    grow(paths, Size(50, 4))
    read(paths, paths.observations)
    fresh = paths.history.with_name("fresh")
    fresh.write_bytes(paths.history.read_bytes())
    fresh.replace(paths.history)
    read(paths, paths.observations)
    assert asked == [4, 4]


def test_what_is_broken_is_as_none(paths: DataPaths, asked: list[int]) -> None:
    grow(paths, Size(50, 4))
    whole = read(paths, paths.observations)
    content = paths.observations.read_bytes()
    with np.load(paths.observations) as file:
        columns = dict(file)
    # The bit of the first member that says it is encrypted, in the directory at the end.
    flags = content.index(b"PK\1\2") + 8
    encrypted = content[:flags] + b"\1" + content[flags + 1 :]
    cut, spoiled = content[: len(content) // 2], bytes([*content[:-3], 1, 2, 3])
    for broken in (b"", b"\0" * 100, cut, spoiled, encrypted):
        paths.observations.write_bytes(broken)
        assert read(paths, paths.observations) == whole
    for name, other in (
        ("values", columns["values"][:-1]),
        ("counts", columns["counts"][:-1]),
        ("places", columns["places"] + np.uint32(1000)),
        ("ends", columns["ends"] + np.uint32(7)),
        ("keys", np.frombuffer(b'[{"system": 1}]', dtype=np.uint8)),
    ):
        np.savez(paths.observations, **{**columns, name: other})
        assert read(paths, paths.observations) == whole
    assert asked == [4] * 11


def test_a_directory_that_nobody_may_write_costs_nothing_but_time(
    paths: DataPaths, asked: list[int]
) -> None:
    grow(paths, Size(50, 4))
    kept = paths.data / "absent" / "observations.npz"
    assert read(paths, kept) == read(paths, kept) == read(paths, None)
    assert asked == [4, 4, 4]

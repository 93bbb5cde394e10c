"""Data directories with sealed bundles in them."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from lake_of_labs import LakeOfLabs, each_lake
from needs import need
from postgres_server import PASSWORD, PostgresServer, find_programs, serving

from perf.history import bundle
from perf.history.store import History, open_history
from perf.history.tables import Tables
from perf.model import Interval, Trial, TrialId
from perf.places import Places

VERSIONS = ("5.0.3", "5.0.4", "5.0.5")


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Give an empty data directory."""
    return Places(tmp_path / "var")


@pytest.fixture
def make_bundle(
    places: Places,
    make_trial: Callable[..., Trial],
    make_intervals: Callable[..., tuple[Interval, ...]],
) -> Callable[..., Path]:
    """Give `make_bundle(trial=None, intervals=None)`: it seals one and gives its place."""

    def make(trial: Trial | None = None, intervals: Sequence[Interval] | None = None) -> Path:
        trial = trial or make_trial()
        staged = bundle.stage(places, trial.id)
        (staged / bundle.LOGS / "node-1-system.log").write_text("INFO started\n", encoding="utf-8")
        return bundle.seal(staged, trial, make_intervals() if intervals is None else intervals)

    return make


@pytest.fixture
def bundles(make_bundle: Callable[..., Path], make_trial: Callable[..., Trial]) -> tuple[Path, ...]:
    """Give three sealed bundles, one per release."""
    release = make_trial().release
    return tuple(
        make_bundle(
            make_trial(
                id=TrialId(f"trial-{ordinal}"),
                release=type(release)(system="cassandra", version=version, line="5.0", ordinal=ordinal),
            )
        )
        for ordinal, version in enumerate(VERSIONS, start=3)
    )


@pytest.fixture
def filled(places: Places, bundles: tuple[Path, ...]) -> Places:
    """Give a data directory whose history holds the three trials."""
    with open_history(places.history) as history:
        for place in bundles:
            history.append(place)
    return places


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Give a PostgreSQL of the tests' own; tests that stop it start it again."""
    programs = find_programs()
    need(programs, "no PostgreSQL here; install postgresql")
    assert programs is not None
    with serving(programs) as server:
        yield server


@pytest.fixture
def lake(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LakeOfLabs]:
    """Give an empty history of several labs; its password is in the environment."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    yield from each_lake(postgres, tmp_path)


@pytest.fixture
def joined(places: Places, lake: LakeOfLabs) -> Places:
    """Give an empty data directory of a lab whose history is in the lake."""
    return lake.join(places)


@pytest.fixture
def append_between(monkeypatch: pytest.MonkeyPatch) -> Callable[[History, Path], None]:
    """Give `append_between(history, bundle)`: it is appended after the next query that is asked.

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

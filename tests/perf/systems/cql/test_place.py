"""Whose a keyspace on an attached cluster is, and what becomes of it when its mark is refused."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from cassandra.protocol import ServerError

from perf.model.errors import StepFailed
from perf.systems.contract import Target
from perf.systems.cql import place
from perf.systems.cql.place import CqlPlace

TARGET = Target(
    system="cassandra",
    addresses=("192.0.2.1",),
    port=9042,
    replication_factor=1,
    consistency="quorum",
    timeout_s=1.0,
)
MINE = "0011 on here:/data"


class Found:
    """An answer with a row, or none."""

    def __init__(self, *row: str) -> None:
        self.row = row

    def one(self) -> tuple[str, ...] | None:
        return self.row or None


class Answers:
    """A session of a cluster with one keyspace at most, whose table has a comment."""

    def __init__(self, mark: str | None, refuses: str) -> None:
        self.mark, self.refuses = mark, refuses
        self.changes: list[str] = []

    def execute(self, text: str, _: object = None, timeout: float = 0) -> Found:
        assert timeout >= 0
        if not text.startswith("SELECT"):
            self.changes.append(" ".join(text.split()[:2]))
        if self.refuses and text.startswith(self.refuses):
            raise ServerError(0, "refused", [])
        if "system_schema.keyspaces" in text:
            return Found("knickpoint") if self.mark is not None else Found()
        return Found(self.mark) if self.mark else Found()


Answer = Callable[..., Answers]


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Return `answer(mark, refuses)`: have the cluster hold that, and give what it was asked."""

    def answer(mark: str | None = None, refuses: str = "") -> Answers:
        session = Answers(mark, refuses)

        @contextmanager
        def connect(_: Target) -> Iterator[Answers]:
            yield session

        monkeypatch.setattr(place, "open_driver", connect)
        return session

    return answer


def test_what_the_same_owner_left_is_made_anew(answer: Answer) -> None:
    session = answer("made by Knickpoint for 0011 on another-pod:/data")
    CqlPlace().make_place(TARGET, MINE)
    assert session.changes == ["DROP KEYSPACE", "CREATE KEYSPACE", "CREATE TABLE"]


@pytest.mark.parametrize(
    "mark", ["", "made by Knickpoint for 2233 on here:/data", "0011 on here:/data"]
)
def test_what_is_not_the_owners_is_not_touched(answer: Answer, mark: str) -> None:
    session = answer(mark)
    with pytest.raises(StepFailed, match="not touched"):
        CqlPlace().make_place(TARGET, MINE)
    CqlPlace().drop_place(TARGET, MINE)
    assert session.changes == []


def test_a_refused_mark_leaves_no_keyspace(answer: Answer) -> None:
    session = answer(refuses="CREATE TABLE")
    with pytest.raises(StepFailed, match="refused"):
        CqlPlace().make_place(TARGET, MINE)
    assert session.changes == ["CREATE KEYSPACE", "CREATE TABLE", "DROP KEYSPACE"]


def test_what_a_server_refuses_is_a_failed_step(answer: Answer) -> None:
    answer("made by Knickpoint for 0011 on here:/data", refuses="DROP")
    with pytest.raises(StepFailed, match="refused"):
        CqlPlace().drop_place(TARGET, MINE)

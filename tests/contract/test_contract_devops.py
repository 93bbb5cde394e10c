"""All systems give the same answers to the queries of the devops workload, and the expected ones.

MongoDB, ScyllaDB and CrateDB are not here: the first's session asks an emulator, the second's
Cassandra, the third's a peer that knows the documented requests.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeAlias

import pytest
from served import ADDRESS, REAL, Served, deploy

from perf.model.design import Testbed
from perf.model.records import Answer, Devops, Operation
from perf.systems import registry
from perf.systems.conformance import devops
from perf.systems.sessions import DevopsSession
from perf.workloads.devops.batches import Batches
from perf.workloads.devops.queries import QUERIES, check_answer, cpu_history, make_query
from perf.workloads.devops.rows import Group, Query
from perf.workloads.devops.tables import devops_rows
from perf.workloads.loading import devops_stored

SERVERS = [
    pytest.param(name, marks=[pytest.mark.real] if name in REAL else [])
    for name in registry.names()
    if registry.load(name).sessions.devops
]
SMALL = Devops(kind="devops", hosts=9, span_s=2 * 3600, interval_s=60, queries=3)
SEED = 7
BATCH_ROWS = 1000
# The server of this worker's other tests may still be there.
BESIDE = ADDRESS.replace("127.26.0.", "127.26.1.")
Answers: TypeAlias = Mapping[Query, Sequence[Group]]
ASKED = [
    make_query(SMALL, SEED, operation, number)
    for operation in QUERIES
    for number in range(SMALL.queries)
]


@pytest.fixture(scope="module", params=SERVERS)
def served(request: pytest.FixtureRequest) -> Served:
    server: Served = request.getfixturevalue(f"{request.param}_server")
    with _connect(server) as session:
        session.create_schema(devops.RECORDS)
    return server


@pytest.fixture(scope="module")
def session(served: Served) -> Iterator[DevopsSession]:
    with _connect(served) as session:
        yield session


def _connect(served: Served) -> AbstractContextManager[DevopsSession]:
    assert served.system.sessions.devops
    return served.system.sessions.devops(served.target)


def _answer_all(session: DevopsSession) -> Answers:
    """Load the small data set, and ask what can be asked about it."""
    before = session.stored()
    batches = Batches(SMALL, SEED, BATCH_ROWS)
    for number in range(-(-devops_rows(SMALL) // BATCH_ROWS)):
        session.write(batches.batch(number))
    session.finish_load()
    after, expected = session.stored(), devops_stored(SMALL)
    # ScyllaDB's sessions may find the rows there: those of Cassandra wrote them to the same server.
    assert after.rows - before.rows in {expected.rows, 0}
    assert after.payload_bytes - before.payload_bytes in {expected.payload_bytes, 0}
    return {query: session.ask(query) for query in ASKED if session.can_ask(query.operation)}


@pytest.fixture(scope="module")
def answers_of_the_fake_system(fake_server: Served) -> Answers:
    with _connect(fake_server) as session:
        return _answer_all(session)


@pytest.fixture(scope="module")
def answers(served: Served, session: DevopsSession, answers_of_the_fake_system: Answers) -> Answers:
    if served.system.name == "fake":
        return answers_of_the_fake_system
    return _answer_all(session)


def test_every_answer_is_the_expected_one(answers: Answers) -> None:
    history = cpu_history(SMALL, SEED)
    for query, answer in answers.items():
        expected = history.answer(query)
        assert len(expected) > 1
        assert check_answer(query, expected, answer) is Answer.COMPLETED, query
    assert {query.operation for query in answers} == set(QUERIES)


def test_systems_answer_alike(
    answers: Answers,
    answers_of_the_fake_system: Answers,
) -> None:
    for query, answer in answers.items():
        others = answers_of_the_fake_system[query]
        assert [(one.ts_ms, one.host) for one in answer] == [(one.ts_ms, one.host) for one in others]
        for one, other in zip(answer, others, strict=True):
            if query.aggregate == "max":
                assert one.values == other.values
            else:
                assert one.values == pytest.approx(other.values, rel=1e-12)


@pytest.mark.slow
@pytest.mark.real
@pytest.mark.parametrize(("line", "asked"), [("4.0", set()), ("4.1", set(QUERIES))])
def test_older_lines_of_cassandra_say_what_they_can_be_asked(
    line: str, asked: set[Operation], tmp_path: Path, make_testbed: Callable[..., Testbed]
) -> None:
    testbed = make_testbed(jvm_options=("-XX:TieredStopAtLevel=1",))
    with deploy("cassandra", line, tmp_path, testbed, BESIDE) as served, _connect(served) as session:
        session.create_schema(SMALL)
        answers = _answer_all(session)
    history = cpu_history(SMALL, SEED)
    assert {query.operation for query in answers} == asked
    for query, answer in answers.items():
        assert check_answer(query, history.answer(query), answer) is Answer.COMPLETED, query

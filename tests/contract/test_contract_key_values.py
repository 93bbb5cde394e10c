"""What every session of records under keys must keep to, against servers that really answer.

The promises are in `perf/systems/promises/key_values.py`: `knickpoint prove` asks a product elsewhere
the same.
"""

from collections.abc import Iterator

import pytest
from served import Served, keep, name_promise

from perf.systems import registry
from perf.systems.promises import connecting, key_values
from perf.systems.promises.connecting import Reach
from perf.systems.promises.promise import Promise
from perf.systems.sessions import KeyValueSession

# Fixtures with the name of a system and _server; real ones start a real program.
SERVERS = [
    pytest.param("fake"),
    pytest.param("cratedb"),
    pytest.param("mongodb", marks=pytest.mark.real),
    pytest.param("cassandra", marks=pytest.mark.real),
    pytest.param("scylladb", marks=pytest.mark.real),
]


@pytest.fixture(scope="module", params=SERVERS)
def served(request: pytest.FixtureRequest) -> Served:
    server: Served = request.getfixturevalue(f"{request.param}_server")
    assert server.system.sessions.key_value
    with server.system.sessions.key_value(server.target) as session:
        session.create_schema(key_values.RECORDS)
    return server


@pytest.fixture
def session(served: Served) -> Iterator[KeyValueSession]:
    assert served.system.sessions.key_value
    with served.system.sessions.key_value(served.target) as session:
        yield session


def test_every_system_that_keeps_records_has_a_server_here() -> None:
    able = {name for name in registry.names() if registry.load(name).sessions.key_value}
    assert {param.values[0] for param in SERVERS} == able, "add the system's server to conftest.py"


@pytest.mark.parametrize("promise", key_values.PROMISES, ids=name_promise)
def test_session_keeps(
    promise: Promise[KeyValueSession], served: Served, session: KeyValueSession
) -> None:
    keep(promise, served, session)


@pytest.mark.parametrize("promise", connecting.PROMISES, ids=name_promise)
def test_connecting_keeps(promise: Promise[Reach], served: Served, session: KeyValueSession) -> None:
    assert served.system.sessions.key_value
    keep(promise, served, Reach(served.system.sessions.key_value, served.target, session))

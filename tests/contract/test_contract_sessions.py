"""What every session of the sensor workload must keep to, against servers that really answer.

The promises are in `perf/systems/promises/sensor.py`: `knickpoint prove` asks the same of a product
elsewhere. Systems that are declared to store nothing are not asked to read back. MongoDB and ScyllaDB
are not here: the one's session is proven against an emulator of its protocol, the other's against
Cassandra.
"""

from collections.abc import Iterator

import pytest
from served import Served, keep, name_promise

from perf.systems import registry
from perf.systems.promises import connecting, sensor
from perf.systems.promises.connecting import Reach
from perf.systems.promises.promise import Promise
from perf.systems.sessions import SensorSession

# Fixtures with the name of a system and _server; real ones start a real program.
SERVERS = [
    pytest.param("fake"),
    pytest.param("null"),
    pytest.param("cratedb"),
    pytest.param("mongodb", marks=pytest.mark.real),
    pytest.param("cassandra", marks=pytest.mark.real),
    pytest.param("scylladb", marks=pytest.mark.real),
]


@pytest.fixture(scope="module", params=SERVERS)
def served(request: pytest.FixtureRequest) -> Served:
    server: Served = request.getfixturevalue(f"{request.param}_server")
    with server.connect() as session:
        session.create_schema(sensor.RECORDS)
    return server


@pytest.fixture
def session(served: Served) -> Iterator[SensorSession]:
    with served.connect() as session:
        yield session


def test_every_system_has_a_server_here() -> None:
    served = {param.values[0] for param in SERVERS}
    assert served == set(registry.names()), "add the system's server to conftest.py"


@pytest.mark.parametrize("promise", sensor.PROMISES, ids=name_promise)
def test_session_keeps(promise: Promise[SensorSession], served: Served, session: SensorSession) -> None:
    keep(promise, served, session)


@pytest.mark.parametrize("promise", connecting.PROMISES, ids=name_promise)
def test_connecting_keeps(promise: Promise[Reach], served: Served, session: SensorSession) -> None:
    keep(promise, served, Reach(served.system.sessions.sensor, served.target, session))

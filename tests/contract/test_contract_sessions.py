"""What every session must keep to, against servers that really answer.

The promises are in `perf/systems/promises/`: `knickpoint prove` asks the same of a product elsewhere.
Systems that are declared to store nothing are not asked to read back. MongoDB and ScyllaDB are not
here: the one's sessions are proven against an emulator of its protocol, the other's against Cassandra;
nor is CrateDB, whose peer knows the documented requests.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from served import REAL, Served

from perf.systems import registry
from perf.systems.promises.models import Model, list_models
from perf.systems.promises.promise import Promise

CASES = [
    pytest.param(
        (name, model),
        promise,
        marks=[pytest.mark.real] if name in REAL else [],
        id=f"{name}-{model.name}-{promise.ask.__name__.strip('_').replace('_', '-')}",
    )
    for name in registry.names()
    for model in list_models(registry.load(name))
    for promise in model.promises
]


@pytest.fixture(scope="module")
def served(request: pytest.FixtureRequest) -> tuple[Served, Model]:
    name, model = request.param
    server: Served = request.getfixturevalue(f"{name}_server")
    with model.connect(server.target) as session:
        session.create_schema(model.records)
    return server, model


@pytest.fixture(scope="module")
def session(served: tuple[Served, Model]) -> Iterator[Any]:
    """Yield one session that is asked everything, as `knickpoint prove` does."""
    server, model = served
    with model.connect(server.target) as session:
        yield session


@pytest.mark.parametrize(("served", "promise"), CASES, indirect=["served"], scope="module")
def test_session_keeps(served: tuple[Served, Model], promise: Promise[Any], session: Any) -> None:  # noqa: ANN401  of the model
    server, model = served
    finding = model.ask(promise, server.target, session)
    if finding.kept is None:
        pytest.skip(str(finding))
    assert finding.kept, finding.seen

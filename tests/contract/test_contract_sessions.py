"""What every session must keep to, against servers that really answer.

The checks are in `perf/systems/conformance/`; `knickpoint conformance` runs the same elsewhere.
Systems that are declared to store nothing are not asked to read back. MongoDB and ScyllaDB are not
here: the one's sessions are proven against an emulator of its protocol, the other's against Cassandra;
nor is CrateDB, whose peer knows the documented requests.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from served import REAL, Served

from perf.systems import registry
from perf.systems.conformance.check import Check
from perf.systems.conformance.models import Model, list_models

CASES = [
    pytest.param(
        (name, model),
        check,
        marks=[pytest.mark.real] if name in REAL else [],
        id=f"{name}-{model.name}-{check.ask.__name__.strip('_').replace('_', '-')}",
    )
    for name in registry.names()
    for model in list_models(registry.load(name))
    for check in model.checks
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
    """Yield one session that is asked everything, as `knickpoint conformance` does."""
    server, model = served
    with model.connect(server.target) as session:
        yield session


@pytest.mark.parametrize(("served", "check"), CASES, indirect=["served"], scope="module")
def test_session_keeps(served: tuple[Served, Model], check: Check[Any], session: Any) -> None:  # noqa: ANN401  of the model
    server, model = served
    finding = model.run(check, server.target, session)
    if finding.passed is None:
        pytest.skip(str(finding))
    assert finding.passed, finding.seen

"""The checks of each data model; `knickpoint conformance` and the contract suite run all of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from perf.model.records import Records
from perf.systems.conformance import connecting, devops, key_values, sensor
from perf.systems.conformance.check import Check, CheckResult, Skipped, find_out
from perf.systems.conformance.connecting import Reach
from perf.systems.contract import Connect, FakeSystem, System, Target


@dataclass(frozen=True, slots=True)
class Model:
    """A data model that a system offers: how its clients connect, and its checks."""

    name: str
    system: System
    connect: Connect[Any]
    records: Records
    checks: tuple[Check[Any], ...]

    def run(self, check: Check[Any], target: Target, session: Any) -> CheckResult:  # noqa: ANN401  of the model
        """Run a check on a session that is connected to a target; the schema is there."""
        asked = session
        if check in connecting.CHECKS:
            asked = Reach(self.connect, target, session)
        return find_out(f"{self.name}: {check.sentence}", partial(self._run, check, asked))

    def _run(self, check: Check[Any], asked: object) -> str:
        if check.reads_back and isinstance(self.system, FakeSystem) and self.system.loses_rows:
            raise Skipped(self.system.loses_rows)
        return check.ask(asked)


def list_models(system: System) -> Iterator[Model]:
    """Yield the data models that a system offers."""
    for name, records, checks in (
        ("sensor", sensor.RECORDS, sensor.CHECKS),
        ("key-value", key_values.RECORDS, key_values.CHECKS),
        ("devops", devops.RECORDS, devops.CHECKS),
    ):
        if connect := system.sessions.find(records):
            yield Model(name, system, connect, records, (*checks, *connecting.CHECKS))

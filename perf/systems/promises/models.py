"""What is promised of each data model. `knickpoint prove` and the contract suite both ask all of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from perf.model.records import Records
from perf.systems.contract import Connect, StandsIn, System, Target
from perf.systems.promises import connecting, devops, key_values, sensor
from perf.systems.promises.connecting import Reach
from perf.systems.promises.promise import NotAsked, Promise, PromiseFinding, find_out


@dataclass(frozen=True, slots=True)
class Model:
    """A data model that a system offers: how its clients connect, and what they promise."""

    name: str
    system: System
    connect: Connect[Any]
    records: Records
    promises: tuple[Promise[Any], ...]

    def ask(self, promise: Promise[Any], target: Target, session: Any) -> PromiseFinding:  # noqa: ANN401  of the model
        """Ask a promise of a session that is connected to a target; the schema is there."""
        asked = session
        if promise in connecting.PROMISES:
            asked = Reach(self.connect, target, session)
        return find_out(f"{self.name}: {promise.sentence}", partial(self._ask, promise, asked))

    def _ask(self, promise: Promise[Any], asked: object) -> str:
        if promise.reads_back and isinstance(self.system, StandsIn) and self.system.loses_rows:
            raise NotAsked(self.system.loses_rows)
        return promise.ask(asked)


def list_models(system: System) -> Iterator[Model]:
    """Yield the data models that a system offers."""
    for name, records, promises in (
        ("sensor", sensor.RECORDS, sensor.PROMISES),
        ("key-value", key_values.RECORDS, key_values.PROMISES),
        ("devops", devops.RECORDS, devops.PROMISES),
    ):
        if connect := system.sessions.find(records):
            yield Model(name, system, connect, records, (*promises, *connecting.PROMISES))

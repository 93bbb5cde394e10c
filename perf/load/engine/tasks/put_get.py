"""The operations of the put/get workload: put a value, get one, or both in turn under one key."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from perf.load.engine.tasks.task import Parts, Task
from perf.load.spec import LoadSpec
from perf.model.errors import UsageError
from perf.model.records import Answer, Operation, OperationName, PutGet, Values
from perf.systems.sessions import AnswersKeysLater, KeyValueSession, OnGot
from perf.workloads.put_get import check_value, choose_get, choose_put, key_name, make_value


@dataclass(frozen=True, slots=True)
class Put:
    """A value, and the key by index that it is put under."""

    index: int
    key: str
    values: Values


@dataclass(frozen=True, slots=True)
class Get:
    """A key, and its index."""

    index: int
    key: str


@dataclass(frozen=True, slots=True)
class Stock:
    """What is stored: the values of one value seed, which puts store and gets expect."""

    records: PutGet
    seed: int
    value_seed: int
    run: int

    def make_put(self, index: int) -> Put:
        """Make key and value of an index."""
        value = make_value(self.records, self.seed, self.value_seed, index)
        return Put(index, key_name(self.records, self.seed, index), (value,))

    def make_get(self, number: int) -> Get:
        """Choose the key that a get is about."""
        index = self.choose_get(number)
        return Get(index, key_name(self.records, self.seed, index))

    def choose_get(self, number: int) -> int:
        """Choose the index that an operation which gets is about."""
        return choose_get(self.records, self.seed, self.run, number)

    def judge(self, index: int, reply: Values | None) -> Answer:
        """Judge what was got."""
        return check_value(self.records, self.seed, self.value_seed, index, reply)


def make_put_get_tasks(
    spec: LoadSpec, records: PutGet, session: KeyValueSession, parts: Parts
) -> Mapping[OperationName, Task[Any, Any]]:
    """Return the task of each operation of the mix."""
    stock = Stock(records, spec.seed, spec.value_seed, spec.run)
    stock.make_put(0)  # makes the pool of contents, so that no measured operation has to
    return {operation: _make_task(operation, stock, session, parts) for operation in spec.mix}


def _make_task(
    operation: OperationName, stock: Stock, session: KeyValueSession, parts: Parts
) -> Task[Any, Any]:
    later = session if isinstance(session, AnswersKeysLater) else None
    match operation:
        case Operation.PUT:
            return Task(
                prepare=lambda number: stock.make_put(choose_put(stock.records, number)),
                send=lambda put: session.put(put.key, put.values),
                soon=(lambda put, done: later.put_soon(put.key, put.values, done)) if later else None,
                describe=lambda put: f"put of {put.key}",
            )
        case Operation.GET:
            return Task(
                prepare=stock.make_get,
                send=lambda get: session.get(get.key),
                soon=(lambda get, done: later.get_soon(get.key, done)) if later else None,
                judge=lambda get, reply: stock.judge(get.index, reply),
                describe=lambda get: f"get of {get.key}",
            )
        case Operation.PUT_GET:
            return _put_get(stock, session, parts)
        case _:
            raise UsageError(f"records of kind put-get know no operation {operation}")


def _put_get(stock: Stock, session: KeyValueSession, parts: Parts) -> Task[Put, Values | None]:
    """Return what puts a value, then gets it: one operation, whose two parts are timed as well."""
    put, get = (parts(Operation.PUT_GET, name) for name in ("put", "get"))

    def send(prepared: Put) -> Values | None:
        begin_s = put.now()
        session.put(prepared.key, prepared.values)
        put_s = put.now()
        put.note(begin_s, put_s)
        found = session.get(prepared.key)
        get.note(put_s, get.now())
        return found

    def soon(later: AnswersKeysLater, prepared: Put, done: OnGot) -> None:
        begin_s = put.now()

        def go_on(_: None, error: Exception | None) -> None:
            if error is not None:
                done(None, error)
                return
            put_s = put.now()
            put.note(begin_s, put_s)
            later.get_soon(prepared.key, partial(finish, put_s))

        def finish(put_s: float, found: Values | None, error: Exception | None) -> None:
            if error is None:
                get.note(put_s, get.now())
            done(found, error)

        later.put_soon(prepared.key, prepared.values, go_on)

    return Task(
        prepare=lambda number: stock.make_put(stock.choose_get(number)),
        send=send,
        soon=partial(soon, session) if isinstance(session, AnswersKeysLater) else None,
        judge=lambda prepared, reply: stock.judge(prepared.index, reply),
        describe=lambda prepared: f"put-get of {prepared.key}",
    )

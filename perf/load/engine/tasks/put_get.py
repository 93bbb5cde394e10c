"""The operations of the put/get workload: put a value, get one, or both in turn under one key."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perf.load.engine.tasks.task import Parts, Soon, Task
from perf.load.spec import LoadSpec
from perf.model.errors import UsageError
from perf.model.records import Answer, Operation, PutGet, Values
from perf.systems.sessions import AnswersKeysLater, KeyValueSession, OnGot
from perf.workloads.put_get import check_value, choose_get, choose_put, key_name, make_value


@dataclass(frozen=True, slots=True)
class Put:
    """A value, and the key by index that it is put under."""

    index: int
    key: str
    values: Values


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

    def choose_get(self, number: int) -> int:
        """Choose the index that an operation which gets is about."""
        return choose_get(self.records, self.seed, self.run, number)

    def judge(self, index: int, reply: Values | None) -> Answer:
        """Judge what was got."""
        return check_value(self.records, self.seed, self.value_seed, index, reply)


class PutTask:
    """Put a value; an acknowledged put is complete."""

    rows = 1

    def __init__(self, stock: Stock, session: KeyValueSession) -> None:
        """Put on a session."""
        self._stock, self._session = stock, session
        self.prepare(0)  # makes the pool of contents, so that no measured operation has to

    def prepare(self, number: int) -> Put:
        """Make the value."""
        return self._stock.make_put(choose_put(self._stock.records, number))

    def send(self, prepared: Put) -> None:
        """Put it."""
        self._session.put(prepared.key, prepared.values)

    def soon(self) -> Soon[Put, None] | None:
        """Give the driver's own call."""
        session = self._session
        if not isinstance(session, AnswersKeysLater):
            return None
        return lambda prepared, done: session.put_soon(prepared.key, prepared.values, done)

    def judge(self, prepared: Put, reply: None) -> Answer:
        """Trust the acknowledgement; what is stored is verified by the gets that follow."""
        return Answer.COMPLETED

    def describe(self, prepared: Put) -> str:
        """Name the key."""
        return f"put of {prepared.key}"


@dataclass(frozen=True, slots=True)
class Get:
    """A key, and its index."""

    index: int
    key: str


class GetTask:
    """Get a value and compare it with what must be there."""

    rows = 1

    def __init__(self, stock: Stock, session: KeyValueSession) -> None:
        """Get on a session."""
        self._stock, self._session = stock, session
        stock.make_put(0)  # makes the pool of contents, so that no measured operation has to

    def prepare(self, number: int) -> Get:
        """Choose the key."""
        index = self._stock.choose_get(number)
        return Get(index, key_name(self._stock.records, self._stock.seed, index))

    def send(self, prepared: Get) -> Values | None:
        """Get it."""
        return self._session.get(prepared.key)

    def soon(self) -> Soon[Get, Values | None] | None:
        """Give the driver's own call."""
        session = self._session
        if not isinstance(session, AnswersKeysLater):
            return None
        return lambda prepared, done: session.get_soon(prepared.key, done)

    def judge(self, prepared: Get, reply: Values | None) -> Answer:
        """Compare every byte."""
        return self._stock.judge(prepared.index, reply)

    def describe(self, prepared: Get) -> str:
        """Name the key."""
        return f"get of {prepared.key}"


class PutGetTask:
    """Put a value, then get it: one operation, whose parts `put` and `get` are timed as well."""

    rows = 1

    def __init__(self, stock: Stock, session: KeyValueSession, parts: Parts) -> None:
        """Work on a session."""
        self._stock, self._session = stock, session
        self._put, self._get = (parts(Operation.PUT_GET, name) for name in ("put", "get"))
        self.prepare(0)  # makes the pool of contents, so that no measured operation has to

    def prepare(self, number: int) -> Put:
        """Choose the key and make its new value."""
        return self._stock.make_put(self._stock.choose_get(number))

    def send(self, prepared: Put) -> Values | None:
        """Do the one, then the other."""
        begin_s = self._put.now()
        self._session.put(prepared.key, prepared.values)
        put_s = self._put.now()
        self._put.note(begin_s, put_s)
        found = self._session.get(prepared.key)
        self._get.note(put_s, self._get.now())
        return found

    def soon(self) -> Soon[Put, Values | None] | None:
        """Give a call that begins the get when the put is acknowledged."""
        session = self._session
        if not isinstance(session, AnswersKeysLater):
            return None

        def begin(prepared: Put, done: OnGot) -> None:
            begin_s = self._put.now()

            def go_on(_: None, error: Exception | None) -> None:
                if error is not None:
                    done(None, error)
                    return
                put_s = self._put.now()
                self._put.note(begin_s, put_s)
                session.get_soon(prepared.key, self._finish(put_s, done))

            session.put_soon(prepared.key, prepared.values, go_on)

        return begin

    def _finish(self, begin_s: float, done: OnGot) -> OnGot:
        def finish(found: Values | None, error: Exception | None) -> None:
            if error is None:
                self._get.note(begin_s, self._get.now())
            done(found, error)

        return finish

    def judge(self, prepared: Put, reply: Values | None) -> Answer:
        """Compare every byte of what was got with what was put."""
        return self._stock.judge(prepared.index, reply)

    def describe(self, prepared: Put) -> str:
        """Name the key."""
        return f"put-get of {prepared.key}"


def make_put_get_tasks(
    spec: LoadSpec, records: PutGet, session: KeyValueSession, parts: Parts
) -> Mapping[Operation, Task[Any, Any]]:
    """Give the task of each operation of the mix."""
    stock = Stock(records, spec.seed, spec.value_seed, spec.run)
    tasks: dict[Operation, Task[Any, Any]] = {}
    for operation in spec.mix:
        match operation:
            case Operation.PUT:
                tasks[operation] = PutTask(stock, session)
            case Operation.GET:
                tasks[operation] = GetTask(stock, session)
            case Operation.PUT_GET:
                tasks[operation] = PutGetTask(stock, session, parts)
            case _:
                raise UsageError(f"records of kind put-get know no operation {operation.value}")
    return tasks

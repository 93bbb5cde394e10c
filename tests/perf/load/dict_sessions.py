"""Sessions that keep records in a dict, and what does one operation of a task on them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perf.load.engine.tasks.task import Task
from perf.model.records import Answer, Operation, Stored, Values
from perf.systems.sessions import OnGot, OnWritten


class Dict:
    """A session that keeps records in a dict; `fails` says of which keys it loses requests."""

    def __init__(self) -> None:
        self.kept: dict[str, list[bytes]] = {}
        self.calls: list[str] = []
        self.fails: Callable[[str], bool] = lambda _: False

    def create_schema(self, records: object) -> None:
        pass

    def stored(self) -> Stored:
        return Stored(rows=len(self.kept), payload_bytes=0)

    def classify(self, error: Exception) -> str:
        return f"error:{type(error).__name__}"

    def _begin(self, call: str, key: str) -> None:
        self.calls.append(call)
        if self.fails(key):
            raise TimeoutError(key)

    def insert(self, key: str, values: Values) -> None:
        self._begin("insert", key)
        assert key not in self.kept
        self.kept[key] = list(values)

    def put(self, key: str, values: Values) -> None:
        self._begin("put", key)
        self.kept[key] = list(values)

    def update(self, key: str, changes: Mapping[int, bytes]) -> None:
        self._begin("update", key)
        for field, value in changes.items():
            self.kept[key][field] = value

    def get(self, key: str) -> Values | None:
        self._begin("get", key)
        found = self.kept.get(key)
        return None if found is None else list(found)


class Scanning(Dict):
    def scan(self, first_key: str, count: int) -> Sequence[tuple[str, Values]]:
        self._begin("scan", first_key)
        keys = sorted(self.kept)
        return [(key, self.kept[key]) for key in keys[keys.index(first_key) :][:count]]


class Later(Dict):
    """The same by calls that answer later: here, at once."""

    def _answer(self, call: Callable[..., Any], done: Callable[..., None], *arguments: object) -> None:
        try:
            found = call(*arguments)
        except TimeoutError as error:
            done(None, error)
        else:
            done(found, None)

    def insert_soon(self, key: str, values: Values, done: OnWritten) -> None:
        self._answer(self.insert, done, key, values)

    def put_soon(self, key: str, values: Values, done: OnWritten) -> None:
        self._answer(self.put, done, key, values)

    def update_soon(self, key: str, changes: Mapping[int, bytes], done: OnWritten) -> None:
        self._answer(self.update, done, key, changes)

    def get_soon(self, key: str, done: OnGot) -> None:
        self._answer(self.get, done, key)


class Times:
    """Parts by a clock that goes on by a second with each look."""

    def __init__(self) -> None:
        self.noted: list[tuple[str, float]] = []
        self.now_s = 0.0

    def __call__(self, operation: Operation, name: str) -> "Part":
        return Part(self, f"{operation.value}.{name}")


@dataclass
class Part:
    times: Times
    name: str

    def now(self) -> float:
        self.times.now_s += 1.0
        return self.times.now_s

    def note(self, begin_s: float, end_s: float) -> None:
        self.times.noted.append((self.name, end_s - begin_s))


def do(task: Task[Any, Any], number: int) -> Answer:
    prepared = task.prepare(number)
    return task.judge(prepared, task.send(prepared))


def do_soon(task: Task[Any, Any], number: int) -> Answer | Exception:
    soon, prepared = task.soon, task.prepare(number)
    assert soon is not None
    answers: list[Answer | Exception] = []

    def done(reply: Any, error: Exception | None) -> None:  # noqa: ANN401  of any task
        answers.append(task.judge(prepared, reply) if error is None else error)

    soon(prepared, done)
    (answer,) = answers
    return answer

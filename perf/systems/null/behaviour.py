"""What a null server is told to do, and when it answers by that; pure.

    service_time_ms: 2      each operation takes so long (default 0: answered as soon as it is seen)
    slow_every: 100         each 100th operation takes slow_ms instead, so that percentiles are known
    slow_ms: 20
    slots: 4                operations served at once; more wait, first come, first served
    stall_at_s: 2           so long after the first operation, nothing is answered for stall_s
    stall_s: 0.5
    refuse_every: 50        each 50th operation is answered with an error
    never_answer_every: 40  each 40th operation is never answered; its slot is free again all the same
    holds: {seed: 1, devices: 97, payload_bytes: 1000, rows: 970}
                            reads are answered with the newest of these rows of the sensor workload, as
                            if they were stored; without it, as if nothing were
    wrong_every: 30         each 30th operation, if it is such a read, is answered with a changed row
    keep_record: true       write down each operation, for whoever compares (costs memory)

What a server holds can only be read in a protocol of a database: see `perf.systems.null.dialects`.

Without slots, all operations are served at once. With them, the capacity is slots / service time to
the last digit: a slot is free again when its operation *should* have ended, so that a timer that
fires late delays one answer and no other.
"""

import heapq
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import Ge
from pydantic import JsonValue, TypeAdapter, ValidationError

from perf.model.errors import ConfigError
from perf.model.scalars import STRICT, Positive, PositiveFloat


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """The rows [0, rows) of the sensor workload, of a seed."""

    __pydantic_config__ = STRICT
    seed: Annotated[int, Ge(0)]
    devices: Positive
    payload_bytes: Annotated[int, Ge(128)]
    rows: Positive


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """The settings of a null server; the same for all nodes of a cluster."""

    __pydantic_config__ = STRICT
    service_time_ms: Annotated[float, Ge(0)] = 0.0
    slow_every: Positive | None = None
    slow_ms: PositiveFloat | None = None
    slots: Positive | None = None
    stall_at_s: Annotated[float, Ge(0)] | None = None
    stall_s: PositiveFloat | None = None
    refuse_every: Positive | None = None
    never_answer_every: Positive | None = None
    holds: Holdings | None = None
    wrong_every: Positive | None = None
    keep_record: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPlan:
    """What becomes of one operation: when it is to be answered (same clock as its arrival), and how."""

    due_s: float
    """Infinite if it is never to be."""
    is_refused: bool


_BEHAVIOUR = TypeAdapter(Behaviour)
_TOGETHER = (("slow_every", "slow_ms"), ("stall_at_s", "stall_s"))


def read_behaviour(settings: Mapping[str, JsonValue], where: str) -> Behaviour:
    """Check settings of a null server.

    Raises:
        ConfigError: what is wrong with them, all at once; `where` begins each sentence.

    """
    problems = []
    try:
        behaviour = _BEHAVIOUR.validate_json(json.dumps(dict(settings)))
    except ValidationError as error:
        for one in error.errors():
            name = ".".join(map(str, one["loc"]))
            problems.append(f"{where}: {name} is {one['input']!r}: {one['msg']}; fix or remove it")
    else:
        problems += [f"{where}: {problem}" for problem in _contradictions(behaviour)]
        if not problems:
            return behaviour
    raise ConfigError(problems)


def write_settings(behaviour: Behaviour) -> dict[str, JsonValue]:
    """Return the settings that make a null server behave so; those that are not set are left out."""
    settings: dict[str, JsonValue] = _BEHAVIOUR.dump_python(behaviour, exclude_none=True)
    return settings


def _contradictions(behaviour: Behaviour) -> list[str]:
    problems = []
    for pair in _TOGETHER:
        given = [name for name in pair if getattr(behaviour, name) is not None]
        if len(given) == 1:
            (missing,) = set(pair) - set(given)
            problems.append(f"{given[0]} is set and {missing} is not; set both, or neither")
    if behaviour.slots is not None and not behaviour.service_time_ms:
        problems.append(
            f"slots is {behaviour.slots} and service_time_ms is 0, so that they limit nothing; "
            "set service_time_ms, or remove slots"
        )
    if behaviour.wrong_every is not None and behaviour.holds is None:
        problems.append(
            f"wrong_every is {behaviour.wrong_every} and holds is not set, so that no answer has a row "
            "to change; set holds, or remove wrong_every"
        )
    return problems


@dataclass(slots=True)
class AnswerSchedule:
    """Decides on one operation after the other, in the order of their arrival."""

    behaviour: Behaviour
    operations: int = 0
    _first_s: float = 0.0
    _free_s: list[float] = field(init=False)

    def __post_init__(self) -> None:
        """Make all slots free."""
        self._free_s = [float("-inf")] * (self.behaviour.slots or 0)

    def decide(self, arrived_s: float) -> AnswerPlan:
        """Describe what becomes of an operation that arrived now."""
        asked = self.behaviour
        if not self.operations:
            self._first_s = arrived_s
        self.operations += 1
        is_slow = self._is_turn(asked.slow_every)
        service_ms = asked.slow_ms if is_slow and asked.slow_ms is not None else asked.service_time_ms
        due_s = arrived_s + service_ms / 1000
        if self._free_s:
            due_s = max(arrived_s, self._free_s[0]) + service_ms / 1000
            heapq.heapreplace(self._free_s, due_s)
        due_s = math.inf if self._is_turn(asked.never_answer_every) else self._unstalled(due_s)
        return AnswerPlan(due_s=due_s, is_refused=self._is_turn(asked.refuse_every))

    def _unstalled(self, due_s: float) -> float:
        asked = self.behaviour
        if asked.stall_at_s is None or asked.stall_s is None:
            return due_s
        begins_s = self._first_s + asked.stall_at_s
        ends_s = begins_s + asked.stall_s
        return ends_s if begins_s <= due_s < ends_s else due_s

    def _is_turn(self, every: int | None) -> bool:
        return every is not None and self.operations % every == 0

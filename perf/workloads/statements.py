"""Values of the statements of a workload of one's own, and what a right answer is; pure.

A value of a row is a function of the seed, its own name and the number of the row; a value of an
operation one of the seed, the name, the run of engines and the number of the operation. So whoever
reads a row knows what was stored, and two trials send the same.
"""

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, assert_never
from uuid import UUID

from perf.model.records import Answer
from perf.model.statements import (
    ChoiceValue,
    Distribution,
    Expected,
    IntegerValue,
    RealValue,
    RowNumber,
    Statement,
    Statements,
    TextValue,
    TimestampValue,
    UuidValue,
    Value,
)
from perf.workloads.keys import Zipfian, zeta
from perf.workloads.splitmix import mix, stream, unit, word

StatementValue: TypeAlias = bool | int | float | str | UUID
Make: TypeAlias = Callable[[int], StatementValue]
"""Makes the value of row, or of operation, number n."""
Rows: TypeAlias = Sequence[Sequence[Any]]
"""The rows of an answer, each of its columns in order."""

# Slices of a pool of this size rarely overlap within one compression block of a database.
_PLACES = 1 << 20
_PLACE_SHIFT = 64 - 20
# Streams of lower numbers belong to the other workloads; from here on, each run has one of its own.
_FIRST_STREAM = 1 << 40
_UUID_VERSION, _UUID_VARIANT = 0x4 << 76, 0x8 << 60


@dataclass(frozen=True, slots=True)
class Values:
    """All values of a workload, for one run of engines."""

    of_rows: Mapping[str, Make]
    of_operations: Mapping[str, Make]

    @classmethod
    def make(cls, records: Statements, seed: int, run: int) -> "Values":
        """Return what makes each value; what takes long to prepare is prepared here."""
        makers = {
            name: _make(value, _stream(seed, name, run if value.of == "operation" else -1), seed)
            for name, value in records.values.items()
        }
        is_of_row = {name: value.of == "row" for name, value in records.values.items()}
        return cls(
            {name: make for name, make in makers.items() if is_of_row[name]},
            {name: make for name, make in makers.items() if not is_of_row[name]},
        )

    def fill(self, names: frozenset[str], row: int, operation: int) -> dict[str, StatementValue]:
        """Return the value of each parameter, for an operation that is about a row."""
        return {
            name: self.of_rows[name](row)
            if name in self.of_rows
            else self.of_operations[name](operation)
            for name in names
        }


def choice_stream(seed: int, run: int) -> int:
    """Return the stream by which the operations of a run choose their rows."""
    return _stream(seed, "", run)


def check_answer(
    statement: Statement, columns: Sequence[str], values: Mapping[str, StatementValue], rows: Rows
) -> Answer:
    """Judge the rows that a statement was answered with.

    `values` are those of the row that it was about, `columns` the names of what each row holds.
    NOT_FOUND: there is no row where there must be one. WRONG_DATA: there are too many or too few, a
    column has another value, or a condition did not hold.
    """
    expected = statement.expect
    if expected is None:
        return Answer.COMPLETED
    if not rows and expected.rows not in {None, "none"}:
        return Answer.NOT_FOUND
    if not _is_right_number(expected, len(rows)):
        return Answer.WRONG_DATA
    if expected.applied and not (rows and rows[0][0] is True):
        return Answer.WRONG_DATA
    wanted = [(columns.index(column), values[name]) for column, name in expected.columns.items()]
    is_right = all(row[place] == value for row in rows for place, value in wanted)
    return Answer.COMPLETED if is_right else Answer.WRONG_DATA


def _is_right_number(expected: Expected, rows: int) -> bool:
    match expected.rows:
        case None:
            return True
        case "any":
            return rows > 0
        case "none":
            return rows == 0
        case wanted:
            return rows == wanted


def _stream(seed: int, name: str, run: int) -> int:
    named = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    return mix(stream(seed, _FIRST_STREAM + run) ^ named)


def _make(value: Value, own: int, seed: int) -> Make:
    match value:
        case TextValue(bytes=length, prefix=prefix):
            return _make_text(own, _pool(seed, length), length, prefix)
        case ChoiceValue(among=among):
            place = _place(len(among), value.distribution, own)
            return lambda number: among[place(number)]
        case UuidValue():
            return lambda number: _make_uuid(own, number)
        case _:
            return _make_number(value, own)


def _make_number(value: RowNumber | IntegerValue | RealValue | TimestampValue, own: int) -> Make:
    match value:
        case RowNumber():
            return lambda number: number
        case IntegerValue(least=least, most=most):
            place = _place(most - least + 1, value.distribution, own)
            return lambda number: least + place(number)
        case RealValue(least=low, most=high):
            return lambda number: low + (high - low) * unit(own, number)
        case TimestampValue(begin_ms=begin_ms, step_ms=step_ms):
            return lambda number: begin_ms + number * step_ms
        case _:
            assert_never(value)


def _place(count: int, distribution: Distribution, own: int) -> Callable[[int], int]:
    """Return what draws a number from 0 to below `count`."""
    if distribution == "zipfian":
        ranks = Zipfian(count, zeta(count))
        return lambda number: ranks.rank(unit(own, number))
    return lambda number: word(own, number) * count >> 64


def _make_text(own: int, pool: str, length: int, prefix: str) -> Make:
    """Cut texts out of a pool; their first eleven characters make them differ."""

    def make(number: int) -> str:
        drawn = word(own, number)
        begin = drawn >> _PLACE_SHIFT
        head = base64.b32encode(drawn.to_bytes(8, "big")).decode("ascii")[:11]
        return f"{prefix}{(head + pool[begin : begin + length])[:length]}"

    return make


def _make_uuid(own: int, number: int) -> UUID:
    bits = word(own, 2 * number) << 64 | word(own, 2 * number + 1)
    bits = bits & ~(0xF << 76) | _UUID_VERSION
    return UUID(int=bits & ~(0xC << 60) | _UUID_VARIANT)


@lru_cache(maxsize=4)
def _pool(seed: int, length: int) -> str:
    """Return letters and digits drawn by SHAKE-128 (FIPS 202), so that a slice may begin anywhere."""
    drawn = hashlib.shake_128(b"knickpoint statement texts %d" % seed).digest(_PLACES)
    pool = base64.b64encode(drawn, b"ab").decode("ascii")[:_PLACES]
    return (pool * (2 + length // _PLACES))[: _PLACES + length]

"""A workload of one's own: statements of the database's own language, and the values in them.

A statement is text with parameters, `:name`; `values` says what stands for each. A value belongs to a
row, and is then the same wherever that row is meant, so that an answer can be checked; or to one
operation, and is then new each time. `perf.workloads.statements` computes them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import Field, StringConstraints

from perf.model.scalars import STRICT, Finite, Name, Positive, RecordCount, RowBytes, Several

# Far above any statement that a person writes, and few enough that all of them are prepared at once.
_MOST_BYTES, _MOST_STATEMENTS = 10_000, 100
StatementText: TypeAlias = Annotated[str, MinLen(1), MaxLen(_MOST_BYTES)]
ValueName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Whole: TypeAlias = Annotated[int, Ge(-(2**63)), Le(2**63 - 1)]
Choice: TypeAlias = Annotated[str, MaxLen(1000)] | bool | Whole | Finite
Of: TypeAlias = Literal["row", "operation"]
Distribution: TypeAlias = Literal["uniform", "zipfian"]

# What is quoted holds no parameter: text in single quotes or two dollars, names in double quotes, and
# two dashes or slashes begin a comment.
_CQL_QUOTED = re.compile(
    r"'(?:[^']|'')*'|\$\$.*?\$\$|\"(?P<name>(?:[^\"]|\"\")*)\"|(?:--|//)[^\n]*|/\*.*?\*/", re.DOTALL
)
_CQL_PARAMETER = re.compile(r"(?<![:\w]):([A-Za-z]\w*)")
_COMMAND_PARAMETER = re.compile(r'"(?::([A-Za-z]\w*)|(?:[^"\\]|\\.)*)"(?!\s*:)')
# The same of CrateDB's SQL, which also has casts (`::`), and texts with escapes (E'…') and in dollars
# ($$…$$, $tag$…$tag$).
_SQL_TOKEN = re.compile(
    r"""(?<!\w)E'(?:[^'\\]|''|\\.)*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\r\n]*|/\*.*?\*/"""
    r"|\$(?P<tag>(?:[a-z_]\w*)?)\$.*?\$(?P=tag)\$|(?<![:\w]):(?P<parameter>[a-z]\w*)",
    re.DOTALL | re.IGNORECASE,
)
Language: TypeAlias = Literal["cql", "mongodb", "sql"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowNumber:
    """The number of the row, from 0: an integer."""

    __pydantic_config__ = STRICT
    kind: Literal["row-number"]
    """The number of the row, from 0."""
    of: Literal["row"] = "row"
    """It is always of the row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerValue:
    """An integer from `least` to `most`, both included; by zipfian, the smaller the likelier."""

    __pydantic_config__ = STRICT
    kind: Literal["integer"]
    """An integer."""
    least: Whole = 0
    """The smallest."""
    most: Whole
    """The largest."""
    distribution: Distribution = "uniform"
    """Whether each is alike, or the smaller the likelier."""
    of: Of = "row"
    """Whether it belongs to the row, or is new in each operation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RealValue:
    """A floating-point number of 64 bits from `least` to `most`, uniform."""

    __pydantic_config__ = STRICT
    kind: Literal["real"]
    """A number with a fraction."""
    least: Finite = 0.0
    """The smallest."""
    most: Finite
    """The largest."""
    of: Of = "row"
    """Whether it belongs to the row, or is new in each operation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextValue:
    """A text of so many letters and digits, after `prefix`."""

    __pydantic_config__ = STRICT
    kind: Literal["text"]
    """Letters and digits."""
    bytes: RowBytes
    """How many there are."""
    prefix: Annotated[str, MaxLen(100)] = ""
    """What stands before them."""
    of: Of = "row"
    """Whether it belongs to the row, or is new in each operation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceValue:
    """One of some values; by zipfian, the earlier the likelier."""

    __pydantic_config__ = STRICT
    kind: Literal["choice"]
    """One of some values."""
    among: Annotated[tuple[Choice, ...], MinLen(1), MaxLen(10_000)]
    """The values: texts, numbers, or true and false."""
    distribution: Distribution = "uniform"
    """Whether each is alike, or the earlier the likelier."""
    of: Of = "row"
    """Whether it belongs to the row, or is new in each operation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestampValue:
    """A time: `begin_ms` (Unix time, milliseconds), and `step_ms` more for each row or operation."""

    __pydantic_config__ = STRICT
    kind: Literal["timestamp"]
    """A time, in milliseconds."""
    begin_ms: Annotated[int, Ge(0), Le(10_000_000_000_000)] = 1_767_225_600_000
    """2026-01-01T00:00:00Z."""
    step_ms: Positive = 1
    """From one row, or operation, to the next."""
    of: Of = "row"
    """Whether it belongs to the row, or is new in each operation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UuidValue:
    """A random UUID (version 4)."""

    __pydantic_config__ = STRICT
    kind: Literal["uuid"]
    """A random UUID (version 4)."""
    of: Of = "row"
    """Whether it belongs to the row, or is new in each operation."""


Value: TypeAlias = Annotated[
    RowNumber | IntegerValue | RealValue | TextValue | ChoiceValue | TimestampValue | UuidValue,
    Field(discriminator="kind"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a right answer is: so many rows, and in each of them the values of the row."""

    __pydantic_config__ = STRICT
    rows: Several | Literal["any", "none"] | None = None
    """How many rows: a number, any but none, or none; absent: that is not checked."""
    columns: Mapping[str, ValueName] = field(default_factory=dict)
    """Columns of each row of the answer, and the values that they must have."""
    applied: Literal[True] | None = None
    """The condition of a lightweight transaction held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One operation: a text with parameters, and the row that it is about.

    `new` is a row that no operation had before: the statement stores it. The others choose among those
    that are stored, the preloaded ones and an engine's own new ones.
    """

    __pydantic_config__ = STRICT
    text: StatementText
    """What is sent; parameters are `:name`, of a command the text ":name"."""
    row: Literal["uniform", "zipfian", "latest", "new"]
    """Which row it is about."""
    expect: Expected | None = None
    """What a right answer is; absent: any that is no error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """A schema, the values of rows, and the statements about them, in one language."""

    __pydantic_config__ = STRICT
    kind: Literal["statements"]
    """Statements of one's own."""
    language: Language
    """What they are: CQL (Cassandra, ScyllaDB), commands of MongoDB, as JSON, or SQL (CrateDB)."""
    schema: Annotated[tuple[StatementText, ...], MinLen(1), MaxLen(_MOST_STATEMENTS)]
    """What is sent once, one after the other, before all else: tables, indexes."""
    rows: RecordCount
    """Rows that are stored by `preload: records`, before the first phase."""
    store: Name
    """The statement that stores a row."""
    count: StatementText
    """A query that gives each stored row once: rows are counted with it after the preload."""
    values: Annotated[Mapping[ValueName, Value], MaxLen(_MOST_STATEMENTS)]
    """What stands for each parameter."""
    statements: Annotated[Mapping[Name, Statement], MinLen(1), MaxLen(_MOST_STATEMENTS)]
    """The operations, by name."""

    def parameters(self, name: str) -> frozenset[str]:
        """Return the names of a statement's parameters."""
        text = self.statements[name].text
        if self.language == "mongodb":
            return frozenset(filter(None, _COMMAND_PARAMETER.findall(text)))
        if self.language == "sql":
            return frozenset(to_positional(text)[1])
        return frozenset(_CQL_PARAMETER.findall(strip_cql(text)))

    @property
    def texts(self) -> Mapping[tuple[str | int, ...], str]:
        """Return all that is ever sent, by the steps to where it stands."""
        return {
            **{("schema", place): text for place, text in enumerate(self.schema)},
            ("count",): self.count,
            **{("statements", name, "text"): one.text for name, one in self.statements.items()},
        }


def strip_cql(text: str) -> str:
    """Return CQL without its comments and texts; of a quoted name its letters and digits stay."""

    def replace(token: re.Match[str]) -> str:
        name = token["name"] or ""
        return f" {re.sub(r'[^A-Za-z0-9]', '_', name)} "

    return _CQL_QUOTED.sub(replace, text)


def to_positional(text: str) -> tuple[str, tuple[str, ...]]:
    """Return SQL with `?` in place of each parameter, and the names of those in order."""
    names: list[str] = []

    def replace(token: re.Match[str]) -> str:
        if name := token["parameter"]:
            names.append(name)
            return "?"
        return token[0]

    return _SQL_TOKEN.sub(replace, text), tuple(names)


def strip_quoted(text: str) -> str:
    """Return SQL without its comments, texts and quoted names."""
    return _SQL_TOKEN.sub(lambda token: token[0] if token["parameter"] else " ", text)

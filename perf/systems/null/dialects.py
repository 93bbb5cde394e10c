"""The protocols that null servers speak: our own, and those of databases, which any engine can speak.

Servers of our own protocol are `perf.systems.null.server`; those of the others are the program
`knicknull`, built with the native engine from `perf/load/native/src/null/`. All read the same settings.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Wire: TypeAlias = Literal["own", "cql", "mongo"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One protocol, as the self-test sees it."""

    wire: Wire
    title: str
    system: str
    """Whose sessions speak it."""
    refusal: str
    """The counter of an operation that the server was told to refuse."""


OWN = Dialect(wire="own", title="our own", system="null", refusal="error:Refused")
CQL = Dialect(wire="cql", title="CQL", system="cassandra", refusal="error:unavailable")
MONGO = Dialect(
    wire="mongo", title="MongoDB's wire", system="mongodb", refusal="error:OperationFailure"
)

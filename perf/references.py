"""References: figures that others have published for a workload, to be read beside what is measured.

No measurement and no verdict depends on them: hardware, client and much else differ, and each says
what does.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from pydantic import StringConstraints

from perf.model import SeriesKey
from perf.scalars import STRICT, Name, PositiveFloat, Statistic, Text, Version

Address: TypeAlias = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/]+(/\S*)?$")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One published figure: `value` in the unit of its metric, from `source` at `url`.

    `note` says what differs from a measurement here. A figure without a `line` is about every line of
    its system; `version` is the release that was measured there, and needs a line.
    """

    __pydantic_config__ = STRICT
    system: Name
    line: Text | None = None
    version: Version | None = None
    workload: Name
    phase: Text
    operation: Text
    metric: Text
    statistic: Statistic
    value: PositiveFloat
    source: Text
    url: Address
    note: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """All published figures: configs/references.yaml."""

    __pydantic_config__ = STRICT
    entries: tuple[Reference, ...]


def references_for(key: SeriesKey, references: Iterable[Reference]) -> tuple[Reference, ...]:
    """Give the published figures that belong beside a series, in their order.

    Whatever its testbed, topology, config and engine are: the notes say what differs. A workload is
    known by its name, with any content hash. What is of one host alone has none.
    """
    workload, _, _ = key.workload.partition("@")
    return tuple(
        one
        for one in references
        if not key.host
        and one.line in (None, key.line)
        and (one.system, one.workload, one.phase) == (key.system, workload, key.phase)
        and (one.operation, one.metric, one.statistic) == (key.operation, key.metric, key.statistic)
    )

"""Rules: how results are judged, as values read from configs/ by `config`.

No measurement depends on them: a change here judges the whole history anew.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, Gt, Le

from perf.model.scalars import STRICT, Name, Positive, PositiveFloat, Share, Statistic, Text

LoadKind: TypeAlias = Literal["closed", "open", "stepped", "search", "counted"]


def _trust_little() -> Mapping[LoadKind, Mapping[str, tuple[Statistic, ...]]]:
    return {
        "closed": {"throughput": ("mean",)},
        "open": {"response_time": ("p99",)},
        "stepped": {"response_time": ("p99",)},
        "search": {"highest_load": ("estimate",)},
        # Not throughput: between two queries the client computes what each answer must be.
        "counted": {"response_time": ("p50",)},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparing:
    """How two sides are compared on the same hosts, and when enough was measured.

    `trusted` names, by the load of a phase, the statistics on which the verdict rests; all others are
    shown beside it. `false_regression_share` is how often two equal sides may be called regressed, over
    all trusted series of a comparison together; a relevant change may be called unchanged twice as
    often. `trials` (of both sides together) and `minutes` are the most that one comparison may take
    where nothing else is said.
    """

    __pydantic_config__ = STRICT
    false_regression_share: Annotated[float, Gt(0), Le(0.2)] = 0.01
    """How often two equal sides may be called regressed."""
    trusted: Mapping[LoadKind, Mapping[str, tuple[Statistic, ...]]] = field(
        default_factory=_trust_little
    )
    """By kind of load, the statistics on which the verdict rests."""
    trials: Annotated[int, Ge(4)] = 40
    """Most trials, of both sides together."""
    minutes: PositiveFloat = 240.0
    """Most minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """How change points are judged: configs/detection.yaml, each number with its reason there.

    `judged` maps metric name to the statistics whose series are judged and shown; all others stay in
    the history. `relevant_change` maps metric name to the smallest relative change worth acting on.
    """

    __pydantic_config__ = STRICT
    max_p_value: Annotated[float, Gt(0), Le(0.05)]
    """Largest p-value of a confirmed change, by its size in standard errors."""
    max_rank_p_value: Annotated[float, Gt(0), Le(0.05)]
    """Largest p-value of a confirmed change, by the order of the values (rank test)."""
    provisional_p_value: Annotated[float, Gt(0), Le(0.05)]
    """The same as `max_p_value`, for an unconfirmed change."""
    provisional_rank_p_value: Annotated[float, Gt(0), Le(0.05)]
    """The same as `max_rank_p_value`, for an unconfirmed change."""
    window_points: Annotated[int, Ge(10)]
    """Most points on each side of a change that are compared."""
    minimum_points: Annotated[int, Ge(4)]
    """Fewest points of a series that is judged."""
    confirming_points: Positive
    """Points on both sides of a change that confirm it."""
    false_alarms_per_1000_series_nights: Annotated[float, Gt(0)]
    """How often chance confirms a change, as measured."""
    judged: Mapping[str, tuple[Statistic, ...]]
    """By metric, the statistics that are judged."""
    relevant_change: Mapping[str, Share]
    """By metric, the smallest relative change worth acting on."""
    comparison: Comparing = field(default_factory=Comparing)
    """How two sides are compared."""


class TriageState(StrEnum):
    """What somebody decided about a change."""

    ACKNOWLEDGED = "acknowledged"
    """Seen and real; somebody is on it, until the entry expires."""
    EXPECTED = "expected"
    """Real and meant: the price of a feature, or a gain that was planned."""
    FIXED = "fixed"
    """Fixed in the release `fixed_in`; the same movement there or later is news again."""
    TESTBED = "testbed"
    """Made by the hosts or their configuration, not by the database."""
    IGNORED = "ignored"
    """Not worth anybody's time, until the entry expires."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageEntry:
    """What was decided about a change: in which series, at which place, in which direction, by whom.

    In a name of the series, `*` stands for any text. `workload` is the name alone; a new content hash
    is still the same workload to it. The place is between two releases (`from_release` the last
    before the change, `to_release` the first with it; equal for a change within one release), between
    two nights by their dates, or both; an end that is left out is open.
    """

    __pydantic_config__ = STRICT
    name: Name
    """Unique in the file."""
    state: TriageState
    """What was decided."""
    system: Text
    """Database."""
    line: Text
    """Release line."""
    topology: Text = "*"
    """Topology."""
    testbed_class: Text = "*"
    """Class of the testbed."""
    config: Text = "*"
    """Config of the database."""
    workload: Text = "*"
    """Workload, without its hash."""
    phase: Text = "*"
    """Phase."""
    operation: Text = "*"
    """Operation."""
    metric: Text = "*"
    """Metric."""
    statistic: Text = "*"
    """Statistic."""
    host: Text = "*"
    """Host of a measure per host."""
    sign: Literal["rise", "drop"]
    """Direction of the change."""
    from_release: Text | None = None
    """Last release before the change."""
    to_release: Text | None = None
    """First release with the change."""
    from_night: date | None = None
    """Last night before the change."""
    to_night: date | None = None
    """First night with the change."""
    fixed_in: Text | None = None
    """Release that has the fix."""
    owner: Text
    """Who decided."""
    note: Text
    """Why."""
    expires: date | None = None
    """The last day on which the entry holds."""


def is_like(text: str, pattern: str) -> bool:
    """Return whether a text matches a pattern, where `*` stands for any text and nothing else does."""
    parts = (re.escape(part) for part in pattern.split("*"))
    return re.fullmatch(".*".join(parts), text, re.DOTALL) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Triage:
    """What was decided about changes: configs/triage.yaml."""

    __pydantic_config__ = STRICT
    entries: tuple[TriageEntry, ...]
    """All decisions."""

"""The plan of a night as a value; its files are kept by `perf.jobs.night`."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import AwareDatetime

from perf.model.scalars import STRICT, SafeId

_CLOCKS_DIFFER = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTrial:
    """One trial of a night's plan."""

    __pydantic_config__ = STRICT
    id: SafeId
    experiment: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What the rules of an experiment chose on a night."""

    __pydantic_config__ = STRICT
    experiment: str
    rules: tuple[str, ...]
    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """The plan of one night. `plan_sha256` is of the suite with all that it names, resolved."""

    __pydantic_config__ = STRICT
    id: SafeId
    suite: str
    plan_sha256: str
    started_at: AwareDatetime
    trials: tuple[PlannedTrial, ...]
    chosen: tuple[Chosen, ...] = ()


def is_ahead(moment: datetime, now: datetime) -> bool:
    """Return whether a moment is still to come, by more than clocks of labs may differ."""
    return moment - now > _CLOCKS_DIFFER

"""The plan of a night as a value; its files are kept by `perf.jobs.night`."""

from dataclasses import dataclass

from pydantic import AwareDatetime

from perf.model.scalars import STRICT, SafeId


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTrial:
    """One trial of a night's plan."""

    __pydantic_config__ = STRICT
    id: SafeId
    experiment: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """The plan of one night. `plan_sha256` is of the suite with all that it names, resolved."""

    __pydantic_config__ = STRICT
    id: SafeId
    suite: str
    plan_sha256: str
    started_at: AwareDatetime
    trials: tuple[PlannedTrial, ...]

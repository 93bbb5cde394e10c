"""Incidents: changes of one cause, told as one story."""

from dataclasses import dataclass
from enum import StrEnum

from analysis.detection import ChangePoint
from analysis.drift import Evidence
from analysis.remeasurement import Remeasurement
from perf.design import TriageEntry


class Cause(StrEnum):
    """What a change is put down to."""

    DATABASE = "database"
    TESTBED = "testbed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A circumstance of the trials that changed where the series did, and may explain it as well."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Changes of one cause. `changes` begin with the lead, the one that tells most.

    `mended_by` are the later changes that undid them. `is_news` is false where nobody has to look: all
    changes are triaged, imported in bulk, too small to matter, or mended.
    """

    name: str
    lead: ChangePoint
    changes: tuple[ChangePoint, ...]
    mended_by: tuple[ChangePoint, ...]
    cause: Cause
    evidence: tuple[Evidence, ...]
    explanations: tuple[Explanation, ...]
    triage: TriageEntry | None
    is_news: bool
    remeasurement: Remeasurement | None

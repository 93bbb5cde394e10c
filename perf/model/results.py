"""Results: what was measured, as immutable values. Intent (what to measure) is in `design`.

Units are part of the names. Collections are tuples. No dictionary crosses from one stage to another.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Literal, NewType, TypeAlias

TrialId = NewType("TrialId", str)
SideName: TypeAlias = Literal["baseline", "candidate"]
SIDES: tuple[SideName, ...] = ("baseline", "candidate")
"""The two sides of a comparison."""
TURNS = 4
"""Trials of a block of a comparison: two of each side."""


class TrialStatus(StrEnum):
    """How a trial ended; only completed trials enter a series."""

    COMPLETED = "completed"
    INVALID = "invalid"
    FAILED = "failed"


class Purpose(StrEnum):
    """Why a trial was run."""

    SCHEDULED = "scheduled"
    CANDIDATE = "candidate"
    """For a pull request, or of a local copy: never a point of a release's series."""
    COMPARISON = "comparison"
    """One of two sides that take turns, because somebody asked."""
    CONFIRMATION = "confirmation"
    """One of two sides that take turns, because a night suspected a change."""
    BISECTION = "bisection"
    """One of two sides that take turns, in search of the release that brought a change."""
    PROFILE = "profile"
    """With a profiler attached, once a night: its costs by method are series of their own."""
    CANARY = "canary"
    SENTINEL = "sentinel"
    """An old release, measured again to watch the testbed."""
    IMPORTED = "imported"
    """Measured by another program and imported in bulk: a point of a series, but never news."""


IN_TURNS = (Purpose.CANDIDATE, Purpose.COMPARISON, Purpose.CONFIRMATION, Purpose.BISECTION)
"""Of trials that are measured side by side, in blocks: they belong to their comparison."""


class Source(StrEnum):
    """Where the artifact of a release comes from."""

    ARCHIVE = "archive"
    MAVEN = "maven"
    PATH = "path"
    BUILD = "build"
    """What a source of builds offered: an archive of one's own CI, a commit."""
    BUILTIN = "builtin"
    ATTACHED = "attached"
    """It ran already, on a cluster that somebody else runs; nothing was installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One build of a system. `ordinal` orders releases inside a line; text never does."""

    system: str
    version: str
    line: str
    ordinal: int
    released_at: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """The bytes that were installed for a release: where from, and their SHA-256 (hex)."""

    source: Source
    sha256: str
    location: str = ""
    """Directory or file on the machine that runs Knickpoint; never part of any identity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A configuration file by its name and the SHA-256 (first 12 hex digits) of its content."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One value of one metric.

    `iteration` counts from 1; None is the value over all iterations of the phase. A percentile over
    all iterations comes from the merged histogram, never from averaged percentiles. `host` names a
    node or host where the value is of one alone.
    """

    phase: str
    operation: str
    metric: str
    statistic: str
    value: float
    iteration: int | None = None
    host: str = ""


ATTEMPTED = "attempted"
TIMEOUTS = "timeouts"
"""Operations that were never answered, too."""
ERROR = "error:"
"""The kind of the error follows."""
COMPLETED_IN_WINDOW = "completed_in_window"
"""Completions by when they ended, not by when they were to start."""
SENT_IN_WINDOW = "sent_in_window"
"""Sends by when they happened."""
HELD = "held"
"""Operations that waited for one of the client's slots."""
ROWS = "rows"
"""Rows of completed operations."""
CLAMPED = "clamped"
"""Times outside a histogram's range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """How often something happened in one iteration of a phase; `name` is one of those above.

    Each attempted operation ends as exactly one of completed, not_found, wrong_data, timeouts or
    error:<kind>. The others count beside these.
    """

    phase: str
    operation: str
    iteration: int
    name: str
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing that was true of a host around a trial, for example kernel = 6.1.0."""

    host: str
    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a trial is invalid or failed: a kind for machines, a sentence with numbers for people."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The histogram of one operation over one interval (about one second) of one phase.

    `kind` is response_time, service_time or send_lateness. `encoded` is HdrHistogram V2, compressed,
    base64, values in microseconds. `start_s` is seconds since the Unix epoch, `length_s` the length.
    `iteration` is 0 in a warm-up and counts from 1 in a measured phase.
    """

    phase: str
    operation: str
    kind: str
    iteration: int
    start_s: float
    length_s: float
    max_us: int
    encoded: str


class StepOutcome(StrEnum):
    """How an offered load of a ladder or a search went."""

    HELD = "held"
    """It was offered in full and answered; in a search, within the objective."""
    MISSED = "missed"
    """The system fell behind, failed or missed the objective, while the client kept up."""
    CLIENT_LIMITED = "client-limited"
    """The client fell behind: the step says nothing about the system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadStep:
    """One offered load of a ladder or a search. `phase` is where its histograms are kept.

    Client-limited steps have no samples. `response_time_p99_ms` is None if nothing completed.
    """

    phase: str
    offered_load_ops_per_s: float
    achieved_ops_per_s: float
    response_time_p99_ms: float | None
    send_lateness_p99_ms: float
    client_cpu_share: float
    outcome: StepOutcome
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialHead:
    """What a trial was and how it ended, not what it measured: cheap, so that all fit into memory."""

    id: TrialId
    night: str
    purpose: Purpose
    experiment: str
    release: Release
    artifact: Artifact | None
    topology: Named
    testbed: Named
    testbed_class: str
    workload: Named
    config: Named
    engine: str
    seed: int
    started_at: datetime
    finished_at: datetime
    status: TrialStatus
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial(TrialHead):
    """One deployment measured end to end. Immutable once written."""

    remarks: tuple[Reason, ...] = ()
    """What a reader must know of a trial that is valid all the same."""
    steps: tuple[LoadStep, ...] = ()
    environment_before: tuple[Fact, ...] = ()
    environment_after: tuple[Fact, ...] = ()
    samples: tuple[Sample, ...] = ()
    counters: tuple[Counter, ...] = ()
    log_tail: str = ""
    harness_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A trial that took its turn in a comparison: in which block, and in which pair of the block.

    The two trials of a pair ran one after the other, one of each side; a pair counts if both completed.
    """

    block: int
    pair: str = ""
    side: SideName
    trial: Trial


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SeriesKey:
    """What must be equal for two values to be comparable.

    Release, time, kernel and driver versions are attributes of a point, never part of the key.
    `workload` is name@hash; `phase` names the measured phase (saturation, steady).
    """

    system: str
    line: str
    topology: str
    testbed_class: str
    config: str
    workload: str
    engine: str
    phase: str
    operation: str
    metric: str
    statistic: str
    host: str = ""

    @property
    def workload_name(self) -> str:
        """Return the name of the workload, whatever its content is."""
        return self.workload.partition("@")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One trial's value for one series, as the history gives it: the input of `analysis`.

    `value` is over all iterations; `iterations` holds each iteration's own value, in order.
    """

    key: SeriesKey
    trial: TrialId
    release: Release
    started_at: datetime
    status: TrialStatus
    value: float
    iterations: tuple[float, ...] = ()
    night: str = ""
    purpose: Purpose = Purpose.SCHEDULED


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A circumstance that differs from the trial before it; `place` is that in a list of trials."""

    place: int
    name: str
    before: str
    after: str


def find_moves(
    trials: Sequence[TrialId], environments: Mapping[TrialId, Mapping[str, str]]
) -> tuple[Move, ...]:
    """Return what differs from one trial to the next in a list, by place and name.

    A fact that is not known moves nothing: the next that is known is held against the last that was.
    """
    found: list[Move] = []
    known: dict[str, str] = {}
    last: Mapping[str, str] = {}
    for place, trial in enumerate(trials):
        facts = environments.get(trial, {})
        if facts is last or not facts:  # most share one object with the trial before
            continue
        found.extend(
            Move(place=place, name=name, before=known[name], after=value)
            for name, value in sorted(facts.items() - known.items())
            if name in known
        )
        known |= facts
        last = facts
    return tuple(found)

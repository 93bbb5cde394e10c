"""A season of simulated nights: which releases come, what is planted, what goes wrong; pure and seeded.

Everything follows from the number of a night, so that a night that is repeated is the same night.
The line 3.0 of the fake system has as many releases as a season needs; one comes every twelve nights.
"""

import hashlib
import math
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from perf.model.metrics import CANARY_CPU, CANARY_FSYNC, CANARY_LOOPBACK, CANARY_MEMORY

FIRST = datetime(2024, 1, 1, 2, 0, tzinfo=UTC)
LINE = "3.0"
SENTINEL = "1.0.0"
NIGHTS_PER_RELEASE = 12
JUMP = (72, 3)
"""From this night on, so many releases were left out: a change there has to be bisected."""
TURNS = ((60, 108), (150, 170), (258, 276))
"""Nights whose suite asks for suspects to be measured again, and for a bisection: from, to."""
SCATTER = {
    ("throughput", "mean"): 0.012,
    ("response_time", "p50"): 0.015,
    ("response_time", "p99"): 0.03,
}
"""The standard deviation of one trial, as a share of the level; of service time as of response time."""
LEVELS = {("throughput", "mean"): 4000.0, ("response_time", "p50"): 1.0, ("response_time", "p99"): 8.0}
CANARIES = {
    CANARY_CPU.name: 2.0,
    CANARY_MEMORY.name: 9000.0,
    CANARY_FSYNC.name: 1.5,
    CANARY_LOOPBACK.name: 20.0,
}


_SPREAD = {"p50": 1.0, "min": 0.98, "max": 1.1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A change of speed from a night on; `speed` is how many times as fast the work is done then.

    `where` is release, config or testbed; `tail_only` leaves all but the 99th percentile alone.
    `drifts_for` spreads it over so many nights.
    """

    night: int
    where: str
    speed: float
    tail_only: bool = False
    drifts_for: int = 0

    @property
    def metrics(self) -> tuple[str, ...]:
        return ("response_time", "service_time") if self.tail_only else ("throughput", "response_time")


CHANGES = (
    Planted(night=24, where="release", speed=1 / 1.14),
    Planted(night=36, where="release", speed=1 / 1.35, tail_only=True),
    Planted(night=42, where="config", speed=1 / 1.18),
    Planted(night=53, where="config", speed=1.18),
    Planted(night=60, where="release", speed=1.12),
    Planted(night=72, where="release", speed=1 / 1.13),
    Planted(night=89, where="testbed", speed=1 / 1.12),
    Planted(night=96, where="release", speed=1.3, tail_only=True),
    Planted(night=120, where="release", speed=1.11),
    Planted(night=144, where="release", speed=1 / 1.4, tail_only=True),
    Planted(night=156, where="release", speed=1 / 1.12),
    Planted(night=173, where="config", speed=1.15),
    Planted(night=190, where="testbed", speed=1 / 1.10, drifts_for=45),
    Planted(night=252, where="release", speed=1.1),
    Planted(night=264, where="release", speed=1 / 1.12),
    Planted(night=281, where="testbed", speed=1.12),
)
"""So far apart that each must be found by itself."""

FAULTS = {
    4: "crash",
    10: "die",
    17: "left-out",
    21: "kill 9, resume",
    24: "channel-down",
    29: "interrupt 7, resume",
    33: "kill 5",
    39: "disk-full, resume",
    45: "kill judging, resume",
    50: "fill judging, resume",
    56: "never-ready",
    60: "kill turn-3, resume",
    68: "fill 6, resume",
    72: "kill turn-14, resume",
    80: "disk-full, resume",
    84: "ignore-stop",
    92: "left-out",
    93: "left-out",
    100: "interrupt judging, resume",
}
"""What goes wrong in the first nights, and whether the night is run again.

`kill 9` and `interrupt 9`: SIGKILL or SIGINT as the 9th line of progress is said; `fill 9`: from there
on the disk is full; `judging`: as the night begins to judge; `turn-3`: before the third trial in turns.
"""
_LATER = (
    "crash",
    "kill 8, resume",
    "left-out",
    "die",
    "fill judging, resume",
    "kill 7",
    "interrupt 6, resume",
    "channel-down",
    "kill judging, resume",
    "fill 7, resume",
    "ignore-stop",
)


def _draw(name: str) -> random.Random:
    """Return the same random numbers for the same name in every process."""
    return random.Random(hashlib.sha256(name.encode()).digest())  # noqa: S311  scatter, no secret


def fault_of(night: int) -> str:
    """Return what goes wrong in a night, or an empty text."""
    if night < 105:
        return FAULTS.get(night, "")
    return _LATER[night // 9 % len(_LATER)] if night % 9 == 5 else ""


def starts_at(night: int) -> datetime:
    """Return when a night begins: at two, with some minutes of scatter."""
    return FIRST + timedelta(days=night, minutes=_draw(f"start {night}").randrange(40))


def release_of(night: int) -> int:
    """Return the ordinal of the newest release at a night."""
    ordinal = night // NIGHTS_PER_RELEASE
    return ordinal + JUMP[1] if night >= JUMP[0] else ordinal


def released_at(change: Planted) -> int:
    """Return the ordinal of the release that brought a planted change."""
    # Of those that were left out together, the last but one.
    return release_of(change.night) - (1 if change.night == JUMP[0] else 0)


def config_of(night: int) -> int:
    """Return how many changes of the configuration were made until a night."""
    return sum(change.where == "config" and change.night <= night for change in CHANGES)


def has_turns(night: int) -> bool:
    """Return whether the suite of a night measures suspects again."""
    return any(begin <= night < end for begin, end in TURNS)


def _share(change: Planted, night: int, ordinal: int, config: int) -> float:
    """Return how much of a change is there: 0 to 1."""
    if change.where == "release":
        return float(ordinal >= released_at(change))
    if change.where == "config":
        return float(config >= config_of(change.night))
    return min(max((night - change.night + 1) / (change.drifts_for or 1), 0.0), 1.0)


def speed(night: int, ordinal: int | None, config: int, *, is_tail: bool = False) -> float:
    """Give the planted speed of a trial; `ordinal` None: the sentinel, which only the testbed moves."""
    logarithm = 0.0
    for change in CHANGES:
        if (change.tail_only and not is_tail) or (ordinal is None and change.where != "testbed"):
            continue
        logarithm += math.log(change.speed) * _share(change, night, ordinal or 0, config)
    return math.exp(logarithm)


def figure(
    metric: str, statistic: str, trial: str, night: int, ordinal: int | None, config: int
) -> float:
    """Return one metric of a trial: its planted level, and scatter of its own by its name."""
    kind = ("response_time" if metric == "service_time" else metric, statistic)
    scatter = math.exp(_draw(f"{trial} {kind}").gauss(0, SCATTER[kind]))
    fast = speed(night, ordinal, config, is_tail=statistic == "p99")
    return LEVELS[kind] * scatter * (fast if metric == "throughput" else 1 / fast)


def canary(metric: str, statistic: str, trial: str, phase: str, night: int) -> float:
    """Return the value of fixed work: it moves with the testbed alone."""
    scatter = math.exp(_draw(f"{trial} {phase} {metric}").gauss(0, 0.01)) * _SPREAD[statistic]
    fast = speed(night, None, 0) if metric != CANARY_FSYNC.name else 1.0
    return CANARIES[metric] * scatter * (fast if metric == CANARY_MEMORY.name else 1 / fast)

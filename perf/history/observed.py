"""What `analysis` gets of the history: observations, and the circumstances of trials. SQL and values.

Both are values of `perf.model`, so that judging needs neither the history nor its tables.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from perf.history.rows import Row, as_utc
from perf.hosts.drift import MAY_MOVE
from perf.hosts.facts import BOOT_ID, THERMAL_THROTTLE_COUNT
from perf.model import (
    Circumstance,
    Move,
    Observation,
    Purpose,
    Release,
    SeriesKey,
    TrialId,
    TrialStatus,
)

_KEY = tuple(SeriesKey.__dataclass_fields__)
_OF_TRIAL = ("system", "line", "topology", "testbed_class", "config", "workload", "engine")
_OF_SAMPLE = tuple(name for name in _KEY if name not in _OF_TRIAL)
_IN_ORDER = "ordinal, started_at, trial_id"
OBSERVED = f"""
    SELECT trial_id, system, line, topology, testbed_class, config,
           workload || '@' || workload_sha256 AS workload, engine, version, ordinal, released_at,
           started_at, status, night, purpose
    FROM trials WHERE purpose IN (SELECT unnest(?::VARCHAR[])) ORDER BY {_IN_ORDER}
"""  # noqa: S608  our own names
"""Takes a list of purposes."""
NAMES = f"SELECT DISTINCT {', '.join(_OF_SAMPLE)} FROM samples ORDER BY ALL"  # noqa: S608  our own names
VALUES = f"""
    WITH observed AS (
        SELECT row_number() OVER (ORDER BY {_IN_ORDER}) - 1 AS trial, trial_id
        FROM trials WHERE purpose IN (SELECT unnest(?::VARCHAR[]))
    ),
    names AS (
        SELECT row_number() OVER (ORDER BY {", ".join(_OF_SAMPLE)}) - 1 AS name, *
        FROM (SELECT DISTINCT {", ".join(_OF_SAMPLE)} FROM samples)
    )
    SELECT trial, name, iteration IS NULL, value
    FROM samples JOIN observed USING (trial_id) JOIN names USING ({", ".join(_OF_SAMPLE)})
    ORDER BY trial, name, iteration NULLS FIRST
"""  # noqa: S608  our own names
"""Takes a list of purposes; trials and names are places in the rows of `OBSERVED` and of `NAMES`.

Millions of rows of numbers are read in seconds; names in each row take ten times as long.
"""

ALWAYS_NEW = (*MAY_MOVE, THERMAL_THROTTLE_COUNT, BOOT_ID)
"""Facts that differ by nature from one trial to the next, so that they explain nothing.

The first three count or average what a host has been through; whether it was disturbed *while* a trial
ran is judged there, and makes that trial invalid. A boot has a new id each time: what a restart may
have brought (kernel, microcode, settings) are facts of their own.
"""
_CIRCUMSTANCES = """
    SELECT trial_id, name || if(host = '', '', ' of ' || host) AS name, value
    FROM facts WHERE moment = 'before' AND name NOT IN (SELECT unnest(?::VARCHAR[]))
    UNION ALL SELECT trial_id, 'config ' || config, config_sha256 FROM trials
    UNION ALL SELECT trial_id, 'testbed ' || testbed, testbed_sha256 FROM trials
    UNION ALL SELECT trial_id, 'topology ' || topology, topology_sha256 FROM trials
    UNION ALL SELECT trial_id, 'artifact', artifact_sha256 FROM trials WHERE artifact_sha256 NOT NULL
    UNION ALL SELECT trial_id, 'knickpoint', harness_version FROM trials WHERE harness_version <> ''
"""
CIRCUMSTANCES = f"{_CIRCUMSTANCES} ORDER BY ALL"
"""Takes a list of facts to leave out. The workload's hash names the series: there it never differs."""
MOVES = f"""
    WITH asked AS (
        SELECT unnest(?::JSON::INTEGER[]) AS list, unnest(?::JSON::INTEGER[]) AS place,
               unnest(?::JSON::VARCHAR[]) AS trial_id
    ),
    known AS ({_CIRCUMSTANCES}),
    told AS (
        SELECT list, place, name, value,
               lag(value) OVER (PARTITION BY list, name ORDER BY place) AS before
        FROM asked JOIN known USING (trial_id)
    )
    SELECT list, place, name, before, value FROM told WHERE before <> value ORDER BY ALL
"""  # noqa: S608  our own names
"""Takes lists, places and trials (each as JSON), and facts to leave out.

A fact that is not known moves nothing.
"""


@dataclass(frozen=True, slots=True)
class _Head:
    """What the observations of one trial have in common."""

    of_key: tuple[str, ...]
    trial: TrialId
    release: Release
    started_at: datetime
    status: TrialStatus
    night: str
    purpose: Purpose


def observations(
    trials: Sequence[Row], names: Sequence[Row], values: Iterable[tuple[int, int, bool, float]]
) -> tuple[Observation, ...]:
    """Give the observations of the rows of `OBSERVED`, `NAMES` and `VALUES`, by series.

    Keys, releases and times that many have in common are one object in memory.
    """
    heads = _heads(trials)
    of_samples = [{part: row[part] for part in _OF_SAMPLE} for row in names]
    keys: dict[tuple[tuple[str, ...], int], SeriesKey] = {}
    found: dict[SeriesKey, list[Observation]] = {}
    for (trial, name), rows in groupby(values, key=itemgetter(0, 1)):
        head = heads[trial]
        key = keys.get((head.of_key, name))
        if key is None:
            key = SeriesKey(**dict(zip(_OF_TRIAL, head.of_key, strict=True)), **of_samples[name])
            keys[head.of_key, name] = key
            found[key] = []
        wholes: list[float] = []
        iterations: list[float] = []
        for _, _, is_whole, value in rows:
            (wholes if is_whole else iterations).append(value)
        found[key] += [_observation(key, head, whole, tuple(iterations)) for whole in wholes]
    return tuple(one for key in sorted(found) for one in found[key])


def _heads(trials: Sequence[Row]) -> list[_Head]:
    releases: dict[Release, Release] = {}
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    heads = []
    for row in trials:
        release = Release(**{field: row[field] for field in Release.__dataclass_fields__})
        of_key = tuple(row[part] for part in _OF_TRIAL)
        heads.append(
            _Head(
                of_key=shared.setdefault(of_key, of_key),
                trial=TrialId(row["trial_id"]),
                release=releases.setdefault(release, release),
                started_at=as_utc(row["started_at"]),
                status=TrialStatus(row["status"]),
                night=row["night"],
                purpose=Purpose(row["purpose"]),
            )
        )
    return heads


def _observation(
    key: SeriesKey, head: _Head, value: float, iterations: tuple[float, ...]
) -> Observation:
    return Observation(
        key=key,
        trial=head.trial,
        release=head.release,
        started_at=head.started_at,
        status=head.status,
        value=value,
        iterations=iterations,
        night=head.night,
        purpose=head.purpose,
    )


def move(row: Row) -> Move:
    """Give the move of a row of `MOVES`, without its list."""
    return Move(place=row["place"], name=row["name"], before=row["before"], after=row["value"])


def circumstances(rows: Iterable[tuple[str, str, str]]) -> tuple[Circumstance, ...]:
    """Give the circumstances of the rows of `CIRCUMSTANCES`; equal texts are one object in memory."""
    known: dict[str, str] = {}
    return tuple(
        Circumstance(
            trial=TrialId(known.setdefault(trial, trial)),
            name=known.setdefault(name, name),
            value=known.setdefault(value, value),
        )
        for trial, name, value in rows
    )

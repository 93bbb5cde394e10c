"""What `analysis` gets of the history: observations, and the circumstances of trials. SQL and values.

Both are values of `perf.model`, so that judging needs neither the history nor its tables.
"""

from perf.history.rows import Row, as_utc
from perf.hosts.drift import MAY_MOVE
from perf.hosts.facts import BOOT_ID, THERMAL_THROTTLE_COUNT
from perf.model import (
    Circumstance,
    Observation,
    Purpose,
    Release,
    SeriesKey,
    TrialId,
    TrialStatus,
)

_KEY = tuple(SeriesKey.__dataclass_fields__)
OBSERVATIONS = f"""
    WITH iterations AS (
        SELECT trial_id, phase, operation, metric, statistic, host,
               list(value ORDER BY iteration) AS iterations
        FROM samples WHERE iteration IS NOT NULL GROUP BY ALL
    )
    SELECT system, line, topology, testbed_class, config,
           workload || '@' || workload_sha256 AS workload, engine, phase, operation, metric, statistic,
           host, trial_id, version, ordinal, released_at, started_at, status, night, purpose, value,
           iterations
    FROM samples
    JOIN trials USING (trial_id)
    LEFT JOIN iterations USING (trial_id, phase, operation, metric, statistic, host)
    WHERE iteration IS NULL AND purpose IN (SELECT unnest(?::VARCHAR[]))
    ORDER BY {", ".join(_KEY)}, ordinal, started_at, trial_id
"""  # noqa: S608  our own names
"""Takes a list of purposes."""

ALWAYS_NEW = (*MAY_MOVE, THERMAL_THROTTLE_COUNT, BOOT_ID)
"""Facts that differ by nature from one trial to the next, so that they explain nothing.

The first three count or average what a host has been through; whether it was disturbed *while* a trial
ran is judged there, and makes that trial invalid. A boot has a new id each time: what a restart may
have brought (kernel, microcode, settings) are facts of their own.
"""
CIRCUMSTANCES = """
    SELECT trial_id, name || if(host = '', '', ' of ' || host) AS name, value
    FROM facts WHERE moment = 'before' AND name NOT IN (SELECT unnest(?::VARCHAR[]))
    UNION ALL SELECT trial_id, 'config ' || config, config_sha256 FROM trials
    UNION ALL SELECT trial_id, 'testbed ' || testbed, testbed_sha256 FROM trials
    UNION ALL SELECT trial_id, 'topology ' || topology, topology_sha256 FROM trials
    UNION ALL SELECT trial_id, 'artifact', artifact_sha256 FROM trials WHERE artifact_sha256 NOT NULL
    UNION ALL SELECT trial_id, 'knickpoint', harness_version FROM trials WHERE harness_version <> ''
    ORDER BY ALL
"""
"""Takes a list of facts to leave out. The workload's hash names the series: there it never differs."""


def observation(row: Row) -> Observation:
    """Give the observation of a row of `OBSERVATIONS`."""
    return Observation(
        key=SeriesKey(**{name: row[name] for name in _KEY}),
        trial=TrialId(row["trial_id"]),
        release=Release(
            system=row["system"],
            version=row["version"],
            line=row["line"],
            ordinal=row["ordinal"],
            released_at=row["released_at"],
        ),
        started_at=as_utc(row["started_at"]),
        status=TrialStatus(row["status"]),
        value=row["value"],
        iterations=tuple(row["iterations"] or ()),
        night=row["night"],
        purpose=Purpose(row["purpose"]),
    )


def circumstance(row: Row) -> Circumstance:
    """Give the circumstance of a row of `CIRCUMSTANCES`."""
    return Circumstance(trial=TrialId(row["trial_id"]), name=row["name"], value=row["value"])

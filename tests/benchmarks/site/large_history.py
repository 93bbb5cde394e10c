"""A made-up history of any size, made by DuckDB itself: twenty thousand trials take a minute.

The shape is that of a lab: each experiment gives 50 judged series, each night measures each experiment
once with the newest release, a release lasts 25 nights. So 1 000 series × 1 000 points are 20
experiments, 1 000 nights and 20 000 trials. Each value has three iterations; a trial has facts of its
host and counters, and a bundle of three small files. There are neither histograms nor canaries.

Noise has a standard deviation of 2 %. Every tenth series has a step of 12 % halfway; every hundredth
one of 15 %, for the worse, five nights before the thousandth; in all experiments alike.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import duckdb

from perf.history.store import open_history
from perf.local.paths import DataPaths

PER_EXPERIMENT = 50
FIRST_NIGHT = datetime(2014, 1, 1, 1, 0, tzinfo=UTC)
_FILES = ("trial.json", "manifest.json", "intervals.hlog")

_SETUP = """
CREATE TEMP MACRO uniform(seed) AS (hash(seed) + 1.0) / 18446744073709551617.0;
CREATE TEMP MACRO gauss(seed) AS
    sqrt(-2 * ln(uniform(seed || 'a'))) * cos(2 * pi() * uniform(seed || 'b'));
CREATE TEMP TABLE shapes AS
    SELECT row_number() OVER () - 1 AS shape, * FROM (
        SELECT phase, operation, metric, statistic
        FROM (SELECT unnest(['insert', 'update', 'read', 'read-latest', 'scan', 'last', 'group'])
                  AS operation),
             (SELECT unnest([
                {phase: 'saturation', metric: 'throughput', statistic: 'mean'},
                {phase: 'saturation', metric: 'response_time', statistic: 'p50'},
                {phase: 'saturation', metric: 'response_time', statistic: 'p99'},
                {phase: 'saturation', metric: 'service_time', statistic: 'p99'},
                {phase: 'steady', metric: 'response_time', statistic: 'p50'},
                {phase: 'steady', metric: 'response_time', statistic: 'p99'},
                {phase: 'steady', metric: 'service_time', statistic: 'p99'}
             ], recursive := true))
        UNION ALL SELECT 'search', 'mixed', 'highest_load', 'estimate'
        ORDER BY ALL
    );
"""
_TRIALS = """
CREATE OR REPLACE TEMP TABLE fresh AS
    SELECT
        night, experiment,
        strftime(TIMESTAMP '2014-01-01' + to_days(night::INTEGER), '%Y-%m-%d') || '-1' AS night_name,
        ['cassandra', 'mongodb', 'scylladb', 'cratedb'][experiment % 4 + 1] AS system,
        'workload-' || experiment AS workload,
        night // 25 + 1 AS ordinal,
        TIMESTAMP '2014-01-01 01:00:00' + to_days(night::INTEGER) + to_seconds(experiment * $apart_s)
            AS started_at
    FROM range($first, $end) nights(night), range($experiments) experiments(experiment);
ALTER TABLE fresh ADD COLUMN trial_id VARCHAR;
UPDATE fresh SET trial_id =
    printf('%s.%02d.%s-%s.5.0.%d', night_name, experiment + 1, system, workload, ordinal);
"""
_INSERTS = (
    """
    INSERT INTO trials BY NAME SELECT
        trial_id, sha256(trial_id) AS bundle_sha256, night_name AS night, 'scheduled' AS purpose,
        system || '-' || workload AS experiment, system, '5.0.' || ordinal AS version, '5.0' AS line,
        ordinal, (DATE '2014-01-01' + (25 * (ordinal - 1))::INTEGER) AS released_at,
        'archive' AS artifact_source, sha256(system || ordinal) AS artifact_sha256,
        'single' AS topology, '0123456789ab' AS topology_sha256,
        'rack' AS testbed, '123456789abc' AS testbed_sha256, 'rack' AS testbed_class,
        workload, left(sha256(workload), 12) AS workload_sha256,
        'default' AS config, left(sha256(system), 12) AS config_sha256,
        'native' AS engine, 1 AS seed, started_at, started_at + INTERVAL 9 MINUTE AS finished_at,
        'completed' AS status, '' AS log_tail, '1.0' AS harness_version
    FROM fresh
    """,
    """
    INSERT INTO samples BY NAME
    WITH wholes AS (
        SELECT trial_id, shape, phase, operation, metric, statistic,
            CASE metric WHEN 'throughput' THEN 4000 WHEN 'highest_load' THEN 3000 ELSE 8 END
            * (1 + 0.02 * gauss(trial_id || shape))
            * CASE WHEN shape % 10 = 3 AND night >= $half THEN 1.12 ELSE 1 END
            * CASE WHEN (shape + experiment * 50) % 100 = 7 AND night >= $late
                   THEN CASE WHEN metric IN ('throughput', 'highest_load') THEN 0.85 ELSE 1.15 END
                   ELSE 1 END AS whole
        FROM fresh, shapes
    )
    SELECT trial_id, (4 * shape + i)::INTEGER AS position, phase, operation, metric, statistic,
           CASE WHEN i = 0 THEN whole ELSE whole * (1 + 0.01 * gauss(trial_id || shape || '/' || i)) END
               AS value,
           CASE WHEN i > 0 THEN i::INTEGER END AS iteration, '' AS host
    FROM wholes, range(4) iterations(i)
    """,
    """
    INSERT INTO facts BY NAME
    SELECT trial_id, moment, i::INTEGER AS position, 'node-1' AS host, 'fact ' || i AS name,
           CASE WHEN i = 0 THEN '6.1.' || night // 100 ELSE 'value of fact ' || i END AS value
    FROM fresh, range(30) facts(i), (SELECT unnest(['before', 'after']) AS moment)
    """,
    """
    INSERT INTO counters BY NAME
    SELECT trial_id, row_number() OVER (PARTITION BY trial_id) - 1 AS position, phase, operation,
           i::INTEGER AS iteration, name, 40000 + hash(trial_id || i) % 1000 AS value
    FROM fresh, (SELECT DISTINCT phase, operation FROM shapes), range(1, 4) iterations(i),
         (SELECT unnest(['attempted', 'completed']) AS name)
    """,
)


@dataclass(frozen=True, slots=True)
class Size:
    """How large a history is; `series` is a multiple of 50."""

    series: int
    nights: int

    @property
    def experiments(self) -> int:
        """Return how many experiments each night measures."""
        return self.series // PER_EXPERIMENT

    @property
    def apart(self) -> timedelta:
        """Return the time between the starts of two trials: all of a night begin within five hours."""
        return min(timedelta(minutes=10), timedelta(hours=5) / self.experiments)


def now_after(nights: int) -> datetime:
    """Return the morning after so many nights."""
    return FIRST_NIGHT + timedelta(days=nights - 1, hours=6)


def grow(paths: DataPaths, size: Size, first: int = 0) -> None:
    """Append the nights from `first` on, until there are as many as `size` says."""
    paths.data.mkdir(parents=True, exist_ok=True)
    with open_history(paths.history):
        pass
    with duckdb.connect(paths.history) as history:
        history.execute(_SETUP)
        bounds = {
            "first": first,
            "end": size.nights,
            "experiments": size.experiments,
            "apart_s": size.apart.total_seconds(),
        }
        for statement in _TRIALS.split(";")[:-1]:
            history.execute(statement, bounds if "$" in statement else None)
        steps = {"half": size.nights // 2, "late": size.nights - 5}
        for statement in _INSERTS:
            history.execute(statement, steps if "$" in statement else None)
        rows = history.execute("SELECT night_name, trial_id FROM fresh ORDER BY ALL").fetchall()
    _write_files(paths, rows)


def _write_files(paths: DataPaths, rows: list[tuple[str, str]]) -> None:
    """Write a plan of each night and a bundle of each trial: what the pages link to."""
    plans: dict[str, list[dict[str, str]]] = {}
    for night, trial in rows:
        bundle = paths.trials / trial
        bundle.mkdir(parents=True)
        for name in _FILES:
            (bundle / name).write_text("{}\n")
        experiment, version = trial.split(".", 2)[2].split(".", 1)
        plans.setdefault(night, []).append({"id": trial, "experiment": experiment, "version": version})
    paths.nights.mkdir(exist_ok=True)
    for night, plan in plans.items():
        content = {
            "id": night,
            "suite": "nightly",
            "plan_sha256": "0" * 64,
            "started_at": f"{night[:10]}T01:00:00Z",
            "trials": plan,
        }
        (paths.nights / f"{night}.json").write_text(json.dumps(content))

-- The history: one row per fact of a trial, all of it read from trial bundles and rebuildable from
-- them. No row depends on when or in which order it was appended. Times are in UTC.

CREATE TABLE meta (
    schema_version INTEGER PRIMARY KEY
);
COMMENT ON TABLE meta IS 'One row: which version of this schema the file has.';
COMMENT ON COLUMN meta.schema_version IS 'Version of this schema; a Knickpoint refuses files newer than it knows.';

CREATE TABLE trials (
    trial_id VARCHAR PRIMARY KEY,
    bundle_sha256 VARCHAR NOT NULL,
    night VARCHAR NOT NULL,
    purpose VARCHAR NOT NULL,
    experiment VARCHAR NOT NULL,
    system VARCHAR NOT NULL,
    version VARCHAR NOT NULL,
    line VARCHAR NOT NULL,
    ordinal BIGINT NOT NULL,
    released_at DATE,
    artifact_source VARCHAR,
    artifact_sha256 VARCHAR,
    topology VARCHAR NOT NULL,
    topology_sha256 VARCHAR NOT NULL,
    testbed VARCHAR NOT NULL,
    testbed_sha256 VARCHAR NOT NULL,
    testbed_class VARCHAR NOT NULL,
    workload VARCHAR NOT NULL,
    workload_sha256 VARCHAR NOT NULL,
    config VARCHAR NOT NULL,
    config_sha256 VARCHAR NOT NULL,
    engine VARCHAR NOT NULL,
    seed BIGINT NOT NULL,
    started_at TIMESTAMP NOT NULL,
    finished_at TIMESTAMP NOT NULL,
    status VARCHAR NOT NULL,
    log_tail VARCHAR NOT NULL,
    harness_version VARCHAR NOT NULL
);
COMMENT ON TABLE trials IS 'One row per trial: one release deployed and measured end to end.';
COMMENT ON COLUMN trials.trial_id IS 'Names the trial, and its bundle under trials/.';
COMMENT ON COLUMN trials.bundle_sha256 IS 'SHA-256 of the bundle''s manifest: stands for the content of all its files.';
COMMENT ON COLUMN trials.night IS 'The night the trial belongs to.';
COMMENT ON COLUMN trials.purpose IS 'Why it was run: scheduled, candidate, bisection, canary or sentinel.';
COMMENT ON COLUMN trials.experiment IS 'Name of the experiment: system, topology, workload and config together.';
COMMENT ON COLUMN trials.system IS 'The database product.';
COMMENT ON COLUMN trials.version IS 'Label of the release; text, never an order.';
COMMENT ON COLUMN trials.line IS 'Release line, such as 5.0; lines are parallel branches.';
COMMENT ON COLUMN trials.ordinal IS 'Order of the release inside its line.';
COMMENT ON COLUMN trials.released_at IS 'Day of the release, if known.';
COMMENT ON COLUMN trials.artifact_source IS 'Where the installed bytes came from: archive, maven, path or builtin; NULL if nothing was installed.';
COMMENT ON COLUMN trials.artifact_sha256 IS 'SHA-256 of the installed artifact.';
COMMENT ON COLUMN trials.topology IS 'Name of the topology: the shape of the cluster.';
COMMENT ON COLUMN trials.topology_sha256 IS 'Content hash of the topology''s file (first 12 hex digits).';
COMMENT ON COLUMN trials.testbed IS 'Name of the testbed: the hosts.';
COMMENT ON COLUMN trials.testbed_sha256 IS 'Content hash of the testbed''s file (first 12 hex digits).';
COMMENT ON COLUMN trials.testbed_class IS 'Trials compare only within one testbed class.';
COMMENT ON COLUMN trials.workload IS 'Name of the workload.';
COMMENT ON COLUMN trials.workload_sha256 IS 'Content hash of the workload''s file (first 12 hex digits).';
COMMENT ON COLUMN trials.config IS 'Name of the system''s settings variant.';
COMMENT ON COLUMN trials.config_sha256 IS 'Content hash of the config''s file (first 12 hex digits).';
COMMENT ON COLUMN trials.engine IS 'Load engine; numbers of two engines never share a series.';
COMMENT ON COLUMN trials.seed IS 'Seed of all keys and values of the trial.';
COMMENT ON COLUMN trials.started_at IS 'Start of the trial, UTC.';
COMMENT ON COLUMN trials.finished_at IS 'End of the trial, UTC.';
COMMENT ON COLUMN trials.status IS 'completed, invalid or failed; only completed trials enter a series.';
COMMENT ON COLUMN trials.log_tail IS 'Last lines of the log of the server that failed; empty otherwise.';
COMMENT ON COLUMN trials.harness_version IS 'Version of Knickpoint that measured.';

CREATE TABLE reasons (
    trial_id VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    kind VARCHAR NOT NULL,
    text VARCHAR NOT NULL,
    PRIMARY KEY (trial_id, position)
);
COMMENT ON TABLE reasons IS 'Why a trial is invalid or failed; one row per reason.';
COMMENT ON COLUMN reasons.trial_id IS 'The trial.';
COMMENT ON COLUMN reasons.position IS 'Place among the trial''s reasons, from 0.';
COMMENT ON COLUMN reasons.kind IS 'The reason for machines.';
COMMENT ON COLUMN reasons.text IS 'The reason for people, with numbers.';

CREATE TABLE facts (
    trial_id VARCHAR NOT NULL,
    moment VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    host VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    value VARCHAR NOT NULL,
    PRIMARY KEY (trial_id, moment, position)
);
COMMENT ON TABLE facts IS 'The environment: what was true of each host before and after a trial.';
COMMENT ON COLUMN facts.trial_id IS 'The trial.';
COMMENT ON COLUMN facts.moment IS 'When the fact was read: before or after the trial.';
COMMENT ON COLUMN facts.position IS 'Place among the facts of that moment, from 0.';
COMMENT ON COLUMN facts.host IS 'Name of the host in the testbed.';
COMMENT ON COLUMN facts.name IS 'What was read, such as kernel.';
COMMENT ON COLUMN facts.value IS 'What it was.';

CREATE TABLE samples (
    trial_id VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    phase VARCHAR NOT NULL,
    operation VARCHAR NOT NULL,
    metric VARCHAR NOT NULL,
    statistic VARCHAR NOT NULL,
    value DOUBLE NOT NULL,
    iteration INTEGER,
    PRIMARY KEY (trial_id, position)
);
COMMENT ON TABLE samples IS 'Values of metrics: one row per phase, operation, metric, statistic and iteration.';
COMMENT ON COLUMN samples.trial_id IS 'The trial.';
COMMENT ON COLUMN samples.position IS 'Place among the trial''s samples, from 0.';
COMMENT ON COLUMN samples.phase IS 'The measured phase, such as saturation.';
COMMENT ON COLUMN samples.operation IS 'What clients did, such as write.';
COMMENT ON COLUMN samples.metric IS 'throughput (ops/s), response_time or service_time (ms).';
COMMENT ON COLUMN samples.statistic IS 'Which statistic of the metric, such as mean or p99.';
COMMENT ON COLUMN samples.value IS 'The value, in the unit of its metric.';
COMMENT ON COLUMN samples.iteration IS 'Iteration, from 1; NULL is the value over all iterations.';

CREATE TABLE counters (
    trial_id VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    phase VARCHAR NOT NULL,
    operation VARCHAR NOT NULL,
    iteration INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    value BIGINT NOT NULL,
    PRIMARY KEY (trial_id, position)
);
COMMENT ON TABLE counters IS 'How often something happened in one iteration of a phase.';
COMMENT ON COLUMN counters.trial_id IS 'The trial.';
COMMENT ON COLUMN counters.position IS 'Place among the trial''s counters, from 0.';
COMMENT ON COLUMN counters.phase IS 'The phase.';
COMMENT ON COLUMN counters.operation IS 'What clients did.';
COMMENT ON COLUMN counters.iteration IS 'Iteration, from 1; 0 is the warm-up.';
COMMENT ON COLUMN counters.name IS 'attempted, completed, completed_in_window, not_found, wrong_data, timeouts, clamped or error:<kind>.';
COMMENT ON COLUMN counters.value IS 'How often.';

CREATE TABLE histograms (
    trial_id VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    phase VARCHAR NOT NULL,
    operation VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    iteration INTEGER NOT NULL,
    start_s DOUBLE NOT NULL,
    length_s DOUBLE NOT NULL,
    max_us BIGINT NOT NULL,
    encoded VARCHAR NOT NULL,
    PRIMARY KEY (trial_id, position)
);
COMMENT ON TABLE histograms IS 'One histogram per operation, kind and interval of about one second: any percentile, later.';
COMMENT ON COLUMN histograms.trial_id IS 'The trial.';
COMMENT ON COLUMN histograms.position IS 'Place in the bundle''s interval log, from 0.';
COMMENT ON COLUMN histograms.phase IS 'The phase.';
COMMENT ON COLUMN histograms.operation IS 'What clients did.';
COMMENT ON COLUMN histograms.kind IS 'response_time (from the intended start) or service_time (from the actual send).';
COMMENT ON COLUMN histograms.iteration IS 'Iteration, from 1; 0 is the warm-up.';
COMMENT ON COLUMN histograms.start_s IS 'Start of the interval, seconds since the Unix epoch.';
COMMENT ON COLUMN histograms.length_s IS 'Length of the interval in seconds.';
COMMENT ON COLUMN histograms.max_us IS 'Largest value in microseconds.';
COMMENT ON COLUMN histograms.encoded IS 'HdrHistogram V2, compressed, base64; values in microseconds.';

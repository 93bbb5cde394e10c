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
COMMENT ON COLUMN trials.purpose IS 'Why it was run: scheduled, candidate, comparison, confirmation, bisection, canary, sentinel, or imported (measured by another program).';
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
COMMENT ON COLUMN trials.harness_version IS 'Version of Knickpoint that measured; empty if another program did.';

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

CREATE TABLE remarks (
    trial_id VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    kind VARCHAR NOT NULL,
    text VARCHAR NOT NULL,
    PRIMARY KEY (trial_id, position)
);
COMMENT ON TABLE remarks IS 'What a reader must know of a trial, though it does not make it invalid; one row per remark.';
COMMENT ON COLUMN remarks.trial_id IS 'The trial.';
COMMENT ON COLUMN remarks.position IS 'Place among the trial''s remarks, from 0.';
COMMENT ON COLUMN remarks.kind IS 'The remark for machines.';
COMMENT ON COLUMN remarks.text IS 'The remark for people.';

CREATE TABLE load_steps (
    trial_id VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    phase VARCHAR NOT NULL,
    offered_load_ops_per_s DOUBLE NOT NULL,
    achieved_ops_per_s DOUBLE NOT NULL,
    response_time_p99_ms DOUBLE,
    send_lateness_p99_ms DOUBLE NOT NULL,
    client_cpu_share DOUBLE NOT NULL,
    outcome VARCHAR NOT NULL,
    text VARCHAR NOT NULL,
    PRIMARY KEY (trial_id, position)
);
COMMENT ON TABLE load_steps IS 'The offered loads of ladders and searches, in the order in which they were tried.';
COMMENT ON COLUMN load_steps.trial_id IS 'The trial.';
COMMENT ON COLUMN load_steps.position IS 'Place among the trial''s load steps, from 0.';
COMMENT ON COLUMN load_steps.phase IS 'The phase of this step, under which its histograms and counters are kept.';
COMMENT ON COLUMN load_steps.offered_load_ops_per_s IS 'Operations per second that the schedule started.';
COMMENT ON COLUMN load_steps.achieved_ops_per_s IS 'Operations per second that were achieved.';
COMMENT ON COLUMN load_steps.response_time_p99_ms IS 'p99 of response time in ms; NULL if nothing completed.';
COMMENT ON COLUMN load_steps.send_lateness_p99_ms IS 'p99 of send lateness in ms: the client''s own delay.';
COMMENT ON COLUMN load_steps.client_cpu_share IS 'CPU time of the busiest engine process per second.';
COMMENT ON COLUMN load_steps.outcome IS 'held, missed, or client-limited (says nothing about the system, and has no samples).';
COMMENT ON COLUMN load_steps.text IS 'The outcome in a sentence, with numbers.';

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
COMMENT ON COLUMN facts.host IS 'Name of the host in the testbed; empty for a fact of the whole trial.';
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
    host VARCHAR NOT NULL,
    PRIMARY KEY (trial_id, position)
);
COMMENT ON TABLE samples IS 'Values of metrics: one row per phase, operation, metric, statistic, iteration and host.';
COMMENT ON COLUMN samples.trial_id IS 'The trial.';
COMMENT ON COLUMN samples.position IS 'Place among the trial''s samples, from 0.';
COMMENT ON COLUMN samples.phase IS 'The measured phase, such as saturation; canary-before and canary-after for canaries.';
COMMENT ON COLUMN samples.operation IS 'What clients did, such as write.';
COMMENT ON COLUMN samples.metric IS 'What was measured, such as throughput (ops/s) or response_time (ms); all of them are in docs/glossary.md.';
COMMENT ON COLUMN samples.statistic IS 'Which statistic of the metric, such as mean or p99.';
COMMENT ON COLUMN samples.value IS 'The value, in the unit of its metric.';
COMMENT ON COLUMN samples.iteration IS 'Iteration, from 1; NULL is the value over all iterations.';
COMMENT ON COLUMN samples.host IS 'The node or host whose value it is; empty where the value is of all together.';

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
COMMENT ON COLUMN counters.name IS 'attempted, which is completed + not_found + wrong_data + timeouts + error:<kind>; also completed_in_window, sent_in_window, held, rows, clamped.';
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
COMMENT ON COLUMN histograms.kind IS 'response_time (from the intended start), service_time (from the actual send), send_lateness (the client''s own delay), or duration (imported).';
COMMENT ON COLUMN histograms.iteration IS 'Iteration, from 1; 0 is the warm-up.';
COMMENT ON COLUMN histograms.start_s IS 'Start of the interval, seconds since the Unix epoch.';
COMMENT ON COLUMN histograms.length_s IS 'Length of the interval in seconds.';
COMMENT ON COLUMN histograms.max_us IS 'Largest value in microseconds.';
COMMENT ON COLUMN histograms.encoded IS 'HdrHistogram V2, compressed, base64; values in microseconds.';

CREATE TABLE rolled_up (
    trial_id VARCHAR PRIMARY KEY,
    histograms BIGINT NOT NULL
);
COMMENT ON TABLE rolled_up IS 'Trials that no longer have a histogram per second, only one per iteration: knickpoint history prune.';
COMMENT ON COLUMN rolled_up.trial_id IS 'The trial.';
COMMENT ON COLUMN rolled_up.histograms IS 'How many histograms it had before.';

//! All that an engine process is told and answers: the JSON of `perf/load/spec.py`, field by field.
//!
//! A field that is not known is refused, so that an engine of another version says so at once instead of
//! measuring something else.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub const WARM_UP: &str = "warm-up";
pub const PRELOAD: &str = "preload";

pub const READY: &str = "ready";
pub const GO: &str = "go";
pub const PROGRESS: &str = "progress.csv";
pub const INTERVALS: &str = "intervals.hlog";
pub const RESULT: &str = "result.json";
pub const PASSWORD: &str = "password";

/// Names the file that says when the iterations of a stage begin.
#[must_use]
pub fn measure_file(stage: usize) -> String {
    format!("measure-{stage}")
}

/// What a client can ask of a system.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    Write,
    ReadLatest,
    Put,
    Get,
    PutGet,
    Read,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
    Load,
    #[serde(rename = "single-groupby-1-1-1")]
    SingleGroupby1x1x1,
    #[serde(rename = "single-groupby-1-1-12")]
    SingleGroupby1x1x12,
    #[serde(rename = "single-groupby-5-1-12")]
    SingleGroupby5x1x12,
    #[serde(rename = "single-groupby-5-8-1")]
    SingleGroupby5x8x1,
    #[serde(rename = "double-groupby-1")]
    DoubleGroupby1,
    #[serde(rename = "double-groupby-5")]
    DoubleGroupby5,
    #[serde(rename = "double-groupby-all")]
    DoubleGroupbyAll,
}

impl Operation {
    /// Gives the name that logs, counters and messages have it under.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::ReadLatest => "read-latest",
            Self::Put => "put",
            Self::Get => "get",
            Self::PutGet => "put-get",
            Self::Read => "read",
            Self::Update => "update",
            Self::Insert => "insert",
            Self::Scan => "scan",
            Self::ReadModifyWrite => "read-modify-write",
            Self::Load => "load",
            Self::SingleGroupby1x1x1 => "single-groupby-1-1-1",
            Self::SingleGroupby1x1x12 => "single-groupby-1-1-12",
            Self::SingleGroupby5x1x12 => "single-groupby-5-1-12",
            Self::SingleGroupby5x8x1 => "single-groupby-5-8-1",
            Self::DoubleGroupby1 => "double-groupby-1",
            Self::DoubleGroupby5 => "double-groupby-5",
            Self::DoubleGroupbyAll => "double-groupby-all",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// The records of the sensor workload; see `perf/model/records.py`, as of the others.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sensor {
    pub devices: u64,
    pub payload_bytes: u64,
    pub latest_count: u64,
    pub order: Option<Order>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    Shuffled,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PutGet {
    pub keys: u64,
    pub key_bytes: u64,
    pub least_value_bytes: u64,
    pub value_bytes_range: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ycsb {
    pub record_count: u64,
    pub request_distribution: Distribution,
    pub field_count: u64,
    pub field_length: u64,
    pub insert_order: InsertOrder,
    pub zero_padding: u64,
    pub read_all_fields: bool,
    pub write_all_fields: bool,
    pub hotspot_data_fraction: f64,
    pub hotspot_operation_fraction: f64,
    pub max_scan_length: u64,
    pub operation_count: Option<u64>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    Zipfian,
    Uniform,
    Hotspot,
    Latest,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum InsertOrder {
    Hashed,
    Ordered,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Devops {
    pub hosts: u64,
    pub span_s: u64,
    pub interval_s: u64,
    pub begin_s: u64,
    pub queries: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Records {
    Sensor(Sensor),
    PutGet(PutGet),
    Ycsb(Ycsb),
    Devops(Devops),
}

/// Where and how a client connects.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    pub system: String,
    pub addresses: Vec<String>,
    pub port: u16,
    pub replication_factor: u32,
    pub consistency: Consistency,
    pub timeout_s: f64,
    pub layout: BTreeMap<String, Value>,
    pub routers: bool,
    pub access: Option<Access>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Consistency {
    One,
    Quorum,
    All,
}

/// How a client proves who it is, and whom it trusts; never a secret itself, only where it is kept.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    pub username: Option<String>,
    pub password_env: Option<String>,
    pub password_file: Option<PathBuf>,
    pub tls: Option<Tls>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    pub ca_file: PathBuf,
    pub certificate_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Load {
    Closed {
        in_flight: usize,
    },
    Open {
        offered_load_ops_per_s: f64,
        in_flight: usize,
        #[serde(deserialize_with = "uniform_unless_said")]
        arrivals: Arrivals,
    },
}

/// The spec says null where starts are evenly spaced.
fn uniform_unless_said<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Arrivals, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(Arrivals::Uniform))
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    Uniform,
    Poisson,
}

/// One load kept up without a break: a warm-up, then one or more iterations of a measured phase.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    pub phase: String,
    pub load: Load,
    pub warmup_s: f64,
    pub warmup_cap_s: f64,
    pub iteration_s: f64,
    pub iterations: Vec<u32>,
    pub histogram_s: u32,
}

impl Stage {
    /// How long it lasts if the warm-up runs to its cap.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // nobody asks for 2^53 iterations
    pub fn longest_s(&self) -> f64 {
        self.warmup_cap_s + self.iteration_s * self.iterations.len() as f64
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preload {
    pub rows: u64,
    pub in_flight: usize,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counted {
    pub phase: String,
    pub operations: u64,
    pub in_flight: usize,
}

/// What one engine process does: a preload, or so many operations, or stages.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    pub target: Target,
    pub records: Records,
    /// In the order of the file, which decides which operation a number is.
    #[serde(deserialize_with = "in_order")]
    pub mix: Vec<(Operation, f64)>,
    pub seed: u64,
    pub engine_index: u64,
    pub engine_count: u64,
    pub preload: Option<Preload>,
    pub counted: Option<Counted>,
    pub stages: Vec<Stage>,
    pub readable_rows: u64,
    pub first_row: u64,
    pub value_seed: u64,
    pub run: u64,
    pub batch_rows: u64,
    pub go_within_s: f64,
    pub output_dir: PathBuf,
    pub cores: Vec<usize>,
}

fn in_order<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<(Operation, f64)>, D::Error> {
    struct Pairs;
    impl<'de> serde::de::Visitor<'de> for Pairs {
        type Value = Vec<(Operation, f64)>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("operations, each with its weight")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(
            self,
            mut map: A,
        ) -> Result<Self::Value, A::Error> {
            let mut pairs = Vec::new();
            while let Some(pair) = map.next_entry()? {
                pairs.push(pair);
            }
            Ok(pairs)
        }
    }
    from.deserialize_map(Pairs)
}

/// One counter of one operation in one iteration of a phase.
#[derive(Clone, Debug, Serialize)]
pub struct Counter {
    pub phase: String,
    pub operation: String,
    pub iteration: u32,
    pub name: String,
    pub value: u64,
}

/// What one engine process used in one iteration of a phase (0: all warm-ups of the phase).
#[derive(Clone, Debug, Serialize)]
pub struct Usage {
    pub phase: String,
    pub iteration: u32,
    pub wall_s: f64,
    pub cpu_s: f64,
    pub waited_s: f64,
}

/// What one engine process counted.
#[derive(Clone, Debug, Serialize)]
pub struct EngineResult {
    pub engine_index: u64,
    pub counters: Vec<Counter>,
    pub usages: Vec<Usage>,
    pub examples: Vec<String>,
    pub counted_s: Option<f64>,
}

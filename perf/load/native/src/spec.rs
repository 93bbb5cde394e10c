//! All that an engine process is given and answers: the JSON of `perf/load/spec.py`, field by field.
//!
//! A field that is not known is refused, so that an engine of another version says so at once instead of
//! measuring something else.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub mod statements;

use statements::Statements;

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
    /// A statement of a workload of one's own.
    #[serde(untagged)]
    Own(OwnName),
}

/// The name of a statement; it is kept for as long as the process lives, so that an operation is a copy.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct OwnName(&'static str);

impl<'de> Deserialize<'de> for OwnName {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(|name| Self(name.leak()))
    }
}

impl fmt::Display for Operation {
    /// Gives the name that logs, counters and messages have it under.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(out)
    }
}

/// The records of the sensor workload; see `perf/model/records.py`, as of the others.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sensor {
    #[serde(deserialize_with = "positive")]
    pub devices: u64,
    #[serde(deserialize_with = "positive")]
    pub payload_bytes: u64,
    #[serde(deserialize_with = "positive")]
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
    #[serde(deserialize_with = "positive")]
    pub keys: u64,
    #[serde(deserialize_with = "positive")]
    pub key_bytes: u64,
    #[serde(deserialize_with = "positive")]
    pub least_value_bytes: u64,
    #[serde(deserialize_with = "positive")]
    pub value_bytes_range: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ycsb {
    #[serde(deserialize_with = "positive")]
    pub record_count: u64,
    pub request_distribution: Distribution,
    #[serde(deserialize_with = "positive")]
    pub field_count: u64,
    #[serde(deserialize_with = "positive")]
    pub field_length: u64,
    pub insert_order: InsertOrder,
    #[serde(deserialize_with = "positive")]
    pub zero_padding: u64,
    pub read_all_fields: bool,
    pub write_all_fields: bool,
    pub hotspot_data_fraction: f64,
    pub hotspot_operation_fraction: f64,
    #[serde(deserialize_with = "positive")]
    pub max_scan_length: u64,
    pub operation_count: Option<NonZeroU64>,
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
    #[serde(deserialize_with = "positive")]
    pub hosts: u64,
    #[serde(deserialize_with = "positive")]
    pub span_s: u64,
    #[serde(deserialize_with = "positive")]
    pub interval_s: u64,
    pub begin_s: u64,
    #[serde(deserialize_with = "positive")]
    pub queries: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Records {
    Sensor(Sensor),
    PutGet(PutGet),
    Ycsb(Ycsb),
    Devops(Devops),
    Statements(Statements),
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
    #[serde(deserialize_with = "positive")]
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
        #[serde(deserialize_with = "positive")]
        in_flight: usize,
    },
    Open {
        #[serde(deserialize_with = "positive")]
        offered_load_ops_per_s: f64,
        #[serde(deserialize_with = "positive")]
        in_flight: usize,
        #[serde(deserialize_with = "uniform_unless_said")]
        arrivals: Arrivals,
    },
}

/// Refuses a zero, which would not fail by itself: it would be measured as a server that never answers, or
/// never end.
fn positive<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default + PartialOrd + fmt::Display,
{
    let number = T::deserialize(from)?;
    if number > T::default() {
        return Ok(number);
    }
    Err(serde::de::Error::custom(format!(
        "{number} is not above zero"
    )))
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
    #[serde(deserialize_with = "positive")]
    pub warmup_s: f64,
    #[serde(deserialize_with = "positive")]
    pub warmup_cap_s: f64,
    #[serde(deserialize_with = "positive")]
    pub iteration_s: f64,
    pub iterations: Vec<u32>,
    #[serde(deserialize_with = "positive")]
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
    #[serde(deserialize_with = "positive")]
    pub rows: u64,
    #[serde(deserialize_with = "positive")]
    pub in_flight: usize,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counted {
    pub phase: String,
    #[serde(deserialize_with = "positive")]
    pub operations: u64,
    #[serde(deserialize_with = "positive")]
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
    #[serde(deserialize_with = "positive")]
    pub engine_count: u64,
    pub preload: Option<Preload>,
    pub counted: Option<Counted>,
    pub stages: Vec<Stage>,
    pub readable_rows: u64,
    pub first_row: u64,
    pub value_seed: u64,
    pub run: u64,
    #[serde(deserialize_with = "positive")]
    pub batch_rows: u64,
    #[serde(deserialize_with = "positive")]
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
            while let Some((operation, weight)) = map.next_entry()? {
                if weight <= 0.0 {
                    let why = format!("{operation}: {weight} is not above zero");
                    return Err(serde::de::Error::custom(why));
                }
                pairs.push((operation, weight));
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::load::scripted::{open, spec, stage};

    fn read(value: Value) -> Result<LoadSpec, String> {
        serde_json::from_value(value).map_err(|why| why.to_string())
    }

    fn staged(load: &Value, with: &Value) -> Value {
        spec(&json!({"stages": [stage(load, with)]}))
    }

    #[test]
    fn a_zero_is_refused() {
        read(staged(&open(1.0, 1), &json!({}))).unwrap();
        for value in [
            spec(&json!({"engine_count": 0})),
            spec(&json!({"batch_rows": 0})),
            spec(&json!({"mix": {"write": 0.0}})),
            spec(&json!({"preload": {"rows": 5, "in_flight": 0}})),
            staged(&open(10.0, 0), &json!({})),
            staged(&open(-1.0, 1), &json!({})),
            staged(&open(1.0, 1), &json!({"histogram_s": 0})),
        ] {
            let why = read(value).unwrap_err();
            assert!(why.contains("is not above zero"), "{why}");
        }
    }

    #[test]
    fn an_expected_number_of_operations_is_none_or_above_zero() {
        let records = |expected: Value| {
            json!({
                "record_count": 20, "request_distribution": "zipfian", "field_count": 3,
                "field_length": 10, "insert_order": "hashed", "zero_padding": 1,
                "read_all_fields": true, "write_all_fields": false, "hotspot_data_fraction": 0.2,
                "hotspot_operation_fraction": 0.8, "max_scan_length": 4, "operation_count": expected,
            })
        };
        let read = |expected| serde_json::from_value::<Ycsb>(records(expected));
        assert_eq!(read(Value::Null).unwrap().operation_count, None);
        assert_eq!(read(json!(1)).unwrap().operation_count, NonZeroU64::new(1));
        assert!(read(json!(0)).is_err());
    }

    #[test]
    fn a_field_of_a_load_that_is_not_known_is_refused() {
        for load in [open(10.0, 1), json!({"kind": "closed", "in_flight": 1})] {
            let mut load = load;
            read(staged(&load, &json!({}))).unwrap();
            load["ramp_s"] = 5.into();
            let why = read(staged(&load, &json!({}))).unwrap_err();
            assert!(why.contains("unknown field `ramp_s`"), "{why}");
        }
    }
}

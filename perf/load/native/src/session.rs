//! What a client can ask of a system, per data model: `perf/systems/sessions.py` for one thread and many futures.
//!
//! The harness makes tables and counts what is stored; an engine only writes and reads. Nothing is ever
//! tried again by a driver, so that each failure is counted.

use bytes::Bytes;

use crate::spec::Operation;

/// How an operation failed: the counter that it goes to, and what the driver said.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failure {
    /// "timeouts", or "error:<kind>"; the kinds are those of `perf/systems/cql/client.py` and `perf/systems/mongodb/client.py`.
    pub kind: String,
    pub message: String,
}

/// One telemetry record of the sensor workload; `ts_ms` is milliseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    pub device_id: String,
    pub ts_ms: i64,
    pub values: [f64; 8],
    pub metadata: Bytes,
}

/// The values of all fields of a record, in the order of its fields; ASCII.
pub type Values = Vec<Bytes>;

/// One row of one table of the devops workload; `tags` and `values` in the order of
/// `perf/workloads/devops/tables.py`, whole numbers stay so.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub table: &'static str,
    pub tags: std::rc::Rc<[String]>,
    pub ts_ms: i64,
    pub values: Vec<Number>,
}

/// A value of a devops row: whole, or with a fraction, as its table says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Whole(i64),
    Real(f64),
}

/// A question about the table cpu; see `perf/workloads/devops/rows.py`.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub operation: Operation,
    pub metrics: Vec<&'static str>,
    pub hosts: Vec<String>,
    pub from_ms: i64,
    pub until_ms: i64,
    pub bucket_ms: i64,
    pub aggregate: Aggregate,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Aggregate {
    Max,
    Mean,
}

/// One group of an answer: the begin of its bucket, its host (empty where not grouped by it), aggregates.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    pub ts_ms: i64,
    pub host: String,
    pub values: Vec<f64>,
}

/// What stands for a parameter, or in a column of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum StatementValue {
    Bool(bool),
    Whole(i128),
    Real(f64),
    /// UTF-8.
    Text(Bytes),
    Uuid([u8; 16]),
}

/// What a statement was answered with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answered {
    /// Of each row, the columns that the statement expects, in their order; none where there is no value,
    /// or one that nothing here can be.
    pub rows: Vec<Vec<Option<StatementValue>>>,
    /// The first column of the first row is true.
    pub applied: bool,
}

/// A client of the sensor workload.
#[allow(async_fn_in_trait)] // one thread: nobody asks whether a future may move to another
pub trait SensorSession {
    /// Stores readings of one device in one request; returns when they are acknowledged.
    async fn write(&self, readings: &[Reading]) -> Result<(), Failure>;

    /// Gives the newest readings of a device, newest first.
    async fn read_latest(&self, device_id: &str, count: u64) -> Result<Vec<Reading>, Failure>;
}

/// A client of put/get (one field) and YCSB (several).
#[allow(async_fn_in_trait)] // as above
pub trait KeyValueSession {
    /// Stores a record under a key that is new.
    async fn insert(&self, key: &str, values: &[Bytes]) -> Result<(), Failure>;

    /// Stores a whole record, in place of what is under its key, if anything is.
    async fn put(&self, key: &str, values: &[Bytes]) -> Result<(), Failure>;

    /// Changes some fields, by number, of a record that is there.
    async fn update(&self, key: &str, changes: &[(usize, Bytes)]) -> Result<(), Failure>;

    /// Gives the values of a record; none if there is none.
    async fn get(&self, key: &str) -> Result<Option<Values>, Failure>;

    /// Gives up to `count` records from `first_key` on, in the system's own order of keys.
    async fn scan(&self, first_key: &str, count: u64) -> Result<Vec<(String, Values)>, Failure>;
}

/// A client of the devops workload.
#[allow(async_fn_in_trait)] // as above
pub trait DevopsSession {
    /// Stores rows, of any tables and hosts; returns when they are acknowledged.
    async fn write(&self, rows: &[Row]) -> Result<(), Failure>;

    /// Says whether the system can be asked queries of this type.
    fn can_ask(&self, operation: Operation) -> bool;

    /// Asks it; groups ordered by time, then by host.
    async fn ask(&self, query: &Query) -> Result<Vec<Group>, Failure>;
}

/// A client of a workload in statements, each of which is known by its place among all of them.
#[allow(async_fn_in_trait)] // as above
pub trait StatementSession {
    /// Names a statement's parameters, in the order in which it takes their values.
    fn parameters(&self, statement: usize) -> &[String];

    /// Sends a statement with the values of its parameters.
    async fn ask(&self, statement: usize, values: &[StatementValue]) -> Result<Answered, Failure>;
}

//! The session of the sensor workload on CQL; the table is that of `perf/systems/cql/client.py`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use scylla::deserialize::row::ColumnIterator;
use scylla::statement::batch::{Batch, BatchStatement, BatchType};
use scylla::statement::prepared::PreparedStatement;
use tokio::sync::OnceCell;

use crate::cql::cells::to_reading;
use crate::cql::connect::{Client, KEYSPACE};
use crate::cql::failure;
use crate::session::{Failure, Reading, SensorSession};
use crate::spec::Target;

const TABLE: &str = "sensor_readings";
const COLUMNS: &str = "device_id, ts, temperature, humidity, pressure, vibration, battery, latitude, \
                       longitude, signal, metadata";
const MARKS: &str = "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?";

struct Statements {
    insert: PreparedStatement,
    select: PreparedStatement,
}

/// A client's session; its statements are prepared before the first operation.
pub struct CqlSensor {
    client: Client,
    statements: OnceCell<Statements>,
    /// A batch has no values of its own, so those of one size are one.
    batches: RefCell<HashMap<usize, Rc<Batch>>>,
}

/// Connects a client of the sensor workload.
///
/// # Errors
/// As `Client::connect`.
pub async fn connect(target: &Target) -> Result<CqlSensor, String> {
    let session = CqlSensor {
        client: Client::connect(target).await?,
        statements: OnceCell::new(),
        batches: RefCell::default(),
    };
    match session.statements().await {
        // There is no table yet: then the first operation prepares.
        Err(failure) if !failure::is_invalid_request(&failure) => Err(format!(
            "{}: cannot prepare statements: {}: {}",
            target.system, failure.kind, failure.message
        )),
        _ => Ok(session),
    }
}

impl SensorSession for CqlSensor {
    /// One reading alone is an INSERT, several are one unlogged batch: they share a partition, so a
    /// batch is one mutation there and needs no log to be atomic.
    async fn write(&self, readings: &[Reading]) -> Result<(), Failure> {
        let insert = &self.statements().await?.insert;
        if let [reading] = readings {
            return self.client.execute(insert, reading).await.map(drop);
        }
        let batch = self.batch(insert, readings.len());
        self.client.batch(&batch, readings).await
    }

    /// The table's clustering order puts the newest first.
    async fn read_latest(&self, device_id: &str, count: u64) -> Result<Vec<Reading>, Failure> {
        let select = &self.statements().await?.select;
        let limit = i32::try_from(count).unwrap_or(i32::MAX);
        let answer = self.client.select(select, (device_id, limit)).await?;
        let rows = answer
            .rows::<ColumnIterator>()
            .map_err(|error| failure::of_answer(&error))?;
        let readings = rows
            .map(|row| row.and_then(to_reading))
            .collect::<Result<_, _>>();
        readings.map_err(|error| failure::of_answer(&error))
    }
}

impl CqlSensor {
    async fn statements(&self) -> Result<&Statements, Failure> {
        self.statements.get_or_try_init(|| self.prepare()).await
    }

    async fn prepare(&self) -> Result<Statements, Failure> {
        let table = format!("{KEYSPACE}.{TABLE}");
        let insert = format!("INSERT INTO {table} ({COLUMNS}) VALUES ({MARKS})");
        let select = format!("SELECT {COLUMNS} FROM {table} WHERE device_id = ? LIMIT ?");
        Ok(Statements {
            insert: self.client.prepare(insert).await?,
            select: self.client.prepare(select).await?,
        })
    }

    fn batch(&self, insert: &PreparedStatement, rows: usize) -> Rc<Batch> {
        let mut batches = self.batches.borrow_mut();
        let batch = batches.entry(rows).or_insert_with(|| {
            let statements = vec![BatchStatement::from(insert.clone()); rows];
            Rc::new(Batch::new_with_statements(BatchType::Unlogged, statements))
        });
        Rc::clone(batch)
    }
}

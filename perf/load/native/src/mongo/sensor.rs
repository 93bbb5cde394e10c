//! Readings in a collection, as `perf/mongo.py` stores and reads them.

use bytes::Bytes;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::raw::CStr;
use mongodb::bson::{DateTime, RawBsonRef, RawDocument, RawDocumentBuf, cstr, rawdoc};

use super::connect::{Commands, binary, limit_rows, unreadable};
use super::failure::fail;
use crate::session::{Failure, Reading, SensorSession};
use crate::spec::Target;

const COLLECTION: &str = "readings";
const VALUES: [&CStr; 8] = [
    cstr!("temperature"),
    cstr!("humidity"),
    cstr!("pressure"),
    cstr!("vibration"),
    cstr!("battery"),
    cstr!("latitude"),
    cstr!("longitude"),
    cstr!("signal"),
];

/// A client of the sensor workload.
pub struct MongoSensor {
    commands: Commands,
    newest_first: RawDocumentBuf,
    without_id: RawDocumentBuf,
}

/// Connects a client.
///
/// # Errors
/// As `Commands::connect`.
pub async fn connect(target: &Target) -> Result<MongoSensor, String> {
    Ok(MongoSensor {
        commands: Commands::connect(target).await?,
        newest_first: rawdoc! {"ts": -1},
        without_id: rawdoc! {"_id": false},
    })
}

impl SensorSession for MongoSensor {
    async fn write(&self, readings: &[Reading]) -> Result<(), Failure> {
        let documents: Vec<_> = readings.iter().map(to_document).collect();
        self.commands.insert(COLLECTION, &documents).await
    }

    async fn read_latest(&self, device_id: &str, count: u64) -> Result<Vec<Reading>, Failure> {
        let mut filter = RawDocumentBuf::new();
        filter.append(cstr!("device_id"), device_id);
        let mut command = self.commands.read_command(cstr!("find"), COLLECTION);
        command.append(cstr!("filter"), &filter);
        command.append(cstr!("projection"), &self.without_id);
        command.append(cstr!("sort"), &self.newest_first);
        limit_rows(&mut command, count);
        self.commands.read(command).await?.map(to_reading)
    }
}

fn to_document(reading: &Reading) -> RawDocumentBuf {
    let mut document = RawDocumentBuf::new();
    document.append(cstr!("_id"), ObjectId::new());
    document.append(cstr!("ts"), DateTime::from_millis(reading.ts_ms));
    document.append(cstr!("device_id"), reading.device_id.as_str());
    for (name, value) in VALUES.iter().zip(reading.values) {
        document.append(name, value);
    }
    document.append(cstr!("metadata"), binary(&reading.metadata));
    document
}

/// By name: in which order a time-series collection gives fields is the server's decision.
fn to_reading(document: &RawDocument, whole: &Bytes) -> Result<Reading, Failure> {
    let (mut device_id, mut ts_ms, mut metadata) = (None, None, None);
    let (mut values, mut seen) = ([f64::NAN; 8], 0_usize);
    for element in document {
        let (name, value) = element.map_err(unreadable)?;
        match (name.as_str(), value) {
            ("device_id", RawBsonRef::String(text)) => device_id = Some(text.to_owned()),
            // No device is called this: whoever verifies the row finds it wrong.
            ("device_id", _) => device_id = Some(String::new()),
            ("ts", RawBsonRef::DateTime(time)) => ts_ms = Some(time.timestamp_millis()),
            ("metadata", RawBsonRef::Binary(data)) => metadata = Some(whole.slice_ref(data.bytes)),
            ("ts" | "metadata", other) => {
                return Err(fail(
                    "error:TypeError",
                    format!("{name} is {:?}", other.element_type()),
                ));
            }
            (other, value) => {
                if let Some(place) = VALUES.iter().position(|known| known.as_str() == other) {
                    seen += 1;
                    values[place] = number(value);
                }
            }
        }
    }
    match (device_id, ts_ms, metadata) {
        (Some(device_id), Some(ts_ms), Some(metadata)) if seen == VALUES.len() => Ok(Reading {
            device_id,
            ts_ms,
            values,
            metadata,
        }),
        _ => Err(fail(
            "error:KeyError",
            "a reading without one of its fields",
        )),
    }
}

/// Not a number is equal to nothing, so a value of another type is found wrong by whoever verifies it.
#[allow(clippy::cast_precision_loss)] // as Python compares them
pub(super) fn number(value: RawBsonRef<'_>) -> f64 {
    match value {
        RawBsonRef::Double(number) => number,
        RawBsonRef::Int32(number) => f64::from(number),
        RawBsonRef::Int64(number) => number as f64,
        _ => f64::NAN,
    }
}

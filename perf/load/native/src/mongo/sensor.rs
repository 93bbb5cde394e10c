//! Readings in a collection, as `perf/systems/mongodb/client.py` stores and reads them.

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
                let is_this = |known: &CStr| known.as_str() == other;
                // Where they are in the order in which they were written, each is found at once.
                let place = match VALUES.get(seen) {
                    Some(next) if is_this(next) => Some(seen),
                    _ => VALUES.iter().position(|known| is_this(known)),
                };
                if let Some(place) = place {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(
        reading: &Reading,
        change: impl Fn(&str) -> Option<RawDocumentBuf>,
    ) -> RawDocumentBuf {
        let mut document = RawDocumentBuf::new();
        for element in to_document(reading).iter().skip(1) {
            let (name, value) = element.expect("an element");
            match change(name.as_str()) {
                None => document.append(name, value),
                Some(instead) => document.append(name, &instead),
            }
        }
        document
    }

    fn reading() -> Reading {
        Reading {
            device_id: "d7".to_owned(),
            ts_ms: 1_700_000_000_123,
            values: [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5],
            metadata: Bytes::from_static(b"\x00\xff"),
        }
    }

    fn read(document: &RawDocumentBuf) -> Result<Reading, Failure> {
        let whole = Bytes::copy_from_slice(document.as_bytes());
        to_reading(RawDocument::from_bytes(&whole).expect("a document"), &whole)
    }

    #[test]
    fn a_reading_comes_back_in_whatever_order_its_fields_are() {
        let document = stored(&reading(), |_| None);
        assert_eq!(read(&document), Ok(reading()));
        let mut elements: Vec<_> = document
            .iter()
            .map(|element| element.expect("one"))
            .collect();
        elements.reverse();
        assert_eq!(read(&elements.into_iter().collect()), Ok(reading()));
    }

    #[test]
    fn a_value_of_another_type_equals_none_that_was_written() {
        let damaged = stored(&reading(), |name| {
            (name == "signal").then(RawDocumentBuf::new)
        });
        let found = read(&damaged).expect("a reading");
        assert!(found.values[7].is_nan());
        assert_eq!(found.values[..7], reading().values[..7]);
    }

    #[test]
    fn what_is_missing_or_no_time_is_an_error_of_the_operation() {
        let short: RawDocumentBuf = stored(&reading(), |_| None)
            .iter()
            .map(|element| element.expect("one"))
            .filter(|(name, _)| name.as_str() != "battery")
            .collect();
        assert_eq!(read(&short).expect_err("a failure").kind, "error:KeyError");
        let timeless = stored(&reading(), |name| (name == "ts").then(RawDocumentBuf::new));
        assert_eq!(
            read(&timeless).expect_err("a failure").kind,
            "error:TypeError"
        );
    }
}

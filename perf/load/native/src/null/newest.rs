//! The newest rows of a device, for a server that answers as if the rows [0, rows) were stored.

use std::io;

use knickload::session::Reading;
use knickload::spec::Sensor;
use knickload::values::sensor::Readings;

use crate::behaviour::{Holdings, How};

const DEVICE: &str = "sensor-";

/// Computes what reads are answered with.
pub struct Newest {
    holds: Holdings,
    readings: Readings,
}

impl Newest {
    /// Prepares the rows of a seed.
    ///
    /// # Errors
    /// No such rows can be.
    pub fn new(holds: Holdings) -> io::Result<Self> {
        let records = Sensor {
            devices: holds.devices,
            payload_bytes: holds.payload_bytes,
            latest_count: 1,
            order: None,
        };
        let readings = Readings::new(&records, holds.seed).map_err(io::Error::other)?;
        Ok(Self { holds, readings })
    }

    /// Gives a device's newest rows, newest first; one of them changed where the answer is to be wrong.
    pub fn of(&self, device_id: &str, count: u64, how: How) -> Vec<Reading> {
        let index = device_id
            .strip_prefix(DEVICE)
            .and_then(|number| number.parse().ok());
        let Some(index) = index.filter(|&index: &u64| index < self.holds.devices) else {
            return Vec::new();
        };
        let stored = self
            .holds
            .rows
            .saturating_sub(index)
            .div_ceil(self.holds.devices);
        let newest = (stored.saturating_sub(count)..stored).rev();
        let mut rows: Vec<Reading> = newest
            .map(|sequence| self.readings.reading_of(index, sequence))
            .collect();
        if let (How::Wrong, Some(last)) = (how, rows.last_mut()) {
            last.values[0] += 1.0; // all values are less than one
        }
        rows
    }
}

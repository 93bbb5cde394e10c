//! The sensor workload's readings, byte by byte those of `perf/workloads/sensor.py`.
//!
//! Row number `i` belongs to device `i mod devices`, as that device's reading number `i div devices`;
//! everything in it is a pure function of (seed, i), so a reader knows what it must get.

use std::array::from_fn;

use bytes::Bytes;

use super::permutation::permute;
use super::pool::{PLACES, draw_bytes};
use super::splitmix::{fraction, stream, word};
use crate::session::Reading;
use crate::spec::{Order, Sensor};
use crate::task::Answer;

/// The first timestamp of each device: 2024-01-01T00:00:00Z.
pub const EPOCH_MS: i64 = 1_704_067_200_000;
/// The time between two readings of a device.
pub const STEP_MS: i64 = 1000;

const VALUES: usize = 8;
/// Device id, timestamp, values.
const FIXED_BYTES: u64 = 16 + 8 + 8 * VALUES as u64;

const READING_STREAM: u64 = 1;
const DEVICE_STREAM: u64 = 2;
const ORDER_STREAM: u64 = 4;

/// Readings of one device that are written together, oldest first.
#[derive(Clone, Debug)]
pub struct Batch {
    pub device_index: u64,
    /// The sequence number of the first one.
    pub first: u64,
    pub readings: Vec<Reading>,
}

/// All rows of a seed, computed as they are asked for.
#[derive(Clone, Debug)]
pub struct Readings {
    devices: u64,
    latest_count: u64,
    is_shuffled: bool,
    padding: usize,
    reading_stream: u64,
    device_stream: u64,
    order_stream: u64,
    pool: Bytes,
}

impl Readings {
    /// Draws the pool that paddings are slices of.
    ///
    /// # Errors
    /// The records are not of a shape that `perf/model/records.py` allows.
    pub fn new(records: &Sensor, seed: u64) -> Result<Self, String> {
        let padding = records.payload_bytes.checked_sub(FIXED_BYTES);
        let padding = padding.and_then(|bytes| usize::try_from(bytes).ok());
        let Some(padding) = padding.filter(|&bytes| bytes < PLACES && records.devices > 0) else {
            let (devices, bytes) = (records.devices, records.payload_bytes);
            return Err(format!(
                "there are no readings of {bytes} bytes of {devices} devices"
            ));
        };
        Ok(Self {
            devices: records.devices,
            latest_count: records.latest_count,
            is_shuffled: records.order == Some(Order::Shuffled),
            padding,
            reading_stream: stream(seed, READING_STREAM),
            device_stream: stream(seed, DEVICE_STREAM),
            order_stream: stream(seed, ORDER_STREAM),
            pool: draw_bytes(&format!("knickpoint sensor padding {seed}")),
        })
    }

    /// Computes row number `row`; its size is counted as in `perf/workloads/sensor.py`.
    #[must_use]
    pub fn reading(&self, row: u64) -> Reading {
        self.reading_of(row % self.devices, row / self.devices)
    }

    /// Computes a device's reading by its sequence number.
    #[must_use]
    pub fn reading_of(&self, device_index: u64, sequence: u64) -> Reading {
        let words = self.words(device_index, sequence);
        let begin = self.begin(&words);
        Reading {
            device_id: device_id(device_index),
            ts_ms: timestamp(sequence),
            values: words.map(fraction),
            metadata: self.pool.slice(begin..begin + self.padding),
        }
    }

    /// Computes batch number `number`: `batch_rows` readings of one device.
    ///
    /// Batches take each device once in a turn; those of one device follow each other without a gap
    /// from row `first_row` on, which is a multiple of the devices.
    #[must_use]
    pub fn batch(&self, first_row: u64, batch_rows: u64, number: u64) -> Batch {
        let (turn, place) = (number / self.devices, number % self.devices);
        let device_index = if self.is_shuffled {
            permute(place, self.devices, word(self.order_stream, turn))
        } else {
            place
        };
        let first = first_row / self.devices + turn * batch_rows;
        let rows = first..first + batch_rows;
        Batch {
            device_index,
            first,
            readings: rows
                .map(|sequence| self.reading_of(device_index, sequence))
                .collect(),
        }
    }

    /// Chooses the device that read number `number` asks for; uniform over all devices.
    #[must_use]
    pub fn choose_device(&self, number: u64) -> u64 {
        word(self.device_stream, number) % self.devices
    }

    /// Judges an answer to "the newest readings of this device".
    ///
    /// The rows `[0, readable_rows)` must be there. Without `acknowledged`, no others can be. With it,
    /// newer ones are being written: each that comes is genuine or wrong like any other, and those with
    /// a sequence number in `acknowledged` must come as well, unless newer ones leave no room for them.
    ///
    /// Not found: each row that came is genuine and in order, but at least one that must be there is
    /// not. Wrong data: anything else that differs: a changed or foreign row, a wrong order, a row
    /// twice, too many rows.
    #[must_use]
    pub fn check_latest(
        &self,
        readable_rows: u64,
        device_index: u64,
        answer: &[Reading],
        acknowledged: Option<&[u64]>,
    ) -> Answer {
        let stored = readable_rows
            .saturating_sub(device_index)
            .div_ceil(self.devices);
        let mut previous = if acknowledged.is_some() {
            u64::MAX
        } else {
            stored
        };
        let id = device_id(device_index);
        let mut came = Vec::with_capacity(answer.len()); // descending
        for row in answer {
            let Some(sequence) = sequence_of(row.ts_ms) else {
                return Answer::WrongData;
            };
            if sequence >= previous || !self.is_genuine(row, &id, device_index, sequence) {
                return Answer::WrongData;
            }
            came.push(sequence);
            previous = sequence;
        }
        let count = came.len() as u64;
        if count > self.latest_count {
            return Answer::WrongData;
        }
        let oldest = if count == self.latest_count {
            previous
        } else {
            0
        };
        let is_missing = |sequence: u64| {
            sequence >= oldest && came.binary_search_by(|one| sequence.cmp(one)).is_err()
        };
        let mut must_come = stored.saturating_sub(self.latest_count)..stored;
        if acknowledged
            .unwrap_or_default()
            .iter()
            .any(|&one| is_missing(one))
            || must_come.any(is_missing)
        {
            Answer::NotFound
        } else {
            Answer::Completed
        }
    }

    /// Says whether a row is the one that it must be, without making that one.
    #[allow(clippy::float_cmp)] // a database gives back what it was given
    fn is_genuine(&self, row: &Reading, id: &str, device_index: u64, sequence: u64) -> bool {
        let words = self.words(device_index, sequence);
        let begin = self.begin(&words);
        row.device_id == id
            && row.values == words.map(fraction)
            && row.metadata == self.pool[begin..begin + self.padding]
    }

    fn words(&self, device_index: u64, sequence: u64) -> [u64; VALUES] {
        // A foreign timestamp may stand for a row beyond 64 bits, of which the stream takes the lowest.
        let row = sequence
            .wrapping_mul(self.devices)
            .wrapping_add(device_index);
        let first = row.wrapping_mul(VALUES as u64);
        from_fn(|place| word(self.reading_stream, first.wrapping_add(place as u64)))
    }

    /// Where the padding begins. It reuses the first word: nothing asks it to be independent of a value.
    #[allow(clippy::cast_possible_truncation)] // less than PLACES
    fn begin(&self, words: &[u64; VALUES]) -> usize {
        (words[0] % (PLACES - self.padding) as u64) as usize
    }
}

/// Gives a device's id: 16 ASCII characters up to the thousand millionth device.
#[must_use]
pub fn device_id(device_index: u64) -> String {
    format!("sensor-{device_index:09}")
}

/// Gives the sequence number of a timestamp, if any reading has it.
fn sequence_of(ts_ms: i64) -> Option<u64> {
    let since_ms = ts_ms.checked_sub(EPOCH_MS)?;
    if since_ms % STEP_MS == 0 {
        u64::try_from(since_ms / STEP_MS).ok()
    } else {
        None
    }
}

fn timestamp(sequence: u64) -> i64 {
    EPOCH_MS.wrapping_add(STEP_MS.wrapping_mul(sequence.cast_signed()))
}

//! What a null server did: the file of `perf/systems/null/record.py`, 48 bytes per operation.

use std::fs;
use std::io;
use std::path::Path;

const COLUMNS: usize = 6;
const TIMES: usize = 3;

/// One operation; times are seconds by the server's clock.
pub struct Line {
    pub arrived_s: f64,
    pub due_s: f64,
    /// Infinite if it never was answered: the client had gone, or the server ended.
    pub answered_s: f64,
    pub is_refused: bool,
    /// CRC-32 of the id of the device, or of the key, that was written or read.
    pub device: u32,
    /// Timestamp of the first row written, 0 for a read.
    pub ts_ms: i64,
}

/// Collects lines, as one flat array.
#[derive(Default)]
pub struct Record {
    numbers: Vec<f64>,
}

impl Record {
    /// Adds an operation.
    #[allow(clippy::cast_precision_loss)] // timestamps in milliseconds are far below 2^53
    pub fn append(&mut self, line: &Line) {
        self.numbers.extend([
            line.arrived_s,
            line.due_s,
            line.answered_s,
            f64::from(u8::from(line.is_refused)),
            f64::from(line.device),
            line.ts_ms as f64,
        ]);
    }

    /// Writes everything in one step, with times as Unix seconds.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path, unix_minus_clock_s: f64) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(self.numbers.len() * size_of::<f64>());
        for line in self.numbers.chunks_exact(COLUMNS) {
            for (place, number) in line.iter().enumerate() {
                let shift_s = if place < TIMES {
                    unix_minus_clock_s
                } else {
                    0.0
                };
                bytes.extend((number + shift_s).to_le_bytes());
            }
        }
        let fresh = path.with_extension("new");
        fs::write(&fresh, bytes)?;
        fs::rename(fresh, path)
    }
}

//! The operations of the sensor workload: write a batch of readings, read the newest of a device.
//!
//! Offered together, a read must find the rows stored beforehand and those that this engine's own
//! writes were acknowledged for, and may find others that were on their way. What an acknowledgement
//! promises a reader depends on the consistency; see `perf/load/engine/tasks/sensor.py`.

use std::cell::RefCell;

use super::unknown;
use crate::session::{Failure, Reading, SensorSession};
use crate::spec::{Consistency, LoadSpec, Operation, Sensor};
use crate::task::{Answer, Model, Parts};
use crate::values::sensor::{Batch, Readings, device_id};

/// An operation made ready.
#[derive(Clone, Debug)]
pub enum Prepared {
    Write(Batch),
    Read {
        device_index: u64,
        device_id: String,
        /// Where rows are being written: which sequence numbers are acknowledged by now.
        acknowledged: Option<Vec<u64>>,
    },
}

/// The sensor workload on one session.
#[derive(Debug)]
pub struct SensorModel<S> {
    session: S,
    readings: Readings,
    first_row: u64,
    batch_rows: u64,
    readable_rows: u64,
    devices: u64,
    latest_count: u64,
    is_mixed: bool,
    acknowledged: Option<RefCell<Acknowledged>>,
}

impl<S: SensorSession> SensorModel<S> {
    /// Lets write number n write batch number n from the spec's first row on, and reads verify against
    /// the rows that the spec says are stored.
    ///
    /// # Errors
    /// The mix has an operation that the sensor workload does not know.
    pub fn new(spec: &LoadSpec, records: &Sensor, session: S) -> Result<Self, String> {
        for (operation, _) in &spec.mix {
            if !matches!(operation, Operation::Write | Operation::ReadLatest) {
                return Err(unknown("sensor", *operation));
            }
        }
        let (target, has) = (&spec.target, |one| {
            spec.mix.iter().any(|(other, _)| *other == one)
        });
        let is_promised =
            target.consistency == Consistency::Quorum || target.replication_factor == 1;
        let is_mixed = has(Operation::Write) && has(Operation::ReadLatest);
        let acknowledged = (is_mixed && is_promised)
            .then(|| Acknowledged::new(records))
            .transpose()?;
        Ok(Self {
            session,
            readings: Readings::new(records, spec.seed)?,
            first_row: spec.first_row,
            batch_rows: spec.batch_rows,
            readable_rows: spec.readable_rows,
            devices: records.devices,
            latest_count: records.latest_count,
            is_mixed,
            acknowledged: acknowledged.map(RefCell::new),
        })
    }

    /// Lets write number n store row number n, each once.
    ///
    /// # Errors
    /// The records are not of a shape that there are readings of.
    pub fn preload(spec: &LoadSpec, records: &Sensor, session: S) -> Result<Self, String> {
        let mut model = Self::new(
            &LoadSpec {
                mix: Vec::new(),
                ..spec.clone()
            },
            records,
            session,
        )?;
        (model.first_row, model.batch_rows) = (0, 1);
        Ok(model)
    }
}

impl<S: SensorSession> Model for SensorModel<S> {
    type Prepared = Prepared;
    type Reply = Vec<Reading>;

    fn rows(&self, operation: Operation) -> u64 {
        if operation == Operation::Write {
            return self.batch_rows;
        }
        self.latest_count.min(self.readable_rows / self.devices)
    }

    fn prepare(&self, operation: Operation, number: u64) -> Result<Prepared, String> {
        if operation == Operation::Write {
            let batch = self.readings.batch(self.first_row, self.batch_rows, number);
            return Ok(Prepared::Write(batch));
        }
        let device_index = self.readings.choose_device(number);
        let acknowledged = self
            .acknowledged
            .as_ref()
            .map(|kept| kept.borrow().of(device_index));
        Ok(Prepared::Read {
            device_index,
            device_id: device_id(device_index),
            // Where no row of this run must be there, those that come are checked all the same.
            acknowledged: self.is_mixed.then(|| acknowledged.unwrap_or_default()),
        })
    }

    async fn send(&self, prepared: &Prepared, _: &dyn Parts) -> Result<Vec<Reading>, Failure> {
        match prepared {
            Prepared::Write(batch) => {
                self.session.write(&batch.readings).await?;
                Ok(Vec::new())
            }
            Prepared::Read { device_id, .. } => {
                self.session.read_latest(device_id, self.latest_count).await
            }
        }
    }

    fn judge(&self, prepared: &Prepared, reply: &Vec<Reading>) -> Answer {
        match prepared {
            Prepared::Write(batch) => {
                if let Some(kept) = &self.acknowledged {
                    kept.borrow_mut().note(batch);
                }
                Answer::Completed
            }
            Prepared::Read {
                device_index,
                acknowledged,
                ..
            } => {
                let acknowledged = acknowledged.as_deref();
                self.readings
                    .check_latest(self.readable_rows, *device_index, reply, acknowledged)
            }
        }
    }

    fn describe(&self, prepared: &Prepared) -> String {
        match prepared {
            Prepared::Write(Batch { readings, .. }) => {
                let Some(first) = readings.first() else {
                    return "write of nothing".to_owned();
                };
                let first_alone = format!("write of {} at {}", first.device_id, first.ts_ms);
                match readings.len() - 1 {
                    0 => first_alone,
                    more => format!("{first_alone} and {more} after it"),
                }
            }
            Prepared::Read { device_id, .. } => format!("newest readings of {device_id}"),
        }
    }
}

/// The newest readings of each device that were acknowledged, by their sequence numbers.
///
/// As many for each device as a read asks for: 80 bytes for the usual ten, 80 MB for a million devices,
/// of which the system gives pages as they are first written.
#[derive(Debug)]
struct Acknowledged {
    count: usize,
    /// One more than each sequence number; 0 stands for none.
    newest: Vec<u64>,
}

impl Acknowledged {
    fn new(records: &Sensor) -> Result<Self, String> {
        let size = records.devices.checked_mul(records.latest_count);
        let (Ok(count), Some(Ok(size))) = (
            usize::try_from(records.latest_count),
            size.map(usize::try_from),
        ) else {
            return Err(format!(
                "readings of {} devices are too many to know",
                records.devices
            ));
        };
        Ok(Self {
            count,
            newest: vec![0; size],
        })
    }

    /// Notes readings of one device.
    fn note(&mut self, batch: &Batch) {
        let kept = self.begin(batch.device_index);
        let Some(kept) = self.newest.get_mut(kept..kept + self.count) else {
            return;
        };
        let rows = batch.readings.len();
        for (sequence, _) in (batch.first..)
            .zip(&batch.readings)
            .skip(rows.saturating_sub(self.count))
        {
            if let Some(oldest) = kept.iter_mut().min()
                && sequence >= *oldest
            {
                *oldest = sequence + 1;
            }
        }
    }

    /// Gives the sequence numbers of a device's newest readings, in no order.
    fn of(&self, device_index: u64) -> Vec<u64> {
        let begin = self.begin(device_index);
        let kept = self.newest.iter().skip(begin).take(self.count);
        kept.filter_map(|one| one.checked_sub(1)).collect()
    }

    #[allow(clippy::cast_possible_truncation)] // less than what is kept in memory
    fn begin(&self, device_index: u64) -> usize {
        device_index as usize * self.count
    }
}

//! What the operations of a YCSB core workload are about, out of what their engine knows is stored.

use std::cell::{Cell, RefCell};

use bytes::Bytes;

use crate::spec::{LoadSpec, Operation, Ycsb};
use crate::values::keys::{Chooser, insert_share};
use crate::values::ycsb::{Fields, Key, Streams, updated_version};

/// The records that one engine knows to be stored, from the oldest, and the numbers of its inserts.
///
/// An insert costs 4 bytes: a million per hour and engine are 48 MB in twelve hours.
#[derive(Debug)]
pub struct KnownRecords {
    stored: u64,
    first: u64,
    step: u64,
    turns: Cell<u32>,
    /// In the order in which they were acknowledged.
    acknowledged: RefCell<Vec<u32>>,
}

impl KnownRecords {
    /// Knows what is there before the first operation, and lets inserts begin where this run's do.
    #[must_use]
    pub fn new(spec: &LoadSpec) -> Self {
        Self {
            stored: spec.readable_rows,
            first: spec.first_row + spec.engine_index,
            step: spec.engine_count,
            turns: Cell::new(0),
            acknowledged: RefCell::default(),
        }
    }

    /// Counts them.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.stored + self.acknowledged.borrow().len() as u64
    }

    /// Gives the record number at a place in the order of age.
    #[must_use]
    pub fn number(&self, index: u64) -> u64 {
        let inserted = index
            .checked_sub(self.stored)
            .and_then(|place| usize::try_from(place).ok());
        match inserted {
            Some(place) => self.number_of_turn(self.acknowledged.borrow()[place]),
            None => index,
        }
    }

    /// Says whether a record was stored before the first operation.
    #[must_use]
    pub fn was_there(&self, number: u64) -> bool {
        number < self.stored
    }

    /// Gives the next of this engine's inserts, from 0; none after four thousand million.
    pub fn next_turn(&self) -> Option<u32> {
        let turn = self.turns.get();
        self.turns.set(turn.checked_add(1)?);
        Some(turn)
    }

    /// Gives the record number that an insert creates.
    #[must_use]
    pub fn number_of_turn(&self, turn: u32) -> u64 {
        self.first + u64::from(turn) * self.step
    }

    /// Knows an insert's record from now on.
    pub fn acknowledge(&self, turn: u32) {
        self.acknowledged.borrow_mut().push(turn);
    }
}

/// What each operation is about, chosen by its number; shared by all operations of an engine.
#[derive(Debug)]
pub struct Choices {
    pub records: Ycsb,
    pub fields: Fields,
    pub known: KnownRecords,
    streams: Streams,
    chooser: Chooser,
}

impl Choices {
    /// Chooses for this run of engines.
    ///
    /// # Errors
    /// Nothing is stored that an operation could be about.
    pub fn new(spec: &LoadSpec, records: &Ycsb) -> Result<Self, String> {
        let is_about_stored = |(operation, _): &(Operation, f64)| *operation != Operation::Insert;
        if spec.readable_rows == 0 && spec.mix.iter().any(is_about_stored) {
            return Err("nothing is stored that could be read or changed; \
                        give the workload `preload: records`"
                .to_owned());
        }
        let share = insert_share(&spec.mix);
        Ok(Self {
            records: records.clone(),
            fields: Fields::new(records, spec.seed)?,
            known: KnownRecords::new(spec),
            streams: Streams::new(spec.seed, spec.run),
            chooser: Chooser::new(records, spec.readable_rows, share, spec.engine_count),
        })
    }

    /// Chooses the record, among those known by now, and gives its number.
    #[must_use]
    pub fn record(&self, number: u64) -> u64 {
        let index = self
            .chooser
            .choose(self.streams.choice, number, self.known.count());
        self.known.number(index)
    }

    /// Chooses the record, among those known by now, and gives its key.
    #[must_use]
    pub fn key(&self, number: u64) -> Key {
        self.fields.key(self.record(number))
    }

    /// Makes what an update writes: one field, or all.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // as many fields as fit in memory
    pub fn changes(&self, number: u64, key: &Key) -> Vec<(usize, Bytes)> {
        let version = updated_version(number);
        if self.records.write_all_fields {
            return self
                .fields
                .record(key, version)
                .into_iter()
                .enumerate()
                .collect();
        }
        let field = self.streams.choose_field(&self.records, number) as usize;
        vec![(field, self.fields.field(key, field, version))]
    }

    /// Chooses how many records a scan asks for.
    #[must_use]
    pub fn length(&self, number: u64) -> u64 {
        self.streams.choose_length(&self.records, number)
    }
}

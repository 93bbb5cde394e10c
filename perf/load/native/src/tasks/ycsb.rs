//! The operations of a YCSB core workload: read, update, insert, scan, read-modify-write.
//!
//! After site.ycsb.workloads.CoreWorkload of YCSB core 0.17.0; what differs is in
//! `perf/load/engine/tasks/ycsb.py`: an operation chooses among records that its engine knows to be stored.

use std::cell::RefCell;

use bytes::Bytes;

use super::choices::Choices;
use super::unknown;
use crate::session::{Failure, KeyValueSession, Values};
use crate::spec::{LoadSpec, Operation, Ycsb};
use crate::task::{Answer, Model, Parts};
use crate::values::ycsb::{Ends, INSERTED, Key};

/// An operation made ready.
#[derive(Clone, Debug)]
pub enum Prepared {
    /// Stores a record, whatever is under its key: a preload's operations may be repeated.
    Store {
        key: Key,
        values: Values,
    },
    Read {
        key: Key,
    },
    /// Changes fields, by number.
    Update {
        key: Key,
        changes: Vec<(usize, Bytes)>,
    },
    /// A new record, and which of its engine's inserts it is.
    Insert {
        turn: u32,
        key: Key,
        values: Values,
    },
    /// Where it begins, how many records it asks for, and whether the first is one of the old.
    Scan {
        first_key: Key,
        count: u64,
        begins_old: bool,
    },
    ReadModifyWrite {
        key: Key,
        changes: Vec<(usize, Bytes)>,
    },
}

/// What a system answered.
#[derive(Clone, Debug)]
pub enum Reply {
    Acknowledged,
    Found(Option<Values>),
    Scanned(Vec<(String, Values)>),
}

/// A YCSB core workload on one session.
#[derive(Debug)]
pub struct YcsbModel<S> {
    session: S,
    choices: Choices,
    ends: RefCell<Ends>,
    has_parts: bool,
}

impl<S: KeyValueSession> YcsbModel<S> {
    /// Lets all operations choose among the same records.
    ///
    /// # Errors
    /// Nothing is stored that an operation could be about, or YCSB has no such operation.
    pub fn new(spec: &LoadSpec, records: &Ycsb, session: S) -> Result<Self, String> {
        let choices = Choices::new(spec, records)?;
        for (operation, _) in &spec.mix {
            if !matches!(
                operation,
                Operation::Read
                    | Operation::Update
                    | Operation::Insert
                    | Operation::Scan
                    | Operation::ReadModifyWrite
            ) {
                return Err(unknown("ycsb", *operation));
            }
        }
        let is_rmw = |(operation, _): &(Operation, f64)| *operation == Operation::ReadModifyWrite;
        let has_parts = spec.mix.iter().any(is_rmw);
        Ok(Self {
            session,
            choices,
            ends: RefCell::default(),
            has_parts,
        })
    }

    /// Lets write number n store record number n.
    ///
    /// # Errors
    /// The records are not of a shape that there are any of.
    pub fn preload(spec: &LoadSpec, records: &Ycsb, session: S) -> Result<Self, String> {
        let mix = vec![(Operation::Insert, 1.0)]; // nothing of it is about what is stored
        Self::new(
            &LoadSpec {
                mix,
                ..spec.clone()
            },
            records,
            session,
        )
    }

    /// As in YCSB, what is written does not depend on what was read, and nothing is if nothing was found.
    async fn read_modify_write(
        &self,
        key: &str,
        changes: &[(usize, Bytes)],
        parts: &dyn Parts,
    ) -> Result<Option<Values>, Failure> {
        let begin_s = parts.now();
        let found = self.session.get(key).await?;
        let read_s = parts.now();
        parts.note(Operation::ReadModifyWrite, "read", begin_s, read_s);
        if found.is_some() {
            self.session.update(key, changes).await?;
            parts.note(Operation::ReadModifyWrite, "update", read_s, parts.now());
        }
        Ok(found)
    }

    /// Verifies the order, the keys and each field, and that it did not end too early.
    fn judge_scan(
        &self,
        first_key: &str,
        count: u64,
        begins_old: bool,
        reply: &[(String, Values)],
    ) -> Answer {
        let answer = self.choices.fields.check_scan(first_key, count, reply);
        let is_short = answer == Answer::Completed && (reply.len() as u64) < count;
        if is_short && begins_old && !self.ends.borrow_mut().can_be(first_key, reply.len()) {
            return Answer::NotFound;
        }
        answer
    }
}

impl<S: KeyValueSession> Model for YcsbModel<S> {
    type Prepared = Prepared;
    type Reply = Reply;

    fn rows(&self, operation: Operation) -> u64 {
        match operation {
            // Their mean, as whole records; at the end of the keys they are fewer.
            Operation::Scan => u64::midpoint(1, self.choices.records.max_scan_length),
            _ => 1,
        }
    }

    fn parts(&self) -> Vec<(Operation, &'static str)> {
        let parts = if self.has_parts {
            ["read", "update"].as_slice()
        } else {
            &[]
        };
        parts
            .iter()
            .map(|part| (Operation::ReadModifyWrite, *part))
            .collect()
    }

    fn prepare(&self, operation: Operation, number: u64) -> Result<Prepared, String> {
        let choices = &self.choices;
        Ok(match operation {
            Operation::Write => {
                let key = choices.fields.key(number);
                let values = choices.fields.record(&key, INSERTED);
                Prepared::Store { key, values }
            }
            Operation::Read => Prepared::Read {
                key: choices.key(number),
            },
            Operation::Insert => {
                // This engine's next record, whatever the number of the operation is.
                let turn = choices
                    .known
                    .next_turn()
                    .ok_or("an engine has inserted 2^32 records")?;
                let key = choices.fields.key(choices.known.number_of_turn(turn));
                let values = choices.fields.record(&key, INSERTED);
                Prepared::Insert { turn, key, values }
            }
            Operation::Scan => {
                let record = choices.record(number);
                Prepared::Scan {
                    first_key: choices.fields.key(record),
                    count: choices.length(number),
                    begins_old: choices.known.was_there(record),
                }
            }
            Operation::Update => {
                let key = choices.key(number);
                let changes = choices.changes(number, &key);
                Prepared::Update { key, changes }
            }
            Operation::ReadModifyWrite => {
                let key = choices.key(number);
                let changes = choices.changes(number, &key);
                Prepared::ReadModifyWrite { key, changes }
            }
            _ => return Err(unknown("ycsb", operation)),
        })
    }

    async fn send(&self, prepared: &Prepared, parts: &dyn Parts) -> Result<Reply, Failure> {
        let session = &self.session;
        match prepared {
            Prepared::Store { key, values } => session.put(&key.name, values).await?,
            Prepared::Update { key, changes } => session.update(&key.name, changes).await?,
            Prepared::Insert { key, values, .. } => session.insert(&key.name, values).await?,
            Prepared::Read { key } => return Ok(Reply::Found(session.get(&key.name).await?)),
            Prepared::Scan {
                first_key, count, ..
            } => {
                return Ok(Reply::Scanned(session.scan(&first_key.name, *count).await?));
            }
            Prepared::ReadModifyWrite { key, changes } => {
                let found = self.read_modify_write(&key.name, changes, parts).await?;
                return Ok(Reply::Found(found));
            }
        }
        Ok(Reply::Acknowledged)
    }

    fn judge(&self, prepared: &Prepared, reply: &Reply) -> Answer {
        match (prepared, reply) {
            (
                Prepared::Read { key } | Prepared::ReadModifyWrite { key, .. },
                Reply::Found(found),
            ) => self.choices.fields.check(key, found.as_deref()),
            (
                Prepared::Scan {
                    first_key,
                    count,
                    begins_old,
                },
                Reply::Scanned(found),
            ) => self.judge_scan(&first_key.name, *count, *begins_old, found),
            // From now on, others may choose it.
            (Prepared::Insert { turn, .. }, Reply::Acknowledged) => {
                self.choices.known.acknowledge(*turn);
                Answer::Completed
            }
            // What is stored is verified by counting and by reading.
            (Prepared::Store { .. } | Prepared::Update { .. }, Reply::Acknowledged) => {
                Answer::Completed
            }
            _ => Answer::WrongData,
        }
    }

    fn describe(&self, prepared: &Prepared) -> String {
        match prepared {
            Prepared::Store { key, .. } => format!("put of {}", key.name),
            Prepared::Read { key } => format!("read of {}", key.name),
            Prepared::Update { key, .. } => format!("update of {}", key.name),
            Prepared::Insert { key, .. } => format!("insert of {}", key.name),
            Prepared::Scan {
                first_key, count, ..
            } => {
                format!("scan of {count} from {}", first_key.name)
            }
            Prepared::ReadModifyWrite { key, .. } => format!("read-modify-write of {}", key.name),
        }
    }
}

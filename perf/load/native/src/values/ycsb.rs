//! The YCSB core workload's records, byte by byte those of `perf/workloads/ycsb.py`.
//!
//! A field says by itself which of its versions it is, in its first four characters; the others are a
//! function of seed, key, field and version, so whoever reads a field knows whether a client of such a
//! trial may have written it there, without knowing which update was the last.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;

use super::keys::hash_number;
use super::pool::{PLACES, draw_text, place};
use super::splitmix::{GAMMA, below, mix, stream, word};
use crate::session::Values;
use crate::spec::{InsertOrder, Ycsb};
use crate::task::Answer;

/// The version of all fields of a new record.
pub const INSERTED: u64 = 0;

const PREFIX: &str = "user";
const VERSION_BYTES: usize = 4;
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const FIELD_STREAM: u64 = 40;
const CHOICE_STREAM: u64 = 41;
const CHANGED_STREAM: u64 = 42;
const LENGTH_STREAM: u64 = 43;
const STREAMS_PER_RUN: u64 = 3;

/// The name of a record, and what its contents are drawn from.
#[derive(Clone, Debug)]
pub struct Key {
    pub name: String,
    state: u64,
}

/// All records of a seed, in each of their versions.
#[derive(Clone, Debug)]
pub struct Fields {
    insert_order: InsertOrder,
    zero_padding: usize,
    count: usize,
    length: usize,
    stream: u64,
    pool: Bytes,
}

impl Fields {
    /// Draws the pool that fields are slices of.
    ///
    /// # Errors
    /// The records are not of a shape that `perf/model/records.py` allows.
    pub fn new(records: &Ycsb, seed: u64) -> Result<Self, String> {
        let sizes = [
            records.field_count,
            records.field_length,
            records.zero_padding,
        ];
        let [Ok(count), Ok(length), Ok(zero_padding)] = sizes.map(usize::try_from) else {
            return Err(format!("there are no records of such sizes: {sizes:?}"));
        };
        let rest = length
            .checked_sub(VERSION_BYTES)
            .filter(|&rest| rest < PLACES);
        let Some(rest) = rest.filter(|_| u16::try_from(zero_padding).is_ok()) else {
            return Err(format!(
                "there are no fields of {length} bytes, or keys of {zero_padding}"
            ));
        };
        Ok(Self {
            insert_order: records.insert_order,
            zero_padding,
            count,
            length,
            stream: stream(seed, FIELD_STREAM),
            pool: draw_text(&format!("knickpoint ycsb fields {seed}"), rest),
        })
    }

    /// Gives the key of record number `number`, as `CoreWorkload.buildKeyName` does.
    #[must_use]
    pub fn key(&self, number: u64) -> Key {
        let shown = match self.insert_order {
            InsertOrder::Ordered => number,
            InsertOrder::Hashed => hash_number(number),
        };
        let width = self.zero_padding;
        Key {
            name: format!("{PREFIX}{shown:0width$}"),
            state: self.state(shown),
        }
    }

    /// Computes the values of all fields of a version of a record.
    #[must_use]
    pub fn record(&self, key: &Key, version: u64) -> Values {
        let mut all = Vec::with_capacity(self.count * self.length);
        for field in 0..self.count {
            self.append(&mut all, key.state, field, version);
        }
        let all = Bytes::from(all);
        let begins = (0..self.count).map(|field| field * self.length);
        begins
            .map(|begin| all.slice(begin..begin + self.length))
            .collect()
    }

    /// Computes the value of one field, by number, in a version.
    #[must_use]
    pub fn field(&self, key: &Key, field: usize, version: u64) -> Bytes {
        let mut value = Vec::with_capacity(self.length);
        self.append(&mut value, key.state, field, version);
        value.into()
    }

    /// Judges the values that were read under a key.
    ///
    /// Not found: there is no record. Wrong data: fields are missing or too many, or one has another
    /// length or contents than any version of it.
    #[must_use]
    pub fn check(&self, key: &Key, values: Option<&[Bytes]>) -> Answer {
        match values {
            None => Answer::NotFound,
            Some(values) if self.are_genuine(key.state, values) => Answer::Completed,
            Some(_) => Answer::WrongData,
        }
    }

    /// Judges the records that a scan gave from a key on.
    ///
    /// Not found: the first key is not there. Wrong data: it is not the first of them; more than
    /// `count`; a key twice, or of a form that this workload never gives; a record that is not genuine.
    /// Which keys follow is the system's own order, and fewer than `count` are all there are at its
    /// end; see `Ends` for whether it can have been there.
    #[must_use]
    pub fn check_scan(&self, first_key: &str, count: u64, answer: &[(String, Values)]) -> Answer {
        if !answer.iter().any(|(name, _)| name == first_key) {
            return Answer::NotFound;
        }
        let keys: HashSet<&str> = answer.iter().map(|(name, _)| name.as_str()).collect();
        if answer[0].0 != first_key || answer.len() as u64 > count || keys.len() < answer.len() {
            return Answer::WrongData;
        }
        let is_genuine = |(name, values): &(String, Values)| {
            self.number_in(name)
                .is_some_and(|shown| self.are_genuine(self.state(shown), values))
        };
        if answer.iter().all(is_genuine) {
            Answer::Completed
        } else {
            Answer::WrongData
        }
    }

    fn are_genuine(&self, state: u64, values: &[Bytes]) -> bool {
        let is_genuine = |(field, value): (usize, &Bytes)| {
            let Some((head, rest)) = value.split_first_chunk() else {
                return false;
            };
            let begin = begin(state, field, u32::from_be_bytes(*head));
            value.len() == self.length && *rest == self.pool[begin..begin + rest.len()]
        };
        values.len() == self.count && values.iter().enumerate().all(is_genuine)
    }

    fn append(&self, to: &mut Vec<u8>, state: u64, field: usize, version: u64) {
        let head = write_version(version);
        let begin = begin(state, field, u32::from_be_bytes(head));
        to.extend_from_slice(&head);
        to.extend_from_slice(&self.pool[begin..begin + self.length - VERSION_BYTES]);
    }

    /// The number in the key, and not the record's own, which nobody can tell from its hash.
    fn state(&self, shown: u64) -> u64 {
        mix(self.stream.wrapping_add(shown.wrapping_mul(GAMMA)))
    }

    /// Gives the number in a key, modulo 2⁶⁴, if the key is of the form that keys have here.
    fn number_in(&self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix(PREFIX)?.as_bytes();
        let is_padded = digits.len() == self.zero_padding.max(1)
            || (digits.len() > self.zero_padding && digits.first() != Some(&b'0'));
        let is_key = is_padded && digits.iter().all(u8::is_ascii_digit);
        let add = |number: u64, digit: &u8| {
            number
                .wrapping_mul(10)
                .wrapping_add(u64::from(digit.wrapping_sub(b'0')))
        };
        is_key.then(|| digits.iter().fold(0, add))
    }
}

/// Which records operations are about, beyond what a `Chooser` needs: the streams of a run of engines.
#[derive(Clone, Copy, Debug)]
pub struct Streams {
    /// What a `Chooser` draws from.
    pub choice: u64,
    changed: u64,
    length: u64,
}

impl Streams {
    /// Gives the streams of run number `run` of engines.
    #[must_use]
    pub fn new(seed: u64, run: u64) -> Self {
        let of = |purpose: u64| {
            stream(
                seed,
                run.wrapping_mul(STREAMS_PER_RUN).wrapping_add(purpose),
            )
        };
        Self {
            choice: of(CHOICE_STREAM),
            changed: of(CHANGED_STREAM),
            length: of(LENGTH_STREAM),
        }
    }

    /// Chooses the field that operation `number` changes; uniform.
    #[must_use]
    pub fn choose_field(&self, records: &Ycsb, number: u64) -> u64 {
        below(records.field_count, word(self.changed, number))
    }

    /// Chooses how many records scan `number` asks for; uniform from 1 on.
    #[must_use]
    pub fn choose_length(&self, records: &Ycsb, number: u64) -> u64 {
        1 + below(records.max_scan_length, word(self.length, number))
    }
}

/// Gives the version that operation `number` writes: never that of a new record, until it wraps.
#[must_use]
pub fn updated_version(number: u64) -> u64 {
    number.wrapping_add(1)
}

/// Which scans gave fewer records than they asked for: at the end of the order, few can.
///
/// In whatever order, one record at most has none after it, two have one at most, and so on; and
/// inserts only add to those after a record. So of the records that are there all the time, at most n
/// begin a scan that ends after n records or earlier. Several scans from one record count once. Which
/// of the contradicting scans lacked records is not known; the last is reported.
#[derive(Debug, Default)]
pub struct Ends {
    least: HashMap<String, usize>,
    /// How many records begin a scan that ends after so many.
    begins: Vec<usize>,
}

impl Ends {
    /// Says whether a scan from a record that was always there can have ended after `came`.
    pub fn can_be(&mut self, first_key: &str, came: usize) -> bool {
        let before = self.least.get(first_key).copied();
        if before.is_some_and(|least| least <= came) {
            return true;
        }
        if self.begins.len() <= came {
            self.begins.resize(came + 1, 0);
        }
        // It ends after `came` instead of after `before`: so between them, one more ends by then.
        let until = before.unwrap_or(self.begins.len());
        let mut ended = 0;
        for (records, begins) in self.begins.iter().enumerate() {
            ended += begins;
            if (came..until).contains(&records) && ended + 1 > records {
                return false;
            }
        }
        self.begins[came] += 1;
        if let Some(least) = before {
            self.begins[least] -= 1;
        }
        self.least.insert(first_key.to_owned(), came);
        true
    }
}

#[allow(clippy::cast_possible_truncation)] // the last six bits of each are taken
fn write_version(version: u64) -> [u8; VERSION_BYTES] {
    [18, 12, 6, 0].map(|shift| DIGITS[(version >> shift) as usize % DIGITS.len()])
}

/// Gives where in the pool the rest of a field begins; `shown` are the bytes of its version.
fn begin(state: u64, field: usize, shown: u32) -> usize {
    place(mix(
        state ^ ((field as u64) << (8 * VERSION_BYTES) | u64::from(shown))
    ))
}

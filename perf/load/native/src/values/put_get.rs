//! The put/get workload's keys and values, byte by byte those of `perf/workloads/put_get.py`.
//!
//! A value's size and contents are a function of (seed, value seed, index), so whoever gets it knows
//! what must come. Gets ask for each key once in a pass, in an order drawn anew for each.

use std::fmt::Write as _;

use bytes::Bytes;

use super::permutation::permute;
use super::pool::{PLACES, draw_text, place};
use super::splitmix::{GAMMA, below, mix, stream, word};
use crate::spec::PutGet;
use crate::task::Answer;

const KEY_STREAM: u64 = 60;
const VALUE_STREAM: u64 = 61;
const ORDER_STREAM: u64 = 62; // and on: each run of engines has an order of its own

/// What is stored: the values of one value seed, which puts store and gets expect.
#[derive(Clone, Debug)]
pub struct Stock {
    keys: u64,
    key_bytes: usize,
    least_value_bytes: u64,
    value_bytes_range: u64,
    key_stream: u64,
    value_stream: u64,
    order_stream: u64,
    pool: Bytes,
}

impl Stock {
    /// Draws the pool that values are slices of, for run number `run` of engines.
    ///
    /// # Errors
    /// The records are not of a shape that `perf/model/records.py` allows.
    pub fn new(records: &PutGet, seed: u64, value_seed: u64, run: u64) -> Result<Self, String> {
        let (least, range) = (records.least_value_bytes, records.value_bytes_range);
        let longest = least.checked_add(range).and_then(|end| end.checked_sub(1));
        let longest = longest.and_then(|bytes| usize::try_from(bytes).ok());
        let longest = longest.filter(|&bytes| bytes < PLACES && records.keys > 0 && range > 0);
        let key_bytes = usize::try_from(records.key_bytes).ok();
        let (Some(longest), Some(key_bytes)) = (longest, key_bytes) else {
            let keys = records.keys;
            return Err(format!(
                "there are no values of {least} and up to {range} bytes under {keys} keys"
            ));
        };
        Ok(Self {
            keys: records.keys,
            key_bytes,
            least_value_bytes: least,
            value_bytes_range: range,
            key_stream: stream(seed, KEY_STREAM),
            value_stream: stream(value_seed, VALUE_STREAM),
            order_stream: stream(seed, ORDER_STREAM.wrapping_add(run)),
            pool: draw_text(&format!("knickpoint put-get values {seed}"), longest),
        })
    }

    /// Gives the key of an index: no two have the same.
    #[must_use]
    pub fn key_name(&self, index: u64) -> String {
        let mut state = word(self.key_stream, index); // a permutation of 64 bits
        let mut digits = String::with_capacity(self.key_bytes.next_multiple_of(16).max(16));
        loop {
            let _ = write!(digits, "{state:016x}"); // a String takes all that is written
            if digits.len() >= self.key_bytes {
                digits.truncate(self.key_bytes);
                return digits;
            }
            state = mix(state.wrapping_add(GAMMA));
        }
    }

    /// Computes the value that is, or is to be, under the key of an index.
    #[must_use]
    pub fn value(&self, index: u64) -> Bytes {
        let (begin, end) = self.place(index);
        self.pool.slice(begin..end)
    }

    /// Judges what was got under the key of an index.
    ///
    /// Not found: there is none. Wrong data: anything but that value, even if it was there once.
    #[must_use]
    pub fn check(&self, index: u64, values: Option<&[Bytes]>) -> Answer {
        let (begin, end) = self.place(index);
        match values {
            None => Answer::NotFound,
            Some([value]) if *value == self.pool[begin..end] => Answer::Completed,
            Some(_) => Answer::WrongData,
        }
    }

    /// Chooses the index that put number `number` of a phase is about: all in order.
    #[must_use]
    pub fn choose_put(&self, number: u64) -> u64 {
        number % self.keys
    }

    /// Chooses the index that get number `number` of a phase asks for: each once, in a drawn order.
    #[must_use]
    pub fn choose_get(&self, number: u64) -> u64 {
        let (turn, at) = (number / self.keys, number % self.keys);
        let order = mix(self.order_stream.wrapping_add(turn.wrapping_mul(GAMMA)));
        permute(at, self.keys, order)
    }

    /// Where a value begins and ends in the pool.
    #[allow(clippy::cast_possible_truncation)] // less than PLACES
    fn place(&self, index: u64) -> (usize, usize) {
        let state = word(self.value_stream, index);
        let size = self.least_value_bytes + below(self.value_bytes_range, state);
        let begin = place(mix(state.wrapping_add(GAMMA)));
        (begin, begin + size as usize)
    }
}

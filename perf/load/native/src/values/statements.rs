//! Values of the statements of a workload of one's own, each that of `perf/workloads/statements.py`.
//!
//! A value of a row is a function of the seed, its own name and the number of the row; a value of an
//! operation one of the seed, the name, the run of engines and the number of the operation.

use std::collections::BTreeMap;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::keys::{Zipfian, zeta};
use super::pool::draw_base64;
use super::splitmix::{mix, stream, unit, word};
use crate::session::{Answered, StatementValue};
use crate::spec::statements::{Choice, Count, Expected, Of, Rows, Spread, Statements, Value};
use crate::task::Answer;

const PLACES: usize = 1 << 20;
const PLACE_SHIFT: u32 = u64::BITS - 20;
/// Streams of lower numbers belong to the other workloads; from here on, each run has one of its own.
const FIRST_STREAM: u64 = 1 << 40;
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/// How many characters make texts differ: what base32 says of 55 bits.
const HEAD: usize = 11;

/// All values of a workload, for one run of engines.
#[derive(Clone, Debug)]
pub struct Values {
    makers: BTreeMap<String, Maker>,
}

/// Makes one value, of any row or operation.
#[derive(Clone, Debug)]
pub struct Maker {
    of: Of,
    stream: u64,
    draw: Draw,
}

#[derive(Clone, Debug)]
enum Draw {
    Number,
    Integer {
        least: i64,
        place: Place,
    },
    Real {
        least: f64,
        most: f64,
    },
    Text {
        prefix: String,
        length: usize,
        pool: Bytes,
    },
    Choice {
        among: Vec<StatementValue>,
        place: Place,
    },
    Timestamp {
        begin_ms: u64,
        step_ms: u64,
    },
    Uuid,
}

/// Draws a number from 0 to below `count`, which is 2^64 at most.
#[derive(Clone, Copy, Debug)]
struct Place {
    count: u128,
    ranks: Option<Zipfian>,
}

impl Values {
    /// Prepares what makes each value.
    ///
    /// # Errors
    /// The records are not of a shape that `perf/model/statements.py` allows.
    pub fn new(records: &Statements, seed: u64, run: u64) -> Result<Self, String> {
        let longest = records.values.values().filter_map(|value| match value {
            Value::Text { bytes, .. } => Some(*bytes),
            _ => None,
        });
        let pool = longest
            .max()
            .map_or_else(Bytes::new, |longest| draw_pool(seed, longest));
        let mut makers = BTreeMap::new();
        for (name, value) in &records.values {
            // Those of rows have the stream before that of the first run.
            let run = if value.of() == Of::Row { u64::MAX } else { run };
            let draw =
                Draw::new(value, &pool).map_err(|why| format!("records.values.{name}: {why}"))?;
            let (of, stream) = (value.of(), stream_of(seed, name, run));
            makers.insert(name.clone(), Maker { of, stream, draw });
        }
        Ok(Self { makers })
    }

    /// Finds what makes the values of a name.
    #[must_use]
    pub fn maker(&self, name: &str) -> Option<&Maker> {
        self.makers.get(name)
    }
}

impl Maker {
    /// Makes the value, for an operation that is about a row.
    #[must_use]
    pub fn make(&self, row: u64, operation: u64) -> StatementValue {
        let number = match self.of {
            Of::Row => row,
            Of::Operation => operation,
        };
        let own = self.stream;
        match &self.draw {
            Draw::Number => StatementValue::Whole(number.into()),
            Draw::Integer { least, place } => {
                StatementValue::Whole(i128::from(*least) + i128::from(place.draw(own, number)))
            }
            Draw::Real { least, most } => {
                StatementValue::Real(least + (most - least) * unit(own, number))
            }
            Draw::Text {
                prefix,
                length,
                pool,
            } => make_text(word(own, number), prefix, *length, pool),
            Draw::Choice { among, place } => {
                // Below their count, which is a size.
                let place = usize::try_from(place.draw(own, number)).unwrap_or_default();
                among[place].clone()
            }
            Draw::Timestamp { begin_ms, step_ms } => {
                let since_ms = i128::from(number).saturating_mul(i128::from(*step_ms));
                StatementValue::Whole(since_ms.saturating_add(i128::from(*begin_ms)))
            }
            Draw::Uuid => make_uuid(own, number),
        }
    }
}

impl Draw {
    fn new(value: &Value, pool: &Bytes) -> Result<Self, String> {
        Ok(match value {
            Value::RowNumber { .. } => Self::Number,
            Value::Integer {
                least,
                most,
                distribution,
                ..
            } => {
                let count = i128::from(*most) - i128::from(*least) + 1;
                let place = Place::new(count.try_into().unwrap_or_default(), *distribution)?;
                Self::Integer {
                    least: *least,
                    place,
                }
            }
            Value::Real { least, most, .. } => Self::Real {
                least: *least,
                most: *most,
            },
            Value::Text { bytes, prefix, .. } => Self::Text {
                prefix: prefix.clone(),
                length: *bytes,
                pool: pool.clone(),
            },
            Value::Choice {
                among,
                distribution,
                ..
            } => Self::Choice {
                among: among.iter().map(say_choice).collect(),
                place: Place::new(among.len() as u128, *distribution)?,
            },
            Value::Timestamp {
                begin_ms, step_ms, ..
            } => Self::Timestamp {
                begin_ms: *begin_ms,
                step_ms: *step_ms,
            },
            Value::Uuid { .. } => Self::Uuid,
        })
    }
}

impl Place {
    fn new(count: u128, distribution: Spread) -> Result<Self, String> {
        if count == 0 {
            return Err("there is nothing to choose from".to_owned());
        }
        let ranks = (distribution == Spread::Zipfian).then(|| {
            // All 2^64 are as one less: a float does not tell them apart.
            let items = u64::try_from(count).unwrap_or(u64::MAX);
            Zipfian::new(items, items, zeta(items))
        });
        Ok(Self { count, ranks })
    }

    #[allow(clippy::cast_possible_truncation)] // below 2^64
    fn draw(&self, own: u64, number: u64) -> u64 {
        match &self.ranks {
            Some(ranks) => ranks.rank(unit(own, number)),
            None => ((u128::from(word(own, number)) * self.count) >> 64) as u64,
        }
    }
}

/// Gives the stream by which the operations of a run choose their rows.
#[must_use]
pub fn choice_stream(seed: u64, run: u64) -> u64 {
    stream_of(seed, "", run)
}

/// Gives values that are as far apart as those of a kind can be, for whoever must know whether all fit.
#[must_use]
pub fn extremes(value: &Value) -> Vec<StatementValue> {
    match value {
        Value::RowNumber { .. } => vec![StatementValue::Whole(0)],
        Value::Integer { least, most, .. } => [*least, *most]
            .map(|one| StatementValue::Whole(one.into()))
            .into(),
        Value::Real { least, most, .. } => [*least, *most].map(StatementValue::Real).into(),
        Value::Text { prefix, .. } => vec![StatementValue::Text(format!("{prefix}A").into())],
        Value::Choice { among, .. } => among.iter().map(say_choice).collect(),
        Value::Timestamp { begin_ms, .. } => vec![StatementValue::Whole((*begin_ms).into())],
        Value::Uuid { .. } => vec![make_uuid(0, 0)],
    }
}

/// Judges the answer to a statement; `wanted` are the values of its expected columns, in their order.
///
/// Not found: there is no row where there must be one. Wrong data: there are too many or too few, a
/// column has another value, or a condition did not hold.
#[must_use]
pub fn check_answer(
    expected: Option<&Expected>,
    wanted: &[StatementValue],
    answered: &Answered,
) -> Answer {
    let Some(expected) = expected else {
        return Answer::Completed;
    };
    let rows = answered.rows.len();
    let is_right = match expected.rows {
        Some(Count::Roughly(Rows::None)) => rows == 0,
        Some(_) if rows == 0 => return Answer::NotFound,
        None | Some(Count::Roughly(Rows::Any)) => true,
        Some(Count::Exactly(count)) => rows == count,
    };
    let has_failed = expected.applied == Some(true) && !answered.applied;
    let are_wanted = |row: &Vec<Option<StatementValue>>| {
        let pairs = row.iter().zip(wanted);
        row.len() == wanted.len()
            && pairs
                .into_iter()
                .all(|(found, wanted)| found.as_ref().is_some_and(|found| are_equal(found, wanted)))
    };
    if is_right && !has_failed && answered.rows.iter().all(are_wanted) {
        Answer::Completed
    } else {
        Answer::WrongData
    }
}

/// Compares values as Python does: numbers of any kind by what they are worth, exactly, true as 1.
#[must_use]
pub fn are_equal(one: &StatementValue, other: &StatementValue) -> bool {
    use StatementValue::{Bool, Real, Whole};
    match (one, other) {
        (Bool(flag), number @ (Whole(_) | Real(_)))
        | (number @ (Whole(_) | Real(_)), Bool(flag)) => are_equal(&Whole((*flag).into()), number),
        (Whole(whole), Real(real)) | (Real(real), Whole(whole)) => is_worth(*real, *whole),
        _ => one == other,
    }
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // what is lost is found below
#[allow(clippy::float_cmp)] // the same number, or another one
fn is_worth(real: f64, whole: i128) -> bool {
    let near = whole as f64;
    near == real && near as i128 == whole
}

fn say_choice(choice: &Choice) -> StatementValue {
    match choice {
        Choice::Bool(flag) => StatementValue::Bool(*flag),
        Choice::Whole(whole) => StatementValue::Whole((*whole).into()),
        Choice::Real(real) => StatementValue::Real(*real),
        Choice::Text(text) => StatementValue::Text(text.clone().into()),
    }
}

fn stream_of(seed: u64, name: &str, run: u64) -> u64 {
    let named = Sha256::digest(name.as_bytes());
    let first = named
        .iter()
        .take(8)
        .fold(0, |word, octet| word << 8 | u64::from(*octet));
    mix(stream(seed, FIRST_STREAM.wrapping_add(run)) ^ first)
}

/// Draws letters and digits, and repeats them, so that a slice may begin anywhere.
fn draw_pool(seed: u64, longest: usize) -> Bytes {
    let mut pool = draw_base64(&format!("knickpoint statement texts {seed}"), PLACES);
    for character in &mut pool {
        *character = match *character {
            b'+' => b'a',
            b'/' => b'b',
            other => other,
        };
    }
    let rest: Vec<u8> = pool.iter().copied().cycle().take(longest).collect();
    pool.extend(rest);
    pool.into()
}

/// Cuts a text out of the pool; its first eleven characters make it differ.
#[allow(clippy::cast_possible_truncation)] // 20 bits
fn make_text(drawn: u64, prefix: &str, length: usize, pool: &[u8]) -> StatementValue {
    let begin = (drawn >> PLACE_SHIFT) as usize;
    let mut text = Vec::with_capacity(prefix.len() + length);
    text.extend_from_slice(prefix.as_bytes());
    text.extend(
        (1..=HEAD.min(length)).map(|place| BASE32[(drawn >> (64 - 5 * place)) as usize & 31]),
    );
    text.extend_from_slice(&pool[begin..begin + length.saturating_sub(HEAD)]);
    StatementValue::Text(text.into())
}

/// Makes a random UUID (version 4).
fn make_uuid(own: u64, number: u64) -> StatementValue {
    let drawn = |place: u64| word(own, number.wrapping_mul(2).wrapping_add(place));
    let mut octets = [0; 16];
    octets[..8].copy_from_slice(&drawn(0).to_be_bytes());
    octets[8..].copy_from_slice(&drawn(1).to_be_bytes());
    octets[6] = octets[6] & 0x0F | 0x40;
    octets[8] = octets[8] & 0x3F | 0x80;
    StatementValue::Uuid(octets)
}

//! Which record an operation is about, as YCSB core chooses it: choice by choice those of
//! `perf/workloads/keys.py`, which says what is kept from YCSB and why.
//!
//! A chooser gives the *index* of a record among those that are known to be stored, from the oldest.

use std::cell::Cell;
use std::hint::black_box;
use std::num::NonZeroU64;
use std::sync::LazyLock;

use super::splitmix::{GAMMA, below, fraction, mix, word};
use crate::spec::{Distribution, Operation, Ycsb};

/// The exponent: rank number r (from 1) is chosen in proportion to r^-THETA.
const THETA: f64 = 0.99;
/// The ranks of the scrambled zipfian: 0 to 10¹⁰, both included, as its constructor has it.
const SCRAMBLED_RANKS: u64 = 10_000_000_000 + 1;
/// zeta(10¹⁰, THETA), as YCSB has precomputed it.
const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

const FNV_OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
const FNV_PRIME: u64 = 0x100_0000_01B3;
/// From here on, the tail of the sum is known to better than a float can say.
const SUMMED: u64 = 64;

/// Gives YCSB's hash of a number: FNV-1a over its eight octets, lowest first, without the sign.
#[must_use]
pub fn hash_number(number: u64) -> u64 {
    let fold = |state: u64, octet: u8| (state ^ u64::from(octet)).wrapping_mul(FNV_PRIME);
    let state = number.to_le_bytes().into_iter().fold(FNV_OFFSET, fold);
    state.cast_signed().unsigned_abs()
}

/// Gives the sum of r^-THETA for r from 1 to `items`, to about 14 digits, in constant time.
///
/// By Euler and Maclaurin, as in `perf/workloads/keys.py`.
#[must_use]
pub fn zeta(items: u64) -> f64 {
    static HEAD: LazyLock<f64> = LazyLock::new(|| sum(SUMMED) - tail(SUMMED));
    if items <= SUMMED {
        return sum(items);
    }
    *HEAD + tail(items)
}

/// Ranks from 0, the smaller the likelier, over a number of ranks whose zeta is `total`.
#[derive(Clone, Copy, Debug)]
pub struct Zipfian {
    /// How many ranks there are, which may have grown since the start.
    count: u64,
    total: f64,
    second: f64,
    eta: f64,
    exponent: f64,
}

impl Zipfian {
    /// Ranks over `items` in the beginning, and `count` by now, whose zeta is `total`.
    #[must_use]
    pub fn new(items: u64, count: u64, total: f64) -> Self {
        let second = power(0.5, THETA);
        let eta = (1.0 - power(2.0 / float(items), 1.0 - THETA)) / (1.0 - (1.0 + second) / total);
        Self {
            count,
            total,
            second,
            eta,
            exponent: 1.0 / (1.0 - THETA),
        }
    }

    /// Gives the rank that a float in [0, 1) chooses.
    #[must_use]
    pub fn rank(&self, unit: f64) -> u64 {
        let scaled = unit * self.total;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + self.second {
            return 1;
        }
        let spread = power(self.eta * unit - self.eta + 1.0, self.exponent);
        // Next to 1, and where two or three ranks have grown, the formula reaches beyond the last.
        whole(float(self.count) * spread).min(self.count - 1)
    }
}

/// A request distribution.
#[derive(Clone, Debug)]
pub enum Chooser {
    /// Each of the first `records` records alike; what is inserted later is never chosen.
    Uniform { records: u64 },
    /// The first `hot` of `records` records get a share of operations; uniform inside and outside.
    Hotspot {
        records: u64,
        hot: u64,
        operation_fraction: f64,
    },
    /// Few records get most operations, strewn over a key range of `range` records.
    ScrambledZipfian { range: u64, ranks: Zipfian },
    /// The youngest record is the likeliest, by zipfian over the distance from it. `items` ranks in
    /// the beginning; zeta follows the records, and is kept for as many as were known last.
    Latest {
        items: u64,
        kept: Cell<Option<Zipfian>>,
    },
}

impl Chooser {
    /// Gives the chooser of one engine, where `stored` records are there before the first operation.
    ///
    /// `insert_share` is the share of inserts among all operations; see `perf/workloads/keys.py`.
    #[must_use]
    pub fn new(records: &Ycsb, stored: u64, insert_share: f64, engine_count: u64) -> Self {
        match records.request_distribution {
            Distribution::Uniform => Self::Uniform { records: stored },
            Distribution::Hotspot => Self::Hotspot {
                records: stored,
                hot: whole(float(stored) * records.hotspot_data_fraction).min(stored),
                operation_fraction: records.hotspot_operation_fraction,
            },
            Distribution::Latest => Self::latest(stored),
            Distribution::Zipfian => {
                let expected = records.operation_count.map(NonZeroU64::get);
                let operations = float(expected.unwrap_or(records.record_count));
                let widened = whole(operations * insert_share * 2.0 / float(engine_count));
                Self::scrambled(stored, widened)
            }
        }
    }

    /// Gives the chooser of few among `stored` records, whose key range is `widened` by inserts to come.
    #[must_use]
    pub fn scrambled(stored: u64, widened: u64) -> Self {
        Self::ScrambledZipfian {
            range: stored.saturating_add(widened).saturating_add(1),
            ranks: Zipfian::new(SCRAMBLED_RANKS, SCRAMBLED_RANKS, SCRAMBLED_ZETA),
        }
    }

    /// Gives the chooser of the youngest, of which there are `stored` in the beginning.
    #[must_use]
    pub fn latest(stored: u64) -> Self {
        Self::Latest {
            items: stored.saturating_sub(1).max(1),
            kept: Cell::new(None),
        }
    }

    /// Makes choice `number` of a stream: which of `known` records, at least one, from 0, the oldest.
    #[must_use]
    pub fn choose(&self, stream: u64, number: u64, known: u64) -> u64 {
        let state = word(stream, number);
        match self {
            Self::Uniform { records } => below(*records, state),
            Self::Hotspot {
                records,
                hot,
                operation_fraction,
            } => {
                let is_hot = fraction(next(state, 1)) < *operation_fraction;
                // A hot set that is empty or everything leaves one answer only; YCSB would divide by
                // zero.
                if *hot > 0 && (is_hot || hot == records) {
                    below(*hot, next(state, 2))
                } else {
                    hot + below(records - hot, next(state, 2))
                }
            }
            Self::ScrambledZipfian { range, ranks } => {
                let mut draw = 0;
                loop {
                    draw += 1;
                    let index = hash_number(ranks.rank(fraction(next(state, draw)))) % range;
                    // What is not known yet is drawn again.
                    if index < known {
                        return index;
                    }
                }
            }
            Self::Latest { items, kept } => choose_latest(*items, kept, state, known),
        }
    }
}

/// Gives the share of inserts in a mix of weights.
#[must_use]
pub fn insert_share(mix: &[(Operation, f64)]) -> f64 {
    let is_insert = |(operation, _): &&(Operation, f64)| *operation == Operation::Insert;
    let inserts = mix
        .iter()
        .find(is_insert)
        .map_or(0.0, |(_, weight)| *weight);
    inserts / mix.iter().fold(0.0, |sum, (_, weight)| sum + weight)
}

fn choose_latest(items: u64, kept: &Cell<Option<Zipfian>>, state: u64, known: u64) -> u64 {
    let last = known.saturating_sub(1);
    if last < 1 {
        return 0;
    }
    let distances = match kept.get() {
        Some(ranks) if ranks.count == last => ranks,
        _ => Zipfian::new(items, last, zeta(last)),
    };
    kept.set(Some(distances));
    last - distances.rank(fraction(state))
}

/// Gives a further random word of a choice; `state` is its first.
fn next(state: u64, place: u64) -> u64 {
    mix(state.wrapping_add(place.wrapping_mul(GAMMA)))
}

#[allow(clippy::cast_precision_loss)] // as in Python: there are not 2^53 records
fn float(number: u64) -> f64 {
    number as f64
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // none is negative
fn whole(number: f64) -> u64 {
    number as u64
}

/// Raises to a power by the C library, as Python does: a compiler that knows an argument would rather
/// put something else in its place, which may differ in the last digit.
fn power(base: f64, exponent: f64) -> f64 {
    black_box(base).powf(black_box(exponent))
}

/// Adds up exactly and rounds once, as `math.fsum` does: no term has a digit below 2^-60.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]
fn sum(items: u64) -> f64 {
    const SCALE: f64 = (1_u64 << 60) as f64;
    let terms = (1..=items).map(|rank| (power(float(rank), -THETA) * SCALE) as u128);
    terms.sum::<u128>() as f64 / SCALE
}

fn tail(items: u64) -> f64 {
    let end = float(items);
    let term = power(end, -THETA);
    let third = THETA * (THETA + 1.0) * (THETA + 2.0) * term / (720.0 * power(end, 3.0));
    end * term / (1.0 - THETA) + term / 2.0 - THETA * term / (12.0 * end) + third
}

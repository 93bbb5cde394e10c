//! The random walks behind the devops workload, computed for all hosts at once, moment by moment.
//!
//! The same as `perf/workloads/devops/walks.py`, to the last bit: whole-number arithmetic and IEEE sums,
//! products and comparisons, in the same order.

use super::devops_tables::{DATA, Walk, all_walks};
use super::splitmix::{GAMMA, UNIT, mix, stream, word};
use crate::spec::Devops;

const START_STREAM: u64 = 11;
const STEP_STREAM: u64 = 12;
const MEMORY_STREAM: u64 = 13;
const LANES: u64 = 0x0000_FFFF_0000_FFFF;
const LANE_MEAN: f64 = 131_070.0; // 4 · (2^16 - 1) / 2
const LANE_SCALE: f64 = 2.642_899_792_130_301_4e-5; // 1 / √(4 · (2^32 - 1) / 12)

/// Counts the moments at which every host reports: from the begin on, the end not included.
#[must_use]
pub fn moments(records: &Devops) -> u64 {
    records.span_s / records.interval_s
}

/// Gives the memory of each host, in bytes.
#[must_use]
pub fn memory_bytes(records: &Devops, seed: u64) -> Vec<i64> {
    let source = stream(seed, MEMORY_STREAM);
    (0..records.hosts)
        .map(|host| *pick(&DATA.memory_bytes, word(source, host)))
        .collect()
}

/// Gives the one of some things that a word chooses.
#[allow(clippy::cast_possible_truncation)] // the remainder is below the length
pub(super) fn pick<T>(things: &[T], chosen_by: u64) -> &T {
    &things[(chosen_by % things.len() as u64) as usize]
}

/// The states of the first walks of all hosts, at one moment after the other.
pub struct Walking {
    steps: u64,
    walks: Vec<Walk>,
    all: u64,
    /// What a walk that scales is a share of, by host.
    memory: Vec<f64>,
    next: u64,
    state: Vec<f64>,
}

impl Walking {
    /// Begins before the first moment, with the first `count` walks; what else is asked for changes no
    /// state.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // memory is below 2^53 bytes
    pub fn new(records: &Devops, seed: u64, count: usize) -> Self {
        let mut walks = all_walks();
        let all = walks.len() as u64;
        walks.truncate(count);
        let memory: Vec<f64> = memory_bytes(records, seed)
            .iter()
            .map(|&bytes| bytes as f64)
            .collect();
        let source = stream(seed, START_STREAM);
        let mut state = Vec::with_capacity(memory.len() * walks.len());
        for (host, &bytes) in (0u64..).zip(&memory) {
            for (place, walk) in (host * all..).zip(&walks) {
                state.push(walk.start.unwrap_or_else(|| {
                    // The lowest state of each walk that starts anywhere is zero.
                    let drawn = (word(source, place) >> 11) as f64 * UNIT;
                    drawn * (scale_of(walk, bytes) * walk.high)
                }));
            }
        }
        Self {
            steps: stream(seed, STEP_STREAM),
            walks,
            all,
            memory,
            next: 0,
            state,
        }
    }

    /// Goes on to the next moment, the first at first, and gives the states there, by (host, walk).
    pub fn advance(&mut self) -> &[f64] {
        let when = self.next;
        self.next += 1;
        if when == 0 {
            return &self.state; // at the first moment, each walk is where it starts
        }
        let hosts = self.memory.len() as u64;
        let width = self.walks.len();
        let rows = (when * hosts..).zip(&self.memory);
        for (state, (row, &bytes)) in self.state.chunks_exact_mut(width).zip(rows) {
            let mut at = self
                .steps
                .wrapping_add((row * self.all).wrapping_mul(GAMMA));
            for (state, walk) in state.iter_mut().zip(&self.walks) {
                at = at.wrapping_add(GAMMA);
                let scale = scale_of(walk, bytes);
                let mut step = to_normal(mix(at)) * (scale * walk.deviation) + walk.mean;
                if walk.grows {
                    step = step.abs();
                }
                *state = (*state + step).max(scale * walk.low).min(scale * walk.high);
            }
        }
        &self.state
    }
}

fn scale_of(walk: &Walk, memory: f64) -> f64 {
    if walk.scales { memory } else { 1.0 }
}

/// Gives a number with mean 0 and deviation 1: the sum of the four quarters of a word, centred.
#[allow(clippy::cast_precision_loss)] // the sum is below 2^18
fn to_normal(word: u64) -> f64 {
    let pairs = (word & LANES) + ((word >> 16) & LANES);
    let sum = (pairs & 0xFFFF_FFFF) + (pairs >> 32);
    (sum as f64 - LANE_MEAN) * LANE_SCALE
}

//! When each operation of an open loop should start: fixed before the load begins, and pure.
//!
//! What `perf/load/engine/schedule.py` computes with numpy, one start at a time: a schedule takes no memory,
//! however long it is. All times are seconds from the start of a stage.

use crate::spec::Arrivals;
use crate::values::splitmix::UNIT;

/// Gaps are added up block by block, as numpy's running sum of a block is added to what was reached.
const BLOCK: u32 = 65_536;

/// The intended starts of one engine's operations in one stage, in order.
#[derive(Clone, Debug)]
pub struct Schedule {
    arrivals: Process,
    duration_s: f64,
}

#[derive(Clone, Debug)]
enum Process {
    Uniform {
        number: u64,
        step: u64,
        load_ops_per_s: f64,
    },
    Poisson(Box<Poisson>),
}

impl Schedule {
    /// Plans one engine's starts of a stage in [0, `duration_s`).
    ///
    /// `key` is the seed, the run, the place of the stage and the engine's index among `engine_count`,
    /// which offer `load_ops_per_s` together.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // a number of engines
    pub fn plan(
        key: [u64; 4],
        engine_count: u64,
        load_ops_per_s: f64,
        arrivals: Arrivals,
        duration_s: f64,
    ) -> Self {
        let arrivals = match arrivals {
            Arrivals::Uniform => Process::Uniform {
                number: key[3],
                step: engine_count,
                load_ops_per_s,
            },
            Arrivals::Poisson => Process::Poisson(Box::new(Poisson::new(
                key,
                load_ops_per_s / engine_count as f64,
            ))),
        };
        Self {
            arrivals,
            duration_s,
        }
    }
}

impl Iterator for Schedule {
    type Item = f64;

    #[allow(clippy::cast_precision_loss)] // nobody offers 2^53 operations
    fn next(&mut self) -> Option<f64> {
        let start_s = match &mut self.arrivals {
            Process::Uniform {
                number,
                step,
                load_ops_per_s,
            } => {
                let start_s = *number as f64 / *load_ops_per_s;
                *number += *step;
                start_s
            }
            Process::Poisson(process) => process.next_s(),
        };
        (start_s < self.duration_s).then_some(start_s)
    }
}

/// A Poisson process of one engine, with exponential gaps by inversion.
///
/// Independent Poisson processes of rate λ/m, one per engine, are together one of rate λ (the
/// superposition theorem; J. F. C. Kingman, Poisson Processes, 1993, section 2.2), so that engines
/// need to agree on nothing but the seed.
#[derive(Clone, Debug)]
struct Poisson {
    words: Pcg64,
    rate_ops_per_s: f64,
    reached_s: f64,
    in_block_s: f64,
    drawn: u32,
}

impl Poisson {
    fn new(key: [u64; 4], rate_ops_per_s: f64) -> Self {
        Self {
            words: Pcg64::new(&key),
            rate_ops_per_s,
            reached_s: 0.0,
            in_block_s: 0.0,
            drawn: 0,
        }
    }

    fn next_s(&mut self) -> f64 {
        if self.drawn == BLOCK {
            self.reached_s += self.in_block_s;
            (self.in_block_s, self.drawn) = (0.0, 0);
        }
        self.in_block_s += -(-self.words.unit()).ln_1p() / self.rate_ops_per_s;
        self.drawn += 1;
        self.reached_s + self.in_block_s
    }
}

/// PCG64 (XSL RR 128/64) as numpy seeds it: M. E. O'Neill, "PCG: A Family of Simple Fast
/// Space-Efficient Statistically Good Algorithms for Random Number Generation", 2014.
#[derive(Clone, Debug)]
struct Pcg64 {
    state: u128,
    increment: u128,
}

impl Pcg64 {
    const MULTIPLIER: u128 = 0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645;

    fn new(key: &[u64]) -> Self {
        let words = seed_words(key);
        let wide = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
        let mut fresh = Self {
            state: 0,
            increment: wide(words[2], words[3]) << 1 | 1,
        };
        fresh.step();
        fresh.state = fresh.state.wrapping_add(wide(words[0], words[1]));
        fresh.step();
        fresh
    }

    fn step(&mut self) {
        self.state = self
            .state
            .wrapping_mul(Self::MULTIPLIER)
            .wrapping_add(self.increment);
    }

    /// Gives a float in [0, 1).
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // halves; 53 bits
    fn unit(&mut self) -> f64 {
        self.step();
        let folded = (self.state >> 64) as u64 ^ self.state as u64;
        (folded.rotate_right((self.state >> 122) as u32) >> 11) as f64 * UNIT
    }
}

/// numpy's `SeedSequence(key).generate_state(4, uint64)`: entropy is hashed into four words, each of
/// which then depends on all of it (M. E. O'Neill, "Developing a `seed_seq` Alternative", 2015).
fn seed_words(key: &[u64]) -> [u64; 4] {
    let mut hash = Hash {
        constant: 0x43B0_D7E5,
        multiplier: 0x931E_8875,
    };
    let entropy = whole_words(key);
    let mut pool = [0; 4];
    for (place, slot) in pool.iter_mut().enumerate() {
        *slot = hash.of(entropy.get(place).copied().unwrap_or(0));
    }
    for from in 0..4 {
        for to in (0..4).filter(|to| *to != from) {
            pool[to] = blend(pool[to], hash.of(pool[from]));
        }
    }
    for one in entropy.iter().skip(4) {
        for slot in &mut pool {
            *slot = blend(*slot, hash.of(*one));
        }
    }
    let mut hash = Hash {
        constant: 0x8B51_F9DD,
        multiplier: 0x58F3_8DED,
    };
    let halves: [u32; 8] = std::array::from_fn(|place| hash.of(pool[place % 4]));
    std::array::from_fn(|place| {
        u64::from(halves[2 * place + 1]) << 32 | u64::from(halves[2 * place])
    })
}

/// Gives numbers as words of 32 bits, the lower first, and the upper only of a number that needs it.
#[allow(clippy::cast_possible_truncation)] // halves
fn whole_words(key: &[u64]) -> Vec<u32> {
    let mut words = Vec::with_capacity(2 * key.len());
    for number in key {
        words.push(*number as u32);
        words.extend(Some((number >> 32) as u32).filter(|upper| *upper > 0));
    }
    words
}

struct Hash {
    constant: u32,
    multiplier: u32,
}

impl Hash {
    fn of(&mut self, value: u32) -> u32 {
        let value = value ^ self.constant;
        self.constant = self.constant.wrapping_mul(self.multiplier);
        let value = value.wrapping_mul(self.constant);
        value ^ value >> 16
    }
}

fn blend(one: u32, other: u32) -> u32 {
    let mixed = one
        .wrapping_mul(0xCA01_F9DD)
        .wrapping_sub(other.wrapping_mul(0x4973_F715));
    mixed ^ mixed >> 16
}

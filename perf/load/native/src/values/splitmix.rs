//! `SplitMix64` by counter: a random word is a pure function of a stream and a place in it.
//!
//! Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", 2014; see
//! `perf/workloads/splitmix.py`. Word number n of a stream is `mix(stream + (n + 1) · GAMMA)`.

pub const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// What the upper 53 bits of a word are multiplied by to make a float in [0, 1).
pub const UNIT: f64 = 1.0 / 9_007_199_254_740_992.0;

/// Gives the word of a state.
#[must_use]
pub const fn mix(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}

/// Gives the stream of a purpose: counters of different purposes never meet.
#[must_use]
pub const fn stream(seed: u64, purpose: u64) -> u64 {
    mix(mix(seed.wrapping_add(GAMMA)).wrapping_add(purpose.wrapping_mul(GAMMA)))
}

/// Gives word number `place` of a stream, from 0.
#[must_use]
pub const fn word(stream: u64, place: u64) -> u64 {
    mix(stream.wrapping_add(place.wrapping_add(1).wrapping_mul(GAMMA)))
}

/// Gives word number `place` of a stream as a float in [0, 1).
#[must_use]
pub const fn unit(stream: u64, place: u64) -> f64 {
    fraction(word(stream, place))
}

/// Gives a word as a float in [0, 1).
#[must_use]
#[allow(clippy::cast_precision_loss)] // 53 bits are exact
pub const fn fraction(word: u64) -> f64 {
    (word >> 11) as f64 * UNIT
}

/// Gives a word as a number in [0, limit); its bias is below limit / 2⁶⁴.
#[must_use]
#[allow(clippy::cast_possible_truncation)] // less than the limit
pub const fn below(limit: u64, word: u64) -> u64 {
    ((word as u128 * limit as u128) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::{stream, unit, word};

    #[test]
    fn words_are_those_of_the_python_engine() {
        let found = stream(PYTHON_SEED, 3);
        assert_eq!(found, PYTHON_STREAM);
        assert_eq!(
            [0, 1, 1_000_000].map(|place| word(found, place)),
            PYTHON_WORDS
        );
        assert!((unit(found, 7) - PYTHON_UNIT).abs() < f64::EPSILON);
    }

    const PYTHON_SEED: u64 = 20_261_122;
    const PYTHON_STREAM: u64 = 0xD289_121D_F42E_7398;
    const PYTHON_WORDS: [u64; 3] = [
        0xEFE7_3BA6_3574_F210,
        0x3F90_2D20_3D76_2DA2,
        0x8205_2E17_B00D_253E,
    ];
    const PYTHON_UNIT: f64 = 0.205_415_859_808_493_42;
}

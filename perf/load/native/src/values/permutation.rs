//! Numbers in a shuffled order, each once, without a list of them; `perf/workloads/permutation.py`.

use super::splitmix::word;

const ROUNDS: u64 = 3;

/// Gives the number in `[0, size)` that stands at a place in `[0, size)` of an order, which is 64 bits.
///
/// Steps that can each be undone permute the next power of two; what falls outside is permuted again.
#[must_use]
pub fn permute(place: u64, size: u64, order: u64) -> u64 {
    let bits = (u64::BITS - size.saturating_sub(1).leading_zeros()).max(1);
    let mask = u64::MAX >> (u64::BITS - bits);
    let half = bits.div_ceil(2);
    let mut place = place;
    loop {
        for round in 0..ROUNDS {
            let (added, factor) = (word(order, 2 * round), word(order, 2 * round + 1) | 1);
            place = place.wrapping_add(added).wrapping_mul(factor) & mask;
            place ^= place >> half;
        }
        if place < size {
            return place;
        }
    }
}

//! The bytes that padding, values and fields are slices of: SHAKE-128 (FIPS 202) draws them from a seed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use tiny_keccak::{Hasher as _, Shake};

/// Slices of a pool of this size rarely overlap within one compression block of a database.
pub const PLACES: usize = 4 << 20;

/// What the upper bits of a word say, by this shift: a place in such a pool.
pub const PLACE_SHIFT: u32 = u64::BITS - 22;

/// Draws `PLACES` bytes of any value.
#[must_use]
pub fn draw_bytes(label: &str) -> Bytes {
    draw(label, PLACES).into()
}

/// Draws `PLACES` characters of base64, and `longest` more, so that a slice may begin anywhere.
#[must_use]
pub fn draw_text(label: &str, longest: usize) -> Bytes {
    let mut pool = draw_base64(label, PLACES);
    pool.reserve_exact(longest);
    pool.extend_from_within(..longest.min(PLACES));
    pool.into()
}

/// Draws so many characters of base64, a multiple of four.
#[must_use]
pub fn draw_base64(label: &str, characters: usize) -> Vec<u8> {
    STANDARD
        .encode(draw(label, characters / 4 * 3))
        .into_bytes()
}

/// Gives a place in a pool of `PLACES`, from the upper bits of a word.
#[must_use]
#[allow(clippy::cast_possible_truncation)] // 22 bits
pub fn place(word: u64) -> usize {
    (word >> PLACE_SHIFT) as usize
}

fn draw(label: &str, bytes: usize) -> Vec<u8> {
    let mut shake = Shake::v128();
    shake.update(label.as_bytes());
    let mut drawn = vec![0; bytes];
    shake.finalize(&mut drawn);
    drawn
}

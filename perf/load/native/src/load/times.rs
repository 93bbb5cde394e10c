//! Times of one span, kept small until they are written down as a histogram.
//!
//! The same counts as `perf/load/histogram.py`: whole microseconds, up to one hour, three digits.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use std::io::Write;

pub const HIGHEST_US: u32 = 3_600_000_000;
const DIGITS: u8 = 3;
/// A histogram takes about 90 KB: where there are fewer times, they themselves are smaller.
const FEW: usize = 16_384;
const COOKIE: u32 = 0x1C84_9314;

/// Times in whole microseconds.
#[derive(Debug)]
pub enum Times {
    Few(Vec<u32>),
    Many(Box<Histogram<u32>>),
}

impl Default for Times {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Times {
    /// Adds a time; says whether it was out of range, and so is kept as the nearer end of it.
    pub fn add(&mut self, seconds: f64) -> bool {
        let exact_us = (seconds * 1e6).round_ties_even();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        // saturates, and is in range
        let time_us = exact_us.clamp(0.0, f64::from(HIGHEST_US)) as u32;
        match self {
            Self::Few(times) if times.len() < FEW => times.push(time_us),
            Self::Few(times) => {
                let mut many = fresh();
                record(&mut many, times);
                record(&mut many, &[time_us]);
                *self = Self::Many(Box::new(many));
            }
            Self::Many(many) => record(many, &[time_us]),
        }
        !(0.0..=f64::from(HIGHEST_US)).contains(&exact_us)
    }
}

/// Encodes times, always by way of the same histogram and buffers.
pub struct Encoder {
    histogram: Histogram<u32>,
    serializer: V2Serializer,
    plain: Vec<u8>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            histogram: fresh(),
            serializer: V2Serializer::new(),
            plain: Vec::new(),
        }
    }
}

impl Encoder {
    /// Gives times as `HdrHistogram` V2, compressed, base64, and the highest of them in microseconds.
    ///
    /// # Errors
    /// The library or the compressor fails, which they do not have a reason for.
    pub fn encode(&mut self, times: &Times) -> Result<(String, u64), String> {
        let histogram = match times {
            Times::Few(times) => {
                self.histogram.reset();
                record(&mut self.histogram, times);
                &self.histogram
            }
            Times::Many(many) => many,
        };
        self.plain.clear();
        self.serializer
            .serialize(histogram, &mut self.plain)
            .map_err(|why| format!("a histogram cannot be written: {why}"))?;
        let packed = compress(&self.plain)
            .map_err(|why| format!("a histogram cannot be compressed: {why}"))?;
        Ok((STANDARD.encode(packed), histogram.max()))
    }
}

fn compress(plain: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut packed = Vec::with_capacity(plain.len() / 2 + 64);
    packed.extend(COOKIE.to_be_bytes());
    packed.extend([0; 4]);
    let mut into = ZlibEncoder::new(packed, Compression::fast());
    into.write_all(plain)?;
    let mut packed = into.finish()?;
    let length = u32::try_from(packed.len() - 8).map_err(std::io::Error::other)?;
    packed[4..8].copy_from_slice(&length.to_be_bytes());
    Ok(packed)
}

/// # Panics
/// Never: the bounds are constants.
fn fresh() -> Histogram<u32> {
    Histogram::new_with_bounds(1, u64::from(HIGHEST_US), DIGITS).expect("the bounds are sound")
}

fn record(histogram: &mut Histogram<u32>, times_us: &[u32]) {
    for time_us in times_us {
        histogram.saturating_record(u64::from(*time_us));
    }
}

#[cfg(test)]
mod tests {
    use super::{COOKIE, Encoder, FEW, HIGHEST_US, Times};
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::Deserializer;

    fn read(text: &str) -> Histogram<u32> {
        let raw = STANDARD.decode(text).unwrap();
        assert_eq!(raw[..4], COOKIE.to_be_bytes());
        Deserializer::new().deserialize(&mut &raw[..]).unwrap()
    }

    #[test]
    fn few_and_many_times_are_read_back_with_the_same_counts() {
        let mut encoder = Encoder::default();
        for count in [1, 100, FEW, FEW + 1, 3 * FEW] {
            let mut times = Times::default();
            for place in 0..u32::try_from(count).unwrap() {
                assert!(!times.add(f64::from(place % 1000) * 1e-6));
            }
            let (text, max_us) = encoder.encode(&times).unwrap();
            let found = read(&text);
            assert_eq!(found.len(), count as u64);
            assert_eq!(max_us, (count as u64 - 1).min(999));
        }
    }

    #[test]
    fn what_is_out_of_range_is_kept_at_its_end_and_said_to_be() {
        let mut times = Times::default();
        assert!(times.add(-0.5));
        assert!(times.add(4000.0));
        assert!(!times.add(3600.0));
        let found = read(&Encoder::default().encode(&times).unwrap().0);
        assert_eq!(found.len(), 3);
        assert_eq!(found.min(), 0);
        assert!(found.equivalent(found.max(), u64::from(HIGHEST_US)));
    }

    #[test]
    fn a_time_is_rounded_half_to_even_as_numpy_does() {
        let mut times = Times::default();
        for time_s in [0.5e-6, 1.5e-6, 2.5e-6] {
            times.add(time_s);
        }
        assert!(matches!(times, Times::Few(kept) if kept == [0, 2, 2]));
    }
}

//! What files of vectors have in common; `tests/perf/load/vector_files.py`.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tiny_keccak::{Hasher as _, Shake};

pub fn read(name: &str) -> Value {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data/vectors");
    serde_json::from_str(&std::fs::read_to_string(vectors.join(name)).unwrap()).unwrap()
}

/// Gives a part of a file as what it is.
pub fn get<T: DeserializeOwned>(of: &Value, name: &str) -> T {
    serde_json::from_value(of[name].clone()).unwrap_or_else(|why| panic!("{name}: {why}: {of}"))
}

/// Gives the digest of whatever is added to it.
#[derive(Clone)]
pub struct Digest(Shake);

impl Digest {
    pub fn new() -> Self {
        Self(Shake::v128())
    }

    pub fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    pub fn text(&mut self, text: impl AsRef<[u8]>) {
        self.number(text.as_ref().len() as u64);
        self.0.update(text.as_ref());
    }

    pub fn end(self) -> String {
        let mut octets = [0; 16];
        self.0.finalize(&mut octets);
        hex(&octets)
    }
}

pub fn digest_numbers(numbers: impl IntoIterator<Item = u64>) -> String {
    let mut digest = Digest::new();
    numbers.into_iter().for_each(|number| digest.number(number));
    digest.end()
}

pub fn digest_texts<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> String {
    let mut digest = Digest::new();
    texts.into_iter().for_each(|text| digest.text(text));
    digest.end()
}

pub fn hex(octets: &[u8]) -> String {
    octets
        .iter()
        .fold(String::new(), |hex, octet| format!("{hex}{octet:02x}"))
}

pub fn bits(number: f64) -> String {
    format!("{:016x}", number.to_bits())
}

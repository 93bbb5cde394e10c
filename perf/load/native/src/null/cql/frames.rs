//! Frames of CQL's binary protocol, version 4: what is read out of them and written into them.
//!
//! Numbers are big-endian. The notation of the specification (`native_protocol_v4.spec`) is in brackets.

use std::net::IpAddr;

use crate::wire::Broken;

pub const HEADER: usize = 9;
const RESPONSE_V4: u8 = 0x84;
const REQUEST_V4: u8 = 0x04;
const LENGTH_AT: usize = 5;

pub mod opcode {
    pub const ERROR: u8 = 0x00;
    pub const STARTUP: u8 = 0x01;
    pub const READY: u8 = 0x02;
    pub const OPTIONS: u8 = 0x05;
    pub const SUPPORTED: u8 = 0x06;
    pub const QUERY: u8 = 0x07;
    pub const RESULT: u8 = 0x08;
    pub const PREPARE: u8 = 0x09;
    pub const EXECUTE: u8 = 0x0a;
    pub const REGISTER: u8 = 0x0b;
}

/// Which client asked what on which stream of its connection.
#[derive(Clone, Copy)]
pub struct Header {
    pub is_v4: bool,
    pub stream: [u8; 2],
    pub opcode: u8,
}

impl Header {
    /// Reads the header of a whole message.
    pub fn read(message: &[u8]) -> Result<Self, Broken> {
        match *message {
            [version, _, high, low, opcode, ..] => Ok(Self {
                is_v4: version == REQUEST_V4,
                stream: [high, low],
                opcode,
            }),
            _ => Err(Broken),
        }
    }

    /// Gives the length of the message that a buffer begins with, once its header has come.
    pub fn length(inbox: &[u8]) -> Option<usize> {
        let length = inbox.get(LENGTH_AT..HEADER)?.first_chunk::<4>()?;
        Some(HEADER + usize::try_from(u32::from_be_bytes(*length)).ok()?)
    }
}

/// Writes one frame: its header, what `write` appends, and then its length.
pub fn put_frame(out: &mut Vec<u8>, stream: [u8; 2], opcode: u8, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend([RESPONSE_V4, 0, stream[0], stream[1], opcode, 0, 0, 0, 0]);
    write(out);
    let length = u32::try_from(out.len() - begin - HEADER).unwrap_or(u32::MAX);
    if let Some(place) = out.get_mut(begin + LENGTH_AT..begin + HEADER) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}

/// Appends an [int] that counts something; nothing here counts to 2^31.
pub fn put_count(out: &mut Vec<u8>, count: usize) {
    put_int(out, i32::try_from(count).unwrap_or(i32::MAX));
}

/// Appends an [int].
pub fn put_int(out: &mut Vec<u8>, number: i32) {
    out.extend(number.to_be_bytes());
}

/// Appends a [short].
pub fn put_short(out: &mut Vec<u8>, number: usize) {
    out.extend(u16::try_from(number).unwrap_or(u16::MAX).to_be_bytes());
}

/// Appends a [string].
pub fn put_string(out: &mut Vec<u8>, text: &str) {
    put_short(out, text.len());
    out.extend(text.as_bytes());
}

/// Appends [bytes].
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_count(out, bytes.len());
    out.extend(bytes);
}

/// Gives the octets of an address, as a value of type inet.
pub fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// Reads a message from its front.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// Takes so many bytes.
    pub fn take(&mut self, size: usize) -> Result<&'a [u8], Broken> {
        let (taken, rest) = self.0.split_at_checked(size).ok_or(Broken)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Takes a [byte].
    pub fn byte(&mut self) -> Result<u8, Broken> {
        self.take(1)?.first().copied().ok_or(Broken)
    }

    /// Takes a [short].
    pub fn short(&mut self) -> Result<usize, Broken> {
        let bytes = self.take(2)?.first_chunk::<2>().ok_or(Broken)?;
        Ok(usize::from(u16::from_be_bytes(*bytes)))
    }

    /// Takes an [int].
    pub fn int(&mut self) -> Result<i32, Broken> {
        let bytes = self.take(4)?.first_chunk::<4>().ok_or(Broken)?;
        Ok(i32::from_be_bytes(*bytes))
    }

    /// Takes [short bytes], or a [string] as bytes.
    pub fn short_bytes(&mut self) -> Result<&'a [u8], Broken> {
        let size = self.short()?;
        self.take(size)
    }

    /// Takes a [long string].
    pub fn long_string(&mut self) -> Result<&'a str, Broken> {
        let size = usize::try_from(self.int()?).map_err(|_| Broken)?;
        std::str::from_utf8(self.take(size)?).map_err(|_| Broken)
    }

    /// Takes a [value]; none if it is null or not set.
    pub fn value(&mut self) -> Result<Option<&'a [u8]>, Broken> {
        match usize::try_from(self.int()?) {
            Ok(size) => Ok(Some(self.take(size)?)),
            Err(_) => Ok(None),
        }
    }
}

/// The values that come with a statement, and whether its client knows what rows look like.
pub struct Bound<'a> {
    pub values: Vec<Option<&'a [u8]>>,
    pub skips_metadata: bool,
}

const WITH_VALUES: u8 = 0x01;
const SKIPS_METADATA: u8 = 0x02;
const WITH_NAMES: u8 = 0x40;

impl<'a> Bound<'a> {
    /// Reads the parameters of QUERY and EXECUTE, as far as they matter here.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, Broken> {
        reader.short()?; // consistency
        let flags = reader.byte()?;
        let mut values = Vec::new();
        if flags & WITH_VALUES != 0 {
            for _ in 0..reader.short()? {
                if flags & WITH_NAMES != 0 {
                    reader.short_bytes()?;
                }
                values.push(reader.value()?);
            }
        }
        Ok(Self {
            values,
            skips_metadata: flags & SKIPS_METADATA != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_says_how_long_it_is() {
        let mut out = vec![7];
        put_frame(&mut out, [1, 2], opcode::RESULT, |out| {
            put_string(out, "ab");
        });
        assert_eq!(out[1..], [0x84, 0, 1, 2, 8, 0, 0, 0, 4, 0, 2, b'a', b'b']);
        assert_eq!(Header::length(&out[1..]), Some(13));
        assert_eq!(Header::length(&out[1..9]), None);
    }

    #[test]
    fn what_is_cut_off_is_no_message() {
        assert!(Reader(&[0, 0, 0, 9, 1]).value().is_err());
        assert!(matches!(Reader(&[255; 4]).value(), Ok(None)));
    }
}

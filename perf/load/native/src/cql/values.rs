//! Values of statements as cells, by the types that a server announces: what the Python driver makes of them.

use std::fmt;
use std::net::IpAddr;

use scylla::deserialize::FrameSlice;
use scylla::frame::response::result::{ColumnType, NativeType};
use scylla::serialize::SerializationError;
use scylla::serialize::writers::RowWriter;

use crate::cql::cells::put;
use crate::cql::decimal::{from_octets, to_octets};
use crate::session::StatementValue;

const DAY_NS: i128 = 24 * 3600 * 1_000_000_000;
/// A date is so many days after 1970, and this.
const DATE_OFFSET: i128 = 1 << 31;

/// Says which value a column cannot have.
#[derive(Debug)]
pub struct Unfit(String);

impl fmt::Display for Unfit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Unfit {}

impl From<SerializationError> for Unfit {
    fn from(error: SerializationError) -> Self {
        Self(error.to_string())
    }
}

/// Gives the type of a parameter, if values can be sent as such.
pub fn sendable<'a>(of: &'a ColumnType<'_>) -> Option<&'a NativeType> {
    let ColumnType::Native(kind) = of else {
        return None;
    };
    let is_sent = !matches!(kind, NativeType::Blob | NativeType::Duration);
    is_sent.then_some(kind)
}

/// Gives the type of a column, if what is in it can be compared with values.
pub fn comparable<'a>(of: &'a ColumnType<'_>) -> Option<&'a NativeType> {
    sendable(of).filter(|kind| !matches!(kind, NativeType::Timestamp))
}

/// Gives the name of a type in CQL.
pub fn say_type(of: &ColumnType<'_>) -> String {
    match of {
        ColumnType::Native(kind) => format!("{kind:?}").to_lowercase(),
        ColumnType::Collection { .. } => "collection".to_owned(),
        ColumnType::Tuple(_) => "tuple".to_owned(),
        ColumnType::Vector { .. } => "vector".to_owned(),
        _ => "user-defined".to_owned(),
    }
}

/// Writes a value as a cell of a type.
///
/// # Errors
/// The type does not have that value.
pub fn write(row: &mut RowWriter, kind: &NativeType, value: &StatementValue) -> Result<(), Unfit> {
    use NativeType as T;
    use StatementValue as V;
    let done = match (kind, value) {
        (T::Text, V::Text(text)) => Some(put(row, text)),
        (T::Ascii, V::Text(text)) if text.is_ascii() => Some(put(row, text)),
        (T::Uuid | T::Timeuuid, V::Uuid(octets)) => Some(put(row, octets)),
        (T::Inet, V::Text(text)) => to_address(text).map(|address| match address {
            IpAddr::V4(four) => put(row, &four.octets()),
            IpAddr::V6(six) => put(row, &six.octets()),
        }),
        (T::Double, _) => to_real(value).map(|real| put(row, &real.to_be_bytes())),
        (T::Float, _) => to_real(value)
            .and_then(narrow)
            .map(|real| put(row, &real.to_be_bytes())),
        (T::Decimal, _) => to_octets(value).map(|octets| put(row, &octets)),
        // A time may have a fraction of a millisecond, which is cut off.
        #[allow(clippy::cast_possible_truncation)]
        (T::Timestamp, V::Real(ms)) => write_whole(row, kind, *ms as i128),
        (T::Timestamp, V::Bool(_)) => None,
        _ => to_whole(value).and_then(|whole| write_whole(row, kind, whole)),
    };
    let Some(written) = done else {
        let kind = say_type(&ColumnType::Native(kind.clone()));
        return Err(Unfit(format!("{} is no {kind}", say_value(value))));
    };
    Ok(written?)
}

/// Reads a cell of a type; none if there is no value, or one that no statement has.
pub fn read(kind: &NativeType, cell: FrameSlice) -> Option<StatementValue> {
    use NativeType as T;
    use StatementValue as V;
    let octets = cell.as_slice();
    Some(match kind {
        T::Text | T::Ascii => V::Text(cell.to_bytes()),
        T::Boolean => V::Bool(i8::from_be_bytes(octets.try_into().ok()?) != 0),
        T::Uuid | T::Timeuuid => V::Uuid(octets.try_into().ok()?),
        T::Double => V::Real(f64::from_be_bytes(octets.try_into().ok()?)),
        T::Float => V::Real(f32::from_be_bytes(octets.try_into().ok()?).into()),
        T::Decimal => from_octets(octets)?,
        T::Inet => V::Text(from_address(octets)?.to_string().into()),
        T::Date => {
            let days = u32::from_be_bytes(octets.try_into().ok()?);
            V::Whole(i128::from(days) - DATE_OFFSET)
        }
        T::BigInt | T::Counter | T::Int | T::SmallInt | T::TinyInt | T::Time | T::Varint => {
            V::Whole(from_varint(octets)?)
        }
        _ => return None,
    })
}

fn write_whole(
    row: &mut RowWriter,
    kind: &NativeType,
    whole: i128,
) -> Option<Result<(), SerializationError>> {
    use NativeType as T;
    Some(match kind {
        T::BigInt | T::Counter | T::Timestamp => {
            put(row, &i64::try_from(whole).ok()?.to_be_bytes())
        }
        T::Int => put(row, &i32::try_from(whole).ok()?.to_be_bytes()),
        T::SmallInt => put(row, &i16::try_from(whole).ok()?.to_be_bytes()),
        T::TinyInt | T::Boolean => put(row, &i8::try_from(whole).ok()?.to_be_bytes()),
        T::Date => put(row, &u32::try_from(whole).ok()?.to_be_bytes()),
        T::Time if (0..DAY_NS).contains(&whole) => {
            put(row, &i64::try_from(whole).ok()?.to_be_bytes())
        }
        T::Varint => put(row, to_varint(&whole.to_be_bytes())),
        _ => return None,
    })
}

fn to_whole(value: &StatementValue) -> Option<i128> {
    match value {
        StatementValue::Whole(whole) => Some(*whole),
        StatementValue::Bool(flag) => Some((*flag).into()),
        _ => None,
    }
}

#[allow(clippy::cast_precision_loss)] // the nearest, as in Python
fn to_real(value: &StatementValue) -> Option<f64> {
    match value {
        StatementValue::Real(real) => Some(*real),
        _ => to_whole(value).map(|whole| whole as f64),
    }
}

#[allow(clippy::cast_possible_truncation)] // the nearest, unless there is none
fn narrow(real: f64) -> Option<f32> {
    Some(real as f32).filter(|narrow| narrow.is_finite())
}

/// Leaves out what only repeats the sign.
pub fn to_varint(octets: &[u8]) -> &[u8] {
    let repeats = |pair: &&[u8]| {
        let sign = if pair[1] & 0x80 == 0 { 0 } else { 0xFF };
        pair[0] == sign
    };
    &octets[octets.windows(2).take_while(repeats).count()..]
}

fn from_varint(octets: &[u8]) -> Option<i128> {
    let first = *octets.first()?;
    let octets = to_varint(octets);
    let mut wide = [if first & 0x80 == 0 { 0 } else { 0xFF }; 16];
    let begin = wide.len().checked_sub(octets.len())?;
    wide[begin..].copy_from_slice(octets);
    Some(i128::from_be_bytes(wide))
}

fn to_address(text: &[u8]) -> Option<IpAddr> {
    str::from_utf8(text).ok()?.parse().ok()
}

fn from_address(octets: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(octets).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(octets).map(IpAddr::from))
        .ok()
}

fn say_value(value: &StatementValue) -> String {
    const SHOWN: usize = 40;
    match value {
        StatementValue::Bool(flag) => flag.to_string(),
        StatementValue::Whole(whole) => whole.to_string(),
        StatementValue::Real(real) => format!("{real:?}"),
        StatementValue::Uuid(_) => "a UUID".to_owned(),
        StatementValue::Text(text) => {
            let text = String::from_utf8_lossy(text);
            format!(
                "the text {:?}",
                text.chars().take(SHOWN).collect::<String>()
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use NativeType as T;
    use StatementValue::{Bool, Real, Text, Uuid, Whole};

    fn sent(kind: &NativeType, value: &StatementValue) -> Result<Vec<u8>, String> {
        let mut cells = Vec::new();
        let written = write(&mut RowWriter::new(&mut cells), kind, value);
        written.map_err(|why| why.to_string())?;
        Ok(cells.split_off(4))
    }

    fn text(text: &'static str) -> StatementValue {
        Text(Bytes::from_static(text.as_bytes()))
    }

    /// Each value as the Python driver sends it, and as it comes back where it can be compared.
    #[test]
    fn a_value_is_sent_as_its_type_and_read_as_what_it_was() {
        let uuid = Uuid(*b"0123456789abcdef");
        for (kind, value, octets) in [
            (
                T::BigInt,
                Whole(-2),
                &b"\xff\xff\xff\xff\xff\xff\xff\xfe"[..],
            ),
            (T::Counter, Whole(1), b"\0\0\0\0\0\0\0\x01"),
            (T::Int, Whole(1 << 30), b"\x40\0\0\0"),
            (T::SmallInt, Whole(-2), b"\xff\xfe"),
            (T::TinyInt, Whole(-128), b"\x80"),
            (T::TinyInt, Bool(true), b"\x01"),
            (T::Boolean, Bool(true), b"\x01"),
            (T::Boolean, Whole(0), b"\0"),
            (T::Varint, Whole(0), b"\0"),
            (T::Varint, Whole(128), b"\0\x80"),
            (T::Varint, Whole(-129), b"\xff\x7f"),
            (T::Varint, Whole(1 << 64), b"\x01\0\0\0\0\0\0\0\0"),
            (T::Double, Real(0.1), b"\x3f\xb9\x99\x99\x99\x99\x99\x9a"),
            (T::Double, Whole(3), b"\x40\x08\0\0\0\0\0\0"),
            (T::Float, Real(0.5), b"\x3f\0\0\0"),
            (T::Decimal, Whole(-1), b"\0\0\0\0\xff"),
            (T::Text, text("é"), b"\xc3\xa9"),
            (T::Text, text(""), b""),
            (T::Ascii, text("e"), b"e"),
            (T::Uuid, uuid.clone(), b"0123456789abcdef"),
            (T::Timeuuid, uuid, b"0123456789abcdef"),
            (T::Inet, text("127.0.0.1"), b"\x7f\0\0\x01"),
            (T::Inet, text("::1"), b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01"),
            (T::Time, Whole(5), b"\0\0\0\0\0\0\0\x05"),
        ] {
            assert_eq!(
                sent(&kind, &value).unwrap(),
                octets,
                "{value:?} as {kind:?}"
            );
            let found = read(&kind, FrameSlice::new(&Bytes::from_static(octets))).unwrap();
            let are_equal = crate::values::statements::are_equal(&found, &value);
            assert!(are_equal, "{found:?} of {value:?} as {kind:?}");
        }
        // A float of 32 bits is not what was sent, and a date is counted from 1970, where it was not sent so.
        let octets = Bytes::from(sent(&T::Float, &Real(0.1)).unwrap());
        assert_eq!(
            read(&T::Float, FrameSlice::new(&octets)),
            Some(Real(f64::from(0.1_f32)))
        );
        let octets = Bytes::from(sent(&T::Date, &Whole(1 << 31)).unwrap());
        assert_eq!(read(&T::Date, FrameSlice::new(&octets)), Some(Whole(0)));
        assert_eq!(
            sent(&T::Timestamp, &Real(-7.9)).unwrap(),
            (-7_i64).to_be_bytes()
        );
    }

    #[test]
    fn what_a_type_cannot_have_is_not_sent() {
        for (kind, value, why) in [
            (T::Int, Whole(1 << 31), "2147483648 is no int"),
            (T::SmallInt, Whole(-32769), "-32769 is no smallint"),
            (T::Boolean, Whole(128), "128 is no boolean"),
            (T::BigInt, Real(1.0), "1.0 is no bigint"),
            (T::Double, text("1"), "the text \"1\" is no double"),
            (T::Float, Real(1e39), "1e39 is no float"),
            (T::Text, Whole(1), "1 is no text"),
            (T::Ascii, text("é"), "the text \"é\" is no ascii"),
            (T::Uuid, text("0"), "the text \"0\" is no uuid"),
            (T::Inet, text("Lima"), "the text \"Lima\" is no inet"),
            (T::Timestamp, Bool(true), "true is no timestamp"),
            (T::Time, Whole(DAY_NS), "86400000000000 is no time"),
            (T::Date, Whole(-1), "-1 is no date"),
            (T::Decimal, text("5"), "the text \"5\" is no decimal"),
        ] {
            let said = sent(&kind, &value).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn a_cell_of_another_size_is_no_value() {
        for kind in [T::Double, T::Float, T::Uuid, T::Boolean, T::Inet, T::Date] {
            assert_eq!(
                read(&kind, FrameSlice::new(&Bytes::from_static(b"abc"))),
                None
            );
        }
        assert_eq!(read(&T::Int, FrameSlice::new(&Bytes::new())), None);
        assert_eq!(
            read(&T::Varint, FrameSlice::new(&Bytes::from_static(&[1; 17]))),
            None
        );
    }

    #[test]
    fn types_that_are_no_single_values_are_not_sent_and_times_are_not_compared() {
        let native = |kind: NativeType| ColumnType::Native(kind);
        assert_eq!(sendable(&native(T::Int)), Some(&T::Int));
        assert_eq!(sendable(&native(T::Blob)), None);
        assert_eq!(sendable(&native(T::Duration)), None);
        let tuple = ColumnType::Tuple(vec![native(T::Int)]);
        assert_eq!(
            (sendable(&tuple), say_type(&tuple).as_str()),
            (None, "tuple")
        );
        assert_eq!(say_type(&native(T::BigInt)), "bigint");
        assert_eq!(sendable(&native(T::Timestamp)), Some(&T::Timestamp));
        assert_eq!(comparable(&native(T::Timestamp)), None);
        assert_eq!(comparable(&native(T::Int)), Some(&T::Int));
    }
}

//! Rows as their cells: what goes into a request, and what is taken out of an answer without a copy.
//!
//! Every statement here is our own, so its columns are known and no type is looked up. A cell of another
//! shape is a missing value, which is wrong data for whoever verifies it, as in `perf/cql_rows.py`.

use bytes::Bytes;
use scylla::deserialize::row::ColumnIterator;
use scylla::deserialize::{DeserializationError, FrameSlice};
use scylla::serialize::SerializationError;
use scylla::serialize::row::{RowSerializationContext, SerializeRow};
use scylla::serialize::writers::RowWriter;

use crate::session::{Reading, Values};

/// What a value that is missing is taken for; no workload writes it.
pub const NO_TIME: i64 = i64::MIN;

/// A reading is the values of an INSERT, in the order of the table's columns.
impl SerializeRow for Reading {
    fn serialize(
        &self,
        _: &RowSerializationContext,
        row: &mut RowWriter,
    ) -> Result<(), SerializationError> {
        put(row, self.device_id.as_bytes())?;
        put(row, &self.ts_ms.to_be_bytes())?;
        for value in self.values {
            put(row, &value.to_be_bytes())?;
        }
        put(row, &self.metadata)
    }

    fn is_empty(&self) -> bool {
        false
    }
}

/// A key and the values of some fields, as text; a field without a value keeps the one that it has.
pub struct Record<'a, V> {
    pub key: &'a str,
    pub values: V,
    /// Whether the key comes before the values, as in an INSERT, or after them, as in an UPDATE.
    pub key_first: bool,
}

impl<'a, V: Iterator<Item = Option<&'a Bytes>> + Clone> SerializeRow for Record<'a, V> {
    fn serialize(
        &self,
        _: &RowSerializationContext,
        row: &mut RowWriter,
    ) -> Result<(), SerializationError> {
        if self.key_first {
            put(row, self.key.as_bytes())?;
        }
        for value in self.values.clone() {
            match value {
                Some(value) => put(row, value)?,
                None => drop(row.make_cell_writer().set_unset()),
            }
        }
        if self.key_first {
            Ok(())
        } else {
            put(row, self.key.as_bytes())
        }
    }

    fn is_empty(&self) -> bool {
        false
    }
}

pub fn put(row: &mut RowWriter, value: &[u8]) -> Result<(), SerializationError> {
    row.make_cell_writer()
        .set_value(value)
        .map(drop)
        .map_err(SerializationError::new)
}

/// Makes a reading of a row that has the columns of an INSERT.
pub fn to_reading(mut row: ColumnIterator) -> Result<Reading, DeserializationError> {
    let device_id = to_text(next(&mut row)?);
    let ts_ms = next(&mut row)?
        .and_then(eight)
        .map_or(NO_TIME, i64::from_be_bytes);
    let mut values = [f64::NAN; 8];
    for value in &mut values {
        *value = next(&mut row)?
            .and_then(eight)
            .map_or(f64::NAN, f64::from_be_bytes);
    }
    let metadata = to_bytes(next(&mut row)?);
    Ok(Reading {
        device_id,
        ts_ms,
        values,
        metadata,
    })
}

/// Makes a key and its record's values of a row that begins with the key.
pub fn to_record(mut row: ColumnIterator) -> Result<(String, Values), DeserializationError> {
    let key = to_text(next(&mut row)?);
    Ok((key, to_values(row)?))
}

/// Makes a record's values of a row.
///
/// A column that was never written is a field without bytes, and for whoever verifies a wrong one.
pub fn to_values(row: ColumnIterator) -> Result<Values, DeserializationError> {
    row.map(|cell| Ok(to_bytes(cell?.slice))).collect()
}

pub fn next<'a>(
    row: &mut ColumnIterator<'a, '_>,
) -> Result<Option<FrameSlice<'a>>, DeserializationError> {
    Ok(row.next().transpose()?.and_then(|cell| cell.slice))
}

pub fn eight(cell: FrameSlice) -> Option<[u8; 8]> {
    cell.as_slice().try_into().ok()
}

fn to_bytes(cell: Option<FrameSlice>) -> Bytes {
    cell.map(|cell| cell.to_bytes()).unwrap_or_default()
}

pub fn to_text(cell: Option<FrameSlice>) -> String {
    cell.map(|cell| String::from_utf8_lossy(cell.as_slice()).into_owned())
        .unwrap_or_default()
}

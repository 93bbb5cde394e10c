//! Rows as their cells: what goes into a request, and what is taken out of an answer without a copy.
//!
//! Every statement here is our own, so its columns are known and no type is looked up. A cell of another
//! shape is a missing value, which is wrong data for whoever verifies it, as in `perf/systems/cql/rows.py`.

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

#[cfg(test)]
mod tests {
    use std::iter;

    use scylla::frame::response::result::{ColumnSpec, ColumnType, NativeType, TableSpec};

    use super::*;

    const COLUMN: ColumnSpec<'static> = ColumnSpec::borrowed(
        "column",
        ColumnType::Native(NativeType::Blob),
        TableSpec::borrowed("keyspace", "table"),
    );

    fn reading() -> Reading {
        Reading {
            device_id: "sensor-000000007".to_owned(),
            ts_ms: 1_700_000_000_123,
            values: [0.5, 1.5, -0.0, 3.5, 5e-324, 1e308, 6.5, 7.5],
            metadata: Bytes::from_static(b"\x00\xff"),
        }
    }

    fn cells_of(row: &impl SerializeRow) -> Vec<u8> {
        let mut cells = Vec::new();
        row.serialize(
            &RowSerializationContext::empty(),
            &mut RowWriter::new(&mut cells),
        )
        .unwrap();
        cells
    }

    /// Takes the cells of a row apart; one of them may be a missing value.
    fn with_missing(cells: &[u8], missing: usize) -> Bytes {
        let (mut row, mut at, mut place) = (Vec::new(), 0, 0);
        while at < cells.len() {
            let size = u32::from_be_bytes(cells[at..at + 4].try_into().unwrap()) as usize;
            let end = at + 4 + size;
            let none: &[u8] = &(-1_i32).to_be_bytes();
            row.extend_from_slice(if place == missing {
                none
            } else {
                &cells[at..end]
            });
            (at, place) = (end, place + 1);
        }
        row.into()
    }

    fn read_reading(cells: &Bytes) -> Reading {
        let columns = [const { COLUMN }; 11];
        to_reading(ColumnIterator::new(&columns, FrameSlice::new(cells))).unwrap()
    }

    #[test]
    fn a_reading_comes_back_as_it_was_written_and_its_padding_is_no_copy() {
        let cells = Bytes::from(cells_of(&reading()));
        let found = read_reading(&cells);
        assert_eq!(found, reading());
        assert!(found.values[2].is_sign_negative());
        assert!(cells.as_ptr_range().contains(&found.metadata.as_ptr()));
    }

    #[test]
    fn a_missing_value_is_wrong_data_and_no_failure() {
        let cells = cells_of(&reading());
        for missing in 0..10 {
            let found = read_reading(&with_missing(&cells, missing));
            assert_ne!(found, reading(), "column {missing}");
        }
        assert_eq!(
            read_reading(&with_missing(&cells, 10)).metadata,
            Bytes::new()
        );
    }

    #[test]
    fn a_key_is_before_or_after_its_values_and_what_is_not_named_is_unset() {
        let value = Bytes::from_static(b"new");
        let values = [Some(&value), None].into_iter();
        let update = Record {
            key: "k",
            values: values.clone(),
            key_first: false,
        };
        assert_eq!(
            cells_of(&update),
            b"\0\0\0\x03new\xff\xff\xff\xfe\0\0\0\x01k"
        );
        let insert = Record {
            key: "k",
            values,
            key_first: true,
        };
        assert_eq!(
            cells_of(&insert),
            b"\0\0\0\x01k\0\0\0\x03new\xff\xff\xff\xfe"
        );
        let alone = Record {
            key: "k",
            values: iter::once(Some(&value)),
            key_first: false,
        };
        assert_eq!(cells_of(&alone), b"\0\0\0\x03new\0\0\0\x01k");
    }

    #[test]
    fn a_column_that_was_never_written_is_a_field_without_bytes() {
        let cells = Bytes::from_static(b"\0\0\0\x01k\0\0\0\x01a\xff\xff\xff\xff");
        let columns = [const { COLUMN }; 3];
        let row = || ColumnIterator::new(&columns, FrameSlice::new(&cells));
        let (key, values) = to_record(row()).unwrap();
        assert_eq!(
            (key.as_str(), values),
            ("k", vec![Bytes::from_static(b"a"), Bytes::new()])
        );
        assert_eq!(to_values(row()).unwrap().len(), 3);
    }
}

//! Records under keys, as `perf/systems/mongodb/keys.py` stores and reads them: {_id: key, field0: …, field1: …}.

use bytes::Bytes;
use mongodb::bson::raw::CString;
use mongodb::bson::{RawBsonRef, RawDocument, RawDocumentBuf, cstr, rawdoc};

use super::connect::{Commands, binary, limit_rows, unreadable};
use crate::session::{Failure, KeyValueSession, Values};
use crate::spec::{Records, Target};

const COLLECTION: &str = "records";

/// A client of put/get and YCSB.
pub struct MongoKeyValue {
    commands: Commands,
    names: Vec<CString>,
    by_key: RawDocumentBuf,
}

/// Connects a client.
///
/// # Errors
/// As `Commands::connect`.
pub async fn connect(target: &Target, records: &Records) -> Result<MongoKeyValue, String> {
    let fields = match records {
        Records::Ycsb(records) => records.field_count,
        _ => 1,
    };
    let names: Result<_, _> = (0..fields)
        .map(|number| format!("field{number}").try_into())
        .collect();
    Ok(MongoKeyValue {
        commands: Commands::connect(target).await?,
        names: names.map_err(|error| format!("names of fields: {error}"))?,
        by_key: rawdoc! {"_id": 1},
    })
}

impl MongoKeyValue {
    fn append(&self, document: &mut RawDocumentBuf, values: &[Bytes]) {
        for (name, value) in self.names.iter().zip(values) {
            document.append(name, binary(value));
        }
    }
}

impl KeyValueSession for MongoKeyValue {
    async fn insert(&self, key: &str, values: &[Bytes]) -> Result<(), Failure> {
        let mut document = with_key(key);
        self.append(&mut document, values);
        self.commands.insert(COLLECTION, &[document]).await
    }

    async fn put(&self, key: &str, values: &[Bytes]) -> Result<(), Failure> {
        let mut document = RawDocumentBuf::new();
        self.append(&mut document, values);
        self.commands
            .update(COLLECTION, &with_key(key), &document, true)
            .await
    }

    async fn update(&self, key: &str, changes: &[(usize, Bytes)]) -> Result<(), Failure> {
        let mut fields = RawDocumentBuf::new();
        for (number, value) in changes {
            if let Some(name) = self.names.get(*number) {
                fields.append(name, binary(value));
            }
        }
        let mut change = RawDocumentBuf::new();
        change.append(cstr!("$set"), &fields);
        self.commands
            .update(COLLECTION, &with_key(key), &change, false)
            .await
    }

    async fn get(&self, key: &str) -> Result<Option<Values>, Failure> {
        let mut command = self.commands.read_command(cstr!("find"), COLLECTION);
        command.append(cstr!("filter"), with_key(key));
        command.append(cstr!("limit"), 1);
        command.append(cstr!("singleBatch"), true);
        let found = self.commands.read(command).await?.map(to_record)?;
        Ok(found.into_iter().next().map(|(_, values)| values))
    }

    async fn scan(&self, first_key: &str, count: u64) -> Result<Vec<(String, Values)>, Failure> {
        let mut from = RawDocumentBuf::new();
        from.append(cstr!("$gte"), first_key);
        let mut filter = RawDocumentBuf::new();
        filter.append(cstr!("_id"), &from);
        let mut command = self.commands.read_command(cstr!("find"), COLLECTION);
        command.append(cstr!("filter"), &filter);
        command.append(cstr!("sort"), &self.by_key);
        limit_rows(&mut command, count);
        self.commands.read(command).await?.map(to_record)
    }
}

fn with_key(key: &str) -> RawDocumentBuf {
    let mut document = RawDocumentBuf::new();
    document.append(cstr!("_id"), key);
    document
}

/// By name: which place a field has in its document is the server's decision after an update. One that is
/// not there, or no binary data, is for whoever verifies a wrong field, and no error of the operation.
fn to_record(document: &RawDocument, whole: &Bytes) -> Result<(String, Values), Failure> {
    let mut key = String::new();
    let mut found = Vec::with_capacity(16);
    let mut count = 0_usize;
    for element in document {
        let (name, value) = element.map_err(unreadable)?;
        count += 1;
        match (name.as_str(), value) {
            ("_id", RawBsonRef::String(text)) => text.clone_into(&mut key),
            (name, RawBsonRef::Binary(data)) => {
                if let Some(number) = field_number(name) {
                    found.push((number, whole.slice_ref(data.bytes)));
                }
            }
            _ => {}
        }
    }
    let mut values = vec![Bytes::new(); count.saturating_sub(1)];
    for (number, data) in found {
        if let Some(place) = values.get_mut(number) {
            *place = data;
        }
    }
    Ok((key, values))
}

fn field_number(name: &str) -> Option<usize> {
    let digits = name.strip_prefix("field")?;
    let plain = digits == "0" || !digits.starts_with(['0', '+']);
    digits.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_taken_by_name_and_what_is_no_field_is_empty() {
        let mut document = rawdoc! {"_id": "user1", "field01": "x", "field0": 5, "other": true};
        document.append(cstr!("field2"), binary(b"two"));
        let whole = Bytes::copy_from_slice(document.as_bytes());
        let inside = RawDocument::from_bytes(&whole).expect("a document");
        let (key, values) = to_record(inside, &whole).expect("a record");
        assert_eq!(key, "user1");
        assert_eq!(values, [&b""[..], b"", b"two", b""]);
    }

    #[test]
    fn only_plain_numbers_are_those_of_fields() {
        assert_eq!(field_number("field0"), Some(0));
        assert_eq!(field_number("field10"), Some(10));
        for name in ["field", "field01", "field+1", "fields", "_id", "field1x"] {
            assert_eq!(field_number(name), None, "{name}");
        }
    }
}

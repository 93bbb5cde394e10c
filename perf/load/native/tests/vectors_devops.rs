//! Rows, queries and answers of the devops workload are those of the Python engine, bit for bit.
//!
//! The vectors are written by `tests/perf/load/devops_vectors.py`.

use std::path::Path;

use knickload::session::{Aggregate, Group, Number, Query, Row};
use knickload::spec::{Devops, Operation};
use knickload::values::devops::{Batches, devops_rows, host_tags};
use knickload::values::devops_history::CpuHistory;
use knickload::values::devops_queries::{QUERIES, make_query};
use knickload::values::devops_tables::DATA;
use knickload::values::splitmix::mix;
use serde_json::Value;

fn read() -> Value {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data/vectors/devops.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn records(of: &Value) -> (Devops, u64, u64) {
    let mut said = of["records"].clone();
    said.as_object_mut().unwrap().remove("kind");
    (
        serde_json::from_value(said).unwrap(),
        of["seed"].as_u64().unwrap(),
        of["batch_rows"].as_u64().unwrap(),
    )
}

fn say_real(value: f64) -> Value {
    format!("{:016x}", value.to_bits()).into()
}

fn say_number(value: &Number) -> Value {
    match *value {
        Number::Whole(whole) => whole.into(),
        Number::Real(real) => say_real(real),
    }
}

fn say_row(row: &Row) -> Value {
    let host: u64 = row.tags[0].strip_prefix("host_").unwrap().parse().unwrap();
    let values: Vec<_> = row.values.iter().map(say_number).collect();
    serde_json::json!([row.table, host, row.ts_ms, values])
}

fn say_group(group: &Group) -> Value {
    let values: Vec<_> = group.values.iter().copied().map(say_real).collect();
    serde_json::json!([group.ts_ms, group.host, values])
}

fn say_query(query: &Query) -> Value {
    serde_json::json!({
        "operation": query.operation,
        "metrics": query.metrics,
        "hosts": query.hosts,
        "from_ms": query.from_ms,
        "until_ms": query.until_ms,
        "bucket_ms": query.bucket_ms,
        "aggregate": match query.aggregate {
            Aggregate::Max => "max",
            Aggregate::Mean => "mean",
        },
    })
}

fn digest(digest: u64, ts_ms: i64, values: impl Iterator<Item = u64>) -> u64 {
    std::iter::once(ts_ms.cast_unsigned())
        .chain(values)
        .fold(digest, |digest, bits| mix(digest ^ bits))
}

#[test]
fn tables_and_tags_are_the_same() {
    let vectors = read();
    let (records, seed, _) = records(&vectors);
    for table in &DATA.tables {
        assert_eq!(
            vectors["fields"][table.name],
            serde_json::json!(table.fields)
        );
    }
    let tags: Vec<_> = host_tags(&records, seed)
        .iter()
        .map(|tags| tags.to_vec())
        .collect();
    assert_eq!(vectors["tags"], serde_json::json!(tags));
}

#[test]
fn batches_are_the_same() {
    let vectors = read();
    let (records, seed, batch_rows) = records(&vectors);
    let mut batches = Batches::new(&records, seed, batch_rows);
    for known in vectors["batches"].as_array().unwrap() {
        let number = known["number"].as_u64().unwrap();
        let rows: Vec<_> = batches.batch(number).iter().map(say_row).collect();
        assert_eq!(known["rows"], Value::Array(rows), "batch {number}");
    }
    // One that was passed by is computed anew.
    let again: Vec<_> = batches.batch(0).iter().map(say_row).collect();
    assert_eq!(vectors["batches"][0]["rows"], Value::Array(again));
}

#[test]
fn queries_and_their_answers_are_the_same() {
    let vectors = read();
    let (records, seed, _) = records(&vectors);
    let history = CpuHistory::new(&records, seed);
    let mut types = Vec::new();
    for known in vectors["queries"].as_array().unwrap() {
        let operation: Operation = serde_json::from_value(known["operation"].clone()).unwrap();
        let number = known["number"].as_u64().unwrap();
        let query = make_query(&records, seed, operation, number).unwrap();
        let mut found = say_query(&query);
        found["number"] = number.into();
        found["answer"] = history.answer(&query).iter().map(say_group).collect();
        assert_eq!(*known, found, "{operation} {number}");
        types.push(operation);
    }
    types.dedup();
    assert_eq!(types, QUERIES);
}

#[test]
fn all_rows_of_a_longer_data_set_are_the_same() {
    let long = &read()["long"];
    let (records, seed, batch_rows) = records(long);
    let mut batches = Batches::new(&records, seed, batch_rows);
    let mut found = 0;
    for number in 0..devops_rows(&records).div_ceil(batch_rows) {
        for row in batches.batch(number) {
            let values = row.values.iter().map(|value| match *value {
                Number::Whole(whole) => whole.cast_unsigned(),
                Number::Real(real) => real.to_bits(),
            });
            found = digest(found, row.ts_ms, values);
        }
    }
    assert_eq!(long["rows_digest"], format!("{found:016x}"));
}

#[test]
fn all_answers_about_a_longer_data_set_are_the_same() {
    let long = &read()["long"];
    let (records, seed, _) = records(long);
    let history = CpuHistory::new(&records, seed);
    let mut found = 0;
    for operation in QUERIES {
        for number in 0..records.queries {
            let query = make_query(&records, seed, operation, number).unwrap();
            for group in history.answer(&query) {
                let values = group.values.iter().map(|value| value.to_bits());
                found = digest(found, group.ts_ms, values);
            }
        }
    }
    assert_eq!(long["answers_digest"], format!("{found:016x}"));
}

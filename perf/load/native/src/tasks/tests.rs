//! What operations do, and their outcomes, as in `tests/perf/load/test_*_tasks.py`.

use serde_json::{Value, json};

use super::pretend::{Pretend, spec};
use super::put_get::PutGetModel;
use super::sensor::SensorModel;
use super::ycsb::{Prepared, YcsbModel};
use crate::spec::{LoadSpec, Operation, PutGet, Records, Sensor, Ycsb};
use crate::task::{Answer, Model as _};

const SENSOR: Sensor = Sensor {
    devices: 3,
    payload_bytes: 128,
    latest_count: 2,
    order: None,
};
const PUT_GET: PutGet = PutGet {
    keys: 10,
    key_bytes: 32,
    least_value_bytes: 100,
    value_bytes_range: 50,
};

fn sensor<'a>(session: &'a Pretend, mix: &Value, more: &Value) -> SensorModel<&'a Pretend> {
    let spec = spec(mix, more);
    let stored = spec.readable_rows;
    let preload = SensorModel::preload(&spec, &SENSOR, session).unwrap();
    for row in 0..stored {
        assert_eq!(
            session.run(&preload, Operation::Write, row),
            Some(Answer::Completed)
        );
    }
    SensorModel::new(&spec, &SENSOR, session).unwrap()
}

#[test]
fn what_a_preload_stores_is_what_reads_expect() {
    let session = Pretend::default();
    let model = sensor(
        &session,
        &json!({"read-latest": 1.0}),
        &json!({"readable_rows": 9}),
    );
    assert_eq!(model.rows(Operation::ReadLatest), 2);
    for number in 0..20 {
        assert_eq!(
            session.run(&model, Operation::ReadLatest, number),
            Some(Answer::Completed)
        );
    }
    session.newest.borrow_mut().truncate(3);
    assert_eq!(
        session.run(&model, Operation::ReadLatest, 0),
        Some(Answer::NotFound)
    );
    for row in session.newest.borrow_mut().iter_mut() {
        row.values[3] = 0.5;
    }
    assert_eq!(
        session.run(&model, Operation::ReadLatest, 0),
        Some(Answer::WrongData)
    );
}

/// Writes a row of each device; gives the outcome of a read that sees none of them.
fn read_without_what_was_written(target: &Value) -> Option<Answer> {
    let session = Pretend::default();
    let mut mixed = json!({"readable_rows": 6, "first_row": 6});
    mixed["target"] = target.clone();
    let model = sensor(&session, &json!({"write": 1.0, "read-latest": 1.0}), &mixed);
    for number in 0..3 {
        session.run(&model, Operation::Write, number);
        assert_eq!(
            session.run(&model, Operation::ReadLatest, number),
            Some(Answer::Completed)
        );
    }
    session.newest.borrow_mut().drain(..3);
    session.run(&model, Operation::ReadLatest, 0)
}

#[test]
fn what_was_acknowledged_must_come_where_that_is_promised() {
    let target = serde_json::to_value(json!({
        "system": "cassandra", "addresses": ["127.0.0.1"], "port": 9042, "replication_factor": 3,
        "consistency": "quorum", "timeout_s": 1.0, "layout": {}, "routers": false, "access": null,
    }))
    .unwrap();
    let with = |name: &str, value: Value| {
        let mut other = target.clone();
        other[name] = value;
        other
    };
    assert_eq!(
        read_without_what_was_written(&target),
        Some(Answer::NotFound)
    );
    for name in ["one", "all"] {
        let other = with("consistency", name.into());
        assert_eq!(
            read_without_what_was_written(&other),
            Some(Answer::Completed)
        );
        let mut single = other.clone();
        single["replication_factor"] = 1.into();
        assert_eq!(
            read_without_what_was_written(&single),
            Some(Answer::NotFound)
        );
    }
}

#[test]
fn a_read_expects_what_was_acknowledged_when_it_began() {
    let session = Pretend::default();
    let mix = json!({"write": 1.0, "read-latest": 1.0});
    let model = sensor(&session, &mix, &json!({"readable_rows": 6, "first_row": 6}));
    let early = model.prepare(Operation::ReadLatest, 0).unwrap();
    let stored = session.newest.borrow().clone();
    for number in 0..3 {
        session.run(&model, Operation::Write, number);
    }
    assert_eq!(session.send(&model, &early), Some(Answer::Completed)); // newer ones may come
    session.newest.replace(stored);
    assert_eq!(session.send(&model, &early), Some(Answer::Completed)); // and need not
    assert_eq!(
        session.run(&model, Operation::ReadLatest, 0),
        Some(Answer::NotFound)
    );
}

#[test]
fn a_write_is_named_by_its_first_row() {
    let session = Pretend::default();
    let model = sensor(&session, &json!({"write": 1.0}), &json!({"batch_rows": 3}));
    let batch = model.prepare(Operation::Write, 1).unwrap();
    let said = "write of sensor-000000001 at 1704067200000 and 2 after it";
    assert_eq!(model.describe(&batch), said);
    assert_eq!(model.rows(Operation::Write), 3);
}

#[test]
fn an_operation_of_other_records_is_refused() {
    let (session, spec) = (Pretend::default(), spec(&json!({"scan": 1.0}), &json!({})));
    let why = SensorModel::new(&spec, &SENSOR, &session).err().unwrap();
    assert_eq!(why, "records of kind sensor know no operation scan");
    let why = PutGetModel::new(&spec, &PUT_GET, &session).err().unwrap();
    assert_eq!(why, "records of kind put-get know no operation scan");
    let (records, spec) = ycsb(&json!({"write": 1.0}), 1);
    let why = YcsbModel::new(&spec, &records, &session).err().unwrap();
    assert_eq!(why, "records of kind ycsb know no operation write");
}

#[test]
fn a_put_get_is_timed_in_parts_and_finds_what_it_put() {
    let (session, spec) = (
        Pretend::default(),
        spec(&json!({"put-get": 1.0}), &json!({})),
    );
    let model = PutGetModel::new(&spec, &PUT_GET, &session).unwrap();
    assert_eq!(
        session.run(&model, Operation::PutGet, 4),
        Some(Answer::Completed)
    );
    assert_eq!(*session.parts.borrow(), model.parts());
    session.fails.set(true);
    assert_eq!(session.run(&model, Operation::PutGet, 5), None);
    assert_eq!(session.parts.borrow().len(), 2);
}

#[test]
fn gets_find_what_puts_of_a_phase_have_put() {
    let (session, spec) = (
        Pretend::default(),
        spec(&json!({"put": 1.0, "get": 1.0}), &json!({})),
    );
    let model = PutGetModel::new(&spec, &PUT_GET, &session).unwrap();
    assert_eq!(
        session.run(&model, Operation::Get, 0),
        Some(Answer::NotFound)
    );
    for number in 0..10 {
        session.run(&model, Operation::Put, number);
    }
    for number in 0..10 {
        assert_eq!(
            session.run(&model, Operation::Get, number),
            Some(Answer::Completed)
        );
    }
    let later = LoadSpec {
        value_seed: 4,
        ..spec
    };
    let model = PutGetModel::new(&later, &PUT_GET, &session).unwrap();
    assert_eq!(
        session.run(&model, Operation::Get, 0),
        Some(Answer::WrongData)
    );
    assert!(model.parts().is_empty());
}

fn ycsb(mix: &Value, stored: u64) -> (Ycsb, LoadSpec) {
    let records = json!({
        "kind": "ycsb", "record_count": 20, "request_distribution": "latest", "field_count": 3,
        "field_length": 10, "insert_order": "ordered", "zero_padding": 4, "read_all_fields": true,
        "write_all_fields": false, "hotspot_data_fraction": 0.2, "hotspot_operation_fraction": 0.8,
        "max_scan_length": 4, "operation_count": null,
    });
    let more = json!({"records": records, "readable_rows": stored, "first_row": 20,
                      "engine_index": 1, "engine_count": 3});
    let spec = spec(mix, &more);
    let Records::Ycsb(records) = spec.records.clone() else {
        panic!("{spec:?}")
    };
    (records, spec)
}

fn loaded<'a>(session: &'a Pretend, mix: &Value) -> YcsbModel<&'a Pretend> {
    let (records, spec) = ycsb(mix, 20);
    let preload = YcsbModel::preload(&spec, &records, session).unwrap();
    for number in 0..20 {
        session.run(&preload, Operation::Write, number);
    }
    YcsbModel::new(&spec, &records, session).unwrap()
}

#[test]
fn a_record_is_found_whatever_changed_it() {
    let session = Pretend::default();
    let model = loaded(
        &session,
        &json!({"read": 1.0, "update": 1.0, "read-modify-write": 1.0}),
    );
    for number in 0..50 {
        for operation in [
            Operation::Update,
            Operation::ReadModifyWrite,
            Operation::Read,
        ] {
            assert_eq!(
                session.run(&model, operation, number),
                Some(Answer::Completed)
            );
        }
    }
    assert_eq!(session.parts.borrow()[..2], model.parts());
    session.parts.borrow_mut().clear();
    session.records.borrow_mut().clear(); // an update of nothing would panic
    let found = session.run(&model, Operation::ReadModifyWrite, 0);
    assert_eq!(found, Some(Answer::NotFound));
    assert_eq!(
        *session.parts.borrow(),
        [(Operation::ReadModifyWrite, "read")]
    );
}

#[test]
fn a_record_is_chosen_once_its_insert_is_acknowledged() {
    let session = Pretend::default();
    let model = loaded(&session, &json!({"read": 1.0, "insert": 1.0}));
    session.fails.set(true);
    assert_eq!(session.run(&model, Operation::Insert, 0), None);
    session.fails.set(false);
    for number in 0..3 {
        assert_eq!(
            session.run(&model, Operation::Insert, number),
            Some(Answer::Completed)
        );
    }
    let mut chosen: Vec<_> = (0..200)
        .map(
            |number| match model.prepare(Operation::Read, number).unwrap() {
                Prepared::Read { key } => key.name,
                other => panic!("{other:?}"),
            },
        )
        .collect();
    chosen.sort();
    // Of three engines, the second: 21 is the one that was never acknowledged.
    for (key, is_chosen) in [
        ("user0021", false),
        ("user0024", true),
        ("user0027", true),
        ("user0030", true),
    ] {
        assert_eq!(
            chosen.binary_search(&key.to_owned()).is_ok(),
            is_chosen,
            "{key}"
        );
    }
}

#[test]
fn scans_that_end_early_too_often_lack_records() {
    let session = Pretend::default();
    let model = loaded(&session, &json!({"scan": 1.0}));
    assert_eq!(model.rows(Operation::Scan), 2);
    let outcome = |number| session.run(&model, Operation::Scan, number);
    assert!((0..300).all(|number| outcome(number) == Some(Answer::Completed)));
    session
        .records
        .borrow_mut()
        .retain(|key, _| key.as_str() < "user0018");
    let found: Vec<_> = (0..300).filter_map(outcome).collect();
    assert!(found.contains(&Answer::NotFound));
    assert!(!found.contains(&Answer::WrongData));
}

#[test]
fn what_is_about_stored_records_needs_some() {
    let (records, spec) = ycsb(&json!({"read": 1.0, "insert": 1.0}), 0);
    let why = YcsbModel::new(&spec, &records, &Pretend::default())
        .err()
        .unwrap();
    assert!(why.starts_with("nothing is stored"), "{why}");
}

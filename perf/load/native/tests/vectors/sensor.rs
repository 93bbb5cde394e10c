use bytes::Bytes;
use knickload::session::Reading;
use knickload::spec::{Records, Sensor};
use knickload::values::sensor::{EPOCH_MS, Readings, STEP_MS};
use serde_json::{Value, json};

use crate::said::{Digest, bits, digest_numbers, get, hex, read};

fn open(case: &Value) -> (Sensor, Readings) {
    let Records::Sensor(records) = get(case, "records") else {
        panic!("{case}")
    };
    let readings = Readings::new(&records, get(case, "seed")).unwrap();
    (records, readings)
}

fn digest(rows: impl Iterator<Item = Reading>) -> String {
    let mut digest = Digest::new();
    for row in rows {
        digest.text(&row.device_id);
        digest.number(row.ts_ms.cast_unsigned());
        row.values
            .iter()
            .for_each(|value| digest.number(value.to_bits()));
        digest.text(&row.metadata);
    }
    digest.end()
}

#[test]
fn rows_batches_and_choices_are_the_same() {
    for case in read("sensor.json")["cases"].as_array().unwrap() {
        let (_, readings) = open(case);
        let (first_row, batch_rows): (u64, u64) = (get(case, "first_row"), get(case, "batch_rows"));
        let count: u64 = get(case, "count");
        let first = readings.reading(first_row);
        let said = json!([
            first.device_id,
            first.ts_ms,
            first.values.map(bits),
            hex(&first.metadata[..16])
        ]);
        assert_eq!(said, case["first"]);
        let rows = (0..count).map(|row| readings.reading(first_row + row));
        assert_eq!(digest(rows), case["rows_digest"], "{case}");
        let batches = (0..count).map(|number| readings.batch(first_row, batch_rows, number));
        assert_eq!(
            digest(batches.flat_map(|batch| batch.readings)),
            case["batches_digest"],
            "{case}"
        );
        let devices: Vec<_> = (0..get(case, "choices"))
            .map(|number| readings.choose_device(number))
            .collect();
        assert_eq!(json!(devices[..20]), case["first_choices"]);
        assert_eq!(digest_numbers(devices), case["choices_digest"]);
    }
}

#[test]
fn a_batch_says_whose_it_is_and_where_it_begins() {
    for case in read("sensor.json")["cases"].as_array().unwrap() {
        let (_, readings) = open(case);
        let batch = readings.batch(get(case, "first_row"), get(case, "batch_rows"), 5);
        assert_eq!(
            readings.reading_of(batch.device_index, batch.first),
            batch.readings[0]
        );
    }
}

#[test]
fn answers_are_judged_the_same() {
    let judged = read("sensor.json");
    let mut opened: Option<(&Value, Readings)> = None;
    for case in judged["judged"].as_array().unwrap() {
        // Those of one seed stand together, and a pool takes a while to draw.
        let kept = opened.take_if(|(of, _)| *of == &case["records"]);
        let (_, readings) = opened.insert(kept.unwrap_or_else(|| (&case["records"], open(case).1)));
        let came: Vec<(u64, u64, String)> = get(case, "came");
        let answer: Vec<_> = came
            .iter()
            .map(|(device, sequence, how)| spoil(readings.reading_of(*device, *sequence), how))
            .collect();
        let acknowledged: Option<Vec<u64>> = get(case, "acknowledged");
        let (readable_rows, device) = (get(case, "readable_rows"), get(case, "device_index"));
        let found = readings.check_latest(readable_rows, device, &answer, acknowledged.as_deref());
        assert_eq!(found.name(), case["answer"], "{case}");
    }
}

fn spoil(mut row: Reading, how: &str) -> Reading {
    match how {
        "" => {}
        "device" => row.device_id.push('0'),
        "time" => row.ts_ms += 1,
        "early" => row.ts_ms = EPOCH_MS - STEP_MS,
        "late" => row.ts_ms = i64::MAX - (i64::MAX - EPOCH_MS) % STEP_MS,
        "value" => row.values[7] = 0.5,
        "metadata" => {
            let mut changed = row.metadata.to_vec();
            changed[0] ^= 1;
            row.metadata = Bytes::from(changed);
        }
        "short" => row.metadata.truncate(row.metadata.len() - 1),
        _ => panic!("{how}"),
    }
    row
}

use bytes::Bytes;
use knickload::session::Values;
use knickload::spec::{Operation, Records, Ycsb};
use knickload::values::keys::{Chooser, hash_number, insert_share, zeta};
use knickload::values::ycsb::{Ends, Fields, Streams, updated_version};
use serde_json::{Value, json};

use crate::said::{Digest, bits, digest_numbers, digest_texts, get, read};

fn open(case: &Value) -> (Ycsb, Fields) {
    let Records::Ycsb(records) = get(case, "records") else {
        panic!("{case}")
    };
    let fields = Fields::new(&records, get(case, "seed")).unwrap();
    (records, fields)
}

#[test]
fn sums_and_hashes_are_the_same() {
    let vectors = read("ycsb.json");
    let sums: Vec<(u64, String)> = get(&vectors, "zeta");
    let hashes: Vec<(u64, u64)> = get(&vectors, "hashes");
    for (items, said) in sums {
        assert_eq!(bits(zeta(items)), said, "zeta({items})");
    }
    for (number, hash) in hashes {
        assert_eq!(hash_number(number), hash);
    }
}

#[test]
fn choices_are_the_same() {
    for case in read("ycsb.json")["cases"].as_array().unwrap() {
        let (records, _) = open(case);
        let mix: Vec<(Operation, f64)> = get(case, "mix");
        let streams = Streams::new(get(case, "seed"), get(case, "run"));
        for said in case["choices"].as_array().unwrap() {
            let (stored, engines) = (records.record_count, get(case, "engine_count"));
            let chooser = Chooser::new(&records, stored, insert_share(&mix), engines);
            let known: u64 = get(said, "known");
            let choose = |number, known| chooser.choose(streams.choice, number, known);
            let fixed: Vec<_> = (0..get(said, "count"))
                .map(|number| choose(number, known))
                .collect();
            assert_eq!(json!(fixed[..20]), said["first"], "{case}");
            assert_eq!(digest_numbers(fixed), said["digest"], "{case}");
            let growing = (0..get(said, "growing")).map(|number| choose(number, known + number));
            assert_eq!(digest_numbers(growing), said["growing_digest"], "{case}");
        }
    }
}

#[test]
fn keys_and_records_are_the_same() {
    for case in read("ycsb.json")["cases"].as_array().unwrap() {
        let (records, fields) = open(case);
        let changes: u64 = get(case, "changes");
        let first = [0, 1, records.record_count].map(|number| fields.key(number).name);
        assert_eq!(json!(first), case["first_keys"]);
        let names = (0..changes).map(|number| fields.key(number).name);
        assert_eq!(digest_texts(names), case["keys_digest"]);
        let keys: Vec<_> = (0..14)
            .map(|power| fields.key(10_u64.pow(power) - 1))
            .collect();
        let versions = [0, 1, 63, 64, (1 << 24) - 1, 1 << 24, 10_u64.pow(12)];
        let values: Vec<_> = keys
            .iter()
            .flat_map(|key| versions.map(|version| fields.record(key, version)))
            .collect();
        assert_eq!(
            String::from_utf8_lossy(&values[1][0]),
            case["first_value"].as_str().unwrap()
        );
        assert_eq!(
            digest_texts(values.iter().flatten()),
            case["records_digest"]
        );
        let streams = Streams::new(get(case, "seed"), get(case, "run"));
        let mut digest = Digest::new();
        for number in 0..changes {
            let field = streams.choose_field(&records, number);
            let key = &keys[usize::try_from(number).unwrap() % keys.len()];
            let version = updated_version(number);
            digest.number(field);
            digest.text(fields.field(key, usize::try_from(field).unwrap(), version));
            digest.number(streams.choose_length(&records, number));
        }
        assert_eq!(digest.end(), case["changes_digest"], "{case}");
    }
}

#[test]
fn records_are_judged_the_same() {
    for case in read("ycsb.json")["cases"].as_array().unwrap() {
        let (_, fields) = open(case);
        let key = fields.key(5);
        let judged: Vec<(String, String)> = get(case, "judged");
        for (how, answer) in judged {
            let values = spoil(fields.record(&key, 77), &how);
            let found = fields.check(&key, values.as_deref());
            assert_eq!(found.name(), answer, "{how}: {case}");
        }
    }
}

fn spoil(mut values: Values, how: &str) -> Option<Values> {
    let last = values.len() - 1;
    let length = values[last].len();
    match how {
        "" => {}
        "none" => return None,
        "nothing" => values.clear(),
        "fewer" => values.truncate(last),
        "more" => values.push(values[last].clone()),
        "swapped" => values.rotate_left(1),
        "changed" => values[last] = change(&values[last], length - 1),
        "head" => values[last] = change(&values[last], 0),
        "short" => values[last].truncate(length - 1),
        "empty" => values[last].truncate(2),
        _ => panic!("{how}"),
    }
    Some(values)
}

fn change(value: &Bytes, at: usize) -> Bytes {
    let mut changed = value.to_vec();
    changed[at] ^= 1;
    changed.into()
}

#[test]
fn scans_are_judged_the_same() {
    let mut opened: Option<(&Value, Fields)> = None;
    let vectors = read("ycsb.json");
    for case in vectors["scans"].as_array().unwrap() {
        // Those of one seed stand together, and a pool takes a while to draw.
        let kept = opened.take_if(|(of, _)| *of == &case["records"]);
        let (_, fields) = opened.insert(kept.unwrap_or_else(|| (&case["records"], open(case).1)));
        let came: Vec<(u64, String)> = get(case, "came");
        let rows = came
            .iter()
            .flat_map(|(number, how)| spoil_row(fields, *number, how));
        let answer: Vec<_> = rows.collect();
        let first_key = fields.key(came[0].0).name;
        let found = fields.check_scan(&first_key, get(case, "count"), &answer);
        assert_eq!(found.name(), case["answer"], "{case}");
    }
}

fn spoil_row(fields: &Fields, number: u64, how: &str) -> Vec<(String, Values)> {
    let key = fields.key(number);
    let mut values = fields.record(&key, number);
    let (name, digits) = (key.name.clone(), &key.name["user".len()..]);
    let named = |name: String| vec![(name, values.clone())];
    match how {
        "" => named(name),
        "0" => named(format!("user0{digits}")),
        "x" => named(format!("{name}x")),
        "-" => named(format!("user-{digits}")),
        "wrapped" => {
            let beyond = u128::from(u64::MAX) + 1 + digits.parse::<u128>().unwrap();
            named(format!("user{beyond}"))
        }
        "bare" => named("user".to_owned()),
        "twice" => [named(name.clone()), named(name)].concat(),
        "first" => {
            let stranger = fields.key(1001);
            let first = (stranger.name.clone(), fields.record(&stranger, 0));
            vec![first, (name, values)]
        }
        "absent" => vec![],
        "field" => {
            values.pop();
            vec![(name, values)]
        }
        _ => panic!("{how}"),
    }
}

#[test]
fn ends_of_scans_are_judged_the_same() {
    for case in read("ycsb.json")["ends"].as_array().unwrap() {
        let mut ends = Ends::default();
        let came: Vec<(String, usize, bool)> = get(case, "came");
        for (key, came, can_be) in came {
            assert_eq!(
                ends.can_be(&key, came),
                can_be,
                "{key} after {came}: {case}"
            );
        }
    }
}

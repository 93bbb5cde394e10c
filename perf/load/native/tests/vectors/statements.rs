use bytes::Bytes;
use knickload::session::{Answered, Failure, StatementSession, StatementValue};
use knickload::spec::statements::{Expected, Statements};
use knickload::spec::{LoadSpec, Operation, Records};
use knickload::task::Model as _;
use knickload::tasks::statements::StatementModel;
use knickload::values::statements::{Values, check_answer};
use serde_json::{Value, json};

use crate::said::{bits, digest_numbers, digest_texts, get, hex, read};

fn records_of(said: &Value) -> Statements {
    let Records::Statements(records) = get(said, "records") else {
        panic!("{said}")
    };
    records
}

fn say(value: &StatementValue) -> String {
    match value {
        StatementValue::Bool(true) => "bool True".to_owned(),
        StatementValue::Bool(false) => "bool False".to_owned(),
        StatementValue::Whole(whole) => format!("int {whole}"),
        StatementValue::Real(real) => format!("float {}", bits(*real)),
        StatementValue::Uuid(octets) => format!("uuid {}", hex(octets)),
        StatementValue::Text(text) => format!("text {}", str::from_utf8(text).unwrap()),
    }
}

fn unsay(said: &str) -> StatementValue {
    let (kind, value) = said.split_once(' ').unwrap();
    match kind {
        "bool" => StatementValue::Bool(value == "True"),
        "int" => StatementValue::Whole(value.parse().unwrap()),
        "float" => {
            let bits = u64::from_str_radix(value, 16).unwrap();
            StatementValue::Real(f64::from_bits(bits))
        }
        "uuid" => {
            let bits = u128::from_str_radix(value, 16).unwrap();
            StatementValue::Uuid(bits.to_be_bytes())
        }
        "text" => StatementValue::Text(Bytes::copy_from_slice(value.as_bytes())),
        _ => panic!("{said}"),
    }
}

#[test]
fn values_are_the_same() {
    for case in read("statements.json")["cases"].as_array().unwrap() {
        let records = records_of(case);
        let values = Values::new(&records, get(case, "seed"), get(case, "run")).unwrap();
        let numbers = || (0..get(case, "count")).chain([1 << 40, (1 << 53) - 1]);
        for name in records.values.keys() {
            let maker = values.maker(name).unwrap();
            let found: Vec<_> = numbers().map(|n| say(&maker.make(n, n))).collect();
            let shown = found[..3].iter().map(|one| one.chars().take(100).collect());
            let shown: Vec<String> = shown.collect();
            assert_eq!(json!(shown), case["first"][name], "{name}: {case}");
            assert_eq!(digest_texts(found), case["digests"][name], "{name}: {case}");
        }
    }
}

#[test]
fn a_value_is_of_its_row_or_of_its_operation() {
    let vectors = read("statements.json");
    let case = &vectors["cases"][0];
    let values = Values::new(&records_of(case), 1, 1).unwrap();
    let make = |name, row, operation| values.maker(name).unwrap().make(row, operation);
    assert_eq!(make("text", 5, 1), make("text", 5, 2));
    assert_ne!(make("text", 5, 1), make("text", 6, 1));
    assert_eq!(make("short", 5, 1), make("short", 6, 1));
    assert_ne!(make("short", 5, 1), make("short", 5, 2));
    let of_run = Values::new(&records_of(case), 1, 2).unwrap();
    let other = |name| of_run.maker(name).unwrap().make(5, 1);
    assert_eq!(make("text", 5, 1), other("text"));
    assert_ne!(make("short", 5, 1), other("short"));
}

/// Answers nothing: only what is prepared is looked at.
struct Silent;

impl StatementSession for Silent {
    fn parameters(&self, _: usize) -> &[String] {
        &[]
    }

    async fn ask(&self, _: usize, _: &[StatementValue]) -> Result<Answered, Failure> {
        panic!("nothing is asked")
    }
}

#[test]
fn rows_are_chosen_the_same() {
    for case in read("statements.json")["choices"].as_array().unwrap() {
        let spec: LoadSpec = get(case, "spec");
        let model = StatementModel::new(&spec, &records_of(&case["spec"]), Silent).unwrap();
        let mut chosen = Vec::new();
        for number in 0..get(case, "count") {
            // In this order, which a parsed file has lost.
            for name in ["uniform", "zipfian", "latest", "new"] {
                let operation: Operation = serde_json::from_value(json!(name)).unwrap();
                let prepared = model.prepare(operation, number).unwrap();
                chosen.push(prepared.row);
                if name == "new" && number % 3 > 0 {
                    model.judge(&prepared, &Answered::default());
                }
            }
        }
        assert_eq!(json!(chosen[..40]), case["first"]);
        assert_eq!(digest_numbers(chosen), case["digest"], "{case}");
        let preload = StatementModel::preload(&spec, &records_of(&case["spec"]), Silent).unwrap();
        assert_eq!(preload.prepare(Operation::Write, 9).unwrap().row, 9);
    }
}

#[test]
fn answers_are_judged_the_same() {
    for case in read("statements.json")["judged"].as_array().unwrap() {
        let expected: Option<Expected> = get(case, "expect");
        let said: Vec<Vec<Option<String>>> = get(case, "rows");
        let rows: Vec<Vec<_>> = said
            .iter()
            .map(|row| row.iter().map(|cell| cell.as_deref().map(unsay)).collect())
            .collect();
        let columns = expected.iter().flat_map(|expected| expected.columns.keys());
        let places: Vec<usize> = columns
            .map(|name| usize::from(name.as_bytes()[0] - b'a'))
            .collect();
        let pick = |row: &Vec<Option<StatementValue>>| {
            places.iter().map(|place| row[*place].clone()).collect()
        };
        let answered = Answered {
            rows: rows.iter().map(pick).collect(),
            applied: rows
                .first()
                .is_some_and(|row| row[0] == Some(StatementValue::Bool(true))),
        };
        let wanted = vec![StatementValue::Whole(3); places.len()];
        let found = check_answer(expected.as_ref(), &wanted, &answered);
        assert_eq!(found.name(), case["answer"], "{case}");
    }
}

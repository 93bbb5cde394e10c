use bytes::Bytes;
use knickload::spec::{PutGet, Records};
use knickload::values::put_get::Stock;
use serde_json::{Value, json};

use crate::said::{digest_numbers, digest_texts, get, read};

fn open(case: &Value, later: u64) -> (PutGet, Stock) {
    let Records::PutGet(records) = get(case, "records") else {
        panic!("{case}")
    };
    let value_seed = get::<u64>(case, "value_seed").wrapping_add(later);
    let stock = Stock::new(&records, get(case, "seed"), value_seed, get(case, "run")).unwrap();
    (records, stock)
}

#[test]
fn keys_values_and_choices_are_the_same() {
    for case in read("put_get.json")["cases"].as_array().unwrap() {
        let (records, stock) = open(case, 0);
        let (begin, count): (u64, u64) = (get(case, "begin"), get(case, "count"));
        let indexes = || (begin..begin + count).map(|number| number % records.keys);
        let keys: Vec<_> = indexes().map(|index| stock.key_name(index)).collect();
        assert_eq!(json!(keys[..3]), case["first_keys"]);
        assert_eq!(digest_texts(keys), case["keys_digest"]);
        let first = stock.value(indexes().next().unwrap());
        let shown = String::from_utf8_lossy(&first[..first.len().min(24)]);
        assert_eq!(json!([first.len(), shown]), case["first_value"]);
        let values = indexes().map(|index| stock.value(index));
        assert_eq!(digest_texts(values), case["values_digest"]);
        let numbers = || begin..begin + get::<u64>(case, "choices");
        let gets: Vec<_> = numbers().map(|number| stock.choose_get(number)).collect();
        assert_eq!(json!(gets[..20]), case["first_gets"]);
        assert_eq!(digest_numbers(gets), case["gets_digest"]);
        assert_eq!(
            digest_numbers(numbers().map(|number| stock.choose_put(number))),
            case["puts_digest"]
        );
    }
}

#[test]
fn values_are_judged_the_same() {
    for case in read("put_get.json")["cases"].as_array().unwrap() {
        let (records, stock) = open(case, 0);
        let index = get::<u64>(case, "begin") % records.keys;
        let judged: Vec<(String, String)> = get(case, "judged");
        for (how, answer) in judged {
            let value = stock.value(index);
            let values = match how.as_str() {
                "" => Some(vec![value]),
                "none" => None,
                "nothing" => Some(vec![]),
                "twice" => Some(vec![value.clone(), value]),
                "changed" => Some(vec![change_last(&value)]),
                "short" => Some(vec![value.slice(..value.len() - 1)]),
                "other index" => Some(vec![stock.value(index + 1)]),
                "other seed" => Some(vec![open(case, 1).1.value(index)]),
                _ => panic!("{how}"),
            };
            assert_eq!(
                stock.check(index, values.as_deref()).name(),
                answer,
                "{how}: {case}"
            );
        }
    }
}

fn change_last(value: &Bytes) -> Bytes {
    let mut changed = value.to_vec();
    *changed.last_mut().unwrap() ^= 1;
    changed.into()
}

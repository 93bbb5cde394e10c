//! The operations of the devops workload on a session in memory.

use std::cell::RefCell;
use std::collections::BTreeMap;

use knickload::session::{Aggregate, DevopsSession, Failure, Group, Number, Query, Row};
use knickload::spec::{Devops, LoadSpec, Operation};
use knickload::task::{Answer, Model, Parts};
use knickload::tasks::devops::{DevopsModel, Reply};
use knickload::values::devops::devops_rows;
use knickload::values::devops_queries::{QUERIES, metrics};
use serde_json::json;

const BATCH_ROWS: u64 = 1000;

fn records() -> Devops {
    Devops {
        hosts: 9,
        span_s: 5400,
        interval_s: 30,
        begin_s: 1_451_606_400,
        queries: 6,
    }
}

fn spec(mix: &[Operation]) -> LoadSpec {
    let mix: serde_json::Map<_, _> = mix
        .iter()
        .map(|operation| (operation.to_string(), json!(1.0)))
        .collect();
    serde_json::from_value(json!({
        "target": {
            "system": "memory", "addresses": ["127.0.0.1"], "port": 1, "replication_factor": 1,
            "consistency": "one", "timeout_s": 1.0, "layout": {}, "routers": false, "access": null,
        },
        "records": {
            "kind": "devops", "hosts": 9, "span_s": 5400, "interval_s": 30,
            "begin_s": 1_451_606_400, "queries": 6,
        },
        "mix": mix, "seed": 5, "engine_index": 0, "engine_count": 1, "preload": null,
        "counted": null, "stages": [], "readable_rows": 0, "first_row": 0, "value_seed": 0, "run": 0,
        "batch_rows": BATCH_ROWS, "go_within_s": 1.0, "output_dir": "/nowhere", "cores": [],
    }))
    .unwrap()
}

/// The rows of the table cpu, by moment and host; one write may be changed, another lost.
#[derive(Default)]
struct Memory {
    rows: RefCell<BTreeMap<(i64, String), Vec<f64>>>,
    writes: RefCell<u64>,
    corrupted: Option<u64>,
    only: Option<Operation>,
}

impl DevopsSession for &Memory {
    async fn write(&self, rows: &[Row]) -> Result<(), Failure> {
        *self.writes.borrow_mut() += 1;
        let is_corrupt = self.corrupted == Some(*self.writes.borrow());
        for row in rows.iter().filter(|row| row.table == "cpu") {
            let values = row.values.iter().map(|value| match *value {
                Number::Whole(whole) => f64::from(i32::try_from(whole).unwrap()),
                Number::Real(_) => panic!("cpu has whole numbers"),
            });
            let values = values.map(|value| if is_corrupt { value + 100.0 } else { value });
            let at = (row.ts_ms, row.tags[0].clone());
            self.rows.borrow_mut().insert(at, values.collect());
        }
        Ok(())
    }

    fn can_ask(&self, operation: Operation) -> bool {
        self.only.is_none_or(|only| only == operation)
    }

    async fn ask(&self, query: &Query) -> Result<Vec<Group>, Failure> {
        let rows = self.rows.borrow();
        let mut groups: BTreeMap<(i64, &str), Vec<&Vec<f64>>> = BTreeMap::new();
        for ((ts_ms, host), values) in rows.iter() {
            let is_asked = query.hosts.is_empty() || query.hosts.contains(host);
            if is_asked && (query.from_ms..query.until_ms).contains(ts_ms) {
                let bucket_ms = ts_ms - ts_ms % query.bucket_ms;
                let host = if query.hosts.is_empty() { host } else { "" };
                groups.entry((bucket_ms, host)).or_default().push(values);
            }
        }
        let groups = groups.into_iter().map(|((ts_ms, host), rows)| Group {
            ts_ms,
            host: host.to_owned(),
            values: (query.metrics.iter().map(|metric| {
                let place = metrics().iter().position(|one| one == metric).unwrap();
                let column = rows.iter().map(|values| values[place]);
                match query.aggregate {
                    Aggregate::Max => column.fold(f64::NEG_INFINITY, f64::max),
                    Aggregate::Mean => {
                        column.sum::<f64>() / f64::from(u32::try_from(rows.len()).unwrap())
                    }
                }
            }))
            .collect(),
        });
        Ok(groups.collect())
    }
}

struct NoParts;

impl Parts for NoParts {
    fn now(&self) -> f64 {
        0.0
    }

    fn note(&self, operation: Operation, part: &'static str, _: f64, _: f64) {
        panic!("{operation} has no part {part}");
    }
}

type Tried<'a> = DevopsModel<&'a Memory>;

fn perform(model: &Tried, operation: Operation, number: u64) -> (Answer, Reply) {
    let prepared = model.prepare(operation, number).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let reply = (runtime.unwrap().block_on(model.send(&prepared, &NoParts))).unwrap();
    (model.judge(&prepared, &reply), reply)
}

fn load(memory: &Memory) {
    let model = DevopsModel::new(&spec(&[Operation::Load]), &records(), memory).unwrap();
    for number in 0..batches() {
        assert_eq!(
            perform(&model, Operation::Load, number).0,
            Answer::Completed
        );
    }
}

fn batches() -> u64 {
    devops_rows(&records()).div_ceil(BATCH_ROWS)
}

#[test]
fn what_was_loaded_answers_every_query() {
    let memory = Memory::default();
    load(&memory);
    let model = DevopsModel::new(&spec(&QUERIES), &records(), &memory).unwrap();
    for operation in QUERIES {
        for number in 0..records().queries {
            let (answer, reply) = perform(&model, operation, number);
            assert_eq!(answer, Answer::Completed, "{operation} {number}");
            assert!(matches!(reply, Reply::Found(groups) if groups.len() > 1));
        }
    }
}

#[test]
fn a_corrupted_batch_is_found_by_every_type_of_query() {
    let corrupted = Some(10);
    let memory = Memory {
        corrupted,
        ..Memory::default()
    };
    load(&memory);
    let model = DevopsModel::new(&spec(&QUERIES), &records(), &memory).unwrap();
    for operation in QUERIES {
        let mut answers = (0..records().queries).map(|number| perform(&model, operation, number).0);
        assert!(
            answers.any(|answer| answer == Answer::WrongData),
            "{operation}"
        );
    }
}

#[test]
fn what_is_missing_is_not_found_and_what_is_too_much_is_wrong() {
    let memory = Memory::default();
    load(&memory);
    let asked = Operation::SingleGroupby1x1x12;
    let model = DevopsModel::new(&spec(&[asked]), &records(), &memory).unwrap();
    let prepared = model.prepare(asked, 0).unwrap();
    let (_, Reply::Found(groups)) = perform(&model, asked, 0) else {
        panic!("a query gives groups");
    };
    let judge = |groups: &[Group]| model.judge(&prepared, &Reply::Found(groups.to_vec()));
    assert_eq!(judge(&groups), Answer::Completed);
    assert_eq!(judge(&groups[1..]), Answer::NotFound);
    assert_eq!(judge(&[]), Answer::NotFound);
    assert_eq!(judge(&[&groups[..1], &groups].concat()), Answer::WrongData);
    let swapped: Vec<_> = groups.iter().rev().cloned().collect();
    assert_eq!(judge(&swapped), Answer::WrongData);
    let mut lacking = groups.clone();
    lacking[0].values[0] = f64::NAN;
    assert_eq!(judge(&lacking), Answer::WrongData);
    lacking[0].values.clear();
    assert_eq!(judge(&lacking), Answer::WrongData);
}

#[test]
fn a_mean_may_be_off_by_as_much_as_sums_in_another_order_are() {
    let memory = Memory::default();
    load(&memory);
    let asked = Operation::DoubleGroupbyAll;
    let model = DevopsModel::new(&spec(&[asked]), &records(), &memory).unwrap();
    let prepared = model.prepare(asked, 0).unwrap();
    let judge = |share: f64| {
        let (_, Reply::Found(mut groups)) = perform(&model, asked, 0) else {
            panic!("a query gives groups");
        };
        groups[3].values[2] *= 1.0 + share;
        model.judge(&prepared, &Reply::Found(groups))
    };
    assert_eq!(judge(9e-10), Answer::Completed);
    assert_eq!(judge(-9e-10), Answer::Completed);
    assert_eq!(judge(2e-9), Answer::WrongData);
    assert_eq!(judge(f64::NAN), Answer::WrongData);
    assert_eq!(judge(f64::INFINITY), Answer::WrongData);
}

#[test]
fn operations_are_named_as_by_the_python_engine() {
    let memory = Memory::default();
    let mix = [Operation::Load, Operation::DoubleGroupby1];
    let model = DevopsModel::new(&spec(&mix), &records(), &memory).unwrap();
    assert_eq!((model.rows(mix[0]), model.rows(mix[1])), (BATCH_ROWS, 1));
    let batch = model.prepare(Operation::Load, 1).unwrap();
    assert_eq!(
        model.describe(&batch),
        "load of 1000 rows from kernel of host_1 at 1451606760000 on"
    );
    let query = model.prepare(Operation::DoubleGroupby1, 0).unwrap();
    let text = model.describe(&query);
    assert!(text.starts_with("double-groupby-1 from 14516064"), "{text}");
}

#[test]
fn what_cannot_be_done_is_refused_by_name() {
    let only = Some(Operation::SingleGroupby1x1x1);
    let memory = Memory {
        only,
        ..Memory::default()
    };
    let refused = |operation| DevopsModel::new(&spec(&[operation]), &records(), &memory).err();
    assert_eq!(
        refused(Operation::DoubleGroupby1).unwrap(),
        "memory cannot be asked double-groupby-1; leave it out of the workload"
    );
    assert_eq!(
        refused(Operation::Scan).unwrap(),
        "records of kind devops know no operation scan"
    );
    let model = DevopsModel::new(&spec(&[Operation::Load]), &records(), &memory).unwrap();
    let beyond = batches();
    assert_eq!(
        model.prepare(Operation::Load, beyond).err().unwrap(),
        format!("there is no batch {beyond} to load; the workload asks for too many")
    );
}

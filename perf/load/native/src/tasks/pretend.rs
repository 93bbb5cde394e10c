//! Sessions that answer at once, for tests of what operations do.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::FutureExt as _;
use serde_json::json;

use crate::session::{Failure, KeyValueSession, Reading, SensorSession, Values};
use crate::spec::{LoadSpec, Operation};
use crate::task::{Answer, Model, Parts};

/// Gives a spec with these operations, and whatever else differs from one that does nothing.
pub fn spec(mix: &serde_json::Value, more: &serde_json::Value) -> LoadSpec {
    let mut said = json!({
        "target": {
            "system": "cassandra", "addresses": ["127.0.0.1"], "port": 9042, "replication_factor": 3,
            "consistency": "quorum", "timeout_s": 1.0, "layout": {}, "routers": false, "access": null,
        },
        "records": {"kind": "put-get", "keys": 1, "key_bytes": 32, "least_value_bytes": 100,
                    "value_bytes_range": 1800},
        "mix": mix, "seed": 42, "engine_index": 0, "engine_count": 1, "preload": null,
        "counted": null, "stages": [], "readable_rows": 0, "first_row": 0, "value_seed": 3, "run": 1,
        "batch_rows": 1, "go_within_s": 1.0, "output_dir": "", "cores": [],
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        said[name] = value.clone();
    }
    serde_json::from_value(said).expect("a spec")
}

/// Keeps what it is told; what takes no time is ready at once.
#[derive(Default)]
pub struct Pretend {
    pub records: RefCell<BTreeMap<String, Values>>,
    pub newest: RefCell<Vec<Reading>>,
    pub fails: Cell<bool>,
    pub parts: RefCell<Vec<(Operation, &'static str)>>,
}

impl Pretend {
    fn answer(&self) -> Result<(), Failure> {
        let (kind, message) = ("timeouts".to_owned(), String::new());
        if self.fails.get() {
            Err(Failure { kind, message })
        } else {
            Ok(())
        }
    }

    /// Does one operation of a model on this session, from begin to end.
    pub fn run<M: Model>(&self, model: &M, operation: Operation, number: u64) -> Option<Answer> {
        let prepared = model.prepare(operation, number).expect("an operation");
        self.send(model, &prepared)
    }

    /// Sends what was prepared; gives the outcome, if an answer comes.
    pub fn send<M: Model>(&self, model: &M, prepared: &M::Prepared) -> Option<Answer> {
        let reply = model
            .send(prepared, self)
            .now_or_never()
            .expect("an answer");
        reply.ok().map(|reply| model.judge(prepared, &reply))
    }
}

impl Parts for Pretend {
    fn now(&self) -> f64 {
        0.0
    }

    fn note(&self, operation: Operation, part: &'static str, _: f64, _: f64) {
        self.parts.borrow_mut().push((operation, part));
    }
}

impl SensorSession for &Pretend {
    async fn write(&self, readings: &[Reading]) -> Result<(), Failure> {
        self.newest
            .borrow_mut()
            .splice(0..0, readings.iter().rev().cloned());
        self.answer()
    }

    async fn read_latest(&self, device_id: &str, count: u64) -> Result<Vec<Reading>, Failure> {
        self.answer()?;
        let newest = self.newest.borrow();
        let own = newest
            .iter()
            .filter(|row| row.device_id == device_id)
            .cloned();
        Ok(own.take(usize::try_from(count).expect("a few")).collect())
    }
}

impl KeyValueSession for &Pretend {
    async fn insert(&self, key: &str, values: &[Bytes]) -> Result<(), Failure> {
        self.put(key, values).await
    }

    async fn put(&self, key: &str, values: &[Bytes]) -> Result<(), Failure> {
        self.records
            .borrow_mut()
            .insert(key.to_owned(), values.to_vec());
        self.answer()
    }

    async fn update(&self, key: &str, changes: &[(usize, Bytes)]) -> Result<(), Failure> {
        let mut records = self.records.borrow_mut();
        let values = records.get_mut(key).expect("a record that is there");
        for (field, value) in changes {
            values[*field] = value.clone();
        }
        self.answer()
    }

    async fn get(&self, key: &str) -> Result<Option<Values>, Failure> {
        self.answer()?;
        Ok(self.records.borrow().get(key).cloned())
    }

    async fn scan(&self, first_key: &str, count: u64) -> Result<Vec<(String, Values)>, Failure> {
        self.answer()?;
        let records = self.records.borrow();
        let from = records
            .range(first_key.to_owned()..)
            .take(usize::try_from(count).expect("a few"));
        Ok(from
            .map(|(key, values)| (key.clone(), values.clone()))
            .collect())
    }
}

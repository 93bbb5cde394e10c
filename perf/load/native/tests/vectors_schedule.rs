//! Schedules are those of the Python engine, to the nanosecond.
//!
//! The vectors are written by `tests/perf/load/schedule_vectors.py`.

use std::path::Path;

use knickload::load::schedule::Schedule;
use knickload::spec::Arrivals;
use serde_json::Value;

const EXACT_S: f64 = 1e-9;

#[test]
fn schedules_are_those_of_the_python_engine() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data/vectors/schedule.json");
    let vectors: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for one in vectors["cases"].as_array().unwrap() {
        let number = |name: &str| one["share"][name].as_u64().unwrap();
        let arrivals: Option<Arrivals> = serde_json::from_value(one["arrivals"].clone()).unwrap();
        let key = ["seed", "run", "stage_place", "engine_index"].map(number);
        let load = one["offered_load_ops_per_s"].as_f64().unwrap();
        let duration_s = one["duration_s"].as_f64().unwrap();
        let arrivals = arrivals.unwrap_or(Arrivals::Uniform);
        let plan = Schedule::plan(key, number("engine_count"), load, arrivals, duration_s);
        let starts: Vec<f64> = plan.collect();
        assert_eq!(starts.len() as u64, one["count"].as_u64().unwrap(), "{one}");
        for (place, start_s) in one["starts"].as_object().unwrap() {
            let found_s = starts[place.parse::<usize>().unwrap()];
            let off_s = (found_s - start_s.as_f64().unwrap()).abs();
            assert!(off_s < EXACT_S, "{one}: number {place} is off by {off_s} s");
        }
        assert!(starts.is_sorted());
    }
}

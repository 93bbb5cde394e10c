//! What the engine's own machinery costs, and how exactly it sends: on a session that answers at once.
//!
//! `cargo test --release --test cost -- --ignored --nocapture`, on a core that nobody else uses.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use knickload::load::clock::{MonotonicClock, own_cpu_s, unix_s};
use knickload::load::loops::turn;
use knickload::load::output::Output;
use knickload::load::runner::{self, Surroundings};
use knickload::session::Failure;
use knickload::spec::{INTERVALS, LoadSpec, Operation, RESULT};
use knickload::task::{Answer, Model, Parts};
use serde_json::{Value, json};

/// Answers in the next turn, as an answer of a driver does.
struct AtOnce;

impl Model for AtOnce {
    type Prepared = u64;
    type Reply = ();

    fn rows(&self, _: Operation) -> u64 {
        1
    }

    fn prepare(&self, _: Operation, number: u64) -> Result<u64, String> {
        Ok(number)
    }

    async fn send(&self, _: &u64, _: &dyn Parts) -> Result<(), Failure> {
        turn().await;
        Ok(())
    }

    fn judge(&self, _: &u64, (): &()) -> Answer {
        Answer::Completed
    }

    fn describe(&self, number: &u64) -> String {
        number.to_string()
    }
}

fn measure(name: &str, load: &Value) {
    let directory = std::env::temp_dir().join(format!("knickload-cost-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let spec: LoadSpec = serde_json::from_value(json!({
        "target": {
            "system": "null", "addresses": [], "port": 1, "replication_factor": 1,
            "consistency": "quorum", "timeout_s": 1.0, "layout": {}, "routers": false, "access": null
        },
        "records": {
            "kind": "sensor", "devices": 5, "payload_bytes": 200, "latest_count": 3, "order": null
        },
        "mix": {"write": 1.0}, "seed": 7, "engine_index": 0, "engine_count": 1,
        "preload": null, "counted": null, "readable_rows": 0, "first_row": 0,
        "value_seed": 0, "run": 0, "batch_rows": 1, "go_within_s": 1.0,
        "output_dir": directory, "cores": [],
        "stages": [{
            "phase": "steady", "load": load, "warmup_s": 1.0, "warmup_cap_s": 1.0,
            "iteration_s": 5.0, "iterations": [1], "histogram_s": 1
        }]
    }))
    .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let begin_s = own_cpu_s();
    tokio::task::LocalSet::new().block_on(&runtime, async move {
        let start_at_s = unix_s() + 0.1;
        let surroundings = Surroundings {
            start_at_s,
            clock: MonotonicClock::new(start_at_s),
            output: Output::open(&spec.output_dir, start_at_s).unwrap(),
        };
        let load = async move { runner::run(&spec, AtOnce, surroundings).await };
        tokio::task::spawn_local(load).await.unwrap().unwrap();
    });
    let cpu_s = own_cpu_s() - begin_s;
    let completed = count(&directory);
    #[allow(clippy::cast_precision_loss)] // some millions
    let each_us = cpu_s / completed as f64 * 1e6;
    let lateness_us = [50.0, 99.0].map(|percent| lateness(&directory).value_at_percentile(percent));
    println!(
        "{name}: {completed} operations, {each_us:.2} µs of CPU each; lateness p50 and p99, µs: \
         {lateness_us:?}"
    );
    std::fs::remove_dir_all(&directory).unwrap();
}

/// Merges the lateness of the measured iteration.
fn lateness(directory: &Path) -> Histogram<u32> {
    let log = std::fs::read_to_string(directory.join(INTERVALS)).unwrap();
    let mut merged = Histogram::new_with_bounds(1, 3_600_000_000, 3).unwrap();
    for line in log.lines() {
        if line.starts_with("Tag=steady:write:send_lateness:1,") {
            let text = line.rsplit(',').next().unwrap();
            let raw = STANDARD.decode(text).unwrap();
            let one: Histogram<u32> = Deserializer::new().deserialize(&mut &raw[..]).unwrap();
            merged.add(one).unwrap();
        }
    }
    merged
}

fn count(directory: &Path) -> u64 {
    let text = std::fs::read_to_string(directory.join(RESULT)).unwrap();
    let result: Value = serde_json::from_str(&text).unwrap();
    let all = result["counters"].as_array().unwrap().iter();
    let completed = all.filter(|one| one["name"] == "completed");
    completed.map(|one| one["value"].as_u64().unwrap()).sum()
}

#[test]
#[ignore = "measures for 20 s, and says what it found"]
fn what_the_machinery_costs() {
    let open = |rate: f64| json!({"kind": "open", "offered_load_ops_per_s": rate, "in_flight": 64, "arrivals": "poisson"});
    measure(
        "closed, 64 in flight",
        &json!({"kind": "closed", "in_flight": 64}),
    );
    measure("open, 5000/s", &open(5000.0));
    measure("open, 50000/s", &open(50_000.0));
}

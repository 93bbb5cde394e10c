//! From a spec to a result: connects, says READY, waits for GO, and lets the load run.

use std::path::Path;
use std::time::Duration;

use crate::cql;
use crate::load::clock::{MonotonicClock, unix_s};
use crate::load::output::Output;
use crate::load::runner::{self, Surroundings};
use crate::mongo;
use crate::session::{KeyValueSession, SensorSession};
use crate::spec::statements::Language;
use crate::spec::{GO, LoadSpec, PASSWORD, READY, Records, Sensor, Ycsb};
use crate::task::Model;
use crate::tasks::devops::DevopsModel;
use crate::tasks::put_get::PutGetModel;
use crate::tasks::sensor::SensorModel;
use crate::tasks::statements::StatementModel;
use crate::tasks::ycsb::YcsbModel;

const GO_POLL: Duration = Duration::from_millis(20);
const LATEST_START_S: f64 = 1.0;

/// Does all that a spec says; runs within a `LocalSet`.
///
/// # Errors
/// Why there is no result.
pub async fn measure(spec: &LoadSpec) -> Result<(), String> {
    let system = spec.target.system.as_str();
    let done = match system {
        "cassandra" | "scylladb" => measure_cql(spec).await,
        "mongodb" => measure_mongo(spec).await,
        _ => Err(format!(
            "the native engine has no driver for {system}; say `engine: python`"
        )),
    };
    forget_password(spec);
    done
}

/// Removes the password that the harness put beside the spec, if it did: whoever is connected needs it no
/// longer. The harness removes what is left, should this fail.
fn forget_password(spec: &LoadSpec) {
    let _ = std::fs::remove_file(spec.output_dir.join(PASSWORD));
}

async fn measure_cql(spec: &LoadSpec) -> Result<(), String> {
    let target = &spec.target;
    match &spec.records {
        Records::Sensor(records) => {
            measure_sensor(spec, records, cql::sensor::connect(target).await?).await
        }
        Records::PutGet(records) => {
            let session = cql::keys::connect(target).await?;
            run(spec, PutGetModel::new(spec, records, session)?).await
        }
        Records::Ycsb(records) => {
            measure_ycsb(spec, records, cql::keys::connect(target).await?).await
        }
        Records::Devops(records) => {
            let session = cql::devops::connect(target).await?;
            run(spec, DevopsModel::new(spec, records, session)?).await
        }
        Records::Statements(records) if records.language == Language::Cql => {
            let session = cql::statements::connect(target, records).await?;
            let model = match spec.preload {
                Some(_) => StatementModel::preload(spec, records, session),
                None => StatementModel::new(spec, records, session),
            };
            run(spec, model?).await
        }
        Records::Statements(_) => Err(format!("{} takes statements in CQL alone", target.system)),
    }
}

async fn measure_mongo(spec: &LoadSpec) -> Result<(), String> {
    let target = &spec.target;
    match &spec.records {
        Records::Sensor(records) => {
            measure_sensor(spec, records, mongo::sensor::connect(target).await?).await
        }
        Records::PutGet(records) => {
            let session = mongo::keys::connect(target, &spec.records).await?;
            run(spec, PutGetModel::new(spec, records, session)?).await
        }
        Records::Ycsb(records) => {
            let session = mongo::keys::connect(target, &spec.records).await?;
            measure_ycsb(spec, records, session).await
        }
        Records::Devops(records) => {
            let session = mongo::devops::connect(target).await?;
            run(spec, DevopsModel::new(spec, records, session)?).await
        }
        Records::Statements(_) => Err(
            "the native engine sends no commands of one's own to MongoDB; say `engine: python`"
                .to_owned(),
        ),
    }
}

async fn measure_sensor<S: SensorSession + 'static>(
    spec: &LoadSpec,
    records: &Sensor,
    session: S,
) -> Result<(), String> {
    let model = match spec.preload {
        Some(_) => SensorModel::preload(spec, records, session),
        None => SensorModel::new(spec, records, session),
    };
    run(spec, model?).await
}

async fn measure_ycsb<S: KeyValueSession + 'static>(
    spec: &LoadSpec,
    records: &Ycsb,
    session: S,
) -> Result<(), String> {
    let model = match spec.preload {
        Some(_) => YcsbModel::preload(spec, records, session),
        None => YcsbModel::new(spec, records, session),
    };
    run(spec, model?).await
}

/// Offers a load of one model, which is connected and so ready to begin.
///
/// # Errors
/// Why there is no result.
pub async fn run<M: Model + 'static>(spec: &LoadSpec, model: M) -> Result<(), String> {
    forget_password(spec);
    let ready = spec.output_dir.join(READY);
    std::fs::write(&ready, "").map_err(|why| format!("cannot write {}: {why}", ready.display()))?;
    let start_at_s = await_go(&spec.output_dir.join(GO), spec.go_within_s).await?;
    let surroundings = Surroundings {
        start_at_s,
        clock: MonotonicClock::new(start_at_s),
        output: Output::open(&spec.output_dir, start_at_s)?,
    };
    runner::run(spec, model, surroundings).await
}

async fn await_go(path: &Path, within_s: f64) -> Result<f64, String> {
    let begun = std::time::Instant::now();
    let start_at_s = loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if let Ok(start_at_s) = text.trim().parse::<f64>() {
            break start_at_s;
        }
        if begun.elapsed().as_secs_f64() > within_s {
            return Err(format!(
                "start failed on the load engine: there was no {} within {within_s} s",
                path.display()
            ));
        }
        tokio::time::sleep(GO_POLL).await;
    };
    let late_s = unix_s() - start_at_s;
    if late_s > LATEST_START_S {
        return Err(format!(
            "start failed on the load engine: the load began {late_s:.1} s ago; are the clocks of the \
             client hosts in step?"
        ));
    }
    Ok(start_at_s)
}

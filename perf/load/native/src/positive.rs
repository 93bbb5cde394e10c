//! What a spec must say a number above zero for, as the types of `perf/load/spec.py` and `perf/model/records.py`.
//!
//! A zero would not fail by itself: it would be measured as a server that never answers, or never end.

use crate::spec::{Load, LoadSpec, Records, Stage};

/// Says which field of a spec is not above zero, if any is.
///
/// # Errors
/// Its name, and what it is.
pub fn check(spec: &LoadSpec) -> Result<(), String> {
    above_zero("target.timeout_s", spec.target.timeout_s)?;
    at_least_one("engine_count", spec.engine_count)?;
    at_least_one("batch_rows", spec.batch_rows)?;
    above_zero("go_within_s", spec.go_within_s)?;
    for (operation, weight) in &spec.mix {
        above_zero(&format!("mix.{operation}"), *weight)?;
    }
    if let Some(preload) = &spec.preload {
        at_least_one("preload.rows", preload.rows)?;
        at_least_one("preload.in_flight", preload.in_flight as u64)?;
    }
    if let Some(counted) = &spec.counted {
        at_least_one("counted.operations", counted.operations)?;
        at_least_one("counted.in_flight", counted.in_flight as u64)?;
    }
    for (place, stage) in spec.stages.iter().enumerate() {
        check_stage(stage).map_err(|why| format!("stages[{place}].{why}"))?;
    }
    check_records(&spec.records).map_err(|why| format!("records.{why}"))
}

fn check_stage(stage: &Stage) -> Result<(), String> {
    let (Load::Closed { in_flight } | Load::Open { in_flight, .. }) = stage.load;
    at_least_one("load.in_flight", in_flight as u64)?;
    if let Load::Open {
        offered_load_ops_per_s,
        ..
    } = stage.load
    {
        above_zero("load.offered_load_ops_per_s", offered_load_ops_per_s)?;
    }
    above_zero("warmup_s", stage.warmup_s)?;
    above_zero("warmup_cap_s", stage.warmup_cap_s)?;
    above_zero("iteration_s", stage.iteration_s)?;
    at_least_one("histogram_s", stage.histogram_s.into())
}

fn check_records(records: &Records) -> Result<(), String> {
    let counts: &[(&str, u64)] = match records {
        Records::Sensor(one) => &[
            ("devices", one.devices),
            ("payload_bytes", one.payload_bytes),
            ("latest_count", one.latest_count),
        ],
        Records::PutGet(one) => &[
            ("keys", one.keys),
            ("key_bytes", one.key_bytes),
            ("least_value_bytes", one.least_value_bytes),
            ("value_bytes_range", one.value_bytes_range),
        ],
        Records::Ycsb(one) => &[
            ("record_count", one.record_count),
            ("field_count", one.field_count),
            ("field_length", one.field_length),
            ("zero_padding", one.zero_padding),
            ("max_scan_length", one.max_scan_length),
            ("operation_count", one.operation_count.unwrap_or(1)),
        ],
        Records::Devops(one) => &[
            ("hosts", one.hosts),
            ("span_s", one.span_s),
            ("interval_s", one.interval_s),
            ("queries", one.queries),
        ],
    };
    counts
        .iter()
        .try_for_each(|(name, count)| at_least_one(name, *count))
}

fn at_least_one(name: &str, count: u64) -> Result<(), String> {
    if count == 0 {
        return Err(format!("{name} is 0; it must be 1 or more"));
    }
    Ok(())
}

fn above_zero(name: &str, number: f64) -> Result<(), String> {
    if number.is_finite() && number > 0.0 {
        return Ok(());
    }
    Err(format!("{name} is {number}; it must be more than 0"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::load::scripted::{open, spec, stage};

    fn read(value: Value) -> Result<LoadSpec, serde_json::Error> {
        serde_json::from_value(value)
    }

    fn staged(load: &Value, with: &Value) -> Value {
        spec(&json!({"stages": [stage(load, with)]}))
    }

    #[test]
    fn a_zero_is_refused_by_its_field() {
        let nothing = json!({});
        let cases = [
            (spec(&json!({"engine_count": 0})), "engine_count is 0;"),
            (spec(&json!({"batch_rows": 0})), "batch_rows is 0;"),
            (spec(&json!({"mix": {"write": 0.0}})), "mix.write is 0;"),
            (
                spec(&json!({"preload": {"rows": 5, "in_flight": 0}})),
                "preload.in_flight is 0;",
            ),
            (
                staged(&open(10.0, 0), &nothing),
                "stages[0].load.in_flight is 0;",
            ),
            (
                staged(&open(-1.0, 1), &nothing),
                "stages[0].load.offered_load_ops_per_s is -1;",
            ),
            (
                staged(&open(1.0, 1), &json!({"histogram_s": 0})),
                "stages[0].histogram_s is 0;",
            ),
        ];
        for (value, said) in cases {
            let why = check(&read(value).unwrap()).unwrap_err();
            assert!(why.starts_with(said), "{why}");
        }
        check(&read(staged(&open(1.0, 1), &nothing)).unwrap()).unwrap();
    }

    #[test]
    fn a_field_of_a_load_that_is_not_known_is_refused() {
        for kind in ["open", "closed"] {
            let mut load = open(10.0, 1);
            if kind == "closed" {
                load = json!({"kind": kind, "in_flight": 1});
            }
            read(staged(&load, &json!({}))).unwrap();
            load["ramp_s"] = 5.into();
            let why = read(staged(&load, &json!({}))).unwrap_err().to_string();
            assert!(why.contains("unknown field `ramp_s`"), "{why}");
        }
    }
}

//! Whole loads under a scripted clock: what is planted is what is counted.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::{Value, json};

use super::scripted::{Outcome, Server, open, run, spec, stage};
use crate::load::clock::Clock;
use crate::load::loops::slice_s;
use crate::task::Answer;

const DONE: Result<Answer, &str> = Ok(Answer::Completed);
const FOREVER: f64 = f64::INFINITY;

fn steady(load: &Value, server: Server) -> Outcome {
    let stages = json!([stage(load, &json!({}))]);
    let outcome = run(spec(&json!({"stages": stages})), server, &[]);
    outcome.said.clone().unwrap();
    outcome
}

fn closed(in_flight: u32) -> Value {
    json!({"kind": "closed", "in_flight": in_flight})
}

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= expected.abs() * 1e-3 + 1e-9
}

#[test]
fn an_open_load_keeps_its_schedule() {
    let outcome = steady(&open(100.0, 8), Server::new(|_, _| (0.005, DONE)));
    for (iteration, offered) in [(0, 100), (1, 200)] {
        let count = |name| outcome.count("steady", iteration, "write", name);
        for name in [
            "attempted",
            "completed",
            "sent_in_window",
            "completed_in_window",
        ] {
            assert_eq!(count(name), offered, "{name}");
        }
        assert_eq!(count("rows"), 2 * offered);
        for name in ["held", "timeouts", "not_found", "wrong_data", "clamped"] {
            assert_eq!(count(name), 0, "{name}");
        }
    }
    let found = outcome.intervals("response_time");
    let tags: Vec<_> = found.iter().map(|one| (&one.0[..], one.1, one.2)).collect();
    assert_eq!(tags[0], ("steady:write:response_time:0", 0.0, 1.0));
    assert_eq!(tags[2], ("steady:write:response_time:1", 2.0, 1.0));
    assert!(found.iter().all(|one| near(one.3, 5.0)), "{found:?}");
    assert!(
        outcome
            .intervals("send_lateness")
            .iter()
            .all(|one| one.3 == 0.0)
    );
    assert_eq!(
        outcome.progress,
        "0,0,100,0.500000\n0,1,100,0.500000\n0,2,100,0.500000\n"
    );
}

#[test]
fn what_works_for_an_open_stage_ends_with_it() {
    // Ten are in flight at once near the end of the first stage: then some wait, others still work.
    let slow = |_, sent_s: f64| {
        let is_slow = (2.8..2.9).contains(&sent_s);
        (if is_slow { 0.15 } else { 0.005 }, DONE)
    };
    let load = open(100.0, 16);
    let stages = json!([
        stage(&load, &json!({})),
        stage(&load, &json!({"phase": "more"}))
    ]);
    let outcome = run(spec(&json!({"stages": stages})), Server::new(slow), &[]);
    outcome.said.clone().unwrap();
    for phase in ["steady", "more"] {
        assert_eq!(outcome.count(phase, 1, "write", "completed"), 200);
    }
    assert!(!outcome.has_tasks_left);
}

/// Gives when each operation of an open loop of one engine was sent, by its number.
fn sends(load: &Value) -> Vec<(u32, f64)> {
    let sent: Rc<RefCell<Vec<(u32, f64)>>> = Rc::default();
    let noting = Rc::clone(&sent);
    let server = Server::new(move |number, sent_s| {
        let number = u32::try_from(number).unwrap();
        noting.borrow_mut().push((number, sent_s));
        (0.000_07, DONE)
    });
    steady(load, server);
    sent.take()
}

#[test]
fn starts_that_are_close_are_sent_in_slices_and_none_is_early() {
    const RATE: f64 = 5000.0;
    const SLICE_S: f64 = 0.9e-3;
    let sent = sends(&open(RATE, 64));
    assert_eq!(sent.len(), 15_000);
    for (number, sent_s) in &sent {
        let late_s = sent_s - f64::from(*number) / RATE;
        assert!((-1e-9..SLICE_S + 1e-9).contains(&late_s), "{late_s}");
    }
    let mut woken_s: Vec<_> = sent.iter().map(|one| one.1).collect();
    woken_s.dedup();
    let shortest_s = woken_s.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(shortest_s.fold(f64::INFINITY, f64::min) > SLICE_S - 1e-9);
}

#[test]
fn starts_that_are_further_apart_are_never_held_back() {
    let mut load = open(2200.0, 64);
    load["arrivals"] = "poisson".into();
    let outcome = steady(&load, Server::new(|_, _| (0.000_07, DONE)));
    let found = outcome.intervals("send_lateness");
    assert!(found.iter().all(|one| one.3 == 0.0), "{found:?}");
}

#[test]
fn a_slice_takes_few_of_the_slots() {
    let cases = [
        (2300.0, 64, 0.9e-3),
        (2200.0, 64, 0.0),
        (20_000.0, 60, 0.25e-3),
        (90_000.0, 24, 2.0 / 90_000.0),
        (20_000.0, 23, 0.0),
    ];
    for (load_ops_per_s, in_flight, expected_s) in cases {
        let found_s = slice_s(load_ops_per_s, in_flight);
        assert!(
            (found_s - expected_s).abs() < 1e-12,
            "{load_ops_per_s}: {found_s}"
        );
    }
}

#[test]
fn a_planted_stall_is_in_the_response_times_and_not_in_the_lateness() {
    let answer = |_, sent_s: f64| ((1.505 - sent_s).clamp(0.005, 0.505), DONE);
    let stalls = move |number, sent_s: f64| {
        if (1.0..1.5).contains(&sent_s) {
            answer(number, sent_s)
        } else {
            (0.005, DONE)
        }
    };
    let outcome = steady(&open(100.0, 4), Server::new(stalls));
    let highest_ms = |kind| {
        let found = outcome.intervals(kind);
        found.iter().map(|one| one.3).fold(0.0, f64::max)
    };
    assert_eq!(outcome.count("steady", 1, "write", "completed"), 200);
    // The four slots were taken until 1.505; then 46 operations were overdue, and one by one sent.
    assert!(outcome.count("steady", 1, "write", "held") >= 46);
    assert!(near(highest_ms("service_time"), 505.0));
    assert!(near(highest_ms("response_time"), 505.0));
    assert!(highest_ms("send_lateness") < 0.001);
}

#[test]
fn what_the_client_itself_loses_is_lateness() {
    let mut server = Server::new(|_, _| (0.005, DONE));
    server.prepare = Box::new(|clock, number| {
        if number == 150 {
            clock.lose(0.2);
        }
        Ok(())
    });
    let outcome = steady(&open(100.0, 64), server);
    let found = outcome.intervals("send_lateness");
    // Number 150 was intended at 1.5, and made ready from 1.49 on.
    let highest_ms = found.iter().map(|one| one.3).fold(0.0, f64::max);
    assert!(near(highest_ms, 190.0), "{found:?}");
    assert_eq!(outcome.count("steady", 1, "write", "held"), 0);
    assert_eq!(outcome.count("steady", 1, "write", "completed"), 200);
}

#[test]
fn each_operation_ends_in_exactly_one_counter() {
    let server = Server::new(|number, _| match number {
        110 => (FOREVER, DONE),
        111 => (0.7, Err("timeouts")),
        112 | 113 => (0.001, Err("error:Overloaded")),
        114 => (0.001, Ok(Answer::NotFound)),
        115 => (0.001, Ok(Answer::WrongData)),
        _ => (0.001, DONE),
    });
    let outcome = steady(&open(100.0, 8), server);
    let expected = [
        ("attempted", 200),
        ("completed", 194),
        ("timeouts", 2),
        ("error:Overloaded", 2),
        ("not_found", 1),
        ("wrong_data", 1),
    ];
    for (name, value) in expected {
        assert_eq!(outcome.count("steady", 1, "write", name), value, "{name}");
    }
    let examples = outcome.result["examples"].to_string();
    assert!(examples.contains("error:Overloaded: write 112: as planted"));
    assert!(examples.contains("wrong_data: write 115: WrongData"));
}

#[test]
fn what_an_overload_leaves_unsent_is_shared_out_by_weight() {
    let stages = json!([stage(&open(100.0, 1), &json!({}))]);
    let given = json!({"stages": stages, "mix": {"read-latest": 3.0, "write": 1.0}});
    let outcome = run(spec(&given), Server::new(|_, _| (0.5, DONE)), &[]);
    outcome.said.clone().unwrap();
    let sum = |name| ["read-latest", "write"].map(|one| outcome.count("steady", 1, one, name));
    let [reads, writes] = sum("attempted");
    // Nothing intended after 1.0 was sent by 4.0, when the drain ended.
    assert_eq!((reads, writes), (150, 50));
    assert_eq!(sum("timeouts"), [150, 50]);
    // What is sent late belongs to its intended start, and to no window of another cell.
    assert_eq!(sum("sent_in_window").iter().sum::<u64>(), 4);
}

#[test]
fn a_closed_load_sends_as_each_slot_is_free() {
    let outcome = steady(&closed(3), Server::new(|_, _| (0.01, DONE)));
    let count = |name| outcome.count("steady", 1, "write", name);
    assert_eq!(count("attempted"), count("completed"));
    // Times are added up, so that a last round may fit in or not.
    assert!((597..=606).contains(&count("completed")));
    assert!(outcome.intervals("send_lateness").is_empty());
    assert!(
        outcome
            .intervals("service_time")
            .iter()
            .all(|one| near(one.3, 10.0))
    );
}

#[test]
fn stages_follow_each_other_as_they_are_told() {
    let first = stage(
        &open(100.0, 4),
        &json!({"warmup_cap_s": 20.0, "iterations": [1, 2]}),
    );
    let second = stage(&closed(2), &json!({"phase": "full", "warmup_cap_s": 1.0}));
    let given = spec(&json!({"stages": [first, second]}));
    let outcome = run(given, Server::new(|_, _| (0.01, DONE)), &[(0, 3.0)]);
    outcome.said.clone().unwrap();
    let offered = |iteration| outcome.count("steady", iteration, "write", "attempted");
    assert_eq!([0, 1, 2].map(offered), [300, 200, 200]);
    let full = |iteration| outcome.count("full", iteration, "write", "completed");
    assert!((198..=204).contains(&full(0)) && (398..=404).contains(&full(1)));
    let mut starts: Vec<_> = outcome
        .intervals("service_time")
        .into_iter()
        .filter(|one| one.0 == "full:write:service_time:1")
        .map(|one| one.1)
        .collect();
    // What ends after its second has an interval more.
    starts.dedup();
    assert_eq!(starts, [8.0, 9.0]);
    let walls: Vec<_> = outcome.result["usages"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    assert_eq!(walls.len(), 5);
    assert!(near(walls[1]["wall_s"].as_f64().unwrap(), 2.0));
}

#[test]
fn being_told_too_late_fails_the_load() {
    let stages = json!([stage(&open(100.0, 4), &json!({"warmup_cap_s": 20.0}))]);
    let given = spec(&json!({"stages": stages}));
    let outcome = run(given, Server::new(|_, _| (0.01, DONE)), &[(0, -0.5)]);
    let why = outcome.said.unwrap_err();
    assert!(
        why.contains("stage 0 was told to begin its iterations"),
        "{why}"
    );
    assert!(outcome.result.is_null());
}

#[test]
fn wide_histograms_are_written_at_their_own_pace() {
    let wide = json!({"iteration_s": 10.0, "histogram_s": 5});
    let given = spec(&json!({"stages": [stage(&open(50.0, 4), &wide)]}));
    let outcome = run(given, Server::new(|_, _| (0.01, DONE)), &[]);
    let found = outcome.intervals("response_time");
    let mut spans: Vec<_> = found.iter().map(|one| (one.1, one.2)).collect();
    // What ends after its window is written down has an interval more.
    spans.dedup();
    assert_eq!(spans, [(0.0, 1.0), (1.0, 5.0), (6.0, 5.0)]);
}

#[test]
fn a_preload_tries_again_and_says_what_it_could_not_write() {
    let given = spec(&json!({"mix": {}, "preload": {"rows": 20, "in_flight": 3}}));
    let tries = std::cell::Cell::new(0);
    let fails_twice = move |number, _| {
        if number == 7 && tries.replace(tries.get() + 1) < 2 {
            return (0.01, Err("error:Overloaded"));
        }
        (0.01, DONE)
    };
    let outcome = run(given.clone(), Server::new(fails_twice), &[]);
    outcome.said.clone().unwrap();
    let count = |name| outcome.count("preload", 0, "write", name);
    assert_eq!((count("attempted"), count("completed")), (22, 20));
    let never = |number, _| (0.01, if number == 7 { Err("timeouts") } else { DONE });
    let why = run(given, Server::new(never), &[]).said.unwrap_err();
    assert_eq!(
        why,
        "load failed on the load engine: write 7 did not succeed in 6 attempts; \
         the last: write 7: as planted"
    );
}

#[test]
fn a_counted_phase_ends_with_its_last_operation() {
    let given = json!({
        "mix": {"put-get": 1.0}, "engine_index": 1, "engine_count": 2,
        "counted": {"phase": "load", "operations": 101, "in_flight": 5}
    });
    let outcome = run(spec(&given), Server::new(|_, _| (0.02, DONE)), &[]);
    outcome.said.clone().unwrap();
    assert_eq!(outcome.count("load", 1, "put-get", "completed"), 50);
    assert_eq!(outcome.count("load", 1, "put-get.get", "completed"), 50);
    assert_eq!(outcome.count("load", 1, "put-get.get", "attempted"), 0);
    assert!(near(outcome.result["counted_s"].as_f64().unwrap(), 0.2));
    assert!(near(
        outcome.result["usages"][0]["wall_s"].as_f64().unwrap(),
        0.2
    ));
    let parts = outcome.intervals("response_time");
    let part = parts
        .iter()
        .find(|one| one.0.starts_with("load:put-get.get:"))
        .unwrap();
    assert!(near(part.3, 10.0));
}

#[test]
fn counting_keeps_up_with_a_server_that_is_gone() {
    const NOTED_S: f64 = 2e-6;
    let mut server = Server::new(|_, _| (0.0, Err("error:no-host-available")));
    let directory = std::rc::Rc::clone(&server.directory);
    let told = std::cell::Cell::new(0);
    server.prepare = Box::new(move |clock, _| {
        clock.lose(NOTED_S);
        let due = told.get();
        if clock.now() < f64::from(due) + 1.75 {
            return Ok(());
        }
        told.set(due + 1);
        let path = directory.get().unwrap().join("progress.csv");
        let limit = std::time::Instant::now() + std::time::Duration::from_secs(5);
        // Its writer is a thread of its own, for which the clock of the load waits here.
        while std::time::Instant::now() < limit {
            let progress = std::fs::read_to_string(&path).unwrap();
            if progress.contains(&format!("0,{due},0,")) {
                return Ok(());
            }
            std::thread::yield_now();
        }
        Err(format!("second {due} is not told"))
    });
    let outcome = steady(&closed(1024), server);
    let count = |name| outcome.count("steady", 1, "write", name);
    assert!(count("attempted") > 900_000, "{}", count("attempted"));
    assert_eq!(count("attempted"), count("error:no-host-available"));
}

#[test]
fn a_load_that_fails_leaves_what_was_measured() {
    let mut server = Server::new(|_, _| (0.01, DONE));
    server.prepare = Box::new(|_, number| match number {
        // Made ready before it is intended, at 2.5.
        250 => Err("there is no record 250".to_owned()),
        _ => Ok(()),
    });
    let outcome = run(
        spec(&json!({"stages": [stage(&open(100.0, 4), &json!({}))]})),
        server,
        &[],
    );
    outcome.said.clone().unwrap_err();
    assert_eq!(outcome.progress, "0,0,99,0.990000\n0,1,100,1.000000\n");
    // What ends after its second has an interval more.
    let found = outcome.intervals("response_time");
    assert_eq!(found.last().map(|one| one.1), Some(1.0), "{found:?}");
}

#[test]
fn a_defect_of_the_load_itself_ends_it() {
    let mut server = Server::new(|_, _| (0.01, DONE));
    server.prepare = Box::new(|_, number| match number {
        30 => Err("there is no record 30".to_owned()),
        _ => Ok(()),
    });
    let stages = json!([stage(&open(100.0, 4), &json!({}))]);
    let outcome = run(spec(&json!({"stages": stages})), server, &[]);
    assert_eq!(outcome.said.unwrap_err(), "there is no record 30");
}

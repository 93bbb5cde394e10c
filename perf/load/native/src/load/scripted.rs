//! A clock that only moves when nobody has anything left to do, and a server that lives by it: whole
//! loads in no time, to the microsecond.

use std::cell::{Cell, OnceCell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Poll, Waker};

use serde_json::{Value, json};

use crate::load::clock::Clock;
use crate::load::loops::turn;
use crate::load::output::Output;
use crate::load::runner::{self, Surroundings};
use crate::session::Failure;
use crate::spec::{LoadSpec, Operation, RESULT};
use crate::task::{Answer, Model, Parts};

pub const START_S: f64 = 1_700_000_000.0;
/// So many turns in which time stands still are enough for everyone to come to rest.
const RESTING_TURNS: u32 = 64;

#[derive(Default)]
pub struct Script {
    now_s: Cell<f64>,
    sleepers: RefCell<Vec<(f64, Waker)>>,
}

impl Script {
    /// Lets time pass while everyone else is kept waiting, as when a process loses its core.
    pub fn lose(&self, seconds: f64) {
        self.now_s.set(self.now_s.get() + seconds);
    }

    async fn play(self: Rc<Self>) {
        loop {
            for _ in 0..RESTING_TURNS {
                turn().await;
            }
            let mut sleepers = self.sleepers.borrow_mut();
            let next_s = sleepers
                .iter()
                .map(|one| one.0)
                .fold(f64::INFINITY, f64::min);
            assert!(next_s.is_finite(), "nobody will ever do anything again");
            self.now_s.set(next_s.max(self.now_s.get()));
            for (_, waker) in sleepers.extract_if(.., |one| one.0 <= self.now_s.get()) {
                waker.wake();
            }
        }
    }
}

impl Clock for Rc<Script> {
    fn now(&self) -> f64 {
        self.now_s.get()
    }

    async fn sleep_until(&self, time_s: f64) {
        std::future::poll_fn(|context| {
            if self.now() >= time_s {
                return Poll::Ready(());
            }
            let waker = context.waker().clone();
            self.sleepers.borrow_mut().push((time_s, waker));
            Poll::Pending
        })
        .await;
    }
}

/// How an operation ends, and how long after its send.
pub type Ending = (f64, Result<Answer, &'static str>);

/// What happens while an operation is made ready.
type Prepare = dyn Fn(&Rc<Script>, u64) -> Result<(), String>;

/// Model and server at once; `answer` is of an operation's number and send.
pub struct Server {
    pub clock: Rc<Script>,
    pub answer: Box<dyn Fn(u64, f64) -> Ending>,
    pub prepare: Box<Prepare>,
    /// Where the load that is run writes to.
    pub directory: Rc<OnceCell<PathBuf>>,
    /// Lives for as long as anything of the load does.
    life: Rc<()>,
}

impl Server {
    pub fn new(answer: impl Fn(u64, f64) -> Ending + 'static) -> Self {
        let clock = Rc::new(Script::default());
        clock.now_s.set(-1.0);
        Self {
            clock,
            answer: Box::new(answer),
            prepare: Box::new(|_, _| Ok(())),
            directory: Rc::default(),
            life: Rc::default(),
        }
    }
}

impl Model for Server {
    type Prepared = (Operation, u64);
    type Reply = Answer;

    fn rows(&self, _: Operation) -> u64 {
        2
    }

    fn parts(&self) -> Vec<(Operation, &'static str)> {
        vec![(Operation::PutGet, "get")]
    }

    fn prepare(&self, operation: Operation, number: u64) -> Result<Self::Prepared, String> {
        (self.prepare)(&self.clock, number)?;
        Ok((operation, number))
    }

    async fn send(
        &self,
        &(operation, number): &Self::Prepared,
        parts: &dyn Parts,
    ) -> Result<Answer, Failure> {
        let begin_s = self.clock.now();
        let (after_s, ending) = (self.answer)(number, begin_s);
        self.clock.sleep_until(begin_s + after_s).await;
        if operation == Operation::PutGet {
            parts.note(operation, "get", begin_s + after_s / 2.0, parts.now());
        }
        ending.map_err(|kind| Failure {
            kind: kind.to_owned(),
            message: "as planted".to_owned(),
        })
    }

    fn judge(&self, _: &Self::Prepared, reply: &Answer) -> Answer {
        *reply
    }

    fn describe(&self, (operation, number): &Self::Prepared) -> String {
        format!("{operation} {number}")
    }
}

/// What a load left behind.
pub struct Outcome {
    pub said: Result<(), String>,
    /// Whether any of its tasks were left when it had ended.
    pub has_tasks_left: bool,
    pub result: Value,
    pub log: String,
    pub progress: String,
}

impl Outcome {
    /// Gives a counter of all operations or of one; 0 if there is none.
    pub fn count(&self, phase: &str, iteration: u64, operation: &str, name: &str) -> u64 {
        let all = self.result["counters"].as_array().unwrap().iter();
        let chosen = all.filter(|one| {
            one["phase"] == phase
                && one["iteration"] == iteration
                && one["operation"] == operation
                && one["name"] == name
        });
        chosen.map(|one| one["value"].as_u64().unwrap()).sum()
    }

    /// Gives the tag, start, length and highest time in milliseconds of the histograms of a kind.
    pub fn intervals(&self, kind: &str) -> Vec<(String, f64, f64, f64)> {
        let lines = self
            .log
            .lines()
            .filter_map(|line| line.strip_prefix("Tag="));
        let parsed = lines.map(|line| {
            let fields: Vec<_> = line.split(',').collect();
            let number = |place: usize| fields[place].parse::<f64>().unwrap();
            (
                fields[0].to_owned(),
                number(1) - START_S,
                number(2),
                number(3),
            )
        });
        parsed
            .filter(|one| one.0.contains(&format!(":{kind}:")))
            .collect()
    }
}

/// Gives a spec of which `with` says what matters.
pub fn spec(with: &Value) -> Value {
    let mut whole = json!({
        "target": {
            "system": "null", "addresses": [], "port": 1, "replication_factor": 1,
            "consistency": "quorum", "timeout_s": 1.0, "layout": {}, "routers": false, "access": null
        },
        "records": {
            "kind": "sensor", "devices": 5, "payload_bytes": 200, "latest_count": 3, "order": null
        },
        "mix": {"write": 1.0}, "seed": 7, "engine_index": 0, "engine_count": 1,
        "preload": null, "counted": null, "stages": [], "readable_rows": 0, "first_row": 0,
        "value_seed": 0, "run": 0, "batch_rows": 1, "go_within_s": 1.0, "output_dir": "",
        "cores": []
    });
    for (name, value) in with.as_object().unwrap() {
        whole[name] = value.clone();
    }
    whole
}

/// Gives a stage of which `with` says what matters.
pub fn stage(load: &Value, with: &Value) -> Value {
    let mut whole = json!({
        "phase": "steady", "load": load, "warmup_s": 1.0, "warmup_cap_s": 1.0, "iteration_s": 2.0,
        "iterations": [1], "histogram_s": 1
    });
    for (name, value) in with.as_object().unwrap() {
        whole[name] = value.clone();
    }
    whole
}

pub fn open(offered_load_ops_per_s: f64, in_flight: u32) -> Value {
    json!({
        "kind": "open", "offered_load_ops_per_s": offered_load_ops_per_s, "in_flight": in_flight,
        "arrivals": null
    })
}

/// Runs a load; `told` are stages and when their iterations begin, in seconds from its start.
pub fn run(mut spec: Value, server: Server, told: &[(usize, f64)]) -> Outcome {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let directory: PathBuf =
        std::env::temp_dir().join(format!("knickload-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    for (stage, at_s) in told {
        let path = directory.join(format!("measure-{stage}"));
        std::fs::write(path, format!("{:.6}", START_S + at_s)).unwrap();
    }
    server.directory.set(directory.clone()).unwrap();
    spec["output_dir"] = directory.to_str().unwrap().into();
    let spec: LoadSpec = serde_json::from_value(spec).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let life = Rc::downgrade(&server.life);
    let (said, has_tasks_left) = tokio::task::LocalSet::new().block_on(&runtime, async {
        let mut playing = tokio::task::spawn_local(Rc::clone(&server.clock).play());
        let surroundings = Surroundings {
            start_at_s: START_S,
            clock: Rc::clone(&server.clock),
            output: Output::open(&spec.output_dir, START_S).unwrap(),
        };
        // As a task like all others, so that time does not pass before it had its turn.
        let load = async move { runner::run(&spec, server, surroundings).await };
        let load = tokio::task::spawn_local(load);
        let said = tokio::select! {
            said = load => said.unwrap(),
            broken = &mut playing => panic!("{broken:?}"),
        };
        playing.abort();
        for _ in 0..RESTING_TURNS {
            turn().await;
        }
        (said, life.strong_count() > 0)
    });
    let read = |name| std::fs::read_to_string(directory.join(name)).unwrap_or_default();
    let outcome = Outcome {
        said,
        has_tasks_left,
        result: serde_json::from_str(&read(RESULT)).unwrap_or_default(),
        log: read("intervals.hlog"),
        progress: read("progress.csv"),
    };
    std::fs::remove_dir_all(&directory).unwrap();
    outcome
}

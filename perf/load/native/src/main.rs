//! `knickload SPEC.json`: one engine process of Knickpoint, on the Rust drivers.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Parser;
use knickload::engine;
use knickload::spec::LoadSpec;
use mimalloc::MiMalloc;
use rustix::thread::{CpuSet, sched_setaffinity};
use tokio::signal::unix::{SignalKind, signal};

/// An answer of some rows is a buffer of kilobytes for a moment, for which the C library's allocator may
/// first merge small blocks that are free.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const FAILED: i32 = 1;
const NOT_A_SPEC: i32 = 2;
const INTERRUPTED: i32 = 130;
const TERMINATED: i32 = 143;

/// Offers one engine's share of a load to a database, and records how long each operation took.
///
/// Knickpoint starts it, one process per core of a client host. SPEC.json says everything: which
/// system, where and how to connect, which operations, which stages with which loads, and the directory
/// for the results. The engine connects, writes `ready` there and waits for the file `go`, which holds
/// the Unix time at which all engines of the load begin. It appends to `intervals.hlog` (`HdrHistogram`,
/// each second) and `progress.csv` as it measures, and writes `result.json` last: no result means that
/// the load failed.
#[derive(Parser)]
#[command(
    version,
    after_help = "\
Exit codes:
  0    measured
  1    failed; the last line on standard error says why
  2    SPEC.json is not a spec; standard error says what is wrong with it
  130  ended by SIGINT, 143 by SIGTERM; what was measured until about a second before is in the log

Knickpoint writes the spec of each engine that it starts (`knickpoint measure`, `knickpoint nightly`);
nobody need write one by hand. While a trial runs, they lie in its run directory, as spec.json.
What each file means: docs/engine.md of Knickpoint."
)]
struct Arguments {
    /// What to do, as JSON; the fields are those of `LoadSpec` in perf/load/spec.py
    #[arg(value_name = "SPEC.json")]
    spec: PathBuf,
}

fn main() {
    // A defect ends the process: a task that has broken down must not look like a slow server.
    std::panic::set_hook(Box::new(|panic| {
        let said = panic.to_string().replace('\n', " ");
        end(FAILED, &format!("the engine broke down: {said}"))
    }));
    let spec = match read_spec(&Arguments::parse().spec) {
        Ok(spec) => spec,
        Err(why) => end(NOT_A_SPEC, &why),
    };
    if let Err(why) = pin(&spec.cores).and_then(|()| run(spec)) {
        end(FAILED, &why);
    }
}

fn read_spec(path: &Path) -> Result<LoadSpec, String> {
    let said = path.display();
    let text = std::fs::read_to_string(path).map_err(|why| format!("cannot read {said}: {why}"))?;
    serde_json::from_str(&text).map_err(|why| {
        let line = text.lines().nth(why.line().max(1) - 1).unwrap_or("").trim();
        let says_something = line.contains(char::is_alphanumeric);
        let line = if says_something {
            format!("\nthe line is: {line}")
        } else {
            String::new()
        };
        format!("{said} is not a spec of this engine: {why}{line}")
    })
}

fn pin(cores: &[usize]) -> Result<(), String> {
    if cores.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for core in cores {
        if *core >= CpuSet::MAX_CPU {
            return Err(format!("cannot run on core {core}: there are none so high"));
        }
        set.set(*core);
    }
    sched_setaffinity(None, &set).map_err(|why| format!("cannot run on cores {cores:?}: {why}"))
}

fn run(spec: LoadSpec) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| format!("cannot start: {why}"))?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        for (kind, code) in [
            (SignalKind::terminate(), TERMINATED),
            (SignalKind::interrupt(), INTERRUPTED),
        ] {
            let mut signals = signal(kind).map_err(|why| format!("cannot start: {why}"))?;
            tokio::task::spawn_local(async move {
                signals.recv().await;
                // The log is on its way to the disk each second; nothing else is worth a delay.
                std::process::exit(code);
            });
        }
        let load = tokio::task::spawn_local(async move { engine::measure(&spec).await });
        load.await
            .unwrap_or_else(|why| Err(format!("the engine broke down: {why}")))
    })
}

fn end(code: i32, why: &str) -> ! {
    let _ = writeln!(std::io::stderr(), "{why}");
    std::process::exit(code)
}

//! `knicknull CONFIG.json`: a null server that speaks CQL or MongoDB's wire protocol.
//!
//! It answers at planted times, as `perf/systems/null/server.py` does, and stores nothing. SIGTERM ends it; if
//! it was told to keep a record, that is on disk then.

mod behaviour;
mod cql;
mod moment;
mod mongo;
mod newest;
mod record;
mod server;
mod wire;

use std::net::IpAddr;
use std::num::NonZeroU64;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use std::{env, fs, io, thread};

use serde::Deserialize;
use tokio::signal::unix::{SignalKind, signal};

use crate::behaviour::Behaviour;
use crate::newest::Newest;
use crate::record::Record;
use crate::server::Server;
use crate::wire::Wire;

const TIMER_SLACK_NS: Option<NonZeroU64> = NonZeroU64::new(1);

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Protocol {
    Cql,
    Mongo,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    wire: Protocol,
    address: IpAddr,
    port: u16,
    record: PathBuf,
    settings: Behaviour,
}

fn main() -> ExitCode {
    let Some(path) = env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: knicknull CONFIG.json");
        return ExitCode::from(2);
    };
    let config = fs::read(&path).and_then(|text| Ok(serde_json::from_slice::<Config>(&text)?));
    let config = match config {
        Ok(config) => config,
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            return ExitCode::from(2);
        }
    };
    match run(&config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}:{}: {error}", config.address, config.port);
            ExitCode::FAILURE
        }
    }
}

fn run(config: &Config) -> io::Result<()> {
    let newest = config.settings.holds.map(Newest::new).transpose()?;
    let clock = Instant::now();
    let unix_s = SystemTime::now().duration_since(UNIX_EPOCH);
    let unix_minus_clock_s = unix_s.map_err(io::Error::other)?.as_secs_f64();
    let record = match config.wire {
        Protocol::Cql => serve(cql::Cql::new(config.address, newest), config, clock),
        Protocol::Mongo => serve(mongo::Mongo::new(newest), config, clock),
    }?;
    match record {
        Some(record) => record.write(&config.record, unix_minus_clock_s),
        None => Ok(()),
    }
}

fn serve<W: Wire>(wire: W, config: &Config, clock: Instant) -> io::Result<Option<Record>> {
    let end = await_signals()?;
    // Linux lets a timer fire 50 µs late by default, to save power.
    rustix::thread::set_current_timer_slack(TIMER_SLACK_NS)?;
    let address = config.address.to_string();
    let told = config.settings.clone();
    let server = Server::new(wire, (&address, config.port), told, clock)?;
    eprintln!("serving on {address}:{}", config.port);
    server.serve(&end)
}

/// Gives a socket that reads as closed after SIGTERM or SIGINT; a thread that only sleeps sees to it.
fn await_signals() -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let (mut term, mut interrupt) = {
        let _inside = runtime.enter();
        (
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
        )
    };
    thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = term.recv() => {}
                _ = interrupt.recv() => {}
            }
        });
        drop(theirs);
    });
    Ok(ours)
}

//! Knickpoint's native load engine: what `perf/load/engine/process.py` does, on the Rust drivers.
//!
//! The contract is `perf/load/spec.py`: one JSON file in, an interval log, progress and a result out.

pub mod access;
pub mod cql;
pub mod engine;
pub mod load;
pub mod mongo;
pub mod session;
pub mod spec;
pub mod task;
pub mod tasks;
pub mod values;

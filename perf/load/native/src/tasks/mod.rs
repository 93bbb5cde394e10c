//! One module per data model: what each of its operations is, on the client; `perf/load/engine/tasks`.

pub mod choices;
pub mod devops;
#[cfg(test)]
mod pretend;
pub mod put_get;
pub mod sensor;
pub mod statements;
#[cfg(test)]
mod tests;
pub mod ycsb;

use crate::spec::Operation;

/// Says that a workload asks for an operation that its records do not have.
fn unknown(kind: &str, operation: Operation) -> String {
    format!("records of kind {kind} know no operation {operation}")
}

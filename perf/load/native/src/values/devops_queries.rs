//! The queries of the devops workload, and the answers that a system must give.
//!
//! The same as `perf/workloads/devops/queries.py`, which says where they come from.

use super::devops::to_ms;
use super::devops_tables::DATA;
use super::devops_walks::moments;
use super::splitmix::{stream, word};
use crate::session::{Aggregate, Group, Query};
use crate::spec::{Devops, Operation};
use crate::task::Answer;

/// How far a mean may be off: systems add and divide in orders of their own. A maximum must be exact.
pub const RELATIVE_TOLERANCE: f64 = 1e-9;

/// The types of queries, in their order.
pub const QUERIES: [Operation; 7] = [
    Operation::SingleGroupby1x1x1,
    Operation::SingleGroupby1x1x12,
    Operation::SingleGroupby5x1x12,
    Operation::SingleGroupby5x8x1,
    Operation::DoubleGroupby1,
    Operation::DoubleGroupby5,
    Operation::DoubleGroupbyAll,
];

const MINUTE_MS: i64 = 60_000;
pub(super) const HOUR_MS: i64 = 3_600_000;
const WINDOW_STREAM: u64 = 32;
const HOSTS_STREAM: u64 = 64;

/// What queries are about; those with fewer metrics take the first.
#[must_use]
pub fn metrics() -> &'static [&'static str] {
    &DATA.tables[0].fields
}

/// Metrics, hosts (0 for all, each by itself) and hours of a type; none if it is no query.
fn shape(operation: Operation) -> Option<(usize, u64, i64)> {
    match operation {
        Operation::SingleGroupby1x1x1 => Some((1, 1, 1)),
        Operation::SingleGroupby1x1x12 => Some((1, 1, 12)),
        Operation::SingleGroupby5x1x12 => Some((5, 1, 12)),
        Operation::SingleGroupby5x8x1 => Some((5, 8, 1)),
        Operation::DoubleGroupby1 => Some((1, 0, 12)),
        Operation::DoubleGroupby5 => Some((5, 0, 12)),
        Operation::DoubleGroupbyAll => Some((metrics().len(), 0, 12)),
        _ => None,
    }
}

/// Makes query number `number` of a type; after `records.queries` they begin anew.
///
/// None if the operation is no query.
#[must_use]
#[allow(clippy::cast_sign_loss, clippy::cast_possible_wrap)] // of lengths of time
pub fn make_query(records: &Devops, seed: u64, operation: Operation, number: u64) -> Option<Query> {
    let (metrics_asked, hosts, hours) = shape(operation)?;
    let place = QUERIES.iter().position(|&one| one == operation)? as u64;
    let number = number % records.queries;
    let span_ms = to_ms(moments(records) * records.interval_s);
    let window_ms = span_ms.min(hours * HOUR_MS);
    let begins = (span_ms + 1000 - window_ms) as u64;
    let drawn = word(stream(seed, WINDOW_STREAM + place), number) % begins;
    let from_ms = to_ms(records.begin_s) + drawn as i64;
    let is_single = hosts > 0;
    Some(Query {
        operation,
        metrics: metrics()[..metrics_asked].to_vec(),
        hosts: choose_hosts(records, stream(seed, HOSTS_STREAM + place), number, hosts),
        from_ms,
        until_ms: from_ms + window_ms,
        bucket_ms: if is_single { MINUTE_MS } else { HOUR_MS },
        aggregate: if is_single {
            Aggregate::Max
        } else {
            Aggregate::Mean
        },
    })
}

fn choose_hosts(records: &Devops, source: u64, number: u64, wanted: u64) -> Vec<String> {
    let mut chosen: Vec<u64> = Vec::new();
    let mut place = number << 16; // words of one query; many more than it can need
    while (chosen.len() as u64) < wanted.min(records.hosts) {
        let host = word(source, place) % records.hosts;
        if !chosen.contains(&host) {
            chosen.push(host);
        }
        place += 1;
    }
    chosen.iter().map(|host| format!("host_{host}")).collect()
}

/// Judges an answer to a query.
///
/// `NotFound`: each group that came is right and in order, but some that must be there are not. What
/// else differs is `WrongData`: a value, a host, a bucket, an order, a group twice. A value that is
/// missing is no number, and the same as none.
#[must_use]
pub fn check_answer(query: &Query, expected: &[Group], answer: &[Group]) -> Answer {
    let is_same = match query.aggregate {
        Aggregate::Max => is_equal,
        Aggregate::Mean => is_close,
    };
    let mut rest = expected.iter();
    for group in answer {
        let known = rest.find(|known| (known.ts_ms, &known.host) == (group.ts_ms, &group.host));
        let is_right = known.is_some_and(|known| {
            known.values.len() == group.values.len()
                && (known.values.iter().zip(&group.values)).all(|(&a, &b)| is_same(a, b))
        });
        if !is_right {
            return Answer::WrongData;
        }
    }
    if answer.len() == expected.len() {
        Answer::Completed
    } else {
        Answer::NotFound
    }
}

#[allow(clippy::float_cmp)] // a maximum is one of the values that were stored
fn is_equal(known: f64, found: f64) -> bool {
    known == found
}

fn is_close(known: f64, found: f64) -> bool {
    if is_equal(known, found) {
        return true;
    }
    let difference = (known - found).abs();
    found.is_finite() && difference <= RELATIVE_TOLERANCE * known.abs().max(found.abs())
}

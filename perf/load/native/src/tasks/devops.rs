//! The operations of the devops workload: load one batch of rows, ask one query.
//!
//! The same as `perf/load/engine/tasks/devops.py`.

use std::cell::RefCell;

use crate::session::{DevopsSession, Failure, Group, Query, Row};
use crate::spec::{Devops, LoadSpec, Operation};
use crate::task::{Answer, Model, Parts};
use crate::values::devops::Batches;
use crate::values::devops_history::CpuHistory;
use crate::values::devops_queries::{QUERIES, check_answer, make_query};

/// What is sent: a batch, or a query and the answer that must come.
pub enum Prepared {
    Batch(Vec<Row>),
    Asked { query: Query, expected: Vec<Group> },
}

/// What comes back: the acknowledgement of a batch, or an answer.
#[derive(Debug)]
pub enum Reply {
    Stored,
    Found(Vec<Group>),
}

/// All operations of a mix on the rows of one data set.
pub struct DevopsModel<S> {
    session: S,
    records: Devops,
    seed: u64,
    batch_rows: u64,
    batches: RefCell<Batches>,
    /// Where anything is asked; computed beforehand, since that may take long.
    history: Option<CpuHistory>,
}

impl<S: DevopsSession> DevopsModel<S> {
    /// Foresees the answers to all queries, if the mix has any.
    ///
    /// # Errors
    /// The mix has an operation that this data model does not know, or that the system cannot be asked.
    pub fn new(spec: &LoadSpec, records: &Devops, session: S) -> Result<Self, String> {
        let mut asks = false;
        for &(operation, _) in &spec.mix {
            if QUERIES.contains(&operation) {
                asks = true;
                if !session.can_ask(operation) {
                    return Err(format!(
                        "{} cannot be asked {operation}; leave it out of the workload",
                        spec.target.system
                    ));
                }
            } else if operation != Operation::Load {
                return Err(unknown(operation));
            }
        }
        Ok(Self {
            session,
            records: records.clone(),
            seed: spec.seed,
            batch_rows: spec.batch_rows,
            batches: RefCell::new(Batches::new(records, spec.seed, spec.batch_rows)),
            history: asks.then(|| CpuHistory::new(records, spec.seed)),
        })
    }
}

fn unknown(operation: Operation) -> String {
    format!("records of kind devops know no operation {operation}")
}

impl<S: DevopsSession> Model for DevopsModel<S> {
    type Prepared = Prepared;
    type Reply = Reply;

    /// Counts those of a full batch; the last one of a data set may be smaller: rows per second are too
    /// high by less than one batch.
    fn rows(&self, operation: Operation) -> u64 {
        if operation == Operation::Load {
            self.batch_rows
        } else {
            1
        }
    }

    fn prepare(&self, operation: Operation, number: u64) -> Result<Prepared, String> {
        if operation == Operation::Load {
            let batch = self.batches.borrow_mut().batch(number);
            if batch.is_empty() {
                // An empty one would count as a full one.
                return Err(format!(
                    "there is no batch {number} to load; the workload asks for too many"
                ));
            }
            return Ok(Prepared::Batch(batch));
        }
        let query = make_query(&self.records, self.seed, operation, number);
        let (Some(query), Some(history)) = (query, &self.history) else {
            return Err(unknown(operation));
        };
        let expected = history.answer(&query);
        Ok(Prepared::Asked { query, expected })
    }

    async fn send(&self, prepared: &Prepared, _parts: &dyn Parts) -> Result<Reply, Failure> {
        match prepared {
            Prepared::Batch(rows) => {
                self.session.write(rows).await?;
                Ok(Reply::Stored)
            }
            Prepared::Asked { query, .. } => Ok(Reply::Found(self.session.ask(query).await?)),
        }
    }

    /// Trusts the acknowledgement of a batch: what is stored is verified by counting, and by every query,
    /// of which each group is compared.
    fn judge(&self, prepared: &Prepared, reply: &Reply) -> Answer {
        match (prepared, reply) {
            (Prepared::Asked { query, expected }, Reply::Found(found)) => {
                check_answer(query, expected, found)
            }
            _ => Answer::Completed,
        }
    }

    fn describe(&self, prepared: &Prepared) -> String {
        match prepared {
            Prepared::Batch(rows) => rows.first().map_or_else(String::new, |first| {
                format!(
                    "load of {} rows from {} of {} at {} on",
                    rows.len(),
                    first.table,
                    first.tags[0],
                    first.ts_ms
                )
            }),
            Prepared::Asked { query, .. } => {
                let over = if query.hosts.is_empty() {
                    String::new()
                } else {
                    format!(" over {}", query.hosts.join(", "))
                };
                let (operation, from, until) = (query.operation, query.from_ms, query.until_ms);
                format!("{operation}{over} from {from} until {until}")
            }
        }
    }
}

//! What one operation is: made ready beforehand, sent, and its answer judged, in three steps.
//!
//! Only the step in the middle is timed, as in `perf/load/engine/tasks/task.py`.

use crate::session::Failure;
use crate::spec::Operation;

/// The outcome of an operation; each answered operation counts as exactly one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    Completed,
    NotFound,
    WrongData,
}

impl Answer {
    /// Gives the counter's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::NotFound => "not_found",
            Self::WrongData => "wrong_data",
        }
    }
}

/// Where a task notes how long a part of its operation took, by the clock of the load.
pub trait Parts {
    /// Gives the time, in seconds from the start of the first stage.
    fn now(&self) -> f64;

    /// Notes a part of an operation that has ended well, as `<operation>.<part>`.
    fn note(&self, operation: Operation, part: &'static str, begin_s: f64, end_s: f64);
}

/// All operations of a load's mix, on one data model and one session; used by one thread.
#[allow(async_fn_in_trait)] // one thread: nobody asks whether a future may move to another
pub trait Model {
    type Prepared;
    type Reply: std::fmt::Debug;

    /// How many rows a completed operation writes or reads.
    fn rows(&self, operation: Operation) -> u64;

    /// Names the parts that operations of the mix have: (operation, part).
    fn parts(&self) -> Vec<(Operation, &'static str)> {
        Vec::new()
    }

    /// Makes operation `number` ready; a pure function of the seed and the number.
    ///
    /// # Errors
    /// What is wrong with the load itself, which then fails.
    fn prepare(&self, operation: Operation, number: u64) -> Result<Self::Prepared, String>;

    /// Sends it and gives the answer.
    ///
    /// # Errors
    /// What the driver says.
    async fn send(
        &self,
        prepared: &Self::Prepared,
        parts: &dyn Parts,
    ) -> Result<Self::Reply, Failure>;

    /// Verifies the answer, and remembers what an acknowledgement promises.
    fn judge(&self, prepared: &Self::Prepared, reply: &Self::Reply) -> Answer;

    /// Names the operation in a message.
    fn describe(&self, prepared: &Self::Prepared) -> String;
}

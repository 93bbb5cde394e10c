//! What an engine offers: which operation of the mix a number is, and all that the loops share.

use std::cell::{Cell, RefCell};

use crate::load::clock::Clock;
use crate::load::recorder::Recorder;
use crate::load::timeline::Kind;
use crate::session::Failure;
use crate::spec::{LoadSpec, Operation};
use crate::task::{Answer, Model, Parts};
use crate::values::splitmix::{stream, unit};

const MIX_STREAM: u64 = 3;
/// Of an answer that is not as it should be, in a message.
const FOUND_CHARS: usize = 200;

/// Which operation an operation number is: a function of the seed and the number alone, so that engines
/// in any number offer the same sequence between them.
struct Mix {
    operations: Vec<Operation>,
    edges: Vec<f64>,
    choices: u64,
}

impl Mix {
    fn new(weights: &[(Operation, f64)], seed: u64) -> Self {
        let mut upper = 0.0;
        let edges = weights.iter().map(|(_, weight)| {
            upper += weight;
            upper
        });
        Self {
            edges: edges.collect(),
            operations: weights.iter().map(|(operation, _)| *operation).collect(),
            choices: stream(seed, MIX_STREAM),
        }
    }

    /// Gives the place of the operation in the mix.
    fn choose(&self, number: u64) -> usize {
        let last = self.edges.len() - 1;
        if last == 0 {
            return 0;
        }
        let chosen = unit(self.choices, number) * self.edges[last];
        self.edges.partition_point(|edge| *edge <= chosen).min(last)
    }
}

/// The operation numbers of one engine that are not taken yet; they go on from stage to stage.
struct Numbers {
    next: Cell<u64>,
    step: u64,
    end: u64,
}

impl Numbers {
    fn take(&self) -> Option<u64> {
        let number = self.next.get();
        self.next.set(number.saturating_add(self.step));
        (number < self.end).then_some(number)
    }
}

/// All that the loops of a load share; one thread, so plain cells.
pub struct OperationStreams<M: Model, C: Clock> {
    pub model: M,
    pub clock: C,
    pub recorder: RefCell<Recorder>,
    mix: Mix,
    numbers: Numbers,
    parts: Vec<(Operation, &'static str, usize)>,
    active: Cell<usize>,
    defect: RefCell<Option<String>>,
}

/// An operation that is made ready: the stream that it is of, and what the model made.
pub struct Prepared<P> {
    pub stream: usize,
    pub what: P,
}

impl<M: Model, C: Clock> OperationStreams<M, C> {
    /// Makes a stream for each operation of `weights`; its numbers end before `end`.
    pub fn new(
        spec: &LoadSpec,
        weights: &[(Operation, f64)],
        end: u64,
        (model, clock): (M, C),
        start_at_s: f64,
    ) -> Self {
        let mut kinds: Vec<_> = weights
            .iter()
            .map(|(operation, weight)| Kind {
                operation: operation.to_string(),
                rows: model.rows(*operation),
                weight: *weight,
                is_part: false,
            })
            .collect();
        let mut parts = Vec::new();
        for (operation, part) in model.parts() {
            parts.push((operation, part, kinds.len()));
            kinds.push(Kind {
                operation: format!("{operation}.{part}"),
                rows: 1,
                weight: 1.0,
                is_part: true,
            });
        }
        Self {
            recorder: RefCell::new(Recorder::new(kinds, start_at_s)),
            mix: Mix::new(weights, spec.seed),
            numbers: Numbers {
                next: Cell::new(spec.engine_index),
                step: spec.engine_count,
                end,
            },
            parts,
            active: Cell::new(0),
            defect: RefCell::new(None),
            model,
            clock,
        }
    }

    /// Makes the next operation ready; none if there is none, or it cannot be made, which fails the load.
    pub fn prepare_next(&self) -> Option<Prepared<M::Prepared>> {
        let number = self.numbers.take()?;
        let stream = self.mix.choose(number);
        match self.model.prepare(self.mix.operations[stream], number) {
            Ok(what) => Some(Prepared { stream, what }),
            Err(why) => {
                self.fail(why);
                None
            }
        }
    }

    /// Notes how an operation ended, by its intended start, send and end.
    ///
    /// # Errors
    /// It failed, or its answer is not what it should be; gives the message if that is asked for.
    pub fn note(
        &self,
        prepared: &Prepared<M::Prepared>,
        times_s: [f64; 3],
        reply: &Result<M::Reply, Failure>,
    ) -> Result<(), impl FnOnce() -> String> {
        let kind = match reply {
            Ok(answer) => match self.model.judge(&prepared.what, answer) {
                Answer::Completed => {
                    self.recorder
                        .borrow_mut()
                        .note_completed(prepared.stream, times_s);
                    return Ok(());
                }
                outcome => outcome.name(),
            },
            Err(failure) => &failure.kind,
        };
        let message = move || {
            let what = self.model.describe(&prepared.what);
            match reply {
                Ok(answer) => {
                    let found: String = format!("{answer:?}").chars().take(FOUND_CHARS).collect();
                    format!("{what}: {found}")
                }
                Err(failure) => format!("{what}: {}", failure.message),
            }
        };
        self.recorder
            .borrow_mut()
            .note_failed(prepared.stream, times_s, kind, message);
        Err(message)
    }

    /// Remembers the first thing that is wrong with the load itself.
    pub fn fail(&self, why: String) {
        self.defect.borrow_mut().get_or_insert(why);
    }

    /// Gives what is wrong with the load itself, if anything is.
    ///
    /// # Errors
    /// The first such thing.
    pub fn check(&self) -> Result<(), String> {
        self.defect.borrow().clone().map_or(Ok(()), Err)
    }

    /// Says that something is under way until what this gives is dropped.
    pub fn enter(self: &std::rc::Rc<Self>) -> Entered<M, C> {
        self.active.set(self.active.get() + 1);
        Entered(std::rc::Rc::clone(self))
    }

    /// Says whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.active.get() == 0
    }
}

impl<M: Model, C: Clock> Parts for OperationStreams<M, C> {
    fn now(&self) -> f64 {
        self.clock.now()
    }

    fn note(&self, operation: Operation, part: &'static str, begin_s: f64, end_s: f64) {
        let known = self
            .parts
            .iter()
            .find(|one| one.0 == operation && one.1 == part);
        if let Some((_, _, stream)) = known {
            let times_s = [begin_s, begin_s, end_s];
            self.recorder.borrow_mut().note_completed(*stream, times_s);
        }
    }
}

/// Something under way: a sender, or an operation.
pub struct Entered<M: Model, C: Clock>(std::rc::Rc<OperationStreams<M, C>>);

impl<M: Model, C: Clock> Drop for Entered<M, C> {
    fn drop(&mut self) {
        self.0.active.set(self.0.active.get() - 1);
    }
}

//! The hot loops: what `perf/load/engine/loops.py` and `perf/load/engine/callbacks.py` do, as futures of one thread.
//!
//! An operation in flight occupies one of the engine's slots, and the moment at which a slot was free
//! again is known exactly.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use tokio::sync::Notify;
use tokio::task::spawn_local;

use crate::load::clock::Clock;
use crate::load::schedule::Schedule;
use crate::load::streams::{Entered, OperationStreams, Prepared};
use crate::task::Model;

pub const PRELOAD_ATTEMPTS: u32 = 6;
const FIRST_PAUSE_S: f64 = 0.1;
/// The longest sleep: how soon an idle loop notices that its stage ends earlier than it could have.
const NAP_S: f64 = 0.25;
/// The least time between two wake-ups for sends of an open loop.
const SLICE_S: f64 = 0.9e-3;
/// Of the slots, to be taken at once because of that.
const SLICE_SLOTS: f64 = 1.0 / 12.0;
/// With fewer at once, each send has its own wake-up.
const SLICE_SENDS: f64 = 2.0;
/// After so many operations in a row a slot lets others have a turn, even if each was answered at once.
const TURN_AFTER: u32 = 16;

/// From when to when a stage starts operations. Its end may come nearer, never move away.
pub struct Span {
    pub begin_s: f64,
    pub end_s: Cell<f64>,
}

impl Span {
    #[must_use]
    pub fn new(begin_s: f64, end_s: f64) -> Rc<Self> {
        let end_s = Cell::new(end_s);
        Rc::new(Self { begin_s, end_s })
    }
}

/// Gives how long after a wake-up for sends the next one is, at the least; 0 if each send has its own.
///
/// A wake-up costs more than a send. What becomes due between two is sent at the second, never early.
#[allow(clippy::cast_precision_loss)] // a number of slots
#[must_use]
pub fn slice_s(load_ops_per_s: f64, in_flight: usize) -> f64 {
    let sends = (SLICE_S * load_ops_per_s).min(in_flight as f64 * SLICE_SLOTS);
    if sends < SLICE_SENDS {
        return 0.0;
    }
    sends / load_ops_per_s
}

/// How far a sender was behind its schedule, by its own doing, when it last had a free slot.
#[derive(Default)]
pub struct Lag(Cell<f64>);

impl Lag {
    /// Gives the moment from which the lateness of a send counts.
    ///
    /// That is the intended start, or the moment when a slot was free, if that is later. But a client
    /// that paused catches up in a burst, which takes all slots: what then waits for one waits for the
    /// client, not for the system. Had the client not been late, each slot would have been taken, and so
    /// been free again, earlier by its lag.
    pub fn find_ready(&self, intended_s: f64, freed_s: f64, sent_s: f64) -> f64 {
        if freed_s <= intended_s {
            self.0.set(sent_s - intended_s);
            return intended_s;
        }
        intended_s.max(freed_s - self.0.get())
    }
}

/// Lets everything else that is ready go first.
pub async fn turn() {
    let mut has_waited = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// What a sender waits for: a time, which the end of any operation also looks at, or a free slot.
///
/// A busy runtime asks the kernel for timers only now and then; the operations that keep it busy end
/// all the time.
struct Alarm {
    /// From when on the end of an operation wakes the sender; infinite if it does not wait.
    due_s: Cell<f64>,
    sender: RefCell<Option<Waker>>,
}

impl Alarm {
    fn ring(&self, now_s: f64) {
        if now_s >= self.due_s.get() {
            self.due_s.set(f64::INFINITY);
            if let Some(sender) = self.sender.borrow_mut().take() {
                sender.wake();
            }
        }
    }

    /// Waits until an operation ends at `due_s` or later, but not beyond `until_s`.
    async fn wait<C: Clock>(&self, clock: &C, due_s: f64, until_s: f64) {
        self.due_s.set(due_s);
        let mut sleep = pin!(clock.sleep_until(until_s));
        poll_fn(|context| {
            if self.due_s.get() == f64::INFINITY {
                return Poll::Ready(());
            }
            *self.sender.borrow_mut() = Some(context.waker().clone());
            sleep.as_mut().poll(context)
        })
        .await;
        self.due_s.set(f64::INFINITY);
    }
}

/// An operation that has a slot.
struct Job<M: Model, C: Clock> {
    prepared: Prepared<M::Prepared>,
    intended_s: f64,
    freed_s: f64,
    /// Until it has ended.
    _entered: Entered<M, C>,
}

/// An open loop of one stage.
pub struct Open<M: Model, C: Clock> {
    streams: Rc<OperationStreams<M, C>>,
    span: Rc<Span>,
    /// How long after the stage its overdue operations are still sent.
    drain_s: f64,
    lag: Lag,
    /// When each free slot became free, oldest first.
    slots: RefCell<VecDeque<f64>>,
    /// What has a slot and no worker yet.
    jobs: RefCell<VecDeque<Job<M, C>>>,
    /// How many workers wait for a job.
    idle: Cell<usize>,
    called: Notify,
    is_over: Cell<bool>,
    alarm: Alarm,
    /// See [`slice_s`].
    slice_s: f64,
    /// When the sender last slept until a start.
    woken_s: Cell<f64>,
}

impl<M: Model + 'static, C: Clock + 'static> Open<M, C> {
    /// Frees all slots.
    pub fn new(
        streams: &Rc<OperationStreams<M, C>>,
        span: &Rc<Span>,
        (in_flight, slice_s): (usize, f64),
        drain_s: f64,
    ) -> Rc<Self> {
        Rc::new(Self {
            streams: Rc::clone(streams),
            span: Rc::clone(span),
            drain_s,
            lag: Lag::default(),
            slots: RefCell::new(std::iter::repeat_n(f64::NEG_INFINITY, in_flight).collect()),
            jobs: RefCell::default(),
            idle: Cell::new(0),
            called: Notify::new(),
            is_over: Cell::new(false),
            alarm: Alarm {
                due_s: Cell::new(f64::INFINITY),
                sender: RefCell::default(),
            },
            slice_s,
            woken_s: Cell::new(f64::NEG_INFINITY),
        })
    }

    /// Sends operations at their intended starts, or as soon after as the slice ends and a slot is free.
    ///
    /// What is overdue at the end of the span is still sent within the drain; what is left then counts
    /// as never answered, which the recorder knows from the schedule.
    pub async fn run(self: Rc<Self>, starts: Schedule) {
        let _sending = self.streams.enter();
        self.send_all(starts).await;
        self.is_over.set(true);
        self.called.notify_waiters();
    }

    async fn send_all(self: &Rc<Self>, starts: Schedule) {
        for start_s in starts {
            let intended_s = self.span.begin_s + start_s;
            let Some(prepared) = self.streams.prepare_next() else {
                return;
            };
            self.await_start(intended_s).await;
            if intended_s >= self.span.end_s.get() {
                return;
            }
            let Some(freed_s) = self.take_slot().await else {
                return;
            };
            self.give(Job {
                prepared,
                intended_s,
                freed_s,
                _entered: self.streams.enter(),
            });
            // It is sent before the next is made ready.
            turn().await;
        }
    }

    /// Has a job done by the worker that has waited for the shortest time, or by a new one.
    ///
    /// A task for each operation would be allocated and moved each time, and with it the kilobytes that
    /// a driver keeps of a request.
    fn give(self: &Rc<Self>, job: Job<M, C>) {
        self.jobs.borrow_mut().push_back(job);
        if self.idle.get() < self.jobs.borrow().len() {
            spawn_local(Rc::clone(self).work());
        } else {
            self.called.notify_last();
        }
    }

    /// Performs one operation after the other until the stage is over.
    async fn work(self: Rc<Self>) {
        loop {
            let job = self.jobs.borrow_mut().pop_front();
            if let Some(job) = job {
                self.perform(&job).await;
            } else if self.is_over.get() {
                return;
            } else {
                self.idle.set(self.idle.get() + 1);
                self.called.notified().await;
                self.idle.set(self.idle.get() - 1);
            }
        }
    }

    async fn perform(&self, job: &Job<M, C>) {
        let (streams, prepared) = (&self.streams, &job.prepared);
        let (intended_s, freed_s) = (job.intended_s, job.freed_s);
        let sent_s = streams.clock.now();
        let ready_s = self.lag.find_ready(intended_s, freed_s, sent_s);
        streams
            .recorder
            .borrow_mut()
            .note_sent(prepared.stream, [intended_s, ready_s, sent_s]);
        let reply = streams.model.send(&prepared.what, &**streams).await;
        let ended_s = streams.clock.now();
        let _ = streams.note(prepared, [intended_s, sent_s, ended_s], &reply);
        self.slots.borrow_mut().push_back(ended_s);
        self.alarm.ring(ended_s);
    }

    /// Sleeps until an intended start and the end of the slice, or until the span ends before the start.
    async fn await_start(&self, intended_s: f64) {
        let mut now_s = self.streams.clock.now();
        while now_s < intended_s && intended_s < self.span.end_s.get() {
            let due_s = intended_s.max(self.woken_s.get() + self.slice_s);
            let until_s = due_s.min(now_s + NAP_S);
            self.alarm.wait(&self.streams.clock, until_s, until_s).await;
            now_s = self.streams.clock.now();
            self.woken_s.set(now_s);
        }
    }

    async fn take_slot(&self) -> Option<f64> {
        loop {
            let now_s = self.streams.clock.now();
            let last_s = self.span.end_s.get() + self.drain_s;
            if now_s >= last_s {
                return None;
            }
            let slot = self.slots.borrow_mut().pop_front();
            if slot.is_some() {
                return slot;
            }
            let until_s = last_s.min(now_s + NAP_S);
            self.alarm
                .wait(&self.streams.clock, f64::NEG_INFINITY, until_s)
                .await;
        }
    }
}

/// Fills the slots of a closed loop when its span begins; the end of each operation sends the next,
/// each intended when it is sent.
pub fn start_closed<M: Model + 'static, C: Clock + 'static>(
    streams: &Rc<OperationStreams<M, C>>,
    span: &Rc<Span>,
    in_flight: usize,
) {
    start_all(streams, span, in_flight, async |streams, span| {
        send_in_turn(streams, span).await;
    });
}

/// Fills the slots of a load whose every operation is to succeed, each in a bounded number of attempts
/// with growing pauses. One that does not fails the load.
pub fn start_to_completion<M: Model + 'static, C: Clock + 'static>(
    streams: &Rc<OperationStreams<M, C>>,
    span: &Rc<Span>,
    in_flight: usize,
) {
    start_all(streams, span, in_flight, async |streams, _| {
        while let Some(prepared) = streams.prepare_next() {
            if let Err(why) = complete(streams, &prepared).await {
                streams.fail(why);
                return;
            }
        }
    });
}

fn start_all<M: Model + 'static, C: Clock + 'static>(
    streams: &Rc<OperationStreams<M, C>>,
    span: &Rc<Span>,
    in_flight: usize,
    body: impl AsyncFn(&Rc<OperationStreams<M, C>>, &Span) + Clone + 'static,
) {
    let entered = streams.enter();
    let (streams, span) = (Rc::clone(streams), Rc::clone(span));
    spawn_local(async move {
        streams.clock.sleep_until(span.begin_s).await;
        for _ in 0..in_flight {
            let entered = streams.enter();
            let (streams, span, body) = (Rc::clone(&streams), Rc::clone(&span), body.clone());
            spawn_local(async move {
                body(&streams, &span).await;
                drop(entered);
            });
        }
        drop(entered);
    });
}

async fn send_in_turn<M: Model, C: Clock>(streams: &Rc<OperationStreams<M, C>>, span: &Span) {
    let mut in_a_row = 0;
    while let Some(prepared) = streams.prepare_next() {
        let sent_s = streams.clock.now();
        if sent_s >= span.end_s.get() {
            return;
        }
        let has_failed = perform(streams, &prepared, sent_s).await.is_err();
        in_a_row += 1;
        // Of a server that is gone, all slots hear at once, and again at once.
        if has_failed || in_a_row % TURN_AFTER == 0 {
            turn().await;
        }
    }
}

async fn complete<M: Model, C: Clock>(
    streams: &Rc<OperationStreams<M, C>>,
    prepared: &Prepared<M::Prepared>,
) -> Result<(), String> {
    let mut last = String::new();
    for attempt in 0..PRELOAD_ATTEMPTS {
        if attempt > 0 {
            let pause_s = FIRST_PAUSE_S * f64::from(1 << (attempt - 1));
            streams
                .clock
                .sleep_until(streams.clock.now() + pause_s)
                .await;
        }
        match perform(streams, prepared, streams.clock.now()).await {
            Ok(()) => {
                turn().await;
                return Ok(());
            }
            Err(message) => last = message,
        }
    }
    Err(format!(
        "load failed on the load engine: {} did not succeed in {PRELOAD_ATTEMPTS} attempts; \
         the last: {last}",
        streams.model.describe(&prepared.what)
    ))
}

/// Does one operation that is intended when it is sent; gives the message of its failure.
async fn perform<M: Model, C: Clock>(
    streams: &Rc<OperationStreams<M, C>>,
    prepared: &Prepared<M::Prepared>,
    sent_s: f64,
) -> Result<(), String> {
    streams
        .recorder
        .borrow_mut()
        .note_begun(prepared.stream, sent_s);
    let reply = streams.model.send(&prepared.what, &**streams).await;
    let times_s = [sent_s, sent_s, streams.clock.now()];
    streams
        .note(prepared, times_s, &reply)
        .map_err(|message| message())
}

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

use tokio::task::spawn_local;

use crate::load::clock::Clock;
use crate::load::lanes::{Lanes, Prepared};
use crate::load::schedule::Schedule;
use crate::task::Model;

pub const PRELOAD_ATTEMPTS: u32 = 6;
const FIRST_PAUSE_S: f64 = 0.1;
/// The longest sleep: how soon an idle loop notices that its stage ends earlier than it could have.
const NAP_S: f64 = 0.25;
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

/// An open loop of one stage.
pub struct Open<M: Model, C: Clock> {
    lanes: Rc<Lanes<M, C>>,
    span: Rc<Span>,
    /// How long after the stage its overdue operations are still sent.
    drain_s: f64,
    lag: Lag,
    /// When each free slot became free, oldest first.
    slots: RefCell<VecDeque<f64>>,
    alarm: Alarm,
}

impl<M: Model + 'static, C: Clock + 'static> Open<M, C> {
    /// Frees all slots.
    pub fn new(
        lanes: &Rc<Lanes<M, C>>,
        span: &Rc<Span>,
        in_flight: usize,
        drain_s: f64,
    ) -> Rc<Self> {
        Rc::new(Self {
            lanes: Rc::clone(lanes),
            span: Rc::clone(span),
            drain_s,
            lag: Lag::default(),
            slots: RefCell::new(std::iter::repeat_n(f64::NEG_INFINITY, in_flight).collect()),
            alarm: Alarm {
                due_s: Cell::new(f64::INFINITY),
                sender: RefCell::default(),
            },
        })
    }

    /// Sends operations at their intended starts, or as soon after as a slot is free.
    ///
    /// What is overdue at the end of the span is still sent within the drain; what is left then counts
    /// as never answered, which the recorder knows from the schedule.
    pub async fn run(self: Rc<Self>, starts: Schedule) {
        let _sending = self.lanes.enter();
        for start_s in starts {
            let intended_s = self.span.begin_s + start_s;
            let Some(prepared) = self.lanes.prepare_next() else {
                return;
            };
            self.await_start(intended_s).await;
            if intended_s >= self.span.end_s.get() {
                return;
            }
            let Some(freed_s) = self.take_slot().await else {
                return;
            };
            let entered = self.lanes.enter();
            let stage = Rc::clone(&self);
            spawn_local(async move {
                stage.perform(prepared, intended_s, freed_s).await;
                drop(entered);
            });
            // It is sent before the next is made ready.
            turn().await;
        }
    }

    async fn perform(&self, prepared: Prepared<M::Prepared>, intended_s: f64, freed_s: f64) {
        let lanes = &self.lanes;
        let sent_s = lanes.clock.now();
        let ready_s = self.lag.find_ready(intended_s, freed_s, sent_s);
        lanes
            .recorder
            .borrow_mut()
            .note_sent(prepared.book, [intended_s, ready_s, sent_s]);
        let reply = lanes.model.send(&prepared.what, &**lanes).await;
        let ended_s = lanes.clock.now();
        let _ = lanes.note(&prepared, [intended_s, sent_s, ended_s], &reply);
        self.slots.borrow_mut().push_back(ended_s);
        self.alarm.ring(ended_s);
    }

    /// Sleeps until an intended start, or until the span ends before it.
    async fn await_start(&self, intended_s: f64) {
        let mut now_s = self.lanes.clock.now();
        while now_s < intended_s && intended_s < self.span.end_s.get() {
            let until_s = intended_s.min(now_s + NAP_S);
            self.alarm.wait(&self.lanes.clock, until_s, until_s).await;
            now_s = self.lanes.clock.now();
        }
    }

    async fn take_slot(&self) -> Option<f64> {
        loop {
            let now_s = self.lanes.clock.now();
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
                .wait(&self.lanes.clock, f64::NEG_INFINITY, until_s)
                .await;
        }
    }
}

/// Fills the slots of a closed loop when its span begins; the end of each operation sends the next,
/// each intended when it is sent.
pub fn start_closed<M: Model + 'static, C: Clock + 'static>(
    lanes: &Rc<Lanes<M, C>>,
    span: &Rc<Span>,
    in_flight: usize,
) {
    start_all(lanes, span, in_flight, async |lanes, span| {
        send_in_turn(lanes, span).await;
    });
}

/// Fills the slots of a load whose every operation is to succeed, each in a bounded number of attempts
/// with growing pauses. One that does not fails the load.
pub fn start_to_completion<M: Model + 'static, C: Clock + 'static>(
    lanes: &Rc<Lanes<M, C>>,
    span: &Rc<Span>,
    in_flight: usize,
) {
    start_all(lanes, span, in_flight, async |lanes, _| {
        while let Some(prepared) = lanes.prepare_next() {
            if let Err(why) = complete(lanes, &prepared).await {
                lanes.fail(why);
                return;
            }
        }
    });
}

fn start_all<M: Model + 'static, C: Clock + 'static>(
    lanes: &Rc<Lanes<M, C>>,
    span: &Rc<Span>,
    in_flight: usize,
    body: impl AsyncFn(&Rc<Lanes<M, C>>, &Span) + Clone + 'static,
) {
    let entered = lanes.enter();
    let (lanes, span) = (Rc::clone(lanes), Rc::clone(span));
    spawn_local(async move {
        lanes.clock.sleep_until(span.begin_s).await;
        for _ in 0..in_flight {
            let entered = lanes.enter();
            let (lanes, span, body) = (Rc::clone(&lanes), Rc::clone(&span), body.clone());
            spawn_local(async move {
                body(&lanes, &span).await;
                drop(entered);
            });
        }
        drop(entered);
    });
}

async fn send_in_turn<M: Model, C: Clock>(lanes: &Rc<Lanes<M, C>>, span: &Span) {
    let mut in_a_row = 0;
    while let Some(prepared) = lanes.prepare_next() {
        let sent_s = lanes.clock.now();
        if sent_s >= span.end_s.get() {
            return;
        }
        let has_failed = perform(lanes, &prepared, sent_s).await.is_err();
        in_a_row += 1;
        // Of a server that is gone, all slots hear at once, and again at once.
        if has_failed || in_a_row % TURN_AFTER == 0 {
            turn().await;
        }
    }
}

async fn complete<M: Model, C: Clock>(
    lanes: &Rc<Lanes<M, C>>,
    prepared: &Prepared<M::Prepared>,
) -> Result<(), String> {
    let mut last = String::new();
    for attempt in 0..PRELOAD_ATTEMPTS {
        if attempt > 0 {
            let pause_s = FIRST_PAUSE_S * f64::from(1 << (attempt - 1));
            lanes.clock.sleep_until(lanes.clock.now() + pause_s).await;
        }
        match perform(lanes, prepared, lanes.clock.now()).await {
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
        lanes.model.describe(&prepared.what)
    ))
}

/// Does one operation that is intended when it is sent; gives the message of its failure.
async fn perform<M: Model, C: Clock>(
    lanes: &Rc<Lanes<M, C>>,
    prepared: &Prepared<M::Prepared>,
    sent_s: f64,
) -> Result<(), String> {
    lanes
        .recorder
        .borrow_mut()
        .note_begun(prepared.book, sent_s);
    let reply = lanes.model.send(&prepared.what, &**lanes).await;
    let times_s = [sent_s, sent_s, lanes.clock.now()];
    lanes
        .note(prepared, times_s, &reply)
        .map_err(|message| message())
}

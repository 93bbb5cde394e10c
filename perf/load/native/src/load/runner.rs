//! One engine's load: loops that send, and one future that counts what they note.
//!
//! The stages run back to back. The counting future looks for MEASURE, writes down what was counted once
//! a second, and opens one stage after the other. Each stage has loops of its own, so that the stragglers
//! of a stage may still end while the next one warms up.

use std::path::Path;
use std::rc::Rc;

use crate::load::clock::Clock;
use crate::load::loops::{Open, Span, slice_s, start_closed, start_to_completion, turn};
use crate::load::output::Output;
use crate::load::schedule::Schedule;
use crate::load::streams::OperationStreams;
use crate::load::usage::{OwnUsage, Used, use_between};
use crate::spec::{Counted, EngineResult, Load, LoadSpec, Operation, PRELOAD, Preload, Stage};
use crate::task::Model;

/// What has happened is counted this long after it, when it can no longer become part of an iteration.
const FOLD_LAG_S: f64 = 0.1;
/// How often it is counted, so that no send waits for the counting of a whole second.
const FOLD_EVERY_S: f64 = 0.05;
const POLL_S: f64 = 0.2;
const IDLE_POLL_S: f64 = 0.02;
/// What was noted by now as warm-up can no longer become part of an iteration.
const LATEST_MEASURE_S: f64 = 0.05;
/// A warm-up that has not been told its end so long before its cap runs to its cap.
const DECIDE_S: f64 = 0.3;
/// Of a warm-up, for what is overdue from the stage before.
const DRAIN_SHARE: f64 = 0.25;
/// Beyond the operation timeout, so that a driver's own timeout is seen as what it is.
const GRACE_S: f64 = 0.5;
const TASKS: &str = "/proc/self/task";

/// When a load starts (Unix time), by which clock it runs, and where its results go.
pub struct Surroundings<C: Clock> {
    pub start_at_s: f64,
    pub clock: C,
    pub output: Output,
}

/// Does what `spec` says, and writes what was counted; runs within a `LocalSet`.
///
/// # Errors
/// What is wrong with the load itself, or could not be written.
pub async fn run<M: Model + 'static, C: Clock + 'static>(
    spec: &LoadSpec,
    model: M,
    surroundings: Surroundings<C>,
) -> Result<(), String> {
    let (weights, end) = match (&spec.preload, &spec.counted) {
        (Some(preload), _) => (&[(Operation::Write, 1.0)][..], preload.rows),
        (None, Some(counted)) => (&spec.mix[..], counted.operations),
        (None, None) => (&spec.mix[..], u64::MAX),
    };
    if weights.is_empty() {
        return Err("the load has no operations; `mix` of the spec names none".to_owned());
    }
    let Surroundings {
        start_at_s,
        clock,
        output,
    } = surroundings;
    let mut run = Run {
        spec,
        streams: Rc::new(OperationStreams::new(
            spec,
            weights,
            end,
            (model, clock),
            start_at_s,
        )),
        start_at_s,
        output,
        own: OwnUsage::new(Path::new(TASKS)),
        looks: Vec::new(),
        second: 0,
        pace_s: 1,
        ceiling_s: f64::INFINITY,
    };
    let counted_s = match (&spec.preload, &spec.counted) {
        (Some(preload), _) => run.preload(preload).await.map(|()| None),
        (None, Some(counted)) => run.counted(counted).await.map(Some),
        (None, None) => run.stages().await.map(|()| None),
    };
    match counted_s {
        Ok(counted_s) => run.finish(counted_s),
        Err(why) => {
            // What was measured until then may be worth keeping; why it ended is what is said.
            let _ = run.output.close();
            Err(why)
        }
    }
}

/// A load under way, the streams that all of it is noted in, and looks at this process.
struct Run<'a, M: Model, C: Clock> {
    spec: &'a LoadSpec,
    streams: Rc<OperationStreams<M, C>>,
    start_at_s: f64,
    output: Output,
    own: OwnUsage,
    looks: Vec<Used>,
    /// Seconds of the stage under way that are written down.
    second: u64,
    /// Seconds from one writing down to the next.
    pace_s: u32,
    /// What happens from here on belongs to cells that are not open yet.
    ceiling_s: f64,
}

impl<M: Model + 'static, C: Clock + 'static> Run<'_, M, C> {
    /// Offers the stages back to back.
    ///
    /// Returns at the latest one operation timeout after the last stage, even if operations are still
    /// unanswered; these count as timeouts.
    async fn stages(&mut self) -> Result<(), String> {
        let stages = &self.spec.stages;
        let mut begin_s = 0.0;
        let mut span = match stages.first() {
            Some(first) => self.start_stage(0, first, begin_s),
            None => return Ok(()),
        };
        self.look_at(begin_s).await;
        for (place, stage) in stages.iter().enumerate() {
            self.streams
                .recorder
                .borrow_mut()
                .begin_stage(&stage.phase, begin_s);
            (self.second, self.ceiling_s) = (0, f64::INFINITY);
            let at_s = self.warm_up(place, begin_s).await?;
            let plan = self.plan(place, stage).map(|schedule| (begin_s, schedule));
            let end_s = self
                .streams
                .recorder
                .borrow_mut()
                .begin_iterations(stage, at_s, plan);
            span.end_s.set(end_s);
            self.ceiling_s = end_s;
            if let Some(next) = stages.get(place + 1) {
                span = self.start_stage(place + 1, next, end_s);
            }
            self.measure(place, begin_s, at_s, end_s).await?;
            begin_s = end_s;
        }
        self.ceiling_s = f64::INFINITY;
        let last_s = begin_s + self.spec.target.timeout_s + GRACE_S;
        self.await_idle(last_s).await?;
        self.fold(f64::INFINITY).await
    }

    /// Writes this engine's share of the rows, for as long as that takes.
    async fn preload(&mut self, preload: &Preload) -> Result<(), String> {
        self.streams.recorder.borrow_mut().begin_stage(PRELOAD, 0.0);
        start_to_completion(
            &self.streams,
            &Span::new(0.0, f64::INFINITY),
            preload.in_flight,
        );
        self.look_at(0.0).await;
        self.await_completion().await
    }

    /// Does this engine's share of so many operations in a closed loop; gives when the last ended.
    async fn counted(&mut self, counted: &Counted) -> Result<f64, String> {
        self.streams
            .recorder
            .borrow_mut()
            .begin_counted(&counted.phase);
        self.look_at(0.0).await;
        start_closed(
            &self.streams,
            &Span::new(0.0, f64::INFINITY),
            counted.in_flight,
        );
        self.await_completion().await?;
        let mut recorder = self.streams.recorder.borrow_mut();
        recorder.end_counted();
        Ok(recorder.last_end_s())
    }

    async fn await_completion(&mut self) -> Result<(), String> {
        let mut second_s = 1.0;
        while !self.await_idle(second_s).await? {
            // Not what goes on happening meanwhile: there might be no end of that.
            self.fold(self.streams.clock.now()).await?;
            second_s += 1.0;
        }
        self.fold(f64::INFINITY).await?;
        self.look_at(0.0).await;
        Ok(())
    }

    fn finish(self, counted_s: Option<f64>) -> Result<(), String> {
        let recorder = self.streams.recorder.borrow();
        self.output.finish(&EngineResult {
            engine_index: self.spec.engine_index,
            counters: recorder.count(),
            usages: use_between(recorder.timeline().cells(), &self.looks),
            examples: recorder.examples(),
            counted_s,
        })
    }

    fn plan(&self, place: usize, stage: &Stage) -> Option<Schedule> {
        let spec = self.spec;
        match stage.load {
            Load::Closed { .. } => None,
            Load::Open {
                offered_load_ops_per_s,
                arrivals,
                ..
            } => Some(Schedule::plan(
                [spec.seed, spec.run, place as u64, spec.engine_index],
                spec.engine_count,
                offered_load_ops_per_s,
                arrivals,
                stage.longest_s(),
            )),
        }
    }

    /// Starts the loops of a stage; they wait until it begins. Its span ends at the latest end.
    fn start_stage(&self, place: usize, stage: &Stage, begin_s: f64) -> Rc<Span> {
        let span = Span::new(begin_s, begin_s + stage.longest_s());
        match (&stage.load, self.plan(place, stage)) {
            (
                Load::Open {
                    offered_load_ops_per_s,
                    in_flight,
                    ..
                },
                Some(schedule),
            ) => {
                #[allow(clippy::cast_precision_loss)] // a number of engines
                let own_ops_per_s = offered_load_ops_per_s / self.spec.engine_count as f64;
                let slice_s = slice_s(own_ops_per_s, *in_flight);
                let open = Open::new(
                    &self.streams,
                    &span,
                    (*in_flight, slice_s),
                    self.drain_s(place),
                );
                tokio::task::spawn_local(open.run(schedule));
            }
            (Load::Closed { in_flight } | Load::Open { in_flight, .. }, _) => {
                start_closed(&self.streams, &span, *in_flight);
            }
        }
        span
    }

    /// Says how long after a stage its overdue operations are still sent.
    ///
    /// For a part of the next warm-up only, so that its rest is of the next load alone. A stall at the
    /// end of a stage is caught up with in a moment; what an overload leaves behind never would be.
    fn drain_s(&self, place: usize) -> f64 {
        let next = self.spec.stages.get(place + 1);
        next.map_or(self.spec.target.timeout_s, |stage| {
            (stage.warmup_s * DRAIN_SHARE).min(self.spec.target.timeout_s)
        })
    }

    /// Counts until it is known when the iterations begin, and gives that time.
    async fn warm_up(&mut self, place: usize, begin_s: f64) -> Result<f64, String> {
        self.pace_s = 1;
        let cap_s = begin_s + self.spec.stages[place].warmup_cap_s;
        let at_s = loop {
            if let Some(at_s) = self.ordered(place, cap_s)? {
                break at_s;
            }
            let now_s = self.streams.clock.now();
            if now_s >= cap_s - DECIDE_S {
                return Ok(cap_s);
            }
            self.tend(begin_s, (cap_s - DECIDE_S).min(now_s + POLL_S))
                .await?;
        };
        let late_s = self.streams.clock.now() - at_s;
        if late_s > LATEST_MEASURE_S || at_s < self.written_s(begin_s) {
            return Err(say_late(place, late_s));
        }
        Ok(at_s)
    }

    /// Counts until the stage's last iteration has ended; looks at this process at each edge.
    async fn measure(
        &mut self,
        place: usize,
        begin_s: f64,
        at_s: f64,
        end_s: f64,
    ) -> Result<(), String> {
        let stage = &self.spec.stages[place];
        self.pace_s = stage.histogram_s;
        for count in (0_u32..).take(stage.iterations.len() + 1) {
            let edge_s = at_s + stage.iteration_s * f64::from(count);
            self.tend(begin_s, edge_s).await?;
            self.look_at(edge_s).await;
        }
        self.tend(begin_s, end_s + FOLD_LAG_S).await?;
        self.fold(end_s).await?;
        let seconds = whole(end_s - begin_s + 1e-6);
        self.report(seconds)?;
        let cap_s = begin_s + stage.warmup_cap_s;
        // As told, not as computed: this engine began by itself, and others began when they were told.
        match self.ordered(place, cap_s)? {
            #[allow(clippy::float_cmp)] // the same number, or another one
            Some(told_s) if told_s != at_s => Err(say_late(place, cap_s - told_s)),
            _ => Ok(()),
        }
    }

    fn ordered(&self, place: usize, cap_s: f64) -> Result<Option<f64>, String> {
        let unix_s = self.output.measure_at(place)?;
        // As exact as Unix time is written: a difference of such large numbers has a tail of its own.
        let exact = |unix_s: f64| ((unix_s - self.start_at_s) * 1e6).round_ties_even() / 1e6;
        Ok(unix_s.map(|unix_s| exact(unix_s).min(cap_s)))
    }

    /// Writes down each whole second or histogram of the stage before `until_s`, a little after it.
    async fn tend(&mut self, begin_s: f64, until_s: f64) -> Result<(), String> {
        loop {
            let next_s = self.written_s(begin_s) + f64::from(self.pace_s);
            let due_s = next_s + FOLD_LAG_S;
            self.doze(due_s.min(until_s), next_s).await?;
            if due_s > until_s {
                return Ok(());
            }
            let passed = whole(self.streams.clock.now() - begin_s - FOLD_LAG_S);
            self.second = passed.max(self.second + u64::from(self.pace_s));
            self.fold(self.written_s(begin_s)).await?;
            self.report(self.second)?;
            self.look_at(due_s).await;
        }
    }

    /// Sleeps until a time; meanwhile counts what has happened before `next_s`, without writing it down.
    async fn doze(&mut self, until_s: f64, next_s: f64) -> Result<(), String> {
        loop {
            let now_s = self.streams.clock.now();
            self.count_until(next_s.min(now_s - FOLD_LAG_S)).await?;
            if now_s >= until_s {
                return Ok(());
            }
            let soon_s = now_s.max(0.0) + FOLD_EVERY_S;
            self.streams.clock.sleep_until(until_s.min(soon_s)).await;
        }
    }

    #[allow(clippy::cast_precision_loss)] // seconds of a stage
    fn written_s(&self, begin_s: f64) -> f64 {
        begin_s + self.second as f64
    }

    /// Looks at what this process has used, at a time or as soon after as possible.
    async fn look_at(&mut self, time_s: f64) {
        self.streams.clock.sleep_until(time_s).await;
        self.looks.push(self.own.look(self.streams.clock.now()));
    }

    /// Counts what has happened before the horizon, a slice at a time.
    async fn count_until(&mut self, horizon_s: f64) -> Result<(), String> {
        self.streams.check()?;
        let horizon_s = horizon_s.min(self.ceiling_s);
        loop {
            let is_all = self.streams.recorder.borrow_mut().fold(horizon_s);
            if is_all {
                return Ok(());
            }
            turn().await;
        }
    }

    /// Counts it, and writes down all that was counted, one histogram at a time.
    async fn fold(&mut self, horizon_s: f64) -> Result<(), String> {
        self.count_until(horizon_s).await?;
        let ready = self.streams.recorder.borrow_mut().take_ready();
        for one in ready {
            let interval = self.streams.recorder.borrow_mut().write_down(&one)?;
            self.output.append(&interval)?;
            turn().await;
        }
        Ok(())
    }

    fn report(&self, seconds: u64) -> Result<(), String> {
        let lines = self.streams.recorder.borrow_mut().tell_seconds(seconds);
        self.output.report(lines)
    }

    /// Waits until everything that was sent has ended; says whether it came so far.
    async fn await_idle(&mut self, until_s: f64) -> Result<bool, String> {
        loop {
            let now_s = self.streams.clock.now();
            self.count_until(now_s).await?;
            if self.streams.is_idle() {
                return Ok(true);
            }
            if now_s >= until_s {
                return Ok(false);
            }
            let soon_s = now_s.max(0.0) + IDLE_POLL_S;
            self.streams.clock.sleep_until(until_s.min(soon_s)).await;
        }
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // whole seconds; none before 0
fn whole(seconds: f64) -> u64 {
    seconds.max(0.0).floor() as u64
}

fn say_late(place: usize, late_s: f64) -> String {
    format!(
        "measure failed on the load engine: stage {place} was told to begin its iterations \
         {late_s:.3} s ago, too late to change over together with the other engines; is this host too \
         busy, or its clock out of step?"
    )
}

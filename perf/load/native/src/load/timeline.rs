//! Where and under which names things are counted: cells of time, and one tally per operation and cell.
//!
//! Everything belongs to a cell: one iteration of a phase, or one warm-up. An operation belongs to the
//! cell of its intended start, whenever it ends.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::load::schedule::Schedule;
use crate::spec::{Counter, Stage};

pub const TIMEOUTS: &str = "timeouts";
const NOT_FOUND: &str = "not_found";
const WRONG_DATA: &str = "wrong_data";

/// One iteration of a phase, or one of its warm-ups (iteration 0), by when it lies.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub phase: String,
    pub iteration: u32,
    pub start_s: f64,
    /// Infinite for the warm-up under way, whose end is not known yet.
    pub end_s: f64,
}

/// An operation that a load consists of.
///
/// `weight` is its share of a mix, in any unit. A part of an operation has times only: it was neither
/// offered nor attempted by itself.
#[derive(Clone, Debug)]
pub struct Kind {
    pub operation: String,
    pub rows: u64,
    pub weight: f64,
    pub is_part: bool,
}

/// What was counted of one operation in the cells of one iteration of a phase.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub attempted: u64,
    pub completed: u64,
    pub completed_in_window: u64,
    pub sent_in_window: u64,
    pub held: u64,
    pub clamped: u64,
    /// What ended otherwise, by name.
    pub failed: BTreeMap<String, u64>,
}

/// The cells so far, in order, and the stages that they lie in.
#[derive(Default)]
pub struct Timeline {
    cells: Vec<Cell>,
    /// By cell, which of `places` it counts into.
    place_of: Vec<usize>,
    /// Each phase and iteration; the warm-ups of a phase are one.
    places: Vec<(String, u32)>,
    begins: Vec<f64>,
    plans: Vec<Plan>,
    /// Seconds per histogram.
    pub width_s: u32,
}

struct Plan {
    begin_s: f64,
    schedule: Schedule,
    cells: Range<usize>,
}

impl Timeline {
    /// Opens the warm-up of a stage, whose end is not known yet.
    pub fn begin_stage(&mut self, phase: &str, begin_s: f64) {
        self.begins.push(begin_s);
        self.width_s = 1;
        self.open(phase, 0, begin_s, f64::INFINITY);
    }

    /// Ends the warm-up at `at_s` and lays the iterations behind it; gives the end of the last.
    ///
    /// `plan` is an open loop's schedule and when it begins: what it intends to start before the end
    /// counts as attempted from now on.
    pub fn begin_iterations(
        &mut self,
        stage: &Stage,
        at_s: f64,
        plan: Option<(f64, Schedule)>,
    ) -> f64 {
        let first = self.cells.len().saturating_sub(1);
        self.width_s = stage.histogram_s;
        let mut end_s = at_s;
        if let Some(warm_up) = self.cells.last_mut() {
            warm_up.end_s = at_s;
        }
        for (place, iteration) in (0_u32..).zip(&stage.iterations) {
            // Multiplied, not added up, so that all engines find the very same edges.
            let start_s = at_s + stage.iteration_s * f64::from(place);
            end_s = at_s + stage.iteration_s * f64::from(place + 1);
            self.open(&stage.phase, *iteration, start_s, end_s);
        }
        if let Some((begin_s, schedule)) = plan {
            self.plans.push(Plan {
                begin_s,
                schedule,
                cells: first..self.cells.len(),
            });
        }
        end_s
    }

    /// Opens a phase whose only iteration ends when all of its operations are done.
    pub fn begin_counted(&mut self, phase: &str) {
        self.begins.push(0.0);
        self.width_s = 1;
        self.open(phase, 1, 0.0, f64::INFINITY);
    }

    /// Says when the last cell ended.
    pub fn end_counted(&mut self, end_s: f64) {
        if let Some(cell) = self.cells.last_mut() {
            cell.end_s = end_s;
        }
    }

    #[must_use]
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Gives the number of the stage under way.
    #[must_use]
    pub fn stage(&self) -> usize {
        self.begins.len().saturating_sub(1)
    }

    /// Gives how many tallies an operation has by now.
    #[must_use]
    pub fn place_count(&self) -> usize {
        self.places.len()
    }

    /// Gives the cell that a time belongs to by its begin, and the tally of that cell.
    #[must_use]
    pub fn find(&self, time_s: f64) -> (usize, usize) {
        let after = self.cells.partition_point(|cell| cell.start_s <= time_s);
        let cell = after.max(1) - 1;
        (cell, self.place_of[cell])
    }

    /// Gives the tally of the cell in which a time lies; what lies after the last cell has none.
    #[must_use]
    pub fn within(&self, time_s: f64) -> Option<usize> {
        let (cell, place) = self.find(time_s);
        (time_s < self.cells[cell].end_s).then_some(place)
    }

    /// Gives the window since its cell's begin that a time lies in.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // whole windows, from 0
    pub fn window(&self, cell: usize, time_s: f64) -> u64 {
        ((time_s - self.cells[cell].start_s) / f64::from(self.width_s)) as u64
    }

    /// Gives the stage that a time lies in, and the second of it.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // whole seconds, from 0
    pub fn second(&self, time_s: f64) -> (usize, u64) {
        let stage = self.stage_of(time_s);
        (stage, (time_s - self.begins[stage]) as u64)
    }

    /// Says whether a time lies in the stage in which an earlier one did.
    ///
    /// What an overloaded stage left behind must not count as what the next one achieved.
    #[must_use]
    pub fn is_same_stage(&self, earlier_s: f64, time_s: f64) -> bool {
        self.begins.len() == 1 || self.stage_of(earlier_s) == self.stage_of(time_s)
    }

    fn stage_of(&self, time_s: f64) -> usize {
        self.begins
            .partition_point(|begin_s| *begin_s <= time_s)
            .max(1)
            - 1
    }

    fn open(&mut self, phase: &str, iteration: u32, start_s: f64, end_s: f64) {
        let known = self
            .places
            .iter()
            .position(|(a, b)| a == phase && *b == iteration);
        let place = known.unwrap_or(self.places.len());
        if known.is_none() {
            self.places.push((phase.to_owned(), iteration));
        }
        self.place_of.push(place);
        self.cells.push(Cell {
            phase: phase.to_owned(),
            iteration,
            start_s,
            end_s,
        });
    }

    /// Gives all counters; what was attempted and has not ended by now counts as timeouts.
    ///
    /// `streams` are the operations, each with its tallies. What an open loop never sent has not drawn its
    /// operation: it is shared out by weight.
    #[must_use]
    pub fn count(&self, streams: &[(&Kind, &[Tally])]) -> Vec<Counter> {
        let planned = self.count_planned();
        let mut counters = Vec::new();
        for (place, (phase, iteration)) in self.places.iter().enumerate() {
            let shares = share_unsent(planned[place], place, streams);
            for ((kind, tallies), unsent) in streams.iter().zip(shares) {
                for (name, value) in total(kind, &tallies[place], unsent) {
                    counters.push(Counter {
                        phase: phase.clone(),
                        operation: kind.operation.clone(),
                        iteration: *iteration,
                        name,
                        value,
                    });
                }
            }
        }
        counters
    }

    /// Counts what schedules intended to start, by place; none where no schedule says.
    fn count_planned(&self) -> Vec<Option<u64>> {
        let mut planned = vec![None; self.places.len()];
        for plan in &self.plans {
            let mut starts = plan.schedule.clone().map(|s| plan.begin_s + s).peekable();
            for cell in plan.cells.clone() {
                let Cell { start_s, end_s, .. } = self.cells[cell];
                while starts.next_if(|s| *s < start_s).is_some() {}
                let count = planned[self.place_of[cell]].get_or_insert(0);
                while starts.next_if(|s| *s < end_s).is_some() {
                    *count += 1;
                }
            }
        }
        planned
    }
}

/// Shares out what was planned and never sent: by weight, the largest rests first.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)] // numbers of operations
fn share_unsent(planned: Option<u64>, place: usize, streams: &[(&Kind, &[Tally])]) -> Vec<u64> {
    let mut shares = vec![0; streams.len()];
    let offered: Vec<usize> = (0..streams.len())
        .filter(|stream| !streams[*stream].0.is_part)
        .collect();
    let sent: u64 = offered
        .iter()
        .map(|stream| streams[*stream].1[place].attempted)
        .sum();
    let Some(unsent) = planned.and_then(|count| count.checked_sub(sent)) else {
        return shares;
    };
    let weights: f64 = offered.iter().map(|stream| streams[*stream].0.weight).sum();
    let mut rests = Vec::with_capacity(offered.len());
    for stream in offered {
        let exact = unsent as f64 * streams[stream].0.weight / weights;
        shares[stream] = exact as u64;
        rests.push((exact.floor() - exact, stream));
    }
    rests.sort_by(|one, other| one.0.total_cmp(&other.0));
    let left = unsent.saturating_sub(shares.iter().sum());
    for (_, stream) in rests.into_iter().take(left as usize) {
        shares[stream] += 1;
    }
    shares
}

/// Adds up a cell's counters, of which `unsent` operations were never sent.
fn total(kind: &Kind, tally: &Tally, unsent: u64) -> Vec<(String, u64)> {
    let named = |name: &str, value| (name.to_owned(), value);
    if kind.is_part {
        return vec![named("completed", tally.completed)];
    }
    let attempted = tally.attempted + unsent;
    let ended = tally.completed + tally.failed.values().sum::<u64>();
    let mut failed = tally.failed.clone();
    for always in [NOT_FOUND, WRONG_DATA, TIMEOUTS] {
        failed.entry(always.to_owned()).or_default();
    }
    if let Some(timeouts) = failed.get_mut(TIMEOUTS) {
        *timeouts += attempted.saturating_sub(ended);
    }
    let mut totals = vec![
        named("attempted", attempted),
        named("completed", tally.completed),
    ];
    totals.extend(failed);
    totals.extend([
        named("completed_in_window", tally.completed_in_window),
        named("sent_in_window", tally.sent_in_window),
        named("held", tally.held),
        named("rows", kind.rows * tally.completed),
    ]);
    if tally.clamped > 0 {
        totals.push(named("clamped", tally.clamped));
    }
    totals
}

//! What an engine measures, folded into histograms and counters a little after it happened.
//!
//! What is noted waits until it can no longer become part of another cell, and is then counted, a slice
//! at a time, so that counting never holds up a send for long. Nothing is ever dropped: each attempted
//! operation ends in exactly one counter.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write;

use crate::load::hlog::Interval;
use crate::load::schedule::Schedule;
use crate::load::timeline::{Kind, Tally, Timeline};
use crate::load::times::{Encoder, Times};
use crate::spec::{Counter, Stage};

/// How many notes are counted before a send gets its turn: about 20 µs. Of many that wait a share is,
/// since all slots may end once per turn: so no more ever wait than some turns can add.
const FOLD_SLICE: usize = 512;
const FOLD_SHARE: usize = 4;
const RESPONSE_TIME: &str = "response_time";
const SERVICE_TIME: &str = "service_time";
const SEND_LATENESS: &str = "send_lateness";

/// Folds what happened by operation, cell, and time of the intended start. All times are seconds from
/// the start of the first stage.
pub struct Recorder {
    timeline: Timeline,
    streams: Vec<OperationRecorder>,
    start_at_s: f64,
    seconds: HashMap<(usize, u64), (u64, f64)>,
    reported: u64,
    last_end_s: f64,
    encoder: Encoder,
}

/// What is kept of one operation.
struct OperationRecorder {
    kind: Kind,
    notes: Notes,
    tallies: Vec<Tally>,
    windows: BTreeMap<Place, Window>,
    /// Each kind of failure, and its first message.
    examples: Vec<(String, String)>,
}

/// What was noted and is not folded yet, each in the order in which it happened.
#[derive(Default)]
struct Notes {
    begun: VecDeque<f64>,
    sent: VecDeque<[f64; 3]>,
    completed: VecDeque<[f64; 3]>,
    /// Intended start, end, and which of the stream's examples it is like.
    failed: VecDeque<(f64, f64, usize)>,
}

impl Notes {
    fn count(&self) -> usize {
        self.begun.len() + self.sent.len() + self.completed.len() + self.failed.len()
    }
}

/// Which span of time a histogram is of.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Place {
    cell: usize,
    window: u64,
    width_s: u32,
}

#[derive(Default)]
struct Window {
    response: Times,
    service: Times,
    lateness: Times,
}

/// Times that are ready to be written down.
pub struct Ready {
    stream: usize,
    place: Place,
    kind: &'static str,
    times: Times,
}

impl Recorder {
    /// Lets the first stage start at `start_at_s` (Unix time).
    #[must_use]
    pub fn new(kinds: Vec<Kind>, start_at_s: f64) -> Self {
        let streams = kinds.into_iter().map(|kind| OperationRecorder {
            kind,
            notes: Notes::default(),
            tallies: Vec::new(),
            windows: BTreeMap::new(),
            examples: Vec::new(),
        });
        Self {
            timeline: Timeline::default(),
            streams: streams.collect(),
            start_at_s,
            seconds: HashMap::new(),
            reported: 0,
            last_end_s: 0.0,
            encoder: Encoder::default(),
        }
    }

    /// Notes the send of an operation of a closed loop.
    pub fn note_begun(&mut self, stream: usize, sent_s: f64) {
        self.streams[stream].notes.begun.push_back(sent_s);
    }

    /// Notes intended start, ready and send of an operation of an open loop.
    pub fn note_sent(&mut self, stream: usize, times_s: [f64; 3]) {
        self.streams[stream].notes.sent.push_back(times_s);
    }

    /// Notes intended start, send and end of an operation that was answered as it should be.
    pub fn note_completed(&mut self, stream: usize, times_s: [f64; 3]) {
        self.streams[stream].notes.completed.push_back(times_s);
    }

    /// Notes the times of an operation that ended otherwise; `message` is asked for once per kind.
    pub fn note_failed(
        &mut self,
        stream: usize,
        times_s: [f64; 3],
        kind: &str,
        message: impl FnOnce() -> String,
    ) {
        let stream = &mut self.streams[stream];
        let [intended_s, _, ended_s] = times_s;
        let known = stream.examples.iter().position(|(known, _)| known == kind);
        if known.is_none() {
            stream.examples.push((kind.to_owned(), message()));
        }
        let like = known.unwrap_or(stream.examples.len() - 1);
        stream.notes.failed.push_back((intended_s, ended_s, like));
    }

    /// Gives which stream parts of an operation are noted in.
    #[must_use]
    pub fn book_of(&self, operation: &str) -> Option<usize> {
        self.streams
            .iter()
            .position(|stream| stream.kind.operation == operation)
    }

    #[must_use]
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Gives when the last operation that was folded ended.
    #[must_use]
    pub fn last_end_s(&self) -> f64 {
        self.last_end_s
    }

    /// Opens the warm-up of a stage, whose end is not known yet.
    pub fn begin_stage(&mut self, phase: &str, begin_s: f64) {
        self.reported = 0;
        self.timeline.begin_stage(phase, begin_s);
        self.open_tallies();
    }

    /// Ends the warm-up; see [`Timeline::begin_iterations`].
    pub fn begin_iterations(
        &mut self,
        stage: &Stage,
        at_s: f64,
        plan: Option<(f64, Schedule)>,
    ) -> f64 {
        let end_s = self.timeline.begin_iterations(stage, at_s, plan);
        self.open_tallies();
        end_s
    }

    /// Opens a phase whose only iteration ends when all of its operations are done.
    pub fn begin_counted(&mut self, phase: &str) {
        self.timeline.begin_counted(phase);
        self.open_tallies();
    }

    /// Says that it ended with the last operation.
    pub fn end_counted(&mut self) {
        self.timeline.end_counted(self.last_end_s);
    }

    fn open_tallies(&mut self) {
        for stream in &mut self.streams {
            stream
                .tallies
                .resize_with(self.timeline.place_count(), Tally::default);
        }
    }

    /// Folds a slice of what happened before `horizon_s`; says whether that was all.
    ///
    /// What has happened since stays, so that a warm-up may still be told to end there.
    pub fn fold(&mut self, horizon_s: f64) -> bool {
        let pending: usize = self.streams.iter().map(|stream| stream.notes.count()).sum();
        let mut left = FOLD_SLICE.max(pending / FOLD_SHARE);
        for stream in 0..self.streams.len() {
            while left > 0 && self.fold_one(stream, horizon_s) {
                left -= 1;
            }
        }
        left > 0
    }

    fn fold_one(&mut self, stream: usize, horizon_s: f64) -> bool {
        let notes = &mut self.streams[stream].notes;
        if let Some(times_s) = take_before(&mut notes.completed, |times_s| times_s[2] < horizon_s) {
            self.fold_completed(stream, times_s);
        } else if let Some(times_s) = take_before(&mut notes.sent, |times_s| times_s[2] < horizon_s)
        {
            self.fold_sent(stream, times_s);
        } else if let Some(sent_s) = take_before(&mut notes.begun, |sent_s| *sent_s < horizon_s) {
            if let Some(place) = self.timeline.within(sent_s) {
                let tally = &mut self.streams[stream].tallies[place];
                tally.attempted += 1;
                tally.sent_in_window += 1;
            }
        } else if let Some((intended_s, ended_s, like)) =
            take_before(&mut notes.failed, |(_, ended_s, _)| *ended_s < horizon_s)
        {
            let (_, place) = self.timeline.find(intended_s);
            let stream = &mut self.streams[stream];
            let failed = &mut stream.tallies[place].failed;
            let kind = &stream.examples[like].0;
            match failed.get_mut(kind) {
                Some(count) => *count += 1,
                None => drop(failed.insert(kind.clone(), 1)),
            }
            self.last_end_s = self.last_end_s.max(ended_s);
        } else {
            return false;
        }
        true
    }

    fn fold_completed(&mut self, stream: usize, [intended_s, sent_s, ended_s]: [f64; 3]) {
        let (cell, place) = self.timeline.find(intended_s);
        let stream = &mut self.streams[stream];
        if stream.kind.is_part && self.timeline.within(intended_s).is_none() {
            // A part may begin when the load is over, within an operation that began before.
            return;
        }
        if self.timeline.is_same_stage(intended_s, ended_s) {
            if let Some(in_window) = self.timeline.within(ended_s) {
                stream.tallies[in_window].completed_in_window += 1;
            }
            if !stream.kind.is_part {
                let second = self
                    .seconds
                    .entry(self.timeline.second(ended_s))
                    .or_default();
                second.0 += 1;
                second.1 += ended_s - sent_s;
            }
        }
        self.last_end_s = self.last_end_s.max(ended_s);
        let window = stream
            .windows
            .entry(locate(&self.timeline, cell, intended_s))
            .or_default();
        let clamped = u64::from(window.response.add(ended_s - intended_s))
            + u64::from(window.service.add(ended_s - sent_s));
        stream.tallies[place].clamped += clamped;
        stream.tallies[place].completed += 1;
    }

    fn fold_sent(&mut self, stream: usize, [intended_s, ready_s, sent_s]: [f64; 3]) {
        let (cell, place) = self.timeline.find(intended_s);
        let stream = &mut self.streams[stream];
        if let Some(within) = self.timeline.within(intended_s) {
            stream.tallies[within].attempted += 1;
            stream.tallies[within].held += u64::from(ready_s > intended_s);
        }
        if self.timeline.is_same_stage(intended_s, sent_s)
            && let Some(in_window) = self.timeline.within(sent_s)
        {
            stream.tallies[in_window].sent_in_window += 1;
        }
        let window = stream
            .windows
            .entry(locate(&self.timeline, cell, intended_s))
            .or_default();
        stream.tallies[place].clamped += u64::from(window.lateness.add(sent_s - ready_s));
    }

    /// Takes what was folded, to be written down. An operation that ends late adds a further interval
    /// of the time in which it was to start.
    pub fn take_ready(&mut self) -> Vec<Ready> {
        let mut ready = Vec::new();
        for (number, stream) in self.streams.iter_mut().enumerate() {
            for (place, window) in std::mem::take(&mut stream.windows) {
                let kinds = [
                    (RESPONSE_TIME, window.response),
                    (SERVICE_TIME, window.service),
                    (SEND_LATENESS, window.lateness),
                ];
                for (kind, times) in kinds {
                    if matches!(&times, Times::Few(none) if none.is_empty()) {
                        continue;
                    }
                    ready.push(Ready {
                        stream: number,
                        place,
                        kind,
                        times,
                    });
                }
            }
        }
        ready
    }

    /// Writes times down.
    ///
    /// # Errors
    /// The histogram cannot be encoded.
    #[allow(clippy::cast_precision_loss)] // whole seconds
    pub fn write_down(&mut self, ready: &Ready) -> Result<Interval, String> {
        let (encoded, max_us) = self.encoder.encode(&ready.times)?;
        let cell = &self.timeline.cells()[ready.place.cell];
        let width_s = f64::from(ready.place.width_s);
        let start_s = cell.start_s + ready.place.window as f64 * width_s;
        Ok(Interval {
            phase: cell.phase.clone(),
            operation: self.streams[ready.stream].kind.operation.clone(),
            kind: ready.kind,
            iteration: cell.iteration,
            start_s: self.start_at_s + start_s,
            length_s: width_s.min(cell.end_s - start_s),
            max_us,
            encoded,
        })
    }

    /// Gives the lines of PROGRESS of the stage under way, up to its second `until`, each once.
    pub fn tell_seconds(&mut self, until: u64) -> String {
        let stage = self.timeline.stage();
        let mut lines = String::new();
        for second in self.reported..until {
            let (completed, service_s) = self.seconds.remove(&(stage, second)).unwrap_or_default();
            // Writing into a String cannot fail.
            let _ = writeln!(lines, "{stage},{second},{completed},{service_s:.6}");
        }
        self.reported = self.reported.max(until);
        lines
    }

    /// Gives all counters; see [`Timeline::count`].
    #[must_use]
    pub fn count(&self) -> Vec<Counter> {
        let streams: Vec<_> = self
            .streams
            .iter()
            .map(|stream| (&stream.kind, &stream.tallies[..]))
            .collect();
        self.timeline.count(&streams)
    }

    /// Gives the first message of each kind of error.
    #[must_use]
    pub fn examples(&self) -> Vec<String> {
        let all = self.streams.iter().flat_map(|stream| &stream.examples);
        all.map(|(kind, message)| format!("{kind}: {message}"))
            .collect()
    }
}

fn locate(timeline: &Timeline, cell: usize, intended_s: f64) -> Place {
    Place {
        cell,
        window: timeline.window(cell, intended_s),
        width_s: timeline.width_s,
    }
}

fn take_before<T>(notes: &mut VecDeque<T>, is_before: impl Fn(&T) -> bool) -> Option<T> {
    if notes.front().is_some_and(is_before) {
        notes.pop_front()
    } else {
        None
    }
}

//! What a null server is asked to do, and when it answers by that: `perf/systems/null/behaviour.py`, rule by rule.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::Deserialize;

use crate::moment::Moment;

/// The settings of a null server; their meaning, and what may not be combined, is in the Python file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Behaviour {
    pub service_time_ms: f64,
    pub slow_every: Option<u64>,
    pub slow_ms: Option<f64>,
    pub slots: Option<usize>,
    pub stall_at_s: Option<f64>,
    pub stall_s: Option<f64>,
    pub refuse_every: Option<u64>,
    pub never_answer_every: Option<u64>,
    pub wrong_every: Option<u64>,
    pub holds: Option<Holdings>,
    pub keep_record: bool,
}

/// The rows [0, rows) of the sensor workload, as if they were stored.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holdings {
    pub seed: u64,
    pub devices: u64,
    pub payload_bytes: u64,
    pub rows: u64,
}

/// How an operation is answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum How {
    Done,
    Refused,
    Wrong,
}

/// What becomes of one operation: when it is to be answered, by the clock of its arrival, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    pub due_s: f64,
    pub how: How,
}

/// Decides on one operation after the other, in the order of their arrival.
pub struct AnswerSchedule {
    asked: Behaviour,
    operations: u64,
    first_s: f64,
    free_s: BinaryHeap<Reverse<Moment>>,
}

impl AnswerSchedule {
    /// Makes all slots free.
    pub fn new(asked: Behaviour) -> Self {
        let free = Reverse(Moment(f64::NEG_INFINITY));
        let free_s = std::iter::repeat_n(free, asked.slots.unwrap_or(0)).collect();
        Self {
            asked,
            operations: 0,
            first_s: 0.0,
            free_s,
        }
    }

    /// Says what becomes of an operation that arrived now.
    pub fn decide(&mut self, arrived_s: f64) -> Plan {
        if self.operations == 0 {
            self.first_s = arrived_s;
        }
        self.operations += 1;
        let service_s = self.service_ms() / 1000.0;
        let mut due_s = arrived_s + service_s;
        if let Some(mut free) = self.free_s.peek_mut() {
            due_s = arrived_s.max(free.0.0) + service_s;
            *free = Reverse(Moment(due_s));
        }
        let due_s = if self.is_turn(self.asked.never_answer_every) {
            f64::INFINITY
        } else {
            self.unstalled(due_s)
        };
        Plan {
            due_s,
            how: self.how(),
        }
    }

    fn is_turn(&self, every: Option<u64>) -> bool {
        every.is_some_and(|every| self.operations.is_multiple_of(every))
    }

    fn service_ms(&self) -> f64 {
        match self.asked.slow_ms {
            Some(slow_ms) if self.is_turn(self.asked.slow_every) => slow_ms,
            _ => self.asked.service_time_ms,
        }
    }

    fn unstalled(&self, due_s: f64) -> f64 {
        let (Some(at_s), Some(length_s)) = (self.asked.stall_at_s, self.asked.stall_s) else {
            return due_s;
        };
        let begins_s = self.first_s + at_s;
        let ends_s = begins_s + length_s;
        if (begins_s..ends_s).contains(&due_s) {
            ends_s
        } else {
            due_s
        }
    }

    fn how(&self) -> How {
        if self.is_turn(self.asked.refuse_every) {
            How::Refused
        } else if self.is_turn(self.asked.wrong_every) {
            How::Wrong
        } else {
            How::Done
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due_s(asked: Behaviour, arrivals_s: &[f64]) -> Vec<f64> {
        let mut line = AnswerSchedule::new(asked);
        arrivals_s
            .iter()
            .map(|&arrived_s| line.decide(arrived_s).due_s)
            .collect()
    }

    fn hows(asked: Behaviour, operations: usize) -> Vec<How> {
        let mut line = AnswerSchedule::new(asked);
        (0..operations).map(|_| line.decide(0.0).how).collect()
    }

    #[test]
    fn each_so_manieth_operation_is_slow() {
        let asked = Behaviour {
            service_time_ms: 2.0,
            slow_every: Some(3),
            slow_ms: Some(20.0),
            ..Behaviour::default()
        };
        assert_eq!(due_s(asked, &[0.0, 1.0, 2.0]), [0.002, 1.002, 2.02]);
    }

    #[test]
    fn more_than_slots_wait_and_a_late_timer_delays_nobody_else() {
        let asked = Behaviour {
            service_time_ms: 1000.0,
            slots: Some(2),
            ..Behaviour::default()
        };
        let arrivals_s = [0.0, 0.25, 0.5, 0.5, 9.0];
        assert_eq!(due_s(asked, &arrivals_s), [1.0, 1.25, 2.0, 2.25, 10.0]);
    }

    #[test]
    fn nothing_is_answered_in_a_stall_which_begins_by_the_first_operation() {
        let asked = Behaviour {
            stall_at_s: Some(1.0),
            stall_s: Some(0.5),
            ..Behaviour::default()
        };
        let arrivals_s = [10.0, 10.75, 11.0, 11.25, 11.5];
        assert_eq!(due_s(asked, &arrivals_s), [10.0, 10.75, 11.5, 11.5, 11.5]);
    }

    #[test]
    fn what_is_never_answered_still_leaves_its_slot() {
        let asked = Behaviour {
            service_time_ms: 1000.0,
            slots: Some(1),
            never_answer_every: Some(2),
            ..Behaviour::default()
        };
        assert_eq!(due_s(asked, &[0.0, 0.0, 0.0]), [1.0, f64::INFINITY, 3.0]);
    }

    #[test]
    fn what_is_refused_cannot_also_be_wrong() {
        let asked = Behaviour {
            refuse_every: Some(4),
            wrong_every: Some(2),
            ..Behaviour::default()
        };
        assert_eq!(
            hows(asked, 4),
            [How::Done, How::Wrong, How::Done, How::Refused]
        );
    }
}

//! One thread, one event loop: takes what comes and answers each operation when it is due.
//!
//! The loop sleeps until shortly before the next answer is due and then looks all the time, so that an
//! answer leaves some microseconds late, and not by as much as a sleeper needs to wake. How long before,
//! it learns from how late it is woken, which differs from machine to machine by a factor of ten.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::behaviour::{AnswerSchedule, Behaviour, How};
use crate::moment::Moment;
use crate::record::{Line, Record};
use crate::wire::{Broken, Operation, Wire};

/// How long before an answer is due the loop stops sleeping: at first, at least and at most.
const AWAKE_S: [f64; 3] = [60e-6, 20e-6, 400e-6];
/// By how much that changes with each sleep.
const STEP_S: f64 = 10e-6;
/// How many sleeps are to end in time for one that does not.
const IN_TIME: f64 = 9.0;
const RECEIVE_BYTES: usize = 1 << 16;
const EVENTS: usize = 256;
const LISTENER: u64 = u64::MAX;
const END: u64 = u64::MAX - 1;
const ALARM: u64 = u64::MAX - 2;
const NO_WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

struct Connection {
    peer: TcpStream,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
    /// Whether the loop is told when the peer takes more.
    is_full: bool,
}

/// An operation that is to be answered. Places differ, so none compares further.
struct Waiting<Request> {
    due_s: Moment,
    place: u64,
    arrived_s: f64,
    connection: usize,
    how: How,
    operation: Operation<Request>,
}

impl<Request> Ord for Waiting<Request> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due_s, self.place).cmp(&(other.due_s, other.place))
    }
}

impl<Request> PartialOrd for Waiting<Request> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<Request> PartialEq for Waiting<Request> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<Request> Eq for Waiting<Request> {}

/// Serves until it is told to end, between two operations and never within one.
pub struct Server<W: Wire> {
    wire: W,
    listener: TcpListener,
    events: OwnedFd,
    clock: Instant,
    answer_schedule: AnswerSchedule,
    places: u64,
    waiting: BinaryHeap<Reverse<Waiting<W::Request>>>,
    /// By number; a number is used once only, so that an answer never meets another client.
    connections: Vec<Option<Connection>>,
    /// What was answered and not yet sent, in order.
    answered: Vec<Waiting<W::Request>>,
    record: Option<Record>,
    chunk: Vec<u8>,
    awake_s: f64,
    /// Ends a sleep; `epoll` itself would count in milliseconds.
    alarm: OwnedFd,
    alarm_s: Option<f64>,
}

impl<W: Wire> Server<W> {
    /// Listens; `clock` is what times count from.
    ///
    /// # Errors
    /// That is not possible at this address.
    pub fn new(wire: W, address: (&str, u16), told: Behaviour, clock: Instant) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let events = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(
            &events,
            &listener,
            EventData::new_u64(LISTENER),
            EventFlags::IN,
        )?;
        let alarm = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        epoll::add(&events, &alarm, EventData::new_u64(ALARM), EventFlags::IN)?;
        let record = told.keep_record.then(Record::default);
        Ok(Self {
            wire,
            listener,
            events,
            clock,
            answer_schedule: AnswerSchedule::new(told),
            places: 0,
            waiting: BinaryHeap::new(),
            connections: Vec::new(),
            answered: Vec::new(),
            record,
            chunk: vec![0; RECEIVE_BYTES],
            awake_s: AWAKE_S[0],
            alarm,
            alarm_s: None,
        })
    }

    /// Answers until `end` can be read; gives what it did, if it was told to keep a record.
    ///
    /// # Errors
    /// The kernel refuses to wait.
    pub fn serve(mut self, end: &impl AsFd) -> io::Result<Option<Record>> {
        epoll::add(&self.events, end, EventData::new_u64(END), EventFlags::IN)?;
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        loop {
            let wait = self.set_alarm()?.then_some(&NO_WAIT);
            events.clear();
            match epoll::wait(&self.events, spare_capacity(&mut events), wait) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                match event.data.u64() {
                    END => return Ok(self.end()),
                    LISTENER => self.accept()?,
                    ALARM => self.wake()?,
                    number => self.hear(usize::try_from(number).unwrap_or(usize::MAX), event.flags),
                }
            }
            self.answer_due();
        }
    }

    fn now_s(&self) -> f64 {
        self.clock.elapsed().as_secs_f64()
    }

    /// Sets when the sleep that begins now is to end; gives whether there is no time to sleep at all.
    fn set_alarm(&mut self) -> io::Result<bool> {
        let due_s = self.waiting.peek().map(|one| one.0.due_s.0);
        let until_s = due_s
            .filter(|due_s| due_s.is_finite())
            .map(|due_s| due_s - self.awake_s);
        let rest_s = until_s.map(|until_s| until_s - self.now_s());
        if rest_s.is_some_and(|rest_s| rest_s <= 0.0) {
            return Ok(true);
        }
        if until_s != self.alarm_s {
            self.alarm_s = until_s;
            let value = Itimerspec {
                it_interval: NO_WAIT,
                it_value: rest_s.and_then(timespec).unwrap_or(NO_WAIT), // none: no alarm
            };
            timerfd_settime(&self.alarm, TimerfdTimerFlags::empty(), &value)?;
        }
        Ok(false)
    }

    /// Ends a sleep, and learns: nine sleeps of ten are to be over before an answer is due.
    fn wake(&mut self) -> io::Result<()> {
        match rustix::io::read(&self.alarm, &mut [0; 8]) {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(until_s) = self.alarm_s.take() {
            let is_late = self.now_s() - until_s > self.awake_s;
            let step_s = if is_late { STEP_S * IN_TIME } else { -STEP_S };
            self.awake_s = (self.awake_s + step_s).clamp(AWAKE_S[1], AWAKE_S[2]);
        }
        Ok(())
    }

    fn accept(&mut self) -> io::Result<()> {
        let peer = match self.listener.accept() {
            Ok((peer, _)) => peer,
            Err(error) if is_passing(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        peer.set_nonblocking(true)?;
        peer.set_nodelay(true)?;
        let number = EventData::new_u64(self.connections.len() as u64);
        epoll::add(&self.events, &peer, number, EventFlags::IN)?;
        self.connections.push(Some(Connection {
            peer,
            inbox: Vec::new(),
            outbox: Vec::new(),
            is_full: false,
        }));
        Ok(())
    }

    fn hear(&mut self, number: usize, flags: EventFlags) {
        let is_alive = !flags.contains(EventFlags::OUT) || self.flush(number);
        if is_alive && flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            if self.receive(number).is_ok() {
                self.flush(number);
            } else {
                self.drop_connection(number);
            }
        }
    }

    fn receive(&mut self, number: usize) -> Result<(), Broken> {
        let arrived_s;
        {
            let Some(Some(connection)) = self.connections.get_mut(number) else {
                return Ok(());
            };
            match connection.peer.read(&mut self.chunk) {
                Ok(0) => return Err(Broken),
                Ok(size) => connection.inbox.extend_from_slice(&self.chunk[..size]),
                Err(error) if is_passing(&error) => return Ok(()),
                Err(_) => return Err(Broken),
            }
            arrived_s = self.clock.elapsed().as_secs_f64();
        }
        let mut begin = 0;
        let Some(Some(connection)) = self.connections.get_mut(number) else {
            return Ok(());
        };
        while let Some(length) = self.wire.length(&connection.inbox[begin..])? {
            let Some(message) = connection.inbox.get(begin..begin + length) else {
                break;
            };
            begin += length;
            if let Some(operation) = self.wire.take(message, &mut connection.outbox)? {
                let plan = self.answer_schedule.decide(arrived_s);
                self.places += 1;
                self.waiting.push(Reverse(Waiting {
                    due_s: Moment(plan.due_s),
                    place: self.places,
                    arrived_s,
                    connection: number,
                    how: plan.how,
                    operation,
                }));
            }
        }
        connection.inbox.drain(..begin);
        Ok(())
    }

    fn answer_due(&mut self) {
        let now = Moment(self.now_s());
        while let Some(next) = self.waiting.peek() {
            if next.0.due_s > now {
                break;
            }
            let Some(Reverse(one)) = self.waiting.pop() else {
                break;
            };
            if let Some(Some(connection)) = self.connections.get_mut(one.connection) {
                let outbox = &mut connection.outbox;
                self.wire.answer(&one.operation.request, one.how, outbox);
            }
            self.answered.push(one);
        }
        let answered = std::mem::take(&mut self.answered);
        for one in &answered {
            // The first answer of a connection takes all of them along.
            let is_there = self.flush(one.connection);
            let answered_s = if is_there {
                self.now_s()
            } else {
                f64::INFINITY
            };
            self.note(one, answered_s);
        }
        self.answered = answered;
        self.answered.clear();
    }

    /// Sends what there is for a client, as far as it takes it; gives whether the client is still there.
    fn flush(&mut self, number: usize) -> bool {
        let Some(Some(connection)) = self.connections.get_mut(number) else {
            return false;
        };
        while !connection.outbox.is_empty() {
            match connection.peer.write(&connection.outbox) {
                Ok(0) => return self.drop_connection(number),
                Ok(size) => {
                    connection.outbox.drain(..size);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.drop_connection(number),
            }
        }
        let is_full = !connection.outbox.is_empty();
        if is_full != connection.is_full {
            connection.is_full = is_full;
            let wanted = if is_full {
                EventFlags::IN | EventFlags::OUT
            } else {
                EventFlags::IN
            };
            let data = EventData::new_u64(number as u64);
            if epoll::modify(&self.events, &connection.peer, data, wanted).is_err() {
                return self.drop_connection(number);
            }
        }
        true
    }

    /// Closes a connection, which the kernel then forgets; what waits for it is never answered.
    fn drop_connection(&mut self, number: usize) -> bool {
        if let Some(connection) = self.connections.get_mut(number) {
            *connection = None;
        }
        false
    }

    fn note(&mut self, one: &Waiting<W::Request>, answered_s: f64) {
        if let Some(record) = &mut self.record {
            record.append(&Line {
                arrived_s: one.arrived_s,
                due_s: one.due_s.0,
                answered_s,
                is_refused: one.how == How::Refused,
                device: one.operation.device,
                ts_ms: one.operation.ts_ms,
            });
        }
    }

    fn end(mut self) -> Option<Record> {
        for Reverse(one) in std::mem::take(&mut self.waiting) {
            self.note(&one, f64::INFINITY);
        }
        self.record
    }
}

fn timespec(length_s: f64) -> Option<Timespec> {
    Timespec::try_from(Duration::try_from_secs_f64(length_s).ok()?).ok()
}

fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted
    )
}

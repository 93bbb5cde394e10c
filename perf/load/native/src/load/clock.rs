//! Seconds from the start of the first stage, and waking at a moment much more exactly than 1 ms.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

const TRIES: usize = 9;

/// Seconds from the start of the first stage; negative before it.
#[allow(async_fn_in_trait)] // one thread: nobody asks whether a future may move to another
pub trait Clock {
    /// Gives the time.
    fn now(&self) -> f64;

    /// Returns at `time_s` or just after it; at once if that has passed.
    async fn sleep_until(&self, time_s: f64);
}

/// The real clock; a step of the host's time while it runs does not move it.
///
/// Tokio's own timer counts milliseconds, which would be the lateness of half of all sends. A timerfd
/// wakes as soon as the kernel does.
pub struct MonotonicClock {
    /// What the monotonic clock shows when the first stage starts.
    origin_s: f64,
    /// Timers that nobody sleeps on.
    idle: RefCell<Vec<AsyncFd<OwnedFd>>>,
}

impl MonotonicClock {
    /// Counts from `start_at_s` (Unix time).
    #[must_use]
    pub fn new(start_at_s: f64) -> Self {
        // Of several pairs of readings the closest is taken: between the two of a pair, this process
        // may have lost its core for milliseconds.
        let ahead_s = (0..TRIES)
            .map(|_| wall_minus_monotonic_s())
            .fold(f64::NEG_INFINITY, f64::max);
        Self {
            origin_s: start_at_s - ahead_s,
            idle: RefCell::default(),
        }
    }

    // Since tokio 1.54 registering is unsafe, as any type could give any number for its file. This one
    // owns its file, and keeps it open for as long as it is registered.
    #[allow(deprecated)]
    fn lease(&self) -> std::io::Result<Lease<'_>> {
        let idle = self.idle.borrow_mut().pop();
        let timer = match idle {
            Some(timer) => timer,
            None => AsyncFd::new(timerfd_create(
                TimerfdClockId::Monotonic,
                TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
            )?)?,
        };
        Ok(Lease {
            timer: Some(timer),
            idle: &self.idle,
        })
    }

    async fn sleep_exactly(&self, time_s: f64) -> std::io::Result<()> {
        let lease = self.lease()?;
        let Some(timer) = &lease.timer else {
            return Ok(());
        };
        let at = Itimerspec {
            it_interval: timespec(0.0),
            it_value: timespec(self.origin_s + time_s),
        };
        while self.now() < time_s {
            timerfd_settime(timer.get_ref(), TimerfdTimerFlags::ABSTIME, &at)?;
            // Setting a timer forgets that it went off, so nothing need be read from it.
            timer.readable().await?.clear_ready();
        }
        Ok(())
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> f64 {
        monotonic_s() - self.origin_s
    }

    async fn sleep_until(&self, time_s: f64) {
        if time_s <= self.now() {
            return;
        }
        if self.sleep_exactly(time_s).await.is_err() {
            // No timer to be had, as when files run out: a millisecond late rather than not at all.
            let rest_s = (time_s - self.now()).max(0.0);
            tokio::time::sleep(std::time::Duration::from_secs_f64(rest_s)).await;
        }
    }
}

/// A timer that is given back however its sleep ends.
struct Lease<'a> {
    timer: Option<AsyncFd<OwnedFd>>,
    idle: &'a RefCell<Vec<AsyncFd<OwnedFd>>>,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.idle.borrow_mut().extend(self.timer.take());
    }
}

/// Gives the Unix time.
#[must_use]
pub fn unix_s() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |passed| passed.as_secs_f64())
}

/// Gives the user and system time of all threads of this process so far, in seconds.
#[must_use]
pub fn own_cpu_s() -> f64 {
    seconds(clock_gettime(ClockId::ProcessCPUTime))
}

fn monotonic_s() -> f64 {
    seconds(clock_gettime(ClockId::Monotonic))
}

fn wall_minus_monotonic_s() -> f64 {
    // The later of the two reads: a pause between them only ever makes the difference smaller.
    let wall_s = unix_s();
    wall_s - monotonic_s()
}

#[allow(clippy::cast_precision_loss)] // to the nanosecond for a hundred days since boot
fn seconds(time: Timespec) -> f64 {
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

#[allow(clippy::cast_possible_truncation)] // a timer takes whole nanoseconds
fn timespec(time_s: f64) -> Timespec {
    let whole_s = time_s.floor().max(0.0);
    // Rounded up: a timer that goes off just before its time would be set again.
    let rest_ns = ((time_s - whole_s).max(0.0) * 1e9).ceil() as i64;
    Timespec {
        tv_sec: whole_s as i64 + rest_ns / 1_000_000_000,
        tv_nsec: rest_ns % 1_000_000_000,
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, MonotonicClock, timespec, unix_s};

    #[test]
    fn it_counts_from_the_start_by_the_wall() {
        let clock = MonotonicClock::new(unix_s() + 5.0);
        assert!((clock.now() + 5.0).abs() < 0.5);
    }

    #[test]
    fn a_sleep_never_ends_early_and_timers_are_used_again() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let clock = MonotonicClock::new(unix_s());
            for _ in 0..5 {
                let until_s = clock.now() + 0.0013;
                clock.sleep_until(until_s).await;
                assert!(clock.now() >= until_s);
            }
            assert_eq!(clock.idle.borrow().len(), 1);
        });
    }

    #[test]
    fn what_is_set_is_not_before_what_was_asked() {
        let found = timespec(12.999_999_999_9);
        assert_eq!((found.tv_sec, found.tv_nsec), (13, 0));
    }
}

//! The load itself: when operations are sent, what is noted of each, and what is reported of all.

pub mod clock;
pub mod hlog;
pub mod loops;
pub mod output;
pub mod recorder;
pub mod runner;
pub mod schedule;
pub mod streams;
pub mod timeline;
pub mod times;
pub mod usage;

#[cfg(test)]
mod loads_tests;
#[cfg(test)]
pub(crate) mod scripted;

//! Load: runs tasks, each alone on the device.
//!
//! ```text
//! schedule     the next task: rounds in random order, until all have settled or time is up
//! task         one task once: its threads, its readings
//! start        its threads start at the same moment, or not at all
//! requests     one thread: its share of the requests, kept outstanding
//! log_writer   the thread of a durable write
//! sustain      one load for minutes, in windows, and the changes of its level
//! ```
//!
//! Rejected: a pool of threads. Threads of a point end with it, so that no worker of one point
//! counts for the next.
//!
//! Limits: one task at a time; a device under two loads is a point of two loads.

mod log_writer;
mod requests;
pub(crate) mod schedule;
mod start;
pub(crate) mod sustain;
mod task;

pub use sustain::{Sustained, SustainedLevel, Window};
pub(crate) use task::TaskRunner;

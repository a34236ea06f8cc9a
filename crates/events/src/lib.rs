//! Time by cause: wait events, statistics and I/O streams, recorded by session without locks.
//!
//! Code that may wait names an [`Event`], code that works counts a [`Statistic`], and every request
//! for bytes belongs to an [`IoStream`]. Each server process is a [`Session`], the only writer of
//! its record. A [`Recorder`] holds the records of one instance. The difference of two snapshots is
//! a [`Period`], in which elapsed = CPU + waits + unaccounted.
//!
//! Mechanism: a record is an array of counters, one cell for each row of the tables below.
//! The counters are atomics because a progress display reads them while the owner writes.
//! Each has one writer, so an update is a plain load and store, without a lock prefix. A wait
//! costs two clock reads (about 20 ns each from the vDSO) and six updates, together below 60
//! ns (`cargo xtask bench events`). The CPU part of a wait is measured where the wait is long
//! enough to pay for that (`recorder`).
//!
//! Why not a trace of every wait: ten million waits are gigabytes; the log2 histogram keeps their
//! shape in 32 words. A trace of requests is kept on demand (`trace`). Why not thread-locals: code
//! receives its session as an argument, so a library user sees which session pays.
//!
//! Each wait is counted twice by its length. A log2 histogram of 32 buckets, from 1 microsecond to
//! 17 minutes, serves tables. One within 3.2% serves quantiles ([`LatencyHistogram`]); a session's
//! first wait for an event allocates its 9 KB.
//!
//! Limits: the I/O profile keeps 4,096 time buckets for each stream and doubles their
//! width when they are full.

#![warn(missing_docs)]

mod cancel;
pub mod clock;
mod histogram;
mod latency;
mod locked;
mod pool_counts;
mod profile;
mod recorder;
mod session;
pub mod sharing;
mod sort_server;
mod table;
mod trace;

pub use cancel::{Cancel, Interrupted};
pub use clock::now;
pub use histogram::{BUCKETS, Histogram};
pub use latency::LatencyHistogram;
pub use locked::{locked, wait_signal};
pub use pool_counts::PoolCounts;
pub use profile::Profile;
pub use recorder::{EventTotals, Period, Recorder, SessionTotals, Snapshot, StreamTotals};
pub use session::{LARGE_REQUEST, PhaseSpan, RequestTimes, Session, WaitBegin};
pub use sort_server::SortServerSummary;
pub use table::{
    Direction, Event, FileType, Function, IoStream, Operation, Phase, Role, SessionKind, Statistic, Unit,
    WaitClass,
};
pub use trace::{Moved, Trace, TracedRequest, TracedSession};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;

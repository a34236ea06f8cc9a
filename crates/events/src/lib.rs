//! Where time goes: wait events, statistics and I/O streams, recorded per
//! session without locks.
//!
//! What it does: code that may wait names an [`Event`]; code that does work
//! counts a [`Statistic`]; every request for bytes belongs to an [`IoStream`].
//! Each server process is a [`Session`], the only writer of its record.
//! A [`Recorder`] holds the records of one instance; two of its snapshots give
//! a [`Period`], from which elapsed = CPU + waits + unaccounted follows.
//!
//! How: a record is an array of counters, one cell per row of the tables below.
//! They are atomics because a progress display reads them while the owner
//! writes, but each has one writer, so an update is a plain load and store, with
//! no lock prefix and no sharing. A wait costs two clock reads (about 20 ns
//! each from the vDSO) and six such updates, together below 60 ns
//! (`cargo xtask bench events`). How much of a wait is CPU is read beside it where
//! the wait is long enough to pay for that (`recorder`).
//!
//! Why not a trace of every wait: ten million of them are gigabytes; the log2
//! histogram keeps the shape in 32 words. A trace of requests is kept where it is asked for (`trace`). Why not thread-locals: a session is
//! handed to the code that works for it, so a library user sees who pays.
//!
//! Waits are counted twice by their length: in a log2 histogram of 32 buckets, below 1 microsecond to above 17 minutes, for tables, and for
//! quantiles in one that is within 3.2% ([`LatencyHistogram`]); its 9 KB are had by a session's first wait for the event.
//!
//! Limits:
//! The I/O profile keeps 4,096 time buckets per stream and doubles their width
//! when they are full.

#![warn(missing_docs)]

mod cancel;
pub mod clock;
mod histogram;
mod latency;
mod locked;
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
pub use profile::Profile;
pub use recorder::{EventTotals, Period, Recorder, SessionTotals, Snapshot, StreamTotals};
pub use session::{PhaseSpan, RequestTimes, Session, WaitBegin};
pub use sort_server::SortServerSummary;
pub use table::{
    Direction, Event, IoStream, Operation, Phase, Role, SessionKind, Statistic, Unit, WaitClass,
};
pub use trace::{Moved, Trace, TracedRequest, TracedSession};

#[cfg(test)]
mod tests;

//! The trace of a run in its record: sums, and a sample to draw. All of it is in the bundle's `trace.bin`.

use plumb_events::Direction;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceSummary {
    pub requests: u64,
    /// Requests that there was no room for.
    pub dropped: u64,
    /// When the first could be, nanoseconds from the run's start.
    #[serde(default)]
    pub begin_ns: u64,
    /// How long they were kept, nanoseconds.
    pub elapsed_ns: u64,
    pub sessions: Vec<TraceSession>,
    pub sizes: Vec<TraceBucket>,
    pub latencies: Vec<TraceBucket>,
    /// Some of them, the slowest among them.
    pub points: Vec<TracePoint>,
}

/// The requests of a session in one direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceSession {
    pub name: String,
    /// Which way their bytes go.
    pub direction: Direction,
    pub requests: u64,
    pub bytes: u64,
    /// Their service times in sum.
    pub time_ns: u64,
    pub max_ns: u64,
}

/// Requests of a range, which ends with a power of two and begins behind the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceBucket {
    /// The largest in it: bytes, or nanoseconds.
    pub to: u64,
    pub reads: u64,
    pub writes: u64,
}

/// A request in the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracePoint {
    /// When it was handed to the kernel, from the begin of the trace.
    pub begin_ns: u64,
    pub latency_ns: u64,
    pub bytes: u64,
    pub direction: Direction,
}

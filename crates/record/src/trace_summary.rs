//! The trace of a run in its record: sums, and a sample to draw. The bundle's `trace.bin` has all
//! requests.

use plumb_events::Direction;
use serde::{Deserialize, Serialize};

/// Summary of a trace in the record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceSummary {
    pub requests: u64,
    /// Number of requests dropped for lack of room.
    pub dropped: u64,
    /// Start of the trace, nanoseconds from the run's start.
    #[serde(default)]
    pub begin_ns: u64,
    /// Time covered by the trace, nanoseconds.
    pub elapsed_ns: u64,
    /// Sums by session and direction.
    pub sessions: Vec<TraceSession>,
    /// Requests by length, in bytes.
    pub sizes: Vec<TraceBucket>,
    /// Requests by service time, in nanoseconds.
    pub latencies: Vec<TraceBucket>,
    /// A sample of requests, with the slowest.
    pub points: Vec<TracePoint>,
}

/// The requests of a session in one direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceSession {
    pub name: String,
    pub direction: Direction,
    pub requests: u64,
    pub bytes: u64,
    /// Sum of their service times, nanoseconds.
    pub time_ns: u64,
    /// Longest service time of them, nanoseconds.
    pub max_ns: u64,
}

/// Requests in a range that ends at a power of two, and starts above the previous range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceBucket {
    /// Upper end of the range, included: bytes or nanoseconds.
    pub to: u64,
    pub reads: u64,
    pub writes: u64,
}

/// A request in the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracePoint {
    /// Submission, nanoseconds from the start of the trace.
    pub begin_ns: u64,
    /// Service time of the request, nanoseconds.
    pub latency_ns: u64,
    pub bytes: u64,
    pub direction: Direction,
}

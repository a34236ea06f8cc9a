//! A trace of other programs in its record: sums, patterns and pictures of their requests.
//!
//! Two views lie side by side. Calls are what the programs asked of the kernel, requests what the
//! disks were asked to do. Sums have a row for each combination of process, operation and file, of
//! which a trace has few; the requests themselves are not kept, so that memory is fixed.

use crate::TraceBucket;
use plumb_units::{Bytes, RowCount};
use serde::{Deserialize, Serialize};

/// Sums of a trace of other programs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snoop {
    /// Traced programs as they were asked for: `pid 4711`, `name lgwr`.
    pub target: String,
    /// Source of the figures: `tracepoints`, or `samples of /proc`.
    pub source: String,
    /// Sentences on the limits of the source, with the way to see more.
    pub cannot_see: Vec<String>,
    /// Events of the kernel by buffer, with those lost.
    pub buffers: Vec<SnoopBuffer>,
    /// Completions of requests whose issue was not seen.
    pub unmatched_completions: u64,
    /// Exits of calls whose entry was not seen.
    pub unmatched_exits: u64,
    /// Calls on sockets, pipes and terminals, which no disk serves.
    pub other_calls: u64,
    /// Requests in flight at the end.
    pub in_flight: u64,
    /// Sums of calls, the longest time first.
    pub calls: Vec<SnoopCalls>,
    /// Sums of requests of the traced programs, the longest time first.
    pub requests: Vec<SnoopRequests>,
    /// Requests of other processes on the same machine, by disk.
    pub others: Vec<SnoopRequests>,
    /// Calls by bytes: buckets of reads and writes.
    pub call_sizes: Vec<TraceBucket>,
    /// Calls by time, in nanoseconds.
    pub call_times: Vec<TraceBucket>,
    pub request_sizes: Vec<TraceBucket>,
    /// Requests by time from issue to completion, in nanoseconds.
    pub request_times: Vec<TraceBucket>,
    /// Requests in flight when one of the traced programs was issued, itself included, by disk.
    pub depths: Vec<SnoopDepth>,
    /// Files by requests, with the share of those that follow each other.
    pub places: Vec<SnoopPlace>,
    /// Recognized patterns with the numbers that show them.
    pub patterns: Vec<SnoopPattern>,
    /// Bytes of both views by direction.
    pub amplification: Vec<SnoopAmplification>,
    /// Counts over time and another quantity.
    pub maps: Vec<SnoopMap>,
}

impl Snoop {
    /// Returns the number of events that were lost.
    pub fn lost(&self) -> u64 {
        self.buffers.iter().map(|buffer| buffer.lost).sum()
    }

    /// True if the figures are samples, which know no single call or request and no time.
    pub fn is_sampled(&self) -> bool {
        self.buffers.is_empty()
    }
}

/// Sizes of a server's reads and writes of the files of its database, of one execution.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestSizes {
    /// Reason why nothing was traced; `None` if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Calls by bytes: buckets of reads and writes.
    pub sizes: Vec<TraceBucket>,
    /// Events of the kernel that were lost.
    pub lost: u64,
}

impl RequestSizes {
    /// Returns the mean bytes of a read and of a write; `None` without one.
    pub fn means(&self) -> [Option<u64>; 2] {
        [(self.read_bytes, self.calls(|row| row.reads)), (self.written_bytes, self.calls(|row| row.writes))]
            .map(|(bytes, calls)| bytes.checked_div(calls))
    }

    fn calls(&self, of: fn(&TraceBucket) -> u64) -> u64 {
        self.sizes.iter().map(of).sum()
    }

    /// Returns facts of a plan, such as `4,425 of 34.6 MB: 4,400 to 8.00 KB, 25 to 128 KB`.
    pub fn facts(&self) -> Vec<(String, String)> {
        if let Some(why) = &self.missing {
            return vec![("Request sizes".to_string(), why.clone())];
        }
        let line = |of: fn(&TraceBucket) -> u64, bytes: u64| {
            let rows = self.sizes.iter().filter(|row| of(row) > 0);
            let rows = rows.map(|row| format!("{} to {}", RowCount(of(row)), Bytes(row.to)));
            let lost =
                if self.lost > 0 { format!("; {} events were lost", self.lost) } else { String::new() };
            match self.calls(of) {
                0 => format!("none{lost}"),
                calls => format!(
                    "{} of {}: {}{lost}",
                    RowCount(calls),
                    Bytes(bytes),
                    rows.collect::<Vec<_>>().join(", ")
                ),
            }
        };
        let reads = ("Reads of files".to_string(), line(|row| row.reads, self.read_bytes));
        vec![reads, ("Writes of files".to_string(), line(|row| row.writes, self.written_bytes))]
    }
}

/// Events of one ring buffer of the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnoopBuffer {
    pub name: String,
    /// Size of the buffer of all processors, bytes.
    pub bytes: u64,
    /// Events that happened, as the kernel counts them.
    pub events: u64,
    /// Events without room in the buffer.
    pub lost: u64,
}

/// Calls of one process on one file by one operation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnoopCalls {
    pub pid: u32,
    pub process: String,
    pub operation: String,
    pub effect: String,
    pub file: String,
    pub calls: u64,
    pub errors: u64,
    pub bytes: u64,
    /// Sum of the times from entry to exit, nanoseconds.
    pub time_ns: u64,
    pub max_ns: u64,
    /// Calls that write and return when the bytes are durable (`O_SYNC`, `O_DSYNC`).
    #[serde(default)]
    pub durable: u64,
    /// Requests that completed within the calls.
    pub disk_requests: u64,
    pub disk_bytes: u64,
    /// Time of these requests from issue to completion, nanoseconds.
    pub disk_time_ns: u64,
}

impl SnoopCalls {
    /// Effect of a row that has only the bytes by which positions in a file moved. The calls that
    /// moved them are in other rows.
    pub const POSITION: &str = "position";

    /// True for a row of positions, whose bytes add to no sum of calls.
    pub fn is_position(&self) -> bool {
        self.effect == SnoopCalls::POSITION
    }
}

/// Requests of one owner on one disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnoopRequests {
    pub pid: u32,
    pub process: String,
    pub disk: String,
    /// Direction and flags as the kernel writes them: `WS`.
    pub flags: String,
    /// Relation to the owner: `call`, `written back`.
    pub how: String,
    /// Name of the call, if one made or waited for them.
    pub call: String,
    pub file: String,
    pub requests: u64,
    pub bytes: u64,
    /// Sum of the times from being made to issue, nanoseconds.
    pub queue_ns: u64,
    /// Sum of the times from issue to completion, nanoseconds.
    pub time_ns: u64,
    pub max_ns: u64,
}

/// Requests of the traced programs that found this number in flight.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnoopDepth {
    pub disk: String,
    pub depth: u32,
    /// Requests that found this number of all processes.
    pub requests: u64,
    /// Requests that found this number of the traced programs.
    #[serde(default)]
    pub own: u64,
}

/// Requests to one file in one view.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnoopPlace {
    pub view: String,
    pub file: String,
    pub requests: u64,
    /// Requests that begin where the one before in the same direction ended.
    pub follows: u64,
    /// Requests with a known position behind a first one.
    pub placed: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnoopPattern {
    pub view: String,
    pub file: String,
    /// Name of the pattern: `appends`.
    pub name: String,
    pub requests: u64,
    /// Requests that could have shown it.
    pub of: u64,
    /// Numbers of the trace that show it.
    pub arithmetic: String,
}

/// Bytes of calls and of the disk in one direction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnoopAmplification {
    pub direction: String,
    pub call_bytes: u64,
    /// Bytes that the disks moved for them.
    pub disk_bytes: u64,
    /// Bytes of the disks by relation to the owner.
    pub parts: Vec<SnoopPart>,
}

/// Bytes of the disks for one reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnoopPart {
    pub how: String,
    pub bytes: u64,
}

/// Counts over time and a second quantity.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnoopMap {
    pub title: String,
    /// Start of the first column, nanoseconds from the start of the trace.
    pub time_from_ns: u64,
    pub time_step_ns: u64,
    /// Unit of the rows: `ns` by powers of two, or `bytes` in equal steps.
    pub unit: String,
    /// Start of the first row in its unit.
    pub row_from: u64,
    /// Height of a row; 0 for powers of two.
    pub row_step: u64,
    /// Counts by column, then by row.
    pub cells: Vec<Vec<u64>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_requests_are_facts_and_means() {
        let row = |to, reads, writes| TraceBucket { to, reads, writes };
        let sizes = vec![row(8 << 10, 4_400, 0), row(128 << 10, 25, 0)];
        let mut found = RequestSizes { read_bytes: 39_321_600, sizes, ..RequestSizes::default() };
        assert_eq!(found.means(), [Some(8_886), None]);
        let shown = |sizes: &RequestSizes| sizes.facts().into_iter().map(|it| it.1).collect::<Vec<_>>();
        let reads = "4,425 of 37.5 MB: 4,400 to 8.00 KB, 25 to 128 KB";
        assert_eq!(shown(&found), [reads, "none"]);
        found.lost = 3;
        assert_eq!(shown(&found), [&format!("{reads}; 3 events were lost"), "none; 3 events were lost"]);
        found.missing = Some("not traced: no rights".to_string());
        assert_eq!(shown(&found), ["not traced: no rights"]);
    }
}

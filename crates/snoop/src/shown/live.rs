//! Lines of a trace while it runs: one a request, or a table row a second.

use crate::kernel::syscalls::Effect;
use crate::owner::join::{CallLine, How, RequestLine, Sink};
use crate::owner::process::Processes;
use crate::shown::text::{self, Clock};
use crate::sums::tally::Tally;
use plumb_units::{Bytes, RowCount};
use std::path::{Path, PathBuf};

/// Lines that a trace prints while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// A line for each call and each request.
    Both,
    /// A line for each call.
    Calls,
    /// A line for each request, as iosnoop prints them.
    Disk,
    Seconds,
    /// Sums at the end only.
    Nothing,
}

#[derive(Debug, Clone, Copy, Default)]
struct Second {
    /// Calls that read, write and sync.
    calls: [u64; 3],
    bytes: [u64; 2],
    call_ns: u64,
    requests: u64,
    disk_bytes: u64,
    disk_ns: u64,
    flushes: u64,
    /// Most requests of the traced processes in flight at a disk.
    depth_max: u32,
}

/// Receiver that sums up and prints.
#[derive(Debug)]
pub struct Live {
    tally: Tally,
    show: Show,
    clock: Clock,
    lines: String,
    second: Second,
    /// Rows printed so far; the head is repeated.
    rows: u64,
    /// Directory of the only files whose calls count; `None` for all files.
    below: Option<PathBuf>,
}

const HEAD_EVERY: u64 = 20;

impl Live {
    /// Creates a receiver for a trace that began at a monotonic time.
    pub fn new(show: Show, begin: u64) -> Live {
        let clock = Clock::now();
        let has_lines = !matches!(show, Show::Seconds | Show::Nothing);
        let lines = if has_lines { text::head(clock) } else { String::new() };
        Live { tally: Tally::new(begin), show, clock, lines, second: Second::default(), rows: 0, below: None }
    }

    /// Counts only calls on files below this directory.
    #[must_use]
    pub fn below(self, directory: &Path) -> Live {
        Live { below: Some(directory.to_path_buf()), ..self }
    }

    /// Returns the lines since the last time.
    #[must_use]
    pub fn take_lines(&mut self) -> String {
        std::mem::take(&mut self.lines)
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Adds a row for the rest of the last second, if anything happened in it.
    pub fn end_last_second(&mut self) {
        let Second { calls, requests, flushes, .. } = self.second;
        if calls.iter().sum::<u64>() + requests + flushes > 0 {
            self.end_second();
        }
    }

    /// Ends a second: adds its row to the lines.
    pub fn end_second(&mut self) {
        let second = std::mem::take(&mut self.second);
        if self.show != Show::Seconds {
            return;
        }
        if self.rows.is_multiple_of(HEAD_EVERY) {
            self.lines += &format!(
                "{:>9} {:>9} {:>9} {:>11} {:>11} {:>9} | {:>9} {:>9} {:>11} {:>9} {:>6}\n",
                "READS/s",
                "WRITES/s",
                "SYNCS/s",
                "READ/s",
                "WRITTEN/s",
                "AVG(us)",
                "REQS/s",
                "FLUSHES/s",
                "BYTES/s",
                "AVG(us)",
                "DEPTH"
            );
        }
        self.rows += 1;
        let calls: u64 = second.calls.iter().sum();
        let mean = |total: u64, count: u64| total as f64 / count.max(1) as f64 / 1e3;
        let [reads, writes, syncs] = second.calls.map(|count| RowCount(count).to_string());
        let [read, written] = second.bytes.map(|bytes| Bytes(bytes).to_string());
        self.lines += &format!(
            "{reads:>9} {writes:>9} {syncs:>9} {read:>11} {written:>11} {:>9.1} \
             | {:>9} {:>9} {:>11} {:>9.1} {:>6}\n",
            mean(second.call_ns, calls),
            RowCount(second.requests).to_string(),
            second.flushes,
            Bytes(second.disk_bytes).to_string(),
            mean(second.disk_ns, second.requests + second.flushes),
            second.depth_max
        );
    }
}

impl Sink for Live {
    fn call(&mut self, call: &CallLine, processes: &Processes) {
        let file = || Path::new(&processes.file(call.file).path);
        if self.below.as_ref().is_some_and(|directory| !file().starts_with(directory)) {
            return;
        }
        self.tally.call(call, processes);
        let at = match call.effect {
            Effect::Read => 0,
            Effect::Write => 1,
            _ => 2,
        };
        self.second.calls[at] += 1;
        self.second.call_ns += call.duration;
        if let Some(bytes) = self.second.bytes.get_mut(at) {
            *bytes += call.bytes;
        }
        if matches!(self.show, Show::Both | Show::Calls) {
            self.lines += &text::call(call, self.clock, processes);
        }
    }

    fn request(&mut self, request: &RequestLine, processes: &Processes) {
        self.tally.request(request, processes);
        if request.how == How::Other {
            return;
        }
        let is_flush = request.bytes == 0;
        self.second.flushes += u64::from(is_flush);
        self.second.requests += u64::from(!is_flush);
        self.second.disk_bytes += request.moved();
        self.second.disk_ns += request.completed.saturating_sub(request.issued);
        self.second.depth_max = self.second.depth_max.max(request.depth.own);
        if matches!(self.show, Show::Both | Show::Disk) {
            self.lines += &text::request(request, self.clock, processes);
        }
    }
}

//! Checks that the figures of I/O add up: by function, by file, and by the kernel.
//!
//! Each request is counted three times: by its session and stream, by its file, and by the kernel
//! for this process. The three counters are read one after another while background processes go
//! on, so some requests may be in one total and not in the next. The kernel also counts what the
//! process reads without the engine, such as pages of the program; only missing bytes are a fault.

use super::Evidence;
use crate::evidence::FileRole;
use plumb_events::{FileType, IoStream, Statistic};
use plumb_record::{Check, Record};
use plumb_units::{Bytes, RowCount, total_of};

/// Largest part of a total that may be missing from the sum of its parts.
const SHARE_MAX: f64 = 0.01;
/// Difference that requests in flight at a reading explain.
const IN_FLIGHT: u64 = Bytes::M;

pub(super) fn checks(seen: &Evidence, record: &Record) -> Vec<Check> {
    let found = [by_function(seen, record), by_file(seen), by_kernel(record)];
    found.into_iter().flatten().filter(|_| !seen.inside.in_memory()).collect()
}

fn check(name: &str, passed: bool, detail: String) -> Check {
    Check { name: name.to_string(), passed, detail, elapsed_ns: 0 }
}

/// True if two totals are the same but for requests in flight.
fn agree(one: u64, other: u64) -> bool {
    one.abs_diff(other) as f64 <= SHARE_MAX * one.max(other) as f64 + IN_FLIGHT as f64
}

/// Compares the sum of all functions with the statistics of the sessions.
fn by_function(seen: &Evidence, record: &Record) -> Option<Check> {
    let period = &seen.measured.period;
    let asked = [Statistic::PhysicalReadBytes, Statistic::PhysicalWriteBytes]
        .map(|statistic| period.statistic(statistic));
    let summed = record.io_bytes();
    let detail = format!(
        "functions sum to {} read and {} written; sessions counted {} and {}",
        Bytes(summed[0]),
        Bytes(summed[1]),
        Bytes(asked[0]),
        Bytes(asked[1])
    );
    let passed = agree(summed[0], asked[0]) && agree(summed[1], asked[1]);
    (asked != [0, 0]).then(|| check("I/O by function adds up", passed, detail))
}

/// Compares the requests to data files with those of the streams that go to them. Probes and
/// backups reach the same files: what they read may be in either sum.
fn by_file(seen: &Evidence) -> Option<Check> {
    let files = seen.measured.files.iter().filter(|file| matches!(file.role, FileRole::Data(_)));
    let by_file = total_of(files.map(|file| file.io.reads.bytes.saturating_add(file.io.writes.bytes)));
    let bytes = |stream: &IoStream| seen.measured.period.stream(*stream).bytes;
    let is_data = |stream: &&IoStream| matches!(stream.file_type(), FileType::Data | FileType::Temp);
    let by_stream = total_of(IoStream::ALL.iter().filter(is_data).map(bytes));
    let either = total_of([IoStream::Probe, IoStream::BackupReads].iter().map(bytes));
    let passed = agree(by_file, by_stream) || by_file.abs_diff(by_stream) <= either + IN_FLIGHT;
    let detail = format!(
        "data and temp files moved {}; the streams that go to them {}",
        Bytes(by_file),
        Bytes(by_stream)
    );
    (by_file + by_stream > 0).then(|| check("I/O by file adds up", passed, detail))
}

/// Compares the bytes of all requests with those that the kernel moved for this process.
fn by_kernel(record: &Record) -> Option<Check> {
    let kernel = record.kernel_io.filter(|kernel| kernel.all_direct)?;
    let asked = record.io_bytes();
    let moved = [kernel.read_bytes, kernel.written_bytes];
    let reached = asked.iter().zip(moved).all(|(asked, moved)| moved >= *asked || agree(*asked, moved));
    let detail = format!(
        "requests of {} read and {} written; /proc/self/io has {} and {}, of {} requests",
        Bytes(asked[0]),
        Bytes(asked[1]),
        Bytes(moved[0]),
        Bytes(moved[1]),
        RowCount(total_of(record.io_functions.iter().map(|row| row.reads.requests + row.writes.requests)))
    );
    Some(check("the kernel moved the bytes of all requests", reached, detail))
}

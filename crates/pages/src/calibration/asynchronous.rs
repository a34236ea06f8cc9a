//! Asynchronous I/O by kind of file, like Oracle's `v$iostat_file`.
//!
//! A request is asynchronous if nothing waits for it in a system call: neither the thread that made
//! it nor a thread of the kernel. A ring hands a request that would block to a kernel worker
//! (io-wq), so a ring alone proves nothing; the workers are counted.

use super::measured;
use plumb_calibrate::{Calibration, Task, TaskResult};
use plumb_io::{DirectIo, MethodKind};
use plumb_report::format::{Count, Figure};
use plumb_report::table::{Cell, Column, Table, Tone};
use plumb_report::{Section, cells};

/// Tasks with the same file, access and method.
struct Group {
    file: &'static str,
    opened: &'static str,
    method: String,
    by: By,
    requests: u64,
    workers: usize,
}

/// The thread that waits for a request.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Ring,
    Threads,
    Caller,
}

pub(super) fn section(calibration: &Calibration) -> Option<Section> {
    let mut groups: Vec<Group> = Vec::new();
    for result in measured(calibration) {
        let found = group(result);
        let same = |group: &&mut Group| {
            (group.file, group.opened, &group.method) == (found.file, found.opened, &found.method)
        };
        match groups.iter_mut().find(same) {
            Some(group) => {
                group.requests = group.requests.saturating_add(found.requests);
                group.workers = group.workers.max(found.workers);
            }
            None => groups.push(found),
        }
    }
    let mut table = Table::new(vec![
        Column::text("File"),
        Column::text("Opened"),
        Column::text("Method"),
        Column::number("Requests"),
        Column::number("Kernel\nworkers"),
        Column::text("Asynchronous"),
    ]);
    groups.sort_by(|left, right| (left.file, left.opened).cmp(&(right.file, right.opened)));
    for group in &groups {
        let (word, tone) = match (group.by, group.workers) {
            (By::Ring, 0) => ("yes", Tone::Plain),
            (By::Ring, _) => ("no: kernel workers wait", Tone::Open),
            (By::Threads, _) => ("no: threads of the program wait", Tone::Plain),
            (By::Caller, _) => ("no: the caller waits", Tone::Plain),
        };
        let workers = if group.by == By::Ring { group.workers.to_string() } else { String::new() };
        let asynchronous = Cell::from(word).with_tone(tone);
        let requests = Count(group.requests).figure();
        table.row(cells![group.file, group.opened, &group.method, requests, workers, asynchronous]);
    }
    (!groups.is_empty()).then(|| Section::front("asynchronous", "Asynchronous I/O by File").table(table))
}

fn group(result: &TaskResult) -> Group {
    let opened = if result.direct_io() == DirectIo::Required { "direct" } else { "page cache" };
    let seen = || result.repeats.iter().map(|repeat| &repeat.measurement.evidence);
    let requests = seen().map(|seen| seen.asked.requests).fold(0, u64::saturating_add);
    let workers = seen().map(|seen| seen.io_wq_workers).max().unwrap_or(0);
    let (file, method, by) = match &result.task {
        Task::Point(point) => {
            let by = match point.method {
                MethodKind::IoUring => By::Ring,
                MethodKind::Threads => By::Threads,
                MethodKind::Sync => By::Caller,
            };
            ("data and temp", point.method.to_string(), by)
        }
        Task::Durable(point) => {
            let by = if point.method.by_ring() { By::Ring } else { By::Caller };
            ("log", point.method.name().to_string(), by)
        }
    };
    Group { file, opened, method, by, requests, workers }
}

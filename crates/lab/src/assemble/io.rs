//! I/O by function and by file.

use super::Evidence;
use crate::evidence::{FileEvidence, Transfers};
use crate::record::{Completion, IoDevice, IoFile, IoFunction, IoTally};
use plumb_events::{Direction, IoStream};
use plumb_io::MethodKind;
use plumb_io::receipt::RequestCounts;
use plumb_units::path_text;

pub(super) fn functions(seen: &Evidence) -> Vec<IoFunction> {
    let row = |stream: &IoStream| {
        let total = seen.measured.period.stream(*stream);
        let tally = IoTally { requests: total.count, bytes: total.bytes, time_ns: total.time.0 };
        let (reads, writes) = match stream.direction() {
            Direction::Read => (tally, IoTally::default()),
            Direction::Write => (IoTally::default(), tally),
        };
        (total.count > 0).then(|| IoFunction { function: stream.name().to_string(), reads, writes })
    };
    IoStream::ALL.iter().filter_map(row).collect()
}

pub(super) fn files(seen: &Evidence) -> Vec<IoFile> {
    let row = |file: &FileEvidence| IoFile {
        tablespace: file.role.name().to_string(),
        path: path_text(&file.path),
        reads: tally(file.reads),
        writes: tally(file.writes),
    };
    seen.measured.files.iter().map(row).collect()
}

/// The block devices that did something during the build.
pub(super) fn devices(seen: &Evidence) -> Vec<IoDevice> {
    let tally = |counts: &RequestCounts| tally((counts.completed, counts.bytes.0, counts.time.0));
    let disks =
        seen.measured.disks.iter().filter(|(_, disk)| disk.reads.completed + disk.writes.completed > 0);
    disks
        .map(|(name, disk)| IoDevice {
            device: name.clone(),
            reads: tally(&disk.reads),
            writes: tally(&disk.writes),
        })
        .collect()
}

/// Only a ring lets a completion lie until its session looks.
pub(super) fn completion(seen: &Evidence) -> Completion {
    match seen.inside.access.method.kind() {
        MethodKind::IoUring if !seen.inside.in_memory() => Completion::Seen,
        _ => Completion::Exact,
    }
}

fn tally((requests, bytes, time_ns): Transfers) -> IoTally {
    IoTally { requests, bytes, time_ns }
}

//! I/O by file and by device.

use super::Evidence;
use crate::evidence::{FileEvidence, Transfers};
use plumb_host::readings::{DiskStats, RequestCounts};
use plumb_io::MethodKind;
use plumb_record::{Completion, IoDevice, IoFile, IoTally};
use plumb_units::path_text;
use std::collections::BTreeMap;

pub(super) fn files(seen: &Evidence) -> Vec<IoFile> {
    let row = |file: &FileEvidence| IoFile {
        tablespace: file.role.name().to_string(),
        path: path_text(&file.path),
        reads: tally(file.reads),
        writes: tally(file.writes),
    };
    seen.measured.files.iter().map(row).collect()
}

/// The block devices that did something meanwhile.
pub(super) fn devices(disks: &BTreeMap<String, DiskStats>) -> Vec<IoDevice> {
    let tally = |counts: &RequestCounts| tally((counts.completed, counts.bytes.0, counts.time.0));
    let disks = disks.iter().filter(|(_, disk)| disk.reads.completed + disk.writes.completed > 0);
    disks
        .map(|(name, disk)| IoDevice {
            device: name.clone(),
            reads: tally(&disk.reads),
            writes: tally(&disk.writes),
            busy_ns: Some(disk.io_time.0),
            weighted_ns: Some(disk.weighted_io_time.0),
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

pub(super) fn tally((requests, bytes, time_ns): Transfers) -> IoTally {
    IoTally { requests, bytes, time_ns: Some(time_ns) }
}

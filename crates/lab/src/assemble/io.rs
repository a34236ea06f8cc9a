//! I/O by function and by file.

use super::Story;
use crate::measure::{FileEvidence, Transfers};
use crate::record::{IoFile, IoFunction, IoTally};
use plumb_events::{Direction, IoStream};

pub(super) fn functions(story: &Story<'_>) -> Vec<IoFunction> {
    let row = |stream: &IoStream| {
        let total = story.measured.period.stream(*stream);
        let tally = IoTally { requests: total.count, bytes: total.bytes, time_ns: total.time.0 };
        let (reads, writes) = match stream.direction() {
            Direction::Read => (tally, IoTally::default()),
            Direction::Write => (IoTally::default(), tally),
        };
        (total.count > 0).then(|| IoFunction { function: stream.name().to_string(), reads, writes })
    };
    IoStream::ALL.iter().filter_map(row).collect()
}

pub(super) fn files(story: &Story<'_>) -> Vec<IoFile> {
    let row = |file: &FileEvidence| IoFile {
        tablespace: file.role.name().to_string(),
        path: file.path.display().to_string(),
        reads: tally(file.reads),
        writes: tally(file.writes),
    };
    story.measured.files.iter().map(row).collect()
}

fn tally((requests, bytes, time_ns): Transfers) -> IoTally {
    IoTally { requests, bytes, time_ns }
}

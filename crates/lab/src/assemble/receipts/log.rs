//! The log: its files and its buffer.

use super::super::Evidence;
use super::{Finding, counted};
use crate::evidence::{FileEvidence, FileRole};
use plumb_engine::Setting;
use plumb_events::{IoStream, Statistic};
use plumb_units::Bytes;

/// A batch begins with a header, and ends with its last log block.
const BATCH_BESIDE: u64 = 8 * Bytes::K;

fn files(seen: &Evidence) -> impl Iterator<Item = &FileEvidence> {
    seen.measured.files.iter().filter(|file| file.role == FileRole::Log)
}

/// The length of the log files, as the file system has it.
pub(super) fn file_size(seen: &Evidence) -> Option<Finding> {
    let asked = seen.inside.settings.number(Setting::LogFileSize);
    let lengths: Option<Vec<u64>> = files(seen).map(|file| file.length.map(|bytes| bytes.0)).collect();
    let Some(lengths) = lengths.filter(|lengths| !lengths.is_empty()) else {
        return Some(Finding::not_checked("the file system does not tell the length of the log files"));
    };
    let most = lengths.iter().max().copied().unwrap_or(0);
    let same = lengths.iter().all(|length| *length == most);
    let evidence = format!("{} of {}", counted(lengths.len() as u64, "log file"), Bytes(most));
    Some(Finding::that(same && most >= asked && most - asked <= Bytes::M, evidence))
}

/// Log files, and into how many of them the import wrote.
pub(super) fn groups(seen: &Evidence) -> Option<Finding> {
    let asked = seen.inside.settings.number(Setting::LogFileGroups);
    let written = files(seen).filter(|file| file.writes.0 > 0).count() as u64;
    let found = files(seen).count() as u64;
    Some(Finding::that(found == asked, format!("{}, {written} of them written", counted(found, "log file"))))
}

/// No write of the log is longer than half the buffer.
pub(super) fn buffer(seen: &Evidence) -> Option<Finding> {
    if !seen.inside.settings.is_explicit(Setting::LogBuffer) {
        return None;
    }
    let asked = seen.inside.settings.number(Setting::LogBuffer);
    let writes = seen.measured.period.stream(IoStream::LogWrites);
    let commits = seen.measured.period.statistic(Statistic::UserCommits);
    let mean = writes.bytes.checked_div(writes.count).unwrap_or(0);
    let evidence = format!(
        "{} of {} on average for {}",
        counted(writes.count, "write"),
        Bytes(mean),
        counted(commits, "commit")
    );
    match (mean <= asked / 2 + BATCH_BESIDE, writes.count > commits) {
        (false, _) => Some(Finding::contradicted(evidence)),
        (true, true) => Some(Finding::held(evidence)),
        (true, false) => {
            Some(Finding::not_checked(format!("{evidence}: no write was cut short by its size")))
        }
    }
}

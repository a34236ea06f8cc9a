//! Receipts of the log: its files, the path to them, its buffer and its copies.

use super::super::Evidence;
use super::{Ruling, counted, pages_untold};
use crate::evidence::{FileEvidence, FileRole, LogDone};
use plumb_engine::Setting;
use plumb_events::{Event, IoStream, Statistic};
use plumb_host::priority;
use plumb_io::{DirectIo, Durability};
use plumb_record::Receipt;
use plumb_units::{Bytes, Nanos, RowCount};
use std::path::{Path, PathBuf};

/// Time of a redo write besides its request, for submission and completion.
const TRACE_APART: Nanos = Nanos(20_000);
/// Time that all redo writes of a run may take in addition to their requests and to the run-queue
/// delay of the sessions. The scheduler may delay a writer whose request is complete: a pause of
/// 2 ms is a quarter of the mean of nine writes.
const NO_PROCESSOR: Nanos = Nanos(10_000_000);
/// Log writes that only one side may count: LGWR may have one in flight at each end of the period.
const AT_ENDS: u64 = 2;
/// Bytes by which a write may exceed half the buffer: the header of its batch, and zeros up to the
/// end of its last log block.
const BATCH_BESIDE: u64 = 8 * Bytes::K;

fn files(seen: &Evidence) -> impl Iterator<Item = &FileEvidence> {
    seen.measured.files.iter().filter(|file| file.role == FileRole::Log)
}

/// Compares the length of the log files in the file system with the setting.
pub(super) fn file_size(seen: &Evidence) -> Option<Ruling> {
    let asked = seen.inside.settings.number(Setting::LogFileSize);
    let lengths: Option<Vec<u64>> = files(seen).map(|file| file.length.map(|bytes| bytes.0)).collect();
    let Some(lengths) = lengths.filter(|lengths| !lengths.is_empty()) else {
        return Some(Ruling::unknown("the file system does not tell the length of the log files"));
    };
    let most = lengths.iter().max().copied().unwrap_or(0);
    let same = lengths.iter().all(|length| *length == most);
    let evidence = format!("{} of {}", counted(lengths.len() as u64, "log file"), Bytes(most));
    Some(Ruling::that(same && most >= asked && most - asked <= Bytes::M, evidence).counted(most))
}

/// Counts the log files, and those that the import wrote.
pub(super) fn groups(seen: &Evidence) -> Option<Ruling> {
    let asked = seen.inside.settings.number(Setting::LogFileGroups);
    let written = files(seen).filter(|file| file.io.writes.requests > 0).count() as u64;
    let found = files(seen).count() as u64;
    let evidence = format!("{}, {written} of them written", counted(found, "log file"));
    Some(Ruling::that(found == asked, evidence).counted(found))
}

/// Checks that no log write is longer than half the buffer.
pub(super) fn buffer(seen: &Evidence) -> Option<Ruling> {
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
        (false, _) => Some(Ruling::contradicted(evidence)),
        (true, true) => Some(Ruling::held(evidence)),
        (true, false) => Some(Ruling::unknown(format!("{evidence}: no write was cut short by its size"))),
    }
}

fn done(seen: &Evidence) -> Option<&LogDone> {
    seen.measured.outcome.log.as_ref()
}

/// Counts the members of each log file, by their directories.
pub(super) fn members(seen: &Evidence) -> Option<Ruling> {
    if !seen.inside.settings.is_explicit(Setting::LogFileMembers) {
        return None;
    }
    let asked = seen.inside.settings.number(Setting::LogFileMembers);
    let first = files(seen).count();
    let second = done(seen).map_or(0, |done| done.second_members.len());
    let evidence = format!("{} and {second} second members", counted(first as u64, "log file"));
    Some(Ruling::that(second == if asked == 2 { first } else { 0 }, evidence))
}

pub(super) fn path(seen: &Evidence) -> Option<Ruling> {
    let first = files(seen).map(|file| file.path.as_path()).collect::<Vec<_>>();
    directory(seen, Setting::LogPath, &first)
}

pub(super) fn mirror_path(seen: &Evidence) -> Option<Ruling> {
    let second = done(seen)?.second_members.iter().map(PathBuf::as_path).collect::<Vec<_>>();
    directory(seen, Setting::LogMirrorPath, &second)
}

fn directory(seen: &Evidence, setting: Setting, files: &[&Path]) -> Option<Ruling> {
    let settings = &seen.inside.settings;
    if !settings.is_explicit(setting) || files.is_empty() {
        return None;
    }
    let asked = Path::new(settings.word(setting));
    let lies = |file: &&&Path| file.parent().is_some_and(|parent| parent.ends_with(asked));
    let found = files.iter().filter(lies).count();
    let evidence = format!("{found} of {} in {}", counted(files.len() as u64, "log file"), asked.display());
    Some(Ruling::that(found == files.len(), evidence))
}

/// Reads the nice value of LGWR from the scheduler.
pub(super) fn writer_priority(seen: &Evidence) -> Option<Ruling> {
    let (done, settings) = (done(seen)?, &seen.inside.settings);
    if !settings.is_explicit(Setting::HighPriorityProcesses) {
        return None;
    }
    let Some(nice) = done.lgwr_nice else {
        return Some(Ruling::unknown("there was no LGWR: sessions did its work"));
    };
    let evidence = format!("/proc/self/task: the nice value of LGWR is {nice}");
    Some(match settings.word(Setting::HighPriorityProcesses) {
        "lgwr" => Ruling::that(nice == priority::FIRST, evidence),
        "none" => Ruling::that(nice > priority::FIRST, evidence),
        _ => Ruling::held(evidence),
    })
}

/// Judges the open flags of the log files, and the flushes of the devices.
pub(super) fn sync_method(seen: &Evidence) -> Option<Ruling> {
    let (done, settings) = (done(seen)?, &seen.inside.settings);
    let method = done.sync.method;
    let flags: Option<Vec<_>> = files(seen).map(|file| file.flags).collect();
    let Some(flags) = flags.filter(|flags| !flags.is_empty()) else {
        return Some(Ruling::unknown("/proc/self/fdinfo does not tell the flags of the log files"));
    };
    let dsync = flags.iter().filter(|flags| flags.dsync).count();
    let sync = flags.iter().filter(|flags| flags.sync).count();
    let expected = match method.durability() {
        Durability::OnSync => (0, 0),
        Durability::Data => (flags.len(), 0),
        Durability::All => (flags.len(), flags.len()),
    };
    let writes = seen.measured.period.statistic(Statistic::RedoWrites);
    let flushes: Option<u64> =
        seen.measured.disks.values().map(|disk| Some(disk.flushes?.completed)).sum::<Option<u64>>();
    let flushes = flushes.map_or(String::new(), |flushes| {
        format!(
            "; {} of the devices, by all processes, for {}",
            counted(flushes, "flush"),
            counted(writes, "log write")
        )
    });
    let word = settings.word(Setting::LogSyncMethod);
    // The measured cost at opening, next to that of the work.
    let took_us = seen.measured.period.statistic(Statistic::RedoWriteTime).checked_div(writes);
    let took = took_us.filter(|_| word == "auto");
    let took = took.map_or(String::new(), |us| format!("; a log write of the work took {us} us on average"));
    let evidence = format!(
        "{} ({}){took}; /proc/self/fdinfo: O_DSYNC in the flags of {dsync} and O_SYNC of {sync} of {}{flushes}",
        method.name(),
        done.sync.reason,
        counted(flags.len() as u64, "log file")
    );
    let taken = word == "auto" || word == method.name();
    Some(Ruling::that(taken && (dsync, sync) == expected, evidence))
}

/// Judges `O_DIRECT` of the log files, and their pages in the page cache.
pub(super) fn file_io(seen: &Evidence) -> Option<Ruling> {
    let done = done(seen)?;
    let word = seen.inside.settings.word(Setting::LogFileIo);
    let expected = match word {
        "direct" => DirectIo::Required,
        "buffered" => DirectIo::Off,
        _ => seen.inside.access.direct,
    };
    let flags: Option<Vec<bool>> = files(seen).map(|file| Some(file.flags?.direct)).collect();
    let Some(flags) = flags.filter(|flags| !flags.is_empty()) else {
        return Some(Ruling::unknown("/proc/self/fdinfo does not tell the flags of the log files"));
    };
    let direct = flags.iter().filter(|direct| **direct).count();
    let pages = |of: fn(&FileEvidence) -> Option<u64>| files(seen).map(of).sum::<Option<u64>>();
    let before = pages(|file| Some(file.cached_before?.resident_pages));
    let after = pages(|file| Some(file.cached_after?.resident_pages));
    let written = files(seen).map(|file| file.io.writes.bytes).sum::<u64>();
    let untold = pages_untold(files(seen));
    let counts = before.zip(after).filter(|_| untold.is_none());
    let said = counts.map_or(untold.map_or(String::new(), |why| format!("; {why}")), |(before, after)| {
        let (before, after) = (RowCount(before), RowCount(after));
        format!(
            "; page cache: {before} pages of them before the work and {after} after it, {} written",
            Bytes(written)
        )
    });
    let evidence = format!(
        "/proc/self/fdinfo: O_DIRECT in the flags of {direct} of {}{said}",
        counted(flags.len() as u64, "log file")
    );
    let by_flags = direct == if expected == DirectIo::Required { flags.len() } else { 0 };
    // A direct write leaves no page; memory pressure may evict pages of a buffered one.
    let by_pages = expected == DirectIo::Off || counts.is_none_or(|(before, after)| after <= before);
    Some(Ruling::that(done.direct == expected && by_flags && by_pages, evidence))
}

/// Compares the log writes of the trace with the statistics, by number and time. Writes of a log
/// file's header belong to another event.
pub(super) fn trace(seen: &Evidence) -> Option<Receipt> {
    let trace = seen.measured.trace.as_ref().filter(|_| done(seen).is_some())?;
    let of_log = |kind: usize| trace.kinds[kind].stream == IoStream::LogWrites.name();
    let of_records = |kind: usize| trace.kinds[kind].event == Event::LogFileParallelWrite.name();
    let requests =
        || trace.sessions.iter().flat_map(|session| &session.requests).filter(|it| of_log(it.kind));
    let records = || requests().filter(|it| of_records(it.kind));
    let found = (records().count() as u64, records().map(|request| request.latency_ns).sum::<u64>());
    let headers = requests().count() as u64 - found.0;
    let asked = seen.measured.period.stream(IoStream::LogWrites).count;
    let writes = seen.measured.period.statistic(Statistic::RedoWrites);
    let time = seen.measured.period.statistic(Statistic::RedoWriteTime) * 1000;
    let mean = |(count, nanos): (u64, u64)| nanos.checked_div(count).unwrap_or(0);
    let (traced, counted_) = (mean(found), mean((writes, time)));
    let evidence = format!(
        "{} of {} each in the trace; redo write time over redo writes is {}; {} dropped",
        counted(found.0, "log write"),
        Nanos(traced),
        Nanos(counted_),
        counted(trace.dropped, "request")
    );
    // With two members, the longer of both requests counts.
    let close = |one: u64, other: u64| one.abs_diff(other) <= AT_ENDS;
    let alike = close(asked, writes + headers);
    let judged = match (trace.dropped, alike) {
        (0, true) => {
            let near = counted_.abs_diff(traced) <= counted_ / 10 + TRACE_APART.0;
            // A request lies within its redo write, so only the write can be longer, by a pause.
            let queued: u64 = seen.measured.period.sessions.iter().map(|session| session.run_queue.0).sum();
            let pauses = queued + NO_PROCESSOR.0;
            let paused = counted_ > traced && (counted_ - traced) * writes <= pauses;
            match (close(found.0, writes), near, paused) {
                (true, false, true) => Ruling::unknown(format!(
                    "{evidence}: sessions waited {} for a processor, which may be the difference",
                    Nanos(queued)
                )),
                (alike, near, _) => Ruling::that(alike && near, evidence),
            }
        }
        _ => Ruling::unknown(evidence),
    };
    Some(judged.inside("trace", "every request"))
}

/// Counts the copies made of filled log files.
pub(super) fn archive(seen: &Evidence) -> Option<Ruling> {
    let settings = &seen.inside.settings;
    if !settings.is_explicit(Setting::ArchiveLogMode) {
        return None;
    }
    let copied = seen.measured.period.statistic(Statistic::RedoFilesArchived);
    let writes = seen.measured.period.stream(IoStream::ArchiveWrites);
    let filled = files(seen).filter(|file| file.io.writes.requests > 0).count().saturating_sub(1) as u64;
    let evidence = format!(
        "{} copied, {} written to copies; the work went on in another log file at least {}",
        counted(copied, "log file"),
        Bytes(writes.bytes),
        counted(filled, "time")
    );
    Some(match settings.word(Setting::ArchiveLogMode) {
        "off" => Ruling::that(copied == 0 && writes.bytes == 0, evidence),
        // The last copy may still be in progress.
        _ if filled <= 1 => Ruling::unknown(format!("{evidence}: none had to be copied yet")),
        _ => Ruling::that(copied + 1 >= filled, evidence),
    })
}

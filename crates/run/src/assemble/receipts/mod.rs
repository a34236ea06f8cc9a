//! Receipts: evidence that a setting took effect, from outside the code that applied it.
//!
//! Each rule judges one setting: it returns an observation and if that agrees. A rule contradicts a
//! setting only if nothing legitimate explains the observation. Files in memory, a default on a
//! file system without direct I/O, or a sort that fitted in memory leave a setting without effect.
//! The receipt says so. A setting that was set and has no rule is listed as not checked: no
//! treatment without a receipt.
//!
//! A rule whose figure is the setting itself, as it is in force, gives it as a reading. If a cap
//! made two values one, the readings of their arms are alike, and the analysis reports it. Figures
//! that depend on the load (requests in flight, blocks of a batch) are none: they may be alike with
//! both values in force.
//!
//! The last receipts belong to no setting: the state at the start of an import, and declared memory
//! compared with the largest resident set.

mod copy;
mod ctas;
mod files;
mod flight;
mod import;
mod io;
mod log;
mod places;
mod scan;
mod slob;
mod sort;
mod start;
mod statistics;
#[cfg(test)]
mod tests;
mod users;

pub(super) use io::all_direct;
pub(super) use sort::given_cost;

use super::{Evidence, memory};
use crate::evidence::FileEvidence;
use crate::settings;
use plumb_engine::Setting;
use plumb_engine::settings::Group;
use plumb_host::limits;
use plumb_record::{Held, Receipt, Receipts, Ruling, Seen};
use plumb_units::{Bytes, RowCount};
use plumb_workload::Workload;

/// A rule; `None` if it does not apply to this run.
type Rule = fn(&Evidence) -> Option<Ruling>;

/// Rules in printing order. A setting may have several, each with the source of its evidence.
const RULES: &[(Setting, Seen, Rule)] = &[
    (Setting::FilesystemioOptions, Seen::Outside, io::open_flags),
    (Setting::FilesystemioOptions, Seen::Outside, io::page_cache),
    (Setting::FilesystemioOptions, Seen::Outside, io::device_bytes),
    (Setting::FilesystemioOptions, Seen::Inside, flight::overlap),
    (Setting::IoMethod, Seen::Outside, io::method),
    (Setting::IoQueueDepth, Seen::Inside, io::queue_depth),
    (Setting::SharedServers, Seen::Inside, io::shared_servers),
    (Setting::DbFileMultiblockReadCount, Seen::Inside, io::request_size),
    (Setting::ScanReadAhead, Seen::Inside, flight::scan_read_ahead),
    (Setting::SerialDirectRead, Seen::Inside, io::serial_direct_read),
    (Setting::DbBlockSize, Seen::Outside, files::block_size),
    (Setting::ExtentSize, Seen::Outside, files::extent_size),
    (Setting::DataFiles, Seen::Inside, files::striping),
    (Setting::DataFiles, Seen::Inside, files::growth),
    (Setting::DbCacheSize, Seen::Outside, files::cache),
    (Setting::Db2kCacheSize, Seen::Outside, files::sized_cache::<0>),
    (Setting::Db4kCacheSize, Seen::Outside, files::sized_cache::<1>),
    (Setting::Db8kCacheSize, Seen::Outside, files::sized_cache::<2>),
    (Setting::Db16kCacheSize, Seen::Outside, files::sized_cache::<3>),
    (Setting::Db32kCacheSize, Seen::Outside, files::sized_cache::<4>),
    (Setting::DbBlockPrefetchLimit, Seen::Inside, slob::prefetch),
    (Setting::DbBlockChecksum, Seen::Inside, io::block_checksum),
    (Setting::DbWriterProcesses, Seen::Inside, files::writers),
    (Setting::DbBlockWriteBatch, Seen::Inside, files::write_batch),
    (Setting::SortAreaSize, Seen::Inside, sort::area),
    (Setting::SortDirectWrites, Seen::Inside, sort::direct_writes),
    (Setting::SortWriteBuffers, Seen::Inside, flight::write_buffers),
    (Setting::SortWriteBufferSize, Seen::Inside, sort::write_buffer_size),
    (Setting::SortReadFac, Seen::Inside, sort::read_fac),
    (Setting::ParallelDegree, Seen::Inside, sort::degree),
    (Setting::LogFileSize, Seen::Outside, log::file_size),
    (Setting::LogFileGroups, Seen::Outside, log::groups),
    (Setting::LogFileMembers, Seen::Outside, log::members),
    (Setting::LogPath, Seen::Outside, log::path),
    (Setting::LogMirrorPath, Seen::Outside, log::mirror_path),
    (Setting::LogBuffer, Seen::Inside, log::buffer),
    (Setting::SnapshotInterval, Seen::Inside, statistics::snapshots),
    (Setting::LogSyncMethod, Seen::Outside, log::sync_method),
    (Setting::LogFileIo, Seen::Outside, log::file_io),
    (Setting::HighPriorityProcesses, Seen::Outside, log::writer_priority),
    (Setting::ArchiveLogMode, Seen::Inside, log::archive),
    (Setting::ForceLogging, Seen::Inside, ctas::force_logging),
    (Setting::DebugRequestDelay, Seen::Inside, io::request_delay),
    (Setting::DebugTraceRequests, Seen::Inside, statistics::traced),
];

/// Returns the best evidence of a setting's rules.
pub(crate) fn seen_of(setting: Setting) -> Seen {
    RULES.iter().filter(|(of, ..)| *of == setting).map(|(_, seen, _)| *seen).max().unwrap_or(Seen::Asked)
}

pub(super) fn receipts(seen: &Evidence) -> Receipts {
    let set = &seen.inside.settings;
    let mut found = Receipts::default();
    for (setting, place, rule) in RULES.iter().filter(|(setting, ..)| is_concerned(seen, *setting)) {
        if let Some(ruling) = rule(seen) {
            let ruling = Ruling { seen: *place, ..ruling };
            found.add(setting.row().name, settings::shown(set, *setting), ruling);
        }
    }
    let receipts = &mut found.receipts;
    for setting in Setting::ALL.iter().filter(|setting| set.is_explicit(**setting)) {
        let name = setting.row().name;
        if receipts.iter().all(|known| known.setting != name) {
            let unseen = Ruling::unknown("nothing outside the engine shows its effect in this run");
            let unseen = Ruling { seen: Seen::Asked, ..unseen };
            receipts.push(unseen.receipt(name, settings::shown(set, *setting)));
        }
    }
    receipts.extend(import::parameters(seen));
    receipts.extend(ctas::parameters(seen));
    receipts.extend(scan::parameters(seen));
    receipts.extend(copy::parameters(seen));
    receipts.extend(places::places(seen));
    receipts.extend(start::receipts(seen));
    receipts.extend(slob::parameters(seen));
    receipts.extend(users::parameters(seen));
    receipts.extend(log::trace(seen));
    receipts.push(memory_budget(seen));
    if seen.inside.in_memory() {
        without_files(seen, &mut found);
    }
    found
}

/// Makes the receipt of a workload's parameter, by the counters of its sessions.
fn parameter(workload: &Workload, name: &str, value: u64, judged: Ruling) -> Receipt {
    let asked = workload.parameter(name).map_or_else(String::new, |row| row.shown(value).to_string());
    judged.inside(name, asked)
}

/// True if the run did work that the setting affects.
fn is_concerned(seen: &Evidence, setting: Setting) -> bool {
    match setting.row().group {
        Group::Sort => seen.measured.outcome.sort.is_some(),
        Group::Parallel => {
            let done = &seen.measured.outcome;
            done.sort.is_some() || done.copy.is_some() || done.scan.is_some()
        }
        Group::Log => {
            let updates = seen.measured.outcome.slob.as_ref().is_some_and(|slob| slob.spec.update_pct > 0);
            let done = &seen.measured.outcome;
            done.import.is_some() || done.ctas.is_some() || done.copy.is_some() || updates
        }
        _ => {
            let done = &seen.measured.outcome;
            setting != Setting::DataFiles
                || (done.import.is_none() && done.ctas.is_none() && done.copy.is_none())
        }
    }
}

/// Compares the largest resident set with the declared memory and the stated overhead.
fn memory_budget(seen: &Evidence) -> Receipt {
    let memory = memory::memory(seen);
    let declared = memory.declared_bytes();
    let overhead = memory.overhead_bytes.unwrap_or(0);
    let judged = match memory.peak_rss_bytes {
        // A budget beyond the machine's memory cannot be exceeded.
        _ if beyond_memory(declared) => Ruling::unknown(BEYOND_MEMORY),
        None => Ruling::unknown("the kernel does not tell the peak of the build alone"),
        Some(peak) => Ruling::that(
            peak <= memory.budget_bytes(),
            format!(
                "/proc/self/status: the peak resident set is {}; {} are declared and {} stated beside them",
                Bytes(peak),
                Bytes(declared),
                Bytes(overhead)
            ),
        ),
    };
    judged.receipt("memory budget", Bytes(declared + overhead).to_string())
}

/// Evidence when a size exceeds the memory of the machine.
const BEYOND_MEMORY: &str = "it is more than the memory of this machine: no run could have exceeded it";

/// True if a size exceeds the memory that the process may use.
fn beyond_memory(bytes: u64) -> bool {
    limits::memory().is_some_and(|memory| bytes > memory.total.0)
}

/// Returns the reason why these files' page cache cannot be judged; `None` if it can.
fn pages_untold<'f>(files: impl IntoIterator<Item = &'f FileEvidence>) -> Option<String> {
    let why = files.into_iter().find_map(|file| file.pages_untold)?;
    Some(format!("page cache: {why}"))
}

fn counted(count: u64, noun: &str) -> String {
    let ending = match (count, ["ch", "sh", "ss"].iter().any(|end| noun.ends_with(end))) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{} {noun}{ending}", RowCount(count))
}

/// Marks receipts of files as not checked: files in memory cannot be observed from outside.
fn without_files(seen: &Evidence, found: &mut Receipts) {
    let about_files = |name: &str| {
        let group = Setting::ALL.iter().find(|setting| setting.row().name == name);
        group.is_some_and(|setting| setting.row().group.is_about_files())
    };
    found.readings.retain(|reading| !about_files(&reading.setting));
    let receipts = &mut found.receipts;
    for receipt in receipts.iter_mut().filter(|receipt| about_files(&receipt.setting)) {
        receipt.held = Held::NotChecked;
        receipt.evidence = "files in memory: there is no file to observe".to_string();
    }
    let memory = |receipt: &mut Receipt| {
        receipt.evidence = seen.inside.access.method_reason();
    };
    receipts.iter_mut().filter(|receipt| receipt.setting == Setting::IoMethod.row().name).for_each(memory);
    receipts.dedup();
}

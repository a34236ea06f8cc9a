//! Receipts of requests to files: direct or not, by which method, how many at once, how large.

use super::super::Evidence;
use super::{Ruling, counted, pages_untold};
use crate::evidence::{FileEvidence, FileRole};
use plumb_engine::Setting;
use plumb_engine::storage::tablespace::Purpose;
use plumb_events::{Event, IoStream, Role, SessionTotals, Statistic};
use plumb_io::{DirectIo, MethodKind};
use plumb_units::{Bytes, Nanos, RowCount};

/// With fewer bytes the program's own files distort the kernel's count.
const BYTES_TO_JUDGE: u64 = 16 * Bytes::M;
/// Share of the requested bytes that the kernel must have moved for this process.
const PROCESS_SHARE_MIN: f64 = 0.95;
/// Pages that a direct file may have in the page cache: its header may be read through it.
const PAGES_OF_DIRECT_MAX: u64 = 64;
/// File systems that move other bytes than requested (compression), or through other processes.
const INDIRECT_FILE_SYSTEMS: [&str; 4] = ["btrfs", "overlay", "zfs", "bcachefs"];

/// Mean requests of two runs are alike within this share.
const REQUEST_STEP: f64 = 0.01;
/// Share of requests that may use another method: headers, and single blocks at
/// the ends of an operation.
const STRAYS_MAX: f64 = 0.05;

/// True if the setting requests direct I/O.
fn asked_direct(seen: &Evidence) -> bool {
    matches!(seen.inside.settings.word(Setting::FilesystemioOptions), "directio" | "setall")
}

fn is_direct(seen: &Evidence) -> bool {
    seen.inside.access.direct == DirectIo::Required
}

/// All files except those of the log, which has a setting of its own.
fn but_log(seen: &Evidence) -> impl Iterator<Item = &FileEvidence> {
    seen.measured.files.iter().filter(|file| file.role != FileRole::Log)
}

/// Reads `O_DIRECT` of every data file from /proc/self/fdinfo.
pub(super) fn open_flags(seen: &Evidence) -> Option<Ruling> {
    let files: Vec<&FileEvidence> = but_log(seen).collect();
    let known: Vec<bool> = files.iter().filter_map(|file| Some(file.flags?.direct)).collect();
    let direct = known.iter().filter(|direct| **direct).count();
    let evidence = format!("/proc/self/fdinfo: O_DIRECT in the flags of {direct} of {} files", files.len());
    if known.len() < files.len() {
        return Some(Ruling::unknown("/proc/self/fdinfo does not tell the flags of the files"));
    }
    if asked_direct(seen) && !is_direct(seen) && direct == 0 {
        // A default that is impossible here is replaced, and the receipt says so.
        return Some(Ruling::unknown(format!("{evidence}; {}", seen.inside.access.direct_reason)));
    }
    let layers: Vec<&str> = caches_below(seen).collect();
    if asked_direct(seen) && direct == files.len() && !layers.is_empty() {
        // Requests bypass this page cache, but not the cache below.
        return Some(Ruling::unknown(format!("{evidence}; {}", layers.join("; "))));
    }
    Some(Ruling::that(direct == if asked_direct(seen) { files.len() } else { 0 }, evidence))
}

/// Returns layers below the file systems that may answer a request without the disk.
fn caches_below(seen: &Evidence) -> impl Iterator<Item = &str> {
    let blocks = seen.devices.iter().filter_map(|device| device.block.as_ref());
    blocks.flat_map(|block| &block.caches).map(String::as_str)
}

/// Compares pages of the data files in the page cache before and after the build.
pub(super) fn page_cache(seen: &Evidence) -> Option<Ruling> {
    let used: Vec<&FileEvidence> =
        but_log(seen).filter(|file| file.io.reads.bytes + file.io.writes.bytes > 0).collect();
    if used.is_empty() {
        return None;
    }
    if let Some(why) = pages_untold(used.iter().copied()) {
        return Some(Ruling::unknown(why));
    }
    let sum =
        |pages: fn(&FileEvidence) -> Option<u64>| used.iter().map(|file| pages(file)).sum::<Option<u64>>();
    let total = sum(|file| Some(file.cached_after?.total_pages))?;
    let before = sum(|file| Some(file.cached_before?.resident_pages))?;
    let after = sum(|file| Some(file.cached_after?.resident_pages))?;
    let evidence = format!(
        "page cache: {} pages of the files before the build and {} after it, of {}",
        RowCount(before),
        RowCount(after),
        RowCount(total)
    );
    if is_direct(seen) {
        let grown = after.saturating_sub(before);
        let past_it = grown <= PAGES_OF_DIRECT_MAX.max(total / 100);
        let layers: Vec<&str> = caches_below(seen).collect();
        if past_it && !layers.is_empty() {
            return Some(Ruling::unknown(format!("{evidence}; {}", layers.join("; "))));
        }
        return Some(Ruling::that(past_it, evidence));
    }
    if asked_direct(seen) {
        return Some(Ruling::unknown(evidence));
    }
    // Memory pressure may evict pages, but hardly all of them.
    Some(Ruling::that(after > 0, evidence))
}

/// Compares bytes that the kernel moved between this process and a device with bytes requested.
pub(super) fn device_bytes(seen: &Evidence) -> Option<Ruling> {
    let measured = &seen.measured;
    let asked = [Statistic::PhysicalReadBytes, Statistic::PhysicalWriteBytes]
        .map(|kind| measured.period.statistic(kind));
    let mut evidence = format!("asked: {} read, {} written", Bytes(asked[0]), Bytes(asked[1]));
    let process = measured.process_io.as_ref();
    if let Some(process) = process {
        evidence.push_str(&format!(
            "; /proc/self/io: {} fetched from and {} sent to a device for this process",
            process.read_bytes, process.write_bytes
        ));
    }
    evidence.push_str(&at_the_devices(seen));
    let judged = all_direct(seen) && asked.iter().any(|bytes| *bytes >= BYTES_TO_JUDGE);
    let Some(process) = process.filter(|_| judged) else {
        return Some(Ruling::unknown(evidence));
    };
    // The kernel counts each direct request at its submission, so a lower count means a cache.
    let moved = [process.read_bytes.0, process.write_bytes.0];
    let reached = asked
        .iter()
        .zip(moved)
        .all(|(asked, moved)| *asked < BYTES_TO_JUDGE || moved as f64 >= *asked as f64 * PROCESS_SHARE_MIN);
    Some(Ruling::that(reached, evidence))
}

/// True if every file bypasses the page cache and the kernel counts the bytes of each request for
/// this process.
pub(in super::super) fn all_direct(seen: &Evidence) -> bool {
    let of_log = seen.measured.outcome.log.as_ref();
    let all = is_direct(seen) && of_log.is_none_or(|log| log.direct == DirectIo::Required);
    all && !is_indirect(seen) && caches_below(seen).next().is_none()
}

/// True if the kernel's count of a process's device bytes differs from its requests.
fn is_indirect(seen: &Evidence) -> bool {
    seen.devices.iter().any(|device| {
        device.block.is_none() || INDIRECT_FILE_SYSTEMS.contains(&device.mount.file_system.as_str())
    })
}

/// Bytes counted by the block devices: additional evidence only, because
/// other processes use them, too.
fn at_the_devices(seen: &Evidence) -> String {
    let disks = &seen.measured.disks;
    if disks.is_empty() {
        return "; no block device is visible".to_string();
    }
    let read: Bytes = disks.values().map(|disk| disk.reads.bytes).sum();
    let written: Bytes = disks.values().map(|disk| disk.writes.bytes).sum();
    let names = disks.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    format!("; {names}: {read} read, {written} written by all processes")
}

/// Judges the method of requests, by the engine's counters and the kernel's.
pub(super) fn method(seen: &Evidence) -> Option<Ruling> {
    let period = &seen.measured.period;
    let [ring, fixed, pool, sync] = [
        Statistic::RingRequests,
        Statistic::RingFixedRequests,
        Statistic::PoolRequests,
        Statistic::SyncRequests,
    ]
    .map(|kind| period.statistic(kind));
    // The log has one batch with its sync in flight, on a path of its own. Copies of files have
    // such paths, too.
    let apart = [
        IoStream::LogWrites,
        IoStream::LogReads,
        IoStream::ArchiveWrites,
        IoStream::BackupReads,
        IoStream::BackupWrites,
        IoStream::HeaderReads,
        IoStream::HeaderWrites,
        IoStream::ControlReads,
        IoStream::ControlWrites,
    ];
    let apart = apart.map(|stream| period.stream(stream).count);
    // Requests of CKPT and of ARC may have been in flight at the last reading.
    let under_way = if seen.measured.outcome.log.is_some() { 2 } else { 0 };
    let sync = sync.saturating_sub(apart.iter().sum::<u64>() + under_way);
    let kind = seen.inside.access.method.kind();
    let mut evidence = format!(
        "{kind} ({}): {} requests through rings ({} with registered buffers), {} by the thread pool, {} synchronous; {} \
         io-wq workers at first, at most {} seen",
        seen.inside.access.method_reason(),
        RowCount(ring),
        RowCount(fixed),
        RowCount(pool),
        RowCount(sync),
        seen.measured.io_wq_workers.0,
        seen.measured.io_wq_workers.1
    );
    if ring + pool + sync == 0 {
        return Some(Ruling::unknown("no request was made"));
    }
    // A session reads single blocks with a call of its own, whatever the method.
    let alone = reads_alone(seen);
    if kind != MethodKind::Sync && ring + pool == 0 && sync <= alone {
        return Some(Ruling::unknown(format!(
            "{evidence}; each read single blocks, by a call of its session whatever the method"
        )));
    }
    // The kernel counts read and write calls, but not requests of a ring.
    let calls = seen.measured.process_io.as_ref().map(|process| process.syscr + process.syscw);
    if let Some(calls) = calls {
        evidence.push_str(&format!("; /proc/self/io: {} read and write calls", RowCount(calls)));
    }
    let by_calls = ring + pool + sync;
    // A session without the best method reports the one it used.
    let may = |kind| seen.inside.access.method.goes_by(kind);
    let agrees = match kind {
        MethodKind::IoUring => {
            let others = [(MethodKind::Threads, pool), (MethodKind::Sync, sync.saturating_sub(alone))];
            let strays: u64 = others.iter().filter(|(kind, _)| !may(*kind)).map(|(_, count)| count).sum();
            ring > 0 && strays as f64 <= (ring + strays) as f64 * STRAYS_MAX
        }
        MethodKind::Threads => pool > 0 && ring == 0 && calls.is_none_or(|calls| calls >= pool),
        MethodKind::Sync => ring == 0 && pool == 0 && calls.is_none_or(|calls| calls >= by_calls),
    };
    Some(Ruling::that(agrees, evidence))
}

/// Counts the threads that ran sessions of the work, by the recorder's roles.
pub(super) fn shared_servers(seen: &Evidence) -> Option<Ruling> {
    let done = &seen.measured.outcome;
    if done.slob.is_none() && done.import.is_none() {
        return None;
    }
    let of_role = |role: Role| {
        seen.measured.period.sessions.iter().filter(|session| session.role == role).count() as u64
    };
    let (servers, sessions) = (of_role(Role::SharedServer), of_role(Role::User));
    let asked = seen.inside.settings.number(Setting::SharedServers);
    let evidence = match servers {
        0 => format!("{}, each with a thread of its own", counted(sessions, "session")),
        _ => format!("{} carried {}", counted(servers, "shared server"), counted(sessions, "session")),
    };
    Some(Ruling::that(servers == asked.min(sessions), evidence).counted(servers))
}

/// Counts requests that read blocks into the buffer cache one at a time.
fn reads_alone(seen: &Evidence) -> u64 {
    let events = [Event::DbFileSequentialRead, Event::DbFileScatteredRead];
    let sessions = seen.measured.period.sessions.iter();
    sessions.map(|session| events.map(|event| session.events[event as usize].count).iter().sum::<u64>()).sum()
}

/// Counts blocks read into the buffer cache without a check of their checksum.
pub(super) fn block_checksum(seen: &Evidence) -> Option<Ruling> {
    let settings = &seen.inside.settings;
    if !settings.is_explicit(Setting::DbBlockChecksum) {
        return None;
    }
    let ignored = seen.measured.period.statistic(Statistic::ChecksumsIgnored);
    let reads = reads_alone(seen);
    let evidence = format!(
        "{} for single or adjacent blocks into the buffer cache; the checksums of {} were not verified",
        counted(reads, "read"),
        counted(ignored, "block")
    );
    Some(match settings.word(Setting::DbBlockChecksum) {
        "off" if reads == 0 && ignored == 0 => {
            Ruling::unknown("no block was read into the buffer cache: this setting had no effect")
        }
        "off" => Ruling::that(ignored > 0, evidence),
        _ => Ruling::that(ignored == 0, evidence),
    })
}

/// Judges the queue depth of a session, which bounds that of all.
pub(super) fn queue_depth(seen: &Evidence) -> Option<Ruling> {
    let settings = &seen.inside.settings;
    let depth = settings.number(Setting::IoQueueDepth);
    let found = seen.inside.access.method.queue_depth() as u64;
    if !settings.is_explicit(Setting::IoQueueDepth) {
        return None;
    }
    Some(match found == depth || seen.inside.access.method.kind() == MethodKind::Sync {
        true => Ruling::unknown(format!(
            "channels were opened for {} each; fewer were in flight where buffers ran out",
            counted(found, "request")
        )),
        false => Ruling::contradicted(format!("channels were opened for {} each", counted(found, "request"))),
    })
}

/// Judges the mean request of a table scan.
pub(super) fn request_size(seen: &Evidence) -> Option<Ruling> {
    // SLOB sessions both scan and read single blocks.
    if seen.measured.outcome.slob.is_some() {
        return None;
    }
    let tablespace = seen.inside.tablespace(Purpose::Users);
    let block = tablespace.block_size.bytes() as u64;
    let asked = seen.inside.settings.number(Setting::DbFileMultiblockReadCount);
    let asked = asked.min(u64::from(tablespace.extent_blocks.0)) * block;
    let mut requests = 0;
    let mut bytes = 0;
    for session in scanners(seen) {
        for stream in [IoStream::TableReads, IoStream::CacheReads] {
            requests += session.streams[stream as usize].count;
            bytes += session.streams[stream as usize].bytes;
        }
    }
    if requests == 0 {
        return None;
    }
    let mean = bytes / requests;
    let evidence = format!(
        "{} of the table of {} on average; {} is {} of {}",
        counted(requests, "read"),
        Bytes(mean),
        Bytes(asked),
        asked / block,
        Bytes(block)
    );
    // A request ends with its extent, and a small table has few whole ones.
    let judged = match (mean <= asked, mean * 2 >= asked) {
        (false, _) => Ruling::contradicted(evidence),
        (true, true) => Ruling::held(evidence),
        (true, false) if bytes < 8 * asked * seen.inside.degree as u64 => Ruling::unknown(evidence),
        (true, false) => Ruling::contradicted(evidence),
    };
    Some(judged.shift(mean as f64, mean as f64 * REQUEST_STEP))
}

/// Returns the sessions that scan; the coordinator's sample is of single blocks.
pub(super) fn scanners(seen: &Evidence) -> impl Iterator<Item = &SessionTotals> {
    let scans = |session: &&SessionTotals| session.statistics[Statistic::TableScanBlocks as usize] > 0;
    seen.measured.period.sessions.iter().filter(scans)
}

/// Judges if the serial scan bypassed the buffer cache.
pub(super) fn serial_direct_read(seen: &Evidence) -> Option<Ruling> {
    let settings = &seen.inside.settings;
    let explicit = settings.is_explicit(Setting::SerialDirectRead);
    if seen.inside.degree > 1 {
        return explicit.then(|| Ruling::unknown("no effect: parallel scans always read directly"));
    }
    let session = scanners(seen).next()?;
    let direct = session.streams[IoStream::TableReads as usize].bytes;
    let scattered = session.events[Event::DbFileScatteredRead as usize].count;
    let single = session.events[Event::DbFileSequentialRead as usize].count;
    let blocks = session.statistics[Statistic::TableScanBlocks as usize];
    let logical = session.statistics[Statistic::LogicalReads as usize];
    let evidence = format!(
        "the scan read {} directly; {}, {} into the cache for {} scanned",
        Bytes(direct),
        counted(logical, "logical read"),
        counted(scattered + single, "read"),
        counted(blocks, "block")
    );
    let block = seen.inside.tablespace(Purpose::Users).block_size.bytes() as u64;
    Some(match settings.word(Setting::SerialDirectRead) {
        "true" => Ruling::that(direct >= blocks * block && scattered == 0, evidence),
        _ => Ruling::that(direct == 0 && logical >= blocks, evidence),
    })
}

/// Checks that the service time includes the delay of each request.
pub(super) fn request_delay(seen: &Evidence) -> Option<Ruling> {
    let settings = &seen.inside.settings;
    let each = settings.number(Setting::DebugRequestDelay);
    if !settings.is_explicit(Setting::DebugRequestDelay) {
        return None;
    }
    if each == 0 {
        return Some(Ruling::unknown("nothing was put before a request"));
    }
    let transfers = || seen.measured.files.iter().flat_map(|file| [file.io.reads, file.io.writes]);
    let requests: u64 = transfers().map(|tally| tally.requests).sum();
    let service: u64 = transfers().filter_map(|tally| tally.time_ns).sum();
    if requests == 0 {
        return Some(Ruling::unknown("no request was made"));
    }
    let delay = requests.saturating_mul(each);
    let evidence = format!(
        "{} to the files took {} in all, and {} before each are {}",
        counted(requests, "request"),
        Nanos(service),
        Nanos(each),
        Nanos(delay)
    );
    Some(Ruling::that(service >= delay, evidence))
}

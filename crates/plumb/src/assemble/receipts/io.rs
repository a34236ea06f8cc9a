//! How requests reached the files: direct or not, by which method, how many at once, how large.

use super::super::Story;
use super::super::phases::Timeline;
use super::Finding;
use crate::measure::FileEvidence;
use plumb_engine::Setting;
use plumb_engine::storage::tablespace::Purpose;
use plumb_events::{IoStream, SessionKind, SessionTotals, Statistic};
use plumb_io::{DirectIo, MethodKind};
use plumb_units::{Bytes, RowCount};

/// Below this the device's counters say more about others than about us.
const BYTES_TO_JUDGE: u64 = 16 * Bytes::M;
/// The share of bytes asked for that a device must have seen.
const DEVICE_SHARE_MIN: f64 = 0.5;
/// Pages that a direct file may have in the page cache: its header may be read through it.
const PAGES_OF_DIRECT_MAX: u64 = 64;
/// File systems whose device is not the one that moves the bytes.
const INDIRECT_FILE_SYSTEMS: [&str; 4] = ["btrfs", "overlay", "zfs", "bcachefs"];

/// Whether direct I/O was asked for.
fn asked_direct(story: &Story<'_>) -> bool {
    matches!(story.instance.settings.word(Setting::FilesystemioOptions), "directio" | "setall")
}

fn is_direct(story: &Story<'_>) -> bool {
    story.instance.access.direct == DirectIo::Required
}

/// `O_DIRECT` of every data file as /proc/self/fdinfo has it.
pub(super) fn open_flags(story: &Story<'_>) -> Option<Finding> {
    let files = &story.measured.files;
    let known: Vec<bool> = files.iter().filter_map(|file| Some(file.flags?.direct)).collect();
    let direct = known.iter().filter(|direct| **direct).count();
    let evidence =
        format!("/proc/self/fdinfo: O_DIRECT in the flags of {direct} of {} data files", files.len());
    if known.len() < files.len() {
        return Some(Finding::not_checked("/proc/self/fdinfo does not tell the flags of the data files"));
    }
    if asked_direct(story) && !is_direct(story) && direct == 0 {
        // A default that cannot be met here is replaced, and not silently.
        return Some(Finding::not_checked(format!("{evidence}; {}", story.instance.access.direct_reason)));
    }
    Some(Finding::that(direct == if asked_direct(story) { files.len() } else { 0 }, evidence))
}

/// Pages of the data files in the page cache after the build.
pub(super) fn page_cache(story: &Story<'_>) -> Option<Finding> {
    let used: Vec<&FileEvidence> =
        story.measured.files.iter().filter(|file| file.reads.1 + file.writes.1 > 0).collect();
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
    if is_direct(story) {
        let grown = after.saturating_sub(before);
        return Some(Finding::that(grown <= PAGES_OF_DIRECT_MAX.max(total / 100), evidence));
    }
    if asked_direct(story) {
        return Some(Finding::not_checked(evidence));
    }
    // Under memory pressure pages go, but hardly all of them.
    Some(Finding::that(after > 0, evidence))
}

/// Bytes at the block device against bytes asked for.
pub(super) fn device_bytes(story: &Story<'_>) -> Option<Finding> {
    let measured = story.measured;
    let period = &measured.period;
    let asked =
        [Statistic::PhysicalReadBytes, Statistic::PhysicalWriteBytes].map(|kind| period.statistic(kind));
    let mut evidence = format!("asked: {} read, {} written", Bytes(asked[0]), Bytes(asked[1]));
    if let Some(process) = &measured.process_io {
        evidence.push_str(&format!(
            "; /proc/self/io: {} fetched from and {} sent to a device for this process",
            process.read_bytes, process.write_bytes
        ));
    }
    let seen = measured
        .disks
        .values()
        .fold([0, 0], |sum, disk| [sum[0] + disk.reads.bytes.0, sum[1] + disk.writes.bytes.0]);
    if measured.disks.is_empty() {
        return Some(Finding::not_checked(format!("{evidence}; no block device is visible")));
    }
    let names = measured.disks.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    evidence.push_str(&format!(
        "; {names}: {} read, {} written by everybody",
        Bytes(seen[0]),
        Bytes(seen[1])
    ));
    let indirect = story.devices.iter().any(|device| {
        device.block.is_none() || INDIRECT_FILE_SYSTEMS.contains(&device.mount.file_system.as_str())
    });
    if !is_direct(story) || indirect || asked.iter().sum::<u64>() < BYTES_TO_JUDGE {
        return Some(Finding::not_checked(evidence));
    }
    // Others add to what the device counts and never take away: less than was asked was served by a cache.
    let reached = asked
        .iter()
        .zip(seen)
        .all(|(asked, seen)| *asked < BYTES_TO_JUDGE || seen as f64 >= *asked as f64 * DEVICE_SHARE_MIN);
    Some(Finding::that(reached, evidence))
}

/// Requests in flight: service time over the time in which the stream was active.
pub(super) fn overlap(story: &Story<'_>) -> Option<Finding> {
    let method = story.instance.access.method.kind();
    let options = story.instance.settings.word(Setting::FilesystemioOptions);
    let streams = [IoStream::TableReads, IoStream::TempWrites, IoStream::TempReads, IoStream::IndexWrites];
    let timeline = Timeline::of(story);
    let mut shown = Vec::new();
    let mut most = 0.0_f64;
    for stream in streams {
        let total = story.measured.period.stream(stream);
        let busy = timeline.busy_in_build(stream);
        if busy.0 == 0 {
            continue;
        }
        let in_flight = total.time.0 as f64 / busy.0 as f64;
        most = most.max(in_flight);
        shown.push(format!("{} {in_flight:.1}", stream.name()));
    }
    if shown.is_empty() {
        return None;
    }
    let evidence = format!("requests in flight on average while active: {}", shown.join(", "));
    let asynchronous = method != MethodKind::Sync;
    if asynchronous != matches!(options, "asynch" | "setall") {
        return Some(Finding::not_checked(format!("{evidence}; {}", story.instance.access.method_reason)));
    }
    let sessions =
        story.measured.period.sessions.iter().filter(|session| session.kind == SessionKind::Foreground);
    Some(match asynchronous {
        // Short streams on a fast device may have no two requests at once, and that is no contradiction.
        true if most > 1.05 => Finding::held(evidence),
        true => Finding::not_checked(evidence),
        false => Finding::that(most <= sessions.count() as f64 * 1.05, evidence),
    })
}

/// Which way requests went, by the engine's counters and the kernel's.
pub(super) fn method(story: &Story<'_>) -> Option<Finding> {
    let period = &story.measured.period;
    let [ring, fixed, pool, sync] = [
        Statistic::RingRequests,
        Statistic::RingFixedRequests,
        Statistic::PoolRequests,
        Statistic::SyncRequests,
    ]
    .map(|kind| period.statistic(kind));
    let kind = story.instance.access.method.kind();
    let mut evidence = format!(
        "{kind} ({}): {} requests through rings ({} with registered buffers), {} by the thread pool, {} synchronous; {} \
         io-wq workers at the begin, at most {} seen",
        story.instance.access.method_reason,
        RowCount(ring),
        RowCount(fixed),
        RowCount(pool),
        RowCount(sync),
        story.measured.io_wq_workers.0,
        story.measured.io_wq_workers.1
    );
    if ring + pool + sync == 0 {
        return Some(Finding::not_checked("no request was made"));
    }
    // The kernel counts read and write calls, and not what goes through a ring.
    let calls = story.measured.process_io.as_ref().map(|process| process.syscr + process.syscw);
    if let Some(calls) = calls {
        evidence.push_str(&format!("; /proc/self/io: {} read and write calls", RowCount(calls)));
    }
    let by_calls = ring + pool + sync;
    let agrees = match kind {
        MethodKind::IoUring => ring > 0 && pool == 0,
        MethodKind::Threads => pool > 0 && ring == 0 && calls.is_none_or(|calls| calls >= pool),
        MethodKind::Sync => ring == 0 && pool == 0 && calls.is_none_or(|calls| calls >= by_calls),
    };
    Some(Finding::that(agrees, evidence))
}

/// What a session may have in flight bounds what all have.
pub(super) fn queue_depth(story: &Story<'_>) -> Option<Finding> {
    let settings = &story.instance.settings;
    let depth = settings.number(Setting::IoQueueDepth);
    let found = story.instance.access.method.queue_depth() as u64;
    if !settings.is_explicit(Setting::IoQueueDepth) {
        return None;
    }
    Some(match found == depth || story.instance.access.method.kind() == MethodKind::Sync {
        true => Finding::not_checked(format!(
            "channels were opened for {found} requests each; fewer were in flight where buffers ran out"
        )),
        false => Finding::contradicted(format!("channels were opened for {found} requests each")),
    })
}

/// The mean request of a table scan.
pub(super) fn request_size(story: &Story<'_>) -> Option<Finding> {
    let tablespace = story.instance.tablespace(Purpose::Users);
    let block = tablespace.block_size.bytes() as u64;
    let asked = story.instance.settings.number(Setting::DbFileMultiblockReadCount);
    let asked = asked.min(u64::from(tablespace.extent_blocks.0)) * block;
    // Those who scan; the coordinator's sample is of single blocks.
    let scans = |session: &&SessionTotals| session.statistics[Statistic::TableScanBlocks as usize] > 0;
    let mut requests = 0;
    let mut bytes = 0;
    for session in story.measured.period.sessions.iter().filter(scans) {
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
        "{} reads of the table of {} on average; {} is {} of {}",
        RowCount(requests),
        Bytes(mean),
        Bytes(asked),
        asked / block,
        Bytes(block)
    );
    // Extents end between requests, and a small table has few whole ones.
    Some(match (mean <= asked, mean * 2 >= asked) {
        (false, _) => Finding::contradicted(evidence),
        (true, true) => Finding::held(evidence),
        (true, false) if bytes < 8 * asked * story.instance.parallel_degree() as u64 => {
            Finding::not_checked(evidence)
        }
        (true, false) => Finding::contradicted(evidence),
    })
}

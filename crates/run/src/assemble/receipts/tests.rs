//! Each rule judges a run whose setting took effect and one whose setting did not. A fact of the
//! evidence is changed, and the receipt must contradict. The evidence is of a real run that spills,
//! made once.

use super::{RULES, log, memory_budget, receipts};
use crate::evidence::{CacheFacts, CtasDone, Evidence, FileRole, LogDone, SlobDone, UsersDone};
use crate::place::Places;
use crate::workload::{Request, observe};
use plumb_engine::redo::{SyncChoice, SyncMethod};
use plumb_engine::sort::summary::SortSummary;
use plumb_engine::table::load::LoadOutcome;
use plumb_engine::transaction::Logging;
use plumb_engine::{Setting, Settings};
use plumb_events::{Cancel, Direction, Event, IoStream, Role, SessionKind, SessionTotals, Statistic};
use plumb_host::priority;
use plumb_io::{DirectIo, MethodKind};
use plumb_record::{Held, IoTally, trace};
use plumb_study::{Observer, Stage};
use plumb_units::{BlockSize, Bytes, Nanos};
use plumb_workload::slob::{SLOB, SlobSpec};
use plumb_workload::specification::LARGE_SORT;
use plumb_workload::{TextShape, Work};
use std::path::{Path, PathBuf};

struct Nobody;

impl Observer for Nobody {
    fn stage(&self, _: &Stage<'_>) {}
    fn begins(&self) {}
    fn made(&self, _: &Path) {}
}

const SET: [(&str, &str); 11] = [
    ("parallel_degree", "2"),
    ("io_queue_depth", "16"),
    ("extent_size", "1M"),
    ("db_file_multiblock_read_count", "16"),
    ("sort_area_size", "512K"),
    ("sort_direct_writes", "true"),
    ("sort_write_buffers", "4"),
    ("sort_write_buffer_size", "64K"),
    ("sort_read_fac", "10"),
    ("snapshot_interval", "10"),
    ("debug_request_delay", "1"),
];

/// Evidence of a sort that spills. Files count as direct even where the
/// directory cannot do direct I/O.
fn evidence() -> Evidence {
    evidence_of(&[("rows", "400K")], &SET)
}

fn evidence_of(parameters: &[(&str, &str)], set: &[(&str, &str)]) -> Evidence {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let places = Places::in_one(directory.path());
    let devices = places.describe().expect("a directory");
    let mut settings = Settings::default();
    set.iter().try_for_each(|(name, value)| settings.set(name, value, "test")).expect("in range");
    let mut work = Work::of(&LARGE_SORT);
    parameters.iter().try_for_each(|(name, value)| work.set(name, value)).expect("in range");
    let request = Request { work: &work, settings, places: &places, devices: &devices, command_line: "test" };
    let (mut seen, _) = observe(request, Cancel::default(), &Nobody).expect("it runs");
    seen.devices.clear();
    seen.inside.access.direct = DirectIo::Required;
    for file in &mut seen.measured.files {
        if let Some(flags) = &mut file.flags {
            flags.direct = true;
        }
        file.cached_after = file.cached_before;
    }
    seen
}

fn set(seen: &mut Evidence, setting: Setting, value: &str) {
    seen.inside.settings.set(setting.row().name, value, "test").expect("in range");
}

/// Sets one statistic of the period.
fn count(seen: &mut Evidence, statistic: Statistic, value: u64) {
    for session in &mut seen.measured.period.sessions {
        session.statistics[statistic as usize] = 0;
    }
    seen.measured.period.sessions[0].statistics[statistic as usize] = value;
}

fn sessions(seen: &mut Evidence, role: Role) -> impl Iterator<Item = &mut SessionTotals> {
    seen.measured.period.sessions.iter_mut().filter(move |session| session.role == role)
}

fn writers(seen: &mut Evidence, number: usize) {
    let first = seen.measured.period.sessions[0].clone();
    let writer = SessionTotals { role: Role::DatabaseWriter, ..first };
    seen.measured.period.sessions.extend(vec![writer; number]);
}

/// Adds pages of one file to the page cache.
fn cached(seen: &mut Evidence, pages: u64) {
    let file = seen.measured.files.iter_mut().find(|file| file.io.reads.bytes > 0).expect("one was read");
    file.cached_after = file.cached_before.map(|before| plumb_host::readings::Residency {
        resident_pages: before.resident_pages + pages,
        ..before
    });
}

/// Requests by method: rings, pool, calls.
fn requests(seen: &mut Evidence, [ring, pool, sync]: [u64; 3]) {
    count(seen, Statistic::RingRequests, ring);
    count(seen, Statistic::PoolRequests, pool);
    count(seen, Statistic::SyncRequests, sync);
}

/// Counts all requests for the method in use.
fn requests_by_method(seen: &mut Evidence) {
    let by = |kind| if seen.inside.access.method.kind() == kind { 1000 } else { 0 };
    let counts = [by(MethodKind::IoUring), by(MethodKind::Threads), by(MethodKind::Sync)];
    if let Some(process) = &mut seen.measured.process_io {
        process.syscr = 5000;
    }
    requests(seen, counts);
}

type Change = fn(&mut Evidence);

/// In the order of the rules: changes that make the setting take effect, and
/// changes that make it fail.
const CASES: &[(Setting, Change, Change)] = &[
    (
        Setting::FilesystemioOptions,
        |_| {},
        |seen| seen.measured.files[0].flags.iter_mut().for_each(|flags| flags.direct = false),
    ),
    (Setting::FilesystemioOptions, |_| {}, |seen| cached(seen, 1_000_000)),
    (Setting::FilesystemioOptions, |seen| moved(seen, 100 * Bytes::M), |seen| moved(seen, 50 * Bytes::M)),
    (Setting::FilesystemioOptions, |seen| overlapping(seen, 100), |seen| overlapping(seen, 1)),
    (Setting::IoMethod, requests_by_method, |seen| requests(seen, [1, 1, 1000])),
    (Setting::IoQueueDepth, |_| {}, |seen| set(seen, Setting::IoQueueDepth, "7")),
    (Setting::SharedServers, |seen| carried(seen, 2), |seen| carried(seen, 0)),
    (
        Setting::DbFileMultiblockReadCount,
        |_| {},
        |seen| {
            set(seen, Setting::DbFileMultiblockReadCount, "2");
        },
    ),
    (Setting::ScanReadAhead, |seen| in_flight(seen, 16), |seen| in_flight(seen, 40)),
    (
        Setting::SerialDirectRead,
        |seen| seen.inside.degree = 1,
        |seen| {
            seen.inside.degree = 1;
            set(seen, Setting::SerialDirectRead, "false");
        },
    ),
    (Setting::DbBlockSize, |_| {}, |seen| seen.headers[0].block_bytes = 4096),
    (Setting::ExtentSize, |_| {}, |seen| seen.headers[0].extent_bytes = 4096),
    (Setting::DataFiles, |_| {}, |seen| set(seen, Setting::DataFiles, "3")),
    (Setting::DataFiles, |_| {}, |seen| count(seen, Statistic::FileBytesExtended, 1)),
    (Setting::DbCacheSize, |seen| cache(seen, 20 * Bytes::M), |seen| cache(seen, 10 * Bytes::M)),
    (
        Setting::Db2kCacheSize,
        |seen| sized_cache(seen, 0, Bytes::M),
        |seen| sized_cache(seen, 0, 8 * Bytes::M),
    ),
    (
        Setting::Db4kCacheSize,
        |seen| sized_cache(seen, 1, Bytes::M),
        |seen| sized_cache(seen, 1, 8 * Bytes::M),
    ),
    (
        Setting::Db8kCacheSize,
        |seen| sized_cache(seen, 2, Bytes::M),
        |seen| sized_cache(seen, 2, 8 * Bytes::M),
    ),
    (
        Setting::Db16kCacheSize,
        |seen| sized_cache(seen, 3, Bytes::M),
        |seen| sized_cache(seen, 3, 8 * Bytes::M),
    ),
    (
        Setting::Db32kCacheSize,
        |seen| sized_cache(seen, 4, Bytes::M),
        |seen| sized_cache(seen, 4, 8 * Bytes::M),
    ),
    (Setting::DbBlockPrefetchLimit, |seen| prefetch(seen, [100, 3]), |seen| prefetch(seen, [0, 100])),
    (Setting::DbBlockChecksum, |seen| not_verified(seen, 100), |seen| not_verified(seen, 0)),
    (Setting::DbWriterProcesses, |seen| writers(seen, 1), |seen| writers(seen, 2)),
    (Setting::DbBlockWriteBatch, |seen| batch(seen, 512), |seen| batch(seen, 513)),
    (
        Setting::SortAreaSize,
        |_| {},
        |seen| {
            sort_of(seen).servers[0].area_mapped = Bytes(Bytes::M);
        },
    ),
    (
        Setting::SortDirectWrites,
        |_| {},
        |seen| {
            count(seen, Statistic::PhysicalWritesDirectTemp, 0);
        },
    ),
    (Setting::SortWriteBuffers, |seen| buffers(seen, 4), |seen| buffers(seen, 2)),
    (Setting::SortWriteBufferSize, |seen| writes(seen, 64 * Bytes::K), |seen| writes(seen, 8 * Bytes::K)),
    (
        Setting::SortReadFac,
        |_| {},
        |seen| {
            sort_of(seen).servers.iter_mut().for_each(|server| server.merge_passes += 1);
        },
    ),
    (
        Setting::ParallelDegree,
        |_| {},
        |seen| {
            sessions(seen, Role::SortServer).for_each(|session| session.role = Role::MergeServer);
        },
    ),
    (Setting::LogFileSize, |seen| log_files(seen, 3, 64), |seen| log_files(seen, 3, 32)),
    (Setting::LogFileGroups, |seen| log_files(seen, 3, 64), |seen| log_files(seen, 2, 64)),
    (
        Setting::LogFileMembers,
        |seen| {
            log_files(seen, 3, 64);
            set(seen, Setting::LogFileMembers, "1");
        },
        |seen| {
            log_files(seen, 3, 64);
            set(seen, Setting::LogFileMembers, "2");
        },
    ),
    (Setting::LogPath, |seen| log_in(seen, "/logs"), |seen| log_in(seen, "/elsewhere")),
    (Setting::LogMirrorPath, |seen| mirror_in(seen, "/logs"), |seen| mirror_in(seen, "/elsewhere")),
    (Setting::LogBuffer, |seen| log_writes(seen, 2 * Bytes::M), |seen| log_writes(seen, 6 * Bytes::M)),
    (Setting::SnapshotInterval, |_| {}, |seen| seen.measured.cuts.clear()),
    (
        Setting::LogSyncMethod,
        |seen| log_flags(seen, "open_datasync", true),
        |seen| log_flags(seen, "open_datasync", false),
    ),
    (
        Setting::LogFileIo,
        |seen| log_flags(seen, "fdatasync", false),
        |seen| {
            log_flags(seen, "fdatasync", false);
            set(seen, Setting::LogFileIo, "buffered");
        },
    ),
    (
        Setting::HighPriorityProcesses,
        |seen| writer_priority(seen, priority::FIRST),
        |seen| writer_priority(seen, 0),
    ),
    (Setting::ArchiveLogMode, |seen| copies(seen, 2), |seen| copies(seen, 1)),
    (Setting::ForceLogging, |seen| load_with_redo(seen, 4096), |seen| load_with_redo(seen, 0)),
    (
        Setting::DebugRequestDelay,
        |_| {},
        |seen| {
            set(seen, Setting::DebugRequestDelay, "1000000000");
        },
    ),
    (Setting::DebugTraceRequests, |seen| traced(seen, 1000), |seen| traced(seen, 2)),
];

/// A trace of one request, with this number counted and one dropped.
fn traced(seen: &mut Evidence, counted: u64) {
    set(seen, Setting::DebugTraceRequests, "1000");
    for session in &mut seen.measured.period.sessions {
        session.streams.iter_mut().for_each(|stream| stream.count = 0);
    }
    seen.measured.period.sessions[0].streams[IoStream::TableReads as usize].count = counted;
    let request = trace::Request { begin_ns: 0, latency_ns: 1, kind: 0, file: 0, offset: 0, bytes: 8192 };
    let session = trace::SessionTrace { name: "USER".to_string(), requests: vec![request] };
    seen.measured.trace =
        Some(trace::RunTrace { dropped: 999, sessions: vec![session], ..Default::default() });
}

/// Random reads with a prefetch: waits for blocks requested at once, and for single ones.
fn prefetch(seen: &mut Evidence, waits: [u64; 2]) {
    let spec = SlobSpec::of(&Work::of(&SLOB), 8192).expect("defaults are consistent");
    seen.measured.outcome.slob = Some(SlobDone::of(&spec));
    set(seen, Setting::DbBlockPrefetchLimit, "8");
    for (event, count) in [Event::DbFileParallelRead, Event::DbFileSequentialRead].into_iter().zip(waits) {
        let sessions = seen.measured.period.sessions.iter_mut();
        let of_users = sessions.filter(|session| session.role.kind() == SessionKind::Foreground);
        of_users.enumerate().for_each(|(place, session)| {
            session.events[event as usize].count = if place == 0 { count } else { 0 };
        });
    }
}

/// Random reads of 100 blocks, of which this number skipped the checksum; all should have.
fn not_verified(seen: &mut Evidence, ignored: u64) {
    prefetch(seen, [0, 100]);
    set(seen, Setting::DbBlockChecksum, "off");
    count(seen, Statistic::ChecksumsIgnored, ignored);
}

/// Random reads on two shared servers, with this number found.
fn carried(seen: &mut Evidence, servers: usize) {
    let spec = SlobSpec::of(&Work::of(&SLOB), 8192).expect("defaults are consistent");
    seen.measured.outcome.slob = Some(SlobDone::of(&spec));
    set(seen, Setting::SharedServers, "2");
    for (place, session) in seen.measured.period.sessions.iter_mut().enumerate() {
        session.role = if place < servers { Role::SharedServer } else { Role::User };
    }
}

/// Adds log files of this size in megabytes.
fn log_files(seen: &mut Evidence, files: usize, megabytes: u64) {
    let mut file = seen.measured.files[0].clone();
    (file.role, file.length) = (FileRole::Log, Some(Bytes(megabytes * Bytes::M)));
    seen.measured.files.extend(vec![file; files]);
}

/// Three log files in `/logs`, with this directory requested.
fn log_in(seen: &mut Evidence, asked: &str) {
    log_files(seen, 3, 64);
    for file in seen.measured.files.iter_mut().filter(|file| file.role == FileRole::Log) {
        file.path = PathBuf::from("/logs/redo01_0badcafe.log");
    }
    set(seen, Setting::LogPath, asked);
}

/// A second member in `/logs`, with this directory requested.
fn mirror_in(seen: &mut Evidence, asked: &str) {
    log_flags(seen, "fdatasync", false);
    if let Some(log) = &mut seen.measured.outcome.log {
        log.second_members = vec![PathBuf::from("/logs/redo01_0badcafe.log")];
    }
    set(seen, Setting::LogMirrorPath, asked);
}

/// Three direct log files, opened with or without O_DSYNC, in a log with this sync method.
fn log_flags(seen: &mut Evidence, word: &str, dsync: bool) {
    log_files(seen, 3, 64);
    set(seen, Setting::LogSyncMethod, word);
    let method = SyncMethod::ALL.into_iter().find(|method| method.name() == word).expect("a method");
    let sync = SyncChoice { method, reason: String::new() };
    let direct = DirectIo::Required;
    seen.measured.outcome.log = Some(LogDone {
        second_members: Vec::new(),
        sync,
        direct,
        lgwr_nice: Some(0),
        read_back: Bytes(0),
        files: (3, Bytes(64 * Bytes::M)),
        start: None,
    });
    for file in seen.measured.files.iter_mut().filter(|file| file.role == FileRole::Log) {
        if let Some(flags) = &mut file.flags {
            (flags.direct, flags.dsync, flags.sync) = (true, dsync, false);
        }
    }
}

/// LGWR with raised priority and this nice value.
fn writer_priority(seen: &mut Evidence, nice: i32) {
    log_flags(seen, "fdatasync", false);
    set(seen, Setting::HighPriorityProcesses, "lgwr");
    seen.measured.outcome.log.as_mut().expect("just given").lgwr_nice = Some(nice);
}

/// This number of copies of the log files, in a log that used four.
fn copies(seen: &mut Evidence, copied: u64) {
    log_files(seen, 4, 64);
    set(seen, Setting::ArchiveLogMode, "on");
    for file in seen.measured.files.iter_mut().filter(|file| file.role == FileRole::Log) {
        file.io.writes = IoTally { requests: 1, bytes: 512, time_ns: Some(1) };
    }
    count(seen, Statistic::RedoFilesArchived, copied);
}

/// Ten log writes of this size, more than the commits, and a buffer of 8M.
fn log_writes(seen: &mut Evidence, bytes: u64) {
    set(seen, Setting::LogBuffer, "8M");
    let stream = &mut seen.measured.period.sessions[0].streams[IoStream::LogWrites as usize];
    (stream.count, stream.bytes) = (10, 10 * bytes);
}

/// 100 MB requested, and this much moved by the kernel.
fn moved(seen: &mut Evidence, bytes: u64) {
    count(seen, Statistic::PhysicalReadBytes, 100 * Bytes::M);
    count(seen, Statistic::PhysicalWriteBytes, 0);
    if let Some(process) = &mut seen.measured.process_io {
        process.read_bytes = Bytes(bytes);
    }
}

/// Requests through rings, one in `one_in` complete at submission.
fn overlapping(seen: &mut Evidence, one_in: u64) {
    for session in &mut seen.measured.period.sessions {
        session.streams.iter_mut().for_each(|stream| stream.away = Nanos(stream.away.0 * 10));
    }
    count(seen, Statistic::RingRequests, 1000);
    seen.measured.period.sessions.iter_mut().for_each(|session| session.run_queue = Nanos(0));
    count(seen, Statistic::RingCompleteAtOnce, 1000 / one_in);
}

/// Mean number of table reads in flight for each scan server.
fn in_flight(seen: &mut Evidence, mean: u64) {
    for session in sessions(seen, Role::ScanServer) {
        session.elapsed = Nanos(1000);
        let stream = &mut session.streams[IoStream::TableReads as usize];
        (stream.away, stream.count) = (Nanos(1000 * mean), 1000);
    }
}

/// A used cache with this memory mapped.
fn cache(seen: &mut Evidence, mapped: u64) {
    count(seen, Statistic::FreeBufferRequested, 1);
    seen.inside.caches[0].mapped = Some(Bytes(mapped));
}

/// A cache of 1M for blocks of the size at this index, with this memory mapped.
fn sized_cache(seen: &mut Evidence, place: usize, mapped: u64) {
    let block_size = BlockSize::ALL[place];
    set(seen, Setting::cache_of(block_size), "1M");
    let frames = Bytes::M / block_size.bytes() as u64;
    seen.inside.caches.push(CacheFacts { block_size, frames, mapped: Some(Bytes(mapped)) });
}

/// A direct path load with forced redo, of whose blocks this many bytes were logged.
fn load_with_redo(seen: &mut Evidence, bytes: u64) {
    set(seen, Setting::ForceLogging, "on");
    count(seen, Statistic::RedoDirectBytes, bytes);
    seen.measured.outcome.ctas = Some(CtasDone {
        block_size: BlockSize::ALL[2],
        shape: TextShape::Short,
        logging: Logging::NoLogging,
        logged: true,
        source_cached: None,
        loaded: LoadOutcome { row_count: 1, block_count: 1, row_bytes: 93, chained_row_count: 0 },
        backup: None,
    });
}

fn batch(seen: &mut Evidence, blocks: u64) {
    count(seen, Statistic::DbwrBatches, 1);
    count(seen, Statistic::PhysicalWritesFromCache, blocks);
}

/// Mean number of writes in flight at each wait for a buffer.
fn buffers(seen: &mut Evidence, in_flight: u64) {
    count(seen, Statistic::SortWriteWaits, 100);
    count(seen, Statistic::SortWritesInFlight, 100 * in_flight);
}

/// Many writes of runs, each of this size.
fn writes(seen: &mut Evidence, bytes: u64) {
    for session in &mut seen.measured.period.sessions {
        let stream = &mut session.streams[IoStream::TempWrites as usize];
        (stream.count, stream.bytes) = (0, 0);
    }
    let stream = &mut seen.measured.period.sessions[0].streams[IoStream::TempWrites as usize];
    (stream.count, stream.bytes) = (1000, 1000 * bytes);
}

#[test]
fn each_receipt_holds_or_contradicts_by_its_settings_effect() {
    let real = evidence();
    assert_eq!(CASES.len(), RULES.len(), "each rule has its case");
    for ((setting, _, rule), (of, holds, fails)) in RULES.iter().zip(CASES) {
        assert_eq!(setting, of, "cases are in the order of the rules");
        let judged = |change: &Change| {
            let mut seen = real.clone();
            change(&mut seen);
            rule(&seen).unwrap_or_else(|| panic!("{setting:?} says nothing"))
        };
        let (good, bad) = (judged(holds), judged(fails));
        // A queue may be shorter for lack of buffers, so its receipt can only contradict.
        let at_best = if *setting == Setting::IoQueueDepth { Held::NotChecked } else { Held::Held };
        assert_eq!(good.held, at_best, "{setting:?}: {}", good.evidence);
        assert_eq!(bad.held, Held::Contradicted, "{setting:?}: {}", bad.evidence);
    }
}

/// Changes of a run with users, or of several builds, and the receipt that must contradict.
const USERS: &[(&str, Change)] = &[
    ("sessions", |seen| users(seen).parts[1].period.sessions.truncate(1)),
    ("hot-pct", |seen| {
        let sessions = &mut users(seen).parts[0].period.sessions;
        sessions.iter_mut().for_each(|it| it.statistics[Statistic::PhysicalReadBlocks as usize] = 1 << 40);
    }),
    ("alone", |seen| users(seen).parts[2].period.elapsed = Nanos(1)),
    ("work-unit", |seen| users(seen).parts[1].done.rows_read += 1),
    ("rate", |seen| users(seen).spec.reads.rate = 1),
    ("sort_direct_writes", |seen| {
        writers(seen, 1);
        let writer = sessions(seen, Role::DatabaseWriter).last().expect("just added");
        writer.streams[IoStream::TempWrites as usize].bytes = 8192;
    }),
    ("sort-memory", |seen| sort_of(seen).servers[0].area_mapped = Bytes(Bytes::G)),
    ("parallel_degree", |seen| seen.measured.outcome.sorters.truncate(1)),
];

fn users(seen: &mut Evidence) -> &mut UsersDone {
    seen.measured.outcome.users.as_mut().expect("a run with users")
}

#[test]
fn receipts_of_users_and_of_many_sorters_contradict_what_was_not_done() {
    let parameters = [
        ("rows", "200K"),
        ("sorters", "2"),
        ("sort-memory", "1M"),
        ("with", "slob"),
        ("scale", "512"),
        ("sessions", "2"),
        ("work-unit", "8"),
        ("alone", "0.2"),
    ];
    let set = [("parallel_degree", "2"), ("db_cache_size", "4M"), ("sort_direct_writes", "true")];
    let set = set.iter().chain(&[("sort_write_buffers", "2"), ("sort_write_buffer_size", "32K")]);
    let real = evidence_of(&parameters, &set.copied().collect::<Vec<_>>());
    let judged = |seen: &Evidence, setting: &str| {
        let of = receipts(seen).receipts.into_iter().filter(|receipt| receipt.setting == setting);
        of.map(|receipt| (receipt.held, receipt.evidence)).collect::<Vec<_>>()
    };
    for (setting, change) in USERS {
        let held = judged(&real, setting);
        assert!(held.iter().all(|(held, _)| *held == Held::Held) && !held.is_empty(), "{setting}: {held:?}");
        let mut seen = real.clone();
        change(&mut seen);
        let found = judged(&seen, setting);
        assert!(found.iter().any(|(held, _)| *held == Held::Contradicted), "{setting}: {found:?}");
    }
    for span in &real.inside.phases {
        assert!(LARGE_SORT.phases.contains(&span.phase), "{:?}", span.phase);
    }
}

#[test]
fn a_reading_is_the_value_in_force_so_that_two_values_under_one_cap_are_alike() {
    let real = evidence();
    let reading = |asked: &str, servers: usize| {
        let mut seen = real.clone();
        carried(&mut seen, servers);
        set(&mut seen, Setting::SharedServers, asked);
        let found = receipts(&seen).readings.into_iter().find(|found| found.setting == "shared_servers");
        found.expect("sessions were carried")
    };
    let (two, three) = (reading("2", 2), reading("3", 3));
    assert!((two.value - three.value).abs() > two.step.max(three.step), "{two:?}, {three:?}");
    assert_eq!(reading("8", 3), reading("16", 3), "there are no more sessions to carry");
}

/// O_DIRECT bypasses this page cache, but not the one below a loop device.
#[test]
fn receipts_of_direct_io_do_not_hold_over_caches() {
    let mut seen = evidence();
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory on a disk");
    seen.devices = Places::in_one(directory.path()).describe().expect("a directory");
    let layer = "loop0 reaches its file through the page cache (loop/dio is 0)";
    let judged = |seen: &Evidence| {
        let receipts = RULES[..3].iter().map(|(.., rule)| rule(seen).expect("a receipt"));
        receipts.map(|found| (found.held, found.evidence)).collect::<Vec<_>>()
    };
    assert!(judged(&seen)[..2].iter().all(|(held, _)| *held == Held::Held), "of a disk: {:?}", judged(&seen));
    let block = seen.devices[0].block.as_mut().expect("the sources lie on a disk");
    block.caches = vec![layer.to_string()];
    let over = judged(&seen);
    assert!(over.iter().all(|(held, _)| *held == Held::NotChecked), "{over:?}");
    assert!(over[..2].iter().all(|(_, evidence)| evidence.ends_with(layer)), "{over:?}");
}

/// Log writes of a millisecond each: this number in the statistics, these latencies in the trace.
fn log_trace(seen: &mut Evidence, writes: u64, latencies_us: &[u64]) {
    log_flags(seen, "fsync", false);
    count(seen, Statistic::RedoWrites, writes);
    for (place, session) in seen.measured.period.sessions.iter_mut().enumerate() {
        session.streams[IoStream::LogWrites as usize].count = if place == 0 { writes } else { 0 };
        session.statistics[Statistic::RedoWriteTime as usize] = if place == 0 { 1000 * writes } else { 0 };
    }
    let kind = trace::Kind {
        stream: IoStream::LogWrites.name().to_string(),
        event: Event::LogFileParallelWrite.name().to_string(),
        direction: Direction::Write,
    };
    let request = |us: &u64| trace::Request {
        begin_ns: 0,
        latency_ns: 1000 * us,
        kind: 0,
        file: 0,
        offset: 0,
        bytes: 512,
    };
    let requests = latencies_us.iter().map(request).collect();
    let session = trace::SessionTrace { name: "LGWR".to_string(), requests };
    seen.measured.trace =
        Some(trace::RunTrace { kinds: vec![kind], sessions: vec![session], ..Default::default() });
}

#[test]
fn a_trace_holds_if_its_log_writes_match_statistics() {
    let real = evidence();
    assert_eq!(log::trace(&real), None, "nothing was traced");
    for (writes, traced, latency_us, dropped, expected) in [
        (50, 50, 990, 0, Held::Held),
        // In flight at the start of the period, and at its end.
        (50, 48, 990, 0, Held::Held),
        (50, 52, 990, 0, Held::Held),
        (50, 47, 990, 0, Held::Contradicted),
        (50, 53, 990, 0, Held::Contradicted),
        (5000, 4990, 990, 0, Held::Contradicted),
        // The write without its sync; and one that takes longer than was counted.
        (50, 50, 450, 0, Held::Contradicted),
        (50, 50, 1990, 0, Held::Contradicted),
        // A pause of some milliseconds outweighs few writes, and never makes a request longer than
        // its write.
        (9, 9, 800, 0, Held::NotChecked),
        (9, 6, 800, 0, Held::Contradicted),
        (9, 9, 1200, 0, Held::Contradicted),
        (50, 30, 990, 20, Held::NotChecked),
    ] {
        let mut seen = real.clone();
        log_trace(&mut seen, writes, &vec![latency_us; traced]);
        seen.measured.period.sessions.iter_mut().for_each(|session| session.run_queue = Nanos(0));
        seen.measured.trace.as_mut().expect("a trace").dropped = dropped;
        let receipt = log::trace(&seen).expect("a trace");
        assert_eq!(receipt.held, expected, "{writes} {traced} {latency_us}: {}", receipt.evidence);
        // On a machine that is full, writes end when their session gets a processor again.
        seen.measured.period.sessions[0].run_queue = Nanos(30_000_000);
        let full = log::trace(&seen).expect("a trace").held;
        let told = match (expected, writes, traced, latency_us) {
            (Held::Contradicted, 50, 50, 450) => Held::NotChecked,
            _ => expected,
        };
        assert_eq!(full, told, "{writes} {traced} {latency_us}");
    }
}

#[test]
fn a_peak_beyond_what_was_declared_contradicts_the_budget() {
    let mut seen = evidence();
    seen.measured.peak_is_of_work = true;
    let memory = |peak| Some(plumb_host::readings::ResidentMemory { rss: Bytes(0), peak: Bytes(peak) });
    seen.measured.memory = memory(Bytes::M);
    assert_eq!(memory_budget(&seen).held, Held::Held);
    seen.measured.memory = memory(1 << 50);
    assert_eq!(memory_budget(&seen).held, Held::Contradicted);
}

#[test]
fn a_run_has_only_phases_of_its_specification() {
    for span in &evidence().inside.phases {
        assert!(LARGE_SORT.phases.contains(&span.phase), "{:?}", span.phase);
    }
}

fn sort_of(seen: &mut Evidence) -> &mut SortSummary {
    seen.measured.outcome.sort.as_mut().expect("a run that sorts")
}

//! Receipts: evidence that a setting took effect, outside before inside.
//!
//! ```text
//! RULES      a row for each setting with evidence of its own: from which version, what it needs,
//!            the best evidence there can be, and a predicate with its threshold
//! others     any setting of the server: the value in force, which the server itself reports
//! ```
//!
//! The server's word is no receipt: a value may be capped, divided or ignored without a trace in
//! `pg_settings`. A predicate compares a figure from outside (memory of processes, flags of open
//! files, bytes of temporary files, processes) with the value. That figure is also the receipt's
//! reading: where the readings of two arms are alike, the analysis calls their comparison invalid,
//! whatever each run shows.
//!
//! If nothing outside tells two values apart, the receipt is marked as the server's word.

use crate::evidence::{FILLED, GivenSetting, ServerEvidence};
use crate::session::InForce;
use plumb_record::{Held, Receipts, Ruling, Seen, Shift};
use plumb_units::{Bytes, TakesEffect};
use rustix::fs::{major, minor};
use std::path::Path;

/// Least share of its memory that a sort which wrote temporary files has used.
const MEMORY_USED_MIN: f64 = 0.5;
/// Largest memory of a sort over its budget, and of each process besides.
const MEMORY_OVER_MAX: f64 = 1.25;
const MEMORY_BESIDE: f64 = 8.0 * MEGABYTE;
/// Readings of memory are alike within this share and this amount.
const MEMORY_STEP: f64 = 0.1;
const MEMORY_STEP_LEAST: f64 = 256.0 * 1024.0;
/// Memory of each participant below which PostgreSQL takes fewer workers.
const WORKER_MEMORY_MIN: f64 = 32.0 * MEGABYTE;
/// Share of a table's bytes that the I/O workers have read if they did the reading.
const WORKER_READS_MIN: f64 = 0.5;
/// Share of log bytes over that of the index: above the first it was logged, below the second not.
const LOGGED_MIN: f64 = 0.5;
const UNLOGGED_MAX: f64 = 0.1;
/// Readings of log bytes for each page image are alike within this share.
const LOG_STEP: f64 = 0.5;
/// Shared memory besides the buffers: locks, sessions, the log's buffers.
const SHARED_OVER_MAX: f64 = 1.5;
const SHARED_BESIDE: f64 = 64.0 * MEGABYTE;
const MEGABYTE: f64 = 1024.0 * 1024.0;
/// Least share of the table's pages in a page cache that is filled, and most in an empty one.
const FILLED_MIN: f64 = 0.9;
const EMPTY_MAX: f64 = 0.1;
/// Between the share of an empty page cache and of a filled one.
const HALF: f64 = 0.5;

/// Place where the evidence of a receipt is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvidenceSource {
    Server,
    /// The log's positions and the server's counters of it.
    ServerLog,
    /// Bytes that each kind of process read.
    ProcessIo,
    ProcessMemory,
    SharedMapping,
    OpenFlags,
    Processes,
    TemporaryFiles,
    /// Records of the log, by `pg_waldump`.
    LogRecords,
    ControlFile,
    Device,
    Page,
    LogFiles,
    DeviceNumbers,
    PageCache,
    Program,
    Samples,
}

impl EvidenceSource {
    /// Returns what is read there.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            EvidenceSource::Server => "pg_settings: the value in force",
            EvidenceSource::ServerLog => "the log's positions and syncs, by the server",
            EvidenceSource::ProcessIo => "/proc/PID/io: bytes that each kind of process read",
            EvidenceSource::ProcessMemory => {
                "/proc/PID/status: growth of private memory of the building processes; temporary files"
            }
            EvidenceSource::SharedMapping => "/proc/PID/smaps: size and pages of the shared mapping",
            EvidenceSource::OpenFlags => "/proc/PID/fdinfo: O_DIRECT, O_DSYNC and O_SYNC of open files",
            EvidenceSource::Processes => "processes `parallel worker` at once",
            EvidenceSource::TemporaryFiles => "bytes of temporary files at once",
            EvidenceSource::LogRecords => "pg_waldump: bytes of page images in the log",
            EvidenceSource::ControlFile => "changes of the control file",
            EvidenceSource::Device => "/sys/block/DEVICE/stat: requests in flight, flushes",
            EvidenceSource::Page => "a page of the table's file",
            EvidenceSource::LogFiles => "files in pg_wal",
            EvidenceSource::DeviceNumbers => "the kernel's number of the data directory's device",
            EvidenceSource::PageCache => "cachestat or mincore: pages of the table in the page cache",
            EvidenceSource::Program => "/proc/PID/exe: path and sha256 of the server's program",
            EvidenceSource::Samples => "samples of wait events in the record",
        }
    }

    /// True if the kernel or the disk shows it.
    #[must_use]
    pub fn is_outside(self) -> bool {
        !matches!(self, EvidenceSource::Server | EvidenceSource::ServerLog)
    }
}

/// A setting with evidence of its own.
#[derive(Debug)]
pub struct SettingRule {
    pub name: &'static str,
    /// First major version that has it.
    pub since: u32,
    pub takes_effect: TakesEffect,
    /// True if it affects how requests reach a device.
    pub about_io: bool,
    /// The best evidence there can be.
    pub source: EvidenceSource,
    judge: fn(&GivenSetting, &ServerEvidence) -> Ruling,
}

const fn rule(
    name: &'static str,
    since: u32,
    source: EvidenceSource,
    judge: fn(&GivenSetting, &ServerEvidence) -> Ruling,
) -> SettingRule {
    SettingRule { name, since, takes_effect: TakesEffect::Start, about_io: false, source, judge }
}

/// A setting that only the server's word shows.
const fn inside(name: &'static str, since: u32, takes_effect: TakesEffect) -> SettingRule {
    SettingRule { takes_effect, ..rule(name, since, EvidenceSource::Server, by_the_server) }
}

impl SettingRule {
    const fn takes(self, takes_effect: TakesEffect) -> SettingRule {
        SettingRule { takes_effect, ..self }
    }

    const fn of_io(self) -> SettingRule {
        SettingRule { about_io: true, ..self }
    }

    /// Returns whose evidence it is.
    #[must_use]
    pub fn seen(&self) -> Seen {
        if self.source.is_outside() { Seen::Outside } else { Seen::Inside }
    }
}

use TakesEffect::{Creation, Reload, Session, Start};

pub const RULES: &[SettingRule] = &[
    // Reading.
    rule("io_method", 18, EvidenceSource::ProcessIo, io_method).of_io(),
    rule("io_workers", 18, EvidenceSource::ProcessIo, io_workers).takes(Reload),
    inside("io_max_concurrency", 18, Start),
    rule("effective_io_concurrency", 14, EvidenceSource::Device, queue_depth).takes(Session).of_io(),
    rule("maintenance_io_concurrency", 14, EvidenceSource::Device, queue_depth).takes(Session).of_io(),
    rule("io_combine_limit", 17, EvidenceSource::ProcessIo, io_combine_limit).takes(Session),
    inside("io_max_combine_limit", 18, Start),
    rule("debug_io_direct", 16, EvidenceSource::OpenFlags, debug_io_direct).of_io(),
    // Memory.
    rule("shared_buffers", 14, EvidenceSource::SharedMapping, shared_buffers),
    rule("huge_pages", 14, EvidenceSource::SharedMapping, huge_pages),
    rule("maintenance_work_mem", 14, EvidenceSource::ProcessMemory, maintenance_work_mem).takes(Session),
    rule("max_parallel_maintenance_workers", 14, EvidenceSource::Processes, maintenance_workers)
        .takes(Session),
    rule("work_mem", 14, EvidenceSource::TemporaryFiles, temporary_bytes).takes(Session),
    inside("hash_mem_multiplier", 14, Session),
    rule("max_parallel_workers_per_gather", 14, EvidenceSource::Processes, gather_workers).takes(Session),
    // Log.
    rule("wal_level", 14, EvidenceSource::ServerLog, wal_level),
    rule("wal_sync_method", 14, EvidenceSource::OpenFlags, wal_sync_method).takes(Reload).of_io(),
    inside("wal_buffers", 14, Start),
    rule("synchronous_commit", 14, EvidenceSource::Device, synchronous_commit).takes(Session),
    rule("commit_delay", 14, EvidenceSource::ServerLog, commit_delay).takes(Session),
    inside("commit_siblings", 14, Session),
    rule("full_page_writes", 14, EvidenceSource::LogRecords, page_images).takes(Reload),
    rule("wal_compression", 14, EvidenceSource::LogRecords, page_images).takes(Session),
    inside("wal_init_zero", 14, Session),
    inside("wal_recycle", 14, Session),
    inside("fsync", 14, Reload),
    // Checkpoints and writers.
    rule("max_wal_size", 14, EvidenceSource::ControlFile, checkpoints).takes(Reload),
    rule("checkpoint_timeout", 14, EvidenceSource::ControlFile, checkpoints).takes(Reload),
    inside("min_wal_size", 14, Reload),
    inside("checkpoint_completion_target", 14, Reload),
    inside("checkpoint_flush_after", 14, Reload),
    inside("bgwriter_flush_after", 14, Reload),
    inside("backend_flush_after", 14, Session),
    inside("bgwriter_delay", 14, Reload),
    inside("bgwriter_lru_maxpages", 14, Reload),
    // Hidden ones, which the server's own list leaves out.
    inside("trace_sort", 14, Session),
    // Words of a study: sampling, the page cache, the server's program.
    rule("sampler", 14, EvidenceSource::Samples, sampler).takes(Session),
    rule("page_cache", 14, EvidenceSource::PageCache, page_cache).takes(Session),
    rule("server", 14, EvidenceSource::Program, server).takes(TakesEffect::Build),
    // Fixed at creation: a place, and options of initdb.
    rule("path", 14, EvidenceSource::DeviceNumbers, path).takes(Creation).of_io(),
    rule("data_checksums", 14, EvidenceSource::Page, data_checksums).takes(Creation),
    rule("wal_segment_size", 14, EvidenceSource::LogFiles, wal_segment_size).takes(Creation),
];

#[must_use]
pub fn rule_of(name: &str) -> Option<&'static SettingRule> {
    RULES.iter().find(|rule| rule.name == name)
}

/// Returns a receipt for each setting of the run, and the readings by which arms are compared.
#[must_use]
pub fn receipts(evidence: &ServerEvidence) -> Receipts {
    let mut found = Receipts::default();
    for asked in &evidence.asked {
        let server = by_the_server(asked, evidence);
        let own = rule_of(&asked.name).map(|rule| (rule.judge)(asked, evidence));
        // A value that is not in force cannot have acted.
        let ruling = match server.held {
            Held::Contradicted => server,
            _ => own.unwrap_or(server),
        };
        found.add(&asked.name, &asked.value, ruling);
    }
    found
}

fn shown(bytes: f64) -> String {
    Bytes(bytes as u64).to_string()
}

/// Compares the value in force with the one asked for, by the server's word.
fn by_the_server(asked: &GivenSetting, evidence: &ServerEvidence) -> Ruling {
    let Some(InForce { source, pending, .. }) = evidence.setting(&asked.name) else {
        // Options of initdb and hidden settings are no rows of the view.
        return Ruling { seen: Seen::Inside, ..Ruling::unknown("pg_settings does not list it") };
    };
    let in_force = evidence.setting(&asked.name).map(InForce::shown).unwrap_or_default();
    let is_same = evidence.setting(&asked.name).is_some_and(|set| set.value == asked.canonical);
    let waits = if *pending { "; another value waits for a restart" } else { "" };
    let what = format!("pg_settings: {in_force} in force, by {source}{waits}");
    Ruling { seen: Seen::Inside, ..Ruling::that(is_same && !pending, what) }
}

/// Memory of the processes that sort: each gets an even share of the setting.
fn maintenance_work_mem(_: &GivenSetting, evidence: &ServerEvidence) -> Ruling {
    let Some(memory) = evidence.bytes("maintenance_work_mem") else {
        return Ruling::unknown("no value in force");
    };
    let memory = memory as f64;
    let grown: Vec<f64> = sorters(evidence).map(|process| process.memory_grown.0 as f64).collect();
    let (used, participants) = (grown.iter().sum::<f64>(), grown.len() as f64);
    let temporary = evidence.watched.temporary_bytes;
    let most = memory * MEMORY_OVER_MAX + MEMORY_BESIDE * participants;
    let spilled = temporary.0 > 0;
    let holds = used <= most && (!spilled || used >= memory * MEMORY_USED_MIN);
    let files =
        if spilled { format!("{temporary} of temporary files") } else { "no temporary files".to_string() };
    let what = format!(
        "/proc/PID/status: private memory of {participants} processes grew by {}; {files}; expected at most {}{}",
        shown(used),
        shown(most),
        if spilled { format!(" and at least {}", shown(memory * MEMORY_USED_MIN)) } else { String::new() }
    );
    let step = (memory * MEMORY_STEP).max(MEMORY_STEP_LEAST);
    Ruling::that(holds, what).shift(used, step)
}

/// Returns the processes that build an index: those of the leader with most CPU time.
fn sorters(evidence: &ServerEvidence) -> impl Iterator<Item = &crate::watch::Process> {
    let backends = evidence.watched.of_kind("client backend");
    let leader = backends.max_by_key(|process| process.counters.cpu);
    let pid = leader.map(|process| process.pid);
    leader
        .into_iter()
        .chain(evidence.watched.of_kind("parallel worker").filter(move |process| process.leader == pid))
}

/// Workers of an index build: fewer than asked for where the memory of each would be too small.
fn maintenance_workers(asked: &GivenSetting, evidence: &ServerEvidence) -> Ruling {
    let found = evidence.watched.workers;
    let wanted: u64 = asked.canonical.parse().unwrap_or(0);
    let said = evidence.sort_lines.iter().filter(|line| line.contains("begin index sort")).count() as u64;
    // The leader sorts a share, and merges in a sort of its own.
    let began = said.saturating_sub(2);
    let mut what = format!("{found} processes `parallel worker` at once, of {wanted}");
    if found < wanted && began > found {
        let lines = format!("; {began} began by the server's word, and ended between two samples");
        return Ruling::unknown(what + &lines);
    }
    if found < wanted {
        let memory = evidence.bytes("maintenance_work_mem").unwrap_or(0) as f64;
        let share = memory / (wanted + 1) as f64;
        what += &match share < WORKER_MEMORY_MIN {
            true => format!(
                "; maintenance_work_mem = {} gives each of {} processes {}, and PostgreSQL takes no worker below {}: give it {}",
                shown(memory),
                wanted + 1,
                shown(share),
                shown(WORKER_MEMORY_MIN),
                shown(WORKER_MEMORY_MIN * (wanted + 1) as f64)
            ),
            false => "; max_parallel_workers, max_worker_processes or the size of the table allow no more"
                .to_string(),
        };
    }
    Ruling::that(found == wanted, what).counted(found)
}

fn gather_workers(asked: &GivenSetting, evidence: &ServerEvidence) -> Ruling {
    let (found, wanted) = (evidence.watched.workers, asked.canonical.parse::<u64>().unwrap_or(0));
    let what = format!("{found} processes `parallel worker` at once, of at most {wanted} for each plan node");
    Ruling::that(found <= wanted && (wanted == 0 || found > 0), what).counted(found)
}

fn temporary_bytes(_: &GivenSetting, evidence: &ServerEvidence) -> Ruling {
    let bytes = evidence.watched.temporary_bytes;
    let value = bytes.0 as f64;
    let step = (value * MEMORY_STEP).max(MEMORY_STEP_LEAST);
    Ruling::held(format!("{bytes} of temporary files at once")).shift(value, step)
}

fn shared_buffers(_: &GivenSetting, evidence: &ServerEvidence) -> Ruling {
    let Some(buffers) = evidence.bytes("shared_buffers") else { return Ruling::unknown("no value in force") };
    let Some(shared) = evidence.shared else {
        return Ruling::unknown("/proc/PID/smaps of the server cannot be read");
    };
    let (buffers, size) = (buffers as f64, shared.size.0 as f64);
    let holds = size >= buffers && size <= buffers * SHARED_OVER_MAX + SHARED_BESIDE;
    let what =
        format!("/proc/PID/smaps: a shared mapping of {} for buffers of {}", shared.size, shown(buffers));
    Ruling::that(holds, what).shift(size, MEGABYTE)
}

fn huge_pages(asked: &GivenSetting, evidence: &ServerEvidence) -> Ruling {
    let Some(shared) = evidence.shared else {
        return Ruling::unknown("/proc/PID/smaps of the server cannot be read");
    };
    let huge = shared.page.0 > 4 * Bytes::K;
    let what = format!("/proc/PID/smaps: the shared mapping has pages of {}", shared.page);
    let wanted = asked.canonical == "on";
    // `try` that fell back would pass for a treatment.
    let holds = huge == wanted && asked.canonical != "try";
    Ruling::that(holds, what).counted(u64::from(huge))
}

/// Flags of the open files of the log.
fn wal_sync_method(asked: &GivenSetting, evidence: &ServerEvidence) -> Ruling {
    let log = evidence.watched.open.iter().filter(|(path, _)| path.starts_with("pg_wal") && is_segment(path));
    let flags: Vec<_> = log.map(|(_, flags)| flags).collect();
    if flags.is_empty() {
        return Ruling::unknown("no file of the log was open in a sample");
    }
    let count = |found: &dyn Fn(&plumb_host::readings::OpenFlags) -> bool| {
        flags.iter().filter(|flags| found(flags)).count()
    };
    let (sync, dsync) = (count(&|flags| flags.sync), count(&|flags| flags.dsync && !flags.sync));
    let direct = count(&|flags| flags.direct);
    let what = format!(
        "/proc/PID/fdinfo: of {} open files of the log {sync} with O_SYNC, {dsync} with O_DSYNC, {direct} with O_DIRECT",
        flags.len()
    );
    let (holds, value) = match asked.canonical.as_str() {
        "open_sync" => (sync > 0, 2),
        "open_datasync" => (dsync > 0 || sync > 0, 1),
        _ => (sync + dsync == 0, 0),
    };
    let judged = Ruling::that(holds, what).counted(value);
    match asked.canonical.as_str() {
        // Only a trace of system calls tells it from fdatasync.
        "fsync" | "fsync_writethrough" => Ruling { seen: Seen::Inside, reading: None, ..judged },
        _ => judged,
    }
}

/// True for the name of a segment: 24 hexadecimal digits.
fn is_segment(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.len() == 24 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn debug_io_direct(asked: &GivenSetting, evidence: &ServerEvidence) -> Ruling {
    if evidence.disk.is_none() {
        let what = "the data directory has no device below it, as on tmpfs: O_DIRECT passes nothing by";
        return Ruling { held: Held::Contradicted, ..Ruling::unknown(what) };
    }
    let of = |prefix: &str| {
        let files = evidence.watched.open.iter().filter(|(path, _)| path.starts_with(prefix));
        let flags: Vec<bool> = files
            .filter(|(path, _)| !path.starts_with("base/pgsql_tmp"))
            .map(|(_, flags)| flags.direct)
            .collect();
        (flags.iter().filter(|direct| **direct).count(), flags.len())
    };
    let ((data, of_data), (log, of_log)) = (of("base"), of("pg_wal"));
    let wants = |word: &str| asked.canonical.split(',').any(|part| part.trim() == word);
    let fits = |direct: usize, all: usize, wanted: bool| all == 0 || (direct > 0) == wanted;
    let holds = fits(data, of_data, wants("data")) && fits(log, of_log, wants("wal")) && of_data + of_log > 0;
    let what = format!(
        "/proc/PID/fdinfo: O_DIRECT in {data} of {of_data} data files, {log} of {of_log} files of the log"
    );
    Ruling::that(holds, what).counted(u64::from(data > 0) + 2 * u64::from(log > 0))
}

fn wal_level(asked: &GivenSetting, evidence: &ServerEvidence) -> Ruling {
    let index = evidence.done.index.0 as f64;
    if index == 0.0 {
        return by_the_server(asked, evidence);
    }
    let share = evidence.log.bytes.0 as f64 / index;
    let what = format!(
        "{} of log for an index of {}, by the log's position",
        evidence.log.bytes, evidence.done.index
    );
    let holds = if asked.canonical == "minimal" { share <= UNLOGGED_MAX } else { share >= LOGGED_MIN };
    Ruling { seen: Seen::Inside, ..Ruling::that(holds, what).shift(share, UNLOGGED_MAX) }
}

/// Bytes of the log and of its page images, from the files of the log.
fn page_images(asked: &GivenSetting, evidence: &ServerEvidence) -> Ruling {
    let off = asked.name == "full_page_writes" && asked.canonical == "off";
    let Some(images) = evidence.log.image_bytes else {
        return images_by_the_server(asked, off, evidence);
    };
    let (count, bytes) = (evidence.log.image_count, evidence.log.bytes);
    let what = format!("pg_waldump: {images} of {count} page images in {bytes} of log");
    let holds = if off { images.0 == 0 } else { images.0 > 0 };
    let each = images.0 as f64 / count.max(1) as f64;
    Ruling::that(holds, what).shift(each, each * MEMORY_STEP)
}

/// Judges page images by their number, where `pg_waldump` is missing, or a checkpoint has removed
/// files of the log before it read them. Compression shows in the bytes of log for each image.
fn images_by_the_server(asked: &GivenSetting, off: bool, evidence: &ServerEvidence) -> Ruling {
    let (count, bytes) = (evidence.log.image_count, evidence.log.bytes);
    let server = by_the_server(asked, evidence);
    let each = bytes.0 as f64 / count.max(1) as f64;
    let what = format!(
        "{}; pg_stat_wal: {count} page images in {bytes} of log, which pg_waldump could not read",
        server.evidence
    );
    let holds = server.held == Held::Held && (count == 0) == off;
    // The log has other records, too, so that only a large difference is one of the images.
    let value = if count == 0 { 0.0 } else { each };
    Ruling { seen: Seen::Inside, ..Ruling::that(holds, what).shift(value, value * LOG_STEP) }
}

/// Share of the log that the background process wrote: sessions write it themselves if they wait.
fn synchronous_commit(asked: &GivenSetting, evidence: &ServerEvidence) -> Ruling {
    let Some(disk) = evidence.disk.and_then(|disk| disk.flushes).filter(|_| evidence.done.commits > 0) else {
        return by_the_server(asked, evidence);
    };
    let per_commit = disk.completed as f64 / evidence.done.commits as f64 * evidence.done.sessions as f64;
    let what = format!(
        "{} flushes at the device for {} commits of {} sessions",
        disk.completed, evidence.done.commits, evidence.done.sessions
    );
    let waits = asked.canonical != "off";
    // A device without a write cache gets no flush.
    match disk.completed {
        0 => by_the_server(asked, evidence),
        _ => Ruling::that(waits == (per_commit > 0.5), what).shift(per_commit, 0.25),
    }
}

/// A delay acts only while enough other sessions are active, and never without syncs.
fn commit_delay(asked: &GivenSetting, evidence: &ServerEvidence) -> Ruling {
    let siblings = evidence.number("commit_siblings").unwrap_or(0.0);
    let others = evidence.done.sessions.saturating_sub(1) as f64;
    let syncs = evidence.log.syncs;
    let delays = asked.canonical != "0";
    let per_sync = |syncs: u64| evidence.done.commits as f64 / syncs.max(1) as f64;
    let figure = syncs.map_or(String::new(), |syncs| {
        format!("; {} commits with {syncs} syncs, {:.2} each", evidence.done.commits, per_sync(syncs))
    });
    if delays && others < siblings {
        let what = format!(
            "it acts while commit_siblings = {siblings} other sessions are active, and there are {others}{figure}: set \
             commit_siblings to {others} or less, or use more sessions"
        );
        return Ruling { held: Held::Contradicted, seen: Seen::Inside, ..Ruling::unknown(what) };
    }
    let Ruling { evidence: what, held, .. } = by_the_server(asked, evidence);
    let reading = syncs.map(|syncs| Shift { value: per_sync(syncs), step: 0.05 * per_sync(syncs) });
    Ruling { evidence: what + &figure, held, seen: Seen::Inside, reading }
}

fn checkpoints(asked: &GivenSetting, evidence: &ServerEvidence) -> Ruling {
    let count = evidence.watched.control_changes;
    let Ruling { held, evidence: server, .. } = by_the_server(asked, evidence);
    let what = format!("the control file changed {count} times, {} of log; {server}", evidence.log.bytes);
    Ruling::that(held, what).counted(count)
}

fn data_checksums(asked: &GivenSetting, evidence: &ServerEvidence) -> Ruling {
    let Some(found) = evidence.page_checksum else {
        return Ruling::unknown("no page of the table could be read");
    };
    let what = format!("the first page of the table's file has the checksum {found:#06x}");
    let wanted = is_on(&asked.value);
    Ruling::that((found != 0) == wanted, what).counted(u64::from(found != 0))
}

/// The program that runs, which a directory of links may hide.
fn server(asked: &GivenSetting, evidence: &ServerEvidence) -> Ruling {
    let Some(program) = &evidence.program else {
        return Ruling::unknown("/proc/PID/exe of the server cannot be read");
    };
    let hash = program.sha256.get(..16).unwrap_or_default();
    let what = format!("/proc/PID/exe: {}, sha256 {hash}", program.path.display());
    // Of two programs with one number, one in four billion is another.
    let number = program.sha256.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    Ruling::that(Path::new(&asked.canonical) == program.path, what).counted(u64::from(number.unwrap_or(0)))
}

/// Place of the data directory: below the path, on its device.
fn path(_: &GivenSetting, evidence: &ServerEvidence) -> Ruling {
    let Some(place) = &evidence.place else {
        return Ruling::unknown("the data directory's place is not known");
    };
    let Some(device) = place.device else {
        return Ruling::unknown("the data directory's device is not known");
    };
    let what = format!("{} is on device {}:{}", place.data.display(), major(device), minor(device));
    let holds = place.data.starts_with(&place.path) && place.device == place.device_of_path;
    Ruling::that(holds, what)
}

/// True for a truth value that is on, as PostgreSQL writes it.
#[must_use]
pub fn is_on(value: &str) -> bool {
    ["on", "true", "yes", "1"].contains(&value.to_lowercase().as_str())
}

fn wal_segment_size(asked: &GivenSetting, evidence: &ServerEvidence) -> Ruling {
    let Some(found) = evidence.log.segment else { return Ruling::unknown("there is no file in pg_wal") };
    let wanted = plumb_units::parse_size(&asked.value).ok();
    let what = format!("files of {found} in pg_wal");
    Ruling::that(wanted == Some(found.0), what).shift(found.0 as f64, MEGABYTE / 2.0)
}

/// Mean number of requests at the device.
fn queue_depth(asked: &GivenSetting, evidence: &ServerEvidence) -> Ruling {
    let Some(disk) = evidence.disk else { return by_the_server(asked, evidence) };
    let depth = disk.weighted_io_time.0 as f64 / evidence.elapsed.0.max(1) as f64;
    let Ruling { held, evidence: server, .. } = by_the_server(asked, evidence);
    let what = format!("{depth:.2} requests at the device on average, by all processes; {server}");
    let judged = Ruling::that(held, what).shift(depth, 0.05 + 0.1 * depth);
    match asked.canonical.as_str() {
        // A block requested just before its read is one in flight, as a plain read is.
        "1" => Ruling { seen: Seen::Inside, reading: None, ..judged },
        _ => judged,
    }
}

/// Bytes read by processes of a kind.
fn read_by(evidence: &ServerEvidence, kind: &str) -> (f64, u64) {
    let io = evidence.watched.of_kind(kind).filter_map(|process| process.counters.io);
    io.fold((0.0, 0), |(bytes, calls), io| (bytes + io.rchar.0 as f64, calls + io.syscr))
}

/// Samples between the first and the last one, which are always taken.
fn sampler(asked: &GivenSetting, evidence: &ServerEvidence) -> Ruling {
    let between = evidence.watched.samples.saturating_sub(2);
    let what = format!("{between} samples of wait events during the work");
    Ruling::that((between > 0) == is_on(&asked.value), what).counted(u64::from(between > 0))
}

/// Pages of the table when the work begins.
fn page_cache(asked: &GivenSetting, evidence: &ServerEvidence) -> Ruling {
    let Some(pages) = evidence.page_cache else {
        return Ruling::unknown("the kernel does not tell which pages of the table are in the page cache");
    };
    let what = format!("{} of {} pages of the table were in the page cache", pages.cached, pages.all);
    let holds = match asked.value == FILLED {
        true => pages.share() >= FILLED_MIN,
        false => pages.share() <= EMPTY_MAX,
    };
    Ruling::that(holds, what).shift(pages.share(), HALF)
}

/// The kind of process that does the reading. The method may fall back to plain reads.
fn io_method(asked: &GivenSetting, evidence: &ServerEvidence) -> Ruling {
    let (by_workers, _) = read_by(evidence, "io worker");
    let table = evidence.done.table.0 as f64;
    let rings = evidence.watched.ring_requests.unwrap_or(0);
    let what = format!(
        "/proc/PID/io: processes `io worker` read {} of a table of {}; {rings} requests through rings",
        shown(by_workers),
        evidence.done.table
    );
    let (holds, value) = match asked.canonical.as_str() {
        "worker" => (by_workers >= table * WORKER_READS_MIN, 1),
        "io_uring" => (rings > 0, 2),
        _ => (by_workers == 0.0 && rings == 0, 0),
    };
    Ruling::that(holds, what).counted(if holds { value } else { 0 })
}

fn io_workers(asked: &GivenSetting, evidence: &ServerEvidence) -> Ruling {
    let workers = evidence.watched.of_kind("io worker");
    let used = |process: &&crate::watch::Process| process.counters.io.is_some_and(|io| io.rchar.0 > 0);
    let (found, used) = (workers.clone().count() as u64, workers.filter(used).count());
    let what = format!("{found} processes `io worker`, {used} of them read");
    Ruling::that(asked.canonical.parse() == Ok(found) && used > 0, what).counted(found)
}

/// Bytes of a read: the limit has a cap that acts without a word.
fn io_combine_limit(_: &GivenSetting, evidence: &ServerEvidence) -> Ruling {
    let limits = ["io_combine_limit", "io_max_combine_limit"].map(|name| evidence.bytes(name));
    let Some(wanted) = limits[0] else { return Ruling::unknown("no value in force") };
    let (by_workers, worker_calls) = read_by(evidence, "io worker");
    let (by_sessions, session_calls) = read_by(evidence, "client backend");
    let (bytes, calls) =
        if by_workers > by_sessions { (by_workers, worker_calls) } else { (by_sessions, session_calls) };
    let each = bytes / calls.max(1) as f64;
    let mut what = format!("/proc/PID/io: {} a read on average", shown(each));
    let mut holds = true;
    if let Some(cap) = limits[1].filter(|cap| *cap < wanted) {
        what +=
            &format!("; io_max_combine_limit = {} is used instead, without a word", Bytes(cap).as_setting());
        holds = false;
    }
    Ruling::that(holds, what).shift(each, (each * MEMORY_STEP).max(1024.0))
}

#[cfg(test)]
mod tests;

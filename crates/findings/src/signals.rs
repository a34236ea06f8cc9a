//! Figures of a period that rules judge, whatever their source.

use plumb_events::{IoStream, SessionKind};
use plumb_record::{Circumstance, HostCpu, IoTally, LimitShare, Record, Snoop, WaitEvent};
use plumb_units::{ValueRange, total_of};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Origin {
    /// A run of this program.
    #[default]
    Run,
    /// The report of another program.
    Import,
}

/// Kind of the medium, on which thresholds of latency depend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    Disk,
    /// Flash, or an array with a cache.
    Flash,
}

/// Parts of a database that the workload uses. No setting of another part is advised.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Uses {
    pub sort: bool,
    /// Transactions that write the log.
    pub log: bool,
    /// Blocks read into the buffer cache.
    pub cache: bool,
    /// Blocks that database writers write.
    pub writers: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HostSignals {
    pub cpus: Option<f64>,
    /// Busy share of all processors, without waits for I/O.
    pub busy: Option<f64>,
    /// Load average over one minute at the end.
    pub load: Option<f64>,
    /// Time in which foreground sessions were ready without a processor.
    pub run_queue_ns: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LogSignals {
    pub commits: Option<u64>,
    pub writes: Option<u64>,
    pub bytes: Option<u64>,
    /// User calls or rows of the period, for calls of a commit.
    pub calls: Option<u64>,
    /// Switches to the next log file.
    pub switches: Option<u64>,
    /// True if log files bypass the page cache.
    pub direct: Option<bool>,
}

/// A line of a buffer pool advisory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Advisory {
    /// Size of the cache as a multiple of the present one.
    pub size_factor: f64,
    /// Physical reads expected, of the present ones.
    pub read_factor: f64,
}

/// Figures of the buffer cache.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CacheSignals {
    pub gets: Option<u64>,
    pub hits: Option<u64>,
    pub advisory: Vec<Advisory>,
}

/// Reads and waits of a tablespace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TablespaceIo {
    pub name: String,
    /// Bytes of a block; none if unknown.
    pub block_bytes: Option<u64>,
    pub reads: IoTally,
    pub writes: IoTally,
    /// Reads of one block, if they are counted apart.
    pub single: Option<IoTally>,
    /// Bytes and seconds of a read with the printed texts of a report.
    pub printed_read: Option<[ValueRange; 2]>,
}

/// Throughput with the limit that bounds it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reached {
    pub what: String,
    /// Reached rate, of the limit.
    pub share: f64,
    pub limit: String,
    /// True if the limit is that of a link, not of a device.
    pub is_link: bool,
}

/// Figures that only a server's report has.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ServerSignals {
    /// True if the server was restarted within the period.
    pub restarted: bool,
    /// Share of reads by the statement that reads most, and the most that five of them can have.
    pub top_sql_reads: Option<[f64; 2]>,
    /// Share of bytes moved by backups and data pump.
    pub backup_bytes: Option<f64>,
    /// Work areas that merged once, and more than once.
    pub work_area_passes: Option<[u64; 2]>,
    /// True if it keeps its files in ASM or Exadata, which ignore settings of file systems.
    pub asm: bool,
}

/// Growth of files while the period was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Grown {
    pub bytes: u64,
    pub waited_ns: u64,
    pub advice: String,
}

/// Writes that ran faster than the device reads.
#[derive(Debug, Clone, PartialEq)]
pub struct Absorbed {
    pub stream: String,
    pub bytes_per_s: f64,
    pub limit_bytes_per_s: f64,
    /// Layer that has the cache.
    pub layer: &'static str,
}

/// The sort of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SortFacts {
    pub rows: u64,
    pub runs: u64,
    pub servers: u64,
    pub area: String,
    pub intermediate_merges: u64,
    pub merge_width: u64,
    pub merge_passes: u64,
    /// The smallest area that merges all runs at once.
    pub one_pass_area: Option<String>,
    /// True if runs bypass the buffer cache.
    pub direct_writes: bool,
    /// Rows of the busiest server.
    pub most_rows: u64,
    /// True if a sample of the keys divides the rows.
    pub by_key: bool,
    /// Memory of the sort areas, and the time to get it.
    pub mapped_bytes: u64,
    pub mapping_ns: u64,
}

/// Users that read through the buffer cache; pairs are before the build and during it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UsersFacts {
    pub operations_per_s: [f64; 2],
    pub p99_ns: [u64; 2],
    /// Blocks read from disk, of those looked up.
    pub misses: [f64; 2],
    /// Blocks read singly that lost their buffer during the build.
    pub evicted: u64,
    /// Time for which users waited for reads during the build.
    pub read_ns: u64,
    /// True if the build scans its table through the cache.
    pub scans_through_cache: bool,
}

/// Facts that only a run of this program has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunFacts {
    /// Delay injected before each request.
    pub delay_ns: u64,
    pub stopped_ns: Option<u64>,
    pub circumstances: Vec<Circumstance>,
    pub grown: Option<Grown>,
    pub not_reserved_bytes: u64,
    /// Reason why files went through the page cache although direct I/O was asked for.
    pub through_page_cache: Option<String>,
    pub method_replaced: Option<String>,
    pub fewer_servers: Option<String>,
    pub memory_scarce: Option<String>,
    pub absorbed: Option<Absorbed>,
    /// Time of all sessions, and the part that is neither CPU nor a wait.
    pub sessions_ns: u64,
    pub unaccounted_ns: i64,
    pub sort: Option<SortFacts>,
    pub users: Option<UsersFacts>,
    /// CPU of foreground sessions, that inside waits included.
    pub cpu_ns: u64,
    /// True if no row was processed.
    pub did_nothing: bool,
    pub quota: bool,
    /// True if others had part of the processors.
    pub shared_processors: bool,
    /// Kernel worker threads at the start, and at most.
    pub ring_workers: [usize; 2],
    /// Peak memory, and its budget.
    pub memory_bytes: Option<[u64; 2]>,
}

/// Events of Oracle's background processes, for which no session waits.
const BACKGROUND: [&str; 6] = [
    "log file parallel write",
    "log file sequential read",
    "Log archive I/O",
    "db file parallel write",
    "db file async I/O submit",
    "control file parallel write",
];

/// Work of a device, by iostat or sar: means over the samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeviceSignals {
    pub name: String,
    pub requests_per_s: f64,
    /// Time of a read, seconds.
    pub read_s: Option<f64>,
    pub write_s: Option<f64>,
    /// Flushes a second, and the time of one.
    pub flushes: Option<[f64; 2]>,
    /// Requests in the queue and at the device.
    pub queue: Option<f64>,
    /// Busy share of the time.
    pub busy: Option<f64>,
    /// Requests a second in the busiest sample.
    pub most_per_s: Option<f64>,
}

/// Request and result of a job of a load test.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobSignals {
    pub name: String,
    pub requests_per_s: f64,
    /// Time of a request behind its submission, seconds.
    pub mean_s: Option<f64>,
    pub p99_s: Option<f64>,
    pub submission_s: Option<f64>,
    /// Requests that all its processes may have in flight.
    pub depth: Option<f64>,
    /// Requests of all directions in flight, by Little's law.
    pub in_flight: Option<f64>,
    /// CPU of a process, as a share of one processor.
    pub cpu: Option<f64>,
    /// True if the page cache was bypassed; `None` if the options are not printed.
    pub direct: Option<bool>,
    pub runtime_s: f64,
    /// Number of the errors of the whole test.
    pub errors: usize,
    /// Text of the first error; empty without one.
    pub error: String,
}

/// Figures of a period. A figure that its source lacks is `None` or empty.
#[derive(Debug, Clone, Default)]
pub struct Signals {
    pub origin: Origin,
    /// Workload of this program, for the commands of studies.
    pub workload: Option<String>,
    pub elapsed_ns: u64,
    pub db_time_ns: Option<u64>,
    pub db_cpu_ns: Option<u64>,
    /// Foreground waits without idle ones.
    pub waits: Vec<WaitEvent>,
    /// Background waits without idle ones.
    pub background: Vec<WaitEvent>,
    /// Foreground time by class as the report sums it up; empty if it does not.
    pub class_ns: Vec<(String, u64)>,
    /// True if the waits are the largest ones alone, which do not sum up to DB time.
    pub is_top_list: bool,
    /// The second of two periods that are compared.
    pub second: Option<Box<Signals>>,
    pub host: HostSignals,
    pub log: LogSignals,
    pub cache: CacheSignals,
    pub medium: Option<Medium>,
    /// Time of one random read of the device alone.
    pub device_read_ns: Option<u64>,
    /// Requests by function of `IOStat by Function`: reads and writes.
    pub functions: Vec<(String, [IoTally; 2])>,
    pub tablespaces: Vec<TablespaceIo>,
    pub reached: Vec<Reached>,
    /// Settings by name, as they would be typed.
    pub settings: BTreeMap<String, String>,
    pub uses: Uses,
    pub server: ServerSignals,
    pub run: Option<RunFacts>,
    /// Sums of a trace of another program, which has no other signals than the elapsed time.
    pub trace: Option<Snoop>,
    /// Devices of iostat or sar, which have no other signals.
    pub devices: Vec<DeviceSignals>,
    /// Jobs of a load test, which have no other signals.
    pub jobs: Vec<JobSignals>,
}

impl Signals {
    /// Fills the signals that a record has. The facts of a run are left out: [`Signals::with_run`].
    #[must_use]
    pub fn of(record: &Record) -> Signals {
        let header = &record.header;
        // The calls of any program are no waits of sessions, and its files no tablespaces.
        if let Some(snoop) = &record.snoop {
            let (elapsed_ns, trace) = (header.elapsed_ns, Some(snoop.clone()));
            return Signals { elapsed_ns, trace, ..Signals::default() };
        }
        let busy = |events: &[WaitEvent]| events.iter().filter(|event| !event.is_idle()).cloned().collect();
        let is_run = record.imported.is_none();
        let [mut waits, mut background]: [Vec<WaitEvent>; 2] =
            [busy(&record.foreground_events), busy(&record.background_events)];
        if !is_run {
            // A list of the top events has those of background processes, too.
            let is_own = |wait: &WaitEvent| !BACKGROUND.contains(&wait.event.as_str());
            let (own, others): (Vec<WaitEvent>, Vec<WaitEvent>) = waits.into_iter().partition(is_own);
            let is_new =
                |wait: &WaitEvent| !background.iter().any(|known: &WaitEvent| known.event == wait.event);
            let others: Vec<WaitEvent> = others.into_iter().filter(is_new).collect();
            background.extend(others);
            waits = own;
        }
        Signals {
            origin: if is_run { Origin::Run } else { Origin::Import },
            workload: (is_run && record.command.is_none()).then(|| header.workload.clone()),
            elapsed_ns: header.elapsed_ns,
            db_time_ns: header.db_time_ns,
            db_cpu_ns: header.db_cpu_ns,
            waits,
            background,
            class_ns: Vec::new(),
            is_top_list: false,
            second: None,
            host: host(record),
            log: log(record),
            cache: CacheSignals {
                gets: statistic(record, "session logical reads"),
                hits: statistic(record, "buffer cache hits"),
                advisory: Vec::new(),
            },
            medium: medium(record),
            device_read_ns: record.calibration.as_ref().and_then(|found| found.random_read_8k_ns),
            functions: functions(record),
            tablespaces: tablespaces(record),
            reached: record.calibration.iter().flat_map(|found| &found.shares).map(Reached::of).collect(),
            settings: record.settings.iter().map(|row| (row.name.clone(), row.value.clone())).collect(),
            uses: uses(record),
            server: ServerSignals::default(),
            run: None,
            trace: None,
            devices: Vec::new(),
            jobs: Vec::new(),
        }
    }

    #[must_use]
    pub fn with_run(self, run: RunFacts) -> Signals {
        Signals { run: Some(run), ..self }
    }

    /// True if a reported system had almost nothing to do: no rule's figure matters then.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        /// Average active sessions; one in twenty is three seconds of work in a minute.
        const SESSIONS_LEAST: f64 = 0.05;
        let sessions = self.db_time() as f64 / self.elapsed_ns.max(1) as f64;
        let is_known = self.db_time() > 0 && self.elapsed_ns > 0;
        self.origin == Origin::Import && is_known && sessions < SESSIONS_LEAST
    }

    /// Returns DB time; CPU plus the waits where a report does not print it.
    #[must_use]
    pub fn db_time(&self) -> u64 {
        let parts = total_of(self.waits.iter().map(|wait| wait.time_ns)) + self.db_cpu_ns.unwrap_or(0);
        self.db_time_ns.filter(|ns| *ns > 0).unwrap_or(parts)
    }

    /// Returns a share of DB time.
    #[must_use]
    pub fn share(&self, ns: u64) -> f64 {
        ns as f64 / self.db_time().max(1) as f64
    }

    /// Returns the foreground waits for an event, if there were any.
    #[must_use]
    pub fn wait(&self, event: &str) -> Option<&WaitEvent> {
        self.waits.iter().find(|wait| wait.event == event && wait.waits > 0)
    }

    /// Returns the waits for an event by foreground and background.
    pub fn any_wait<'s>(&'s self, event: &'s str) -> impl Iterator<Item = &'s WaitEvent> {
        let all = self.waits.iter().chain(&self.background);
        all.filter(move |wait| wait.event == event && wait.waits > 0)
    }

    /// True if a finding is worth its line: of a reported system a saving of less than a hundredth
    /// of DB time, or of a tenth of a second, is none.
    #[must_use]
    pub fn matters(&self, saves_ns: Option<u64>) -> bool {
        const SHARE_LEAST: f64 = 0.01;
        const NS_LEAST: u64 = 100_000_000;
        let is_small = |ns: u64| ns < NS_LEAST || self.share(ns) < SHARE_LEAST;
        self.origin == Origin::Run || self.db_time() == 0 || !saves_ns.is_some_and(is_small)
    }

    /// Returns the share of DB time in events of an unknown class.
    #[must_use]
    pub fn unknown_share(&self) -> f64 {
        let unknown = self.waits.iter().filter(|wait| wait.wait_class == "unknown");
        if self.class_ns.is_empty() { self.share(total_of(unknown.map(|wait| wait.time_ns))) } else { 0.0 }
    }

    /// Returns the foreground time by class: the report's own sums, otherwise those of its events.
    #[must_use]
    pub fn classes(&self) -> Vec<(String, u64)> {
        let mut classes = self.class_ns.clone();
        for wait in self.waits.iter().filter(|_| self.class_ns.is_empty()) {
            match classes.iter_mut().find(|(class, _)| *class == wait.wait_class) {
                Some((_, ns)) => *ns += wait.time_ns,
                None => classes.push((wait.wait_class.clone(), wait.time_ns)),
            }
        }
        classes
    }

    /// Returns CPU and waits as a share of DB time, if all of them are known.
    #[must_use]
    pub fn captured(&self) -> Option<f64> {
        let cpu = self.db_cpu_ns.filter(|_| !self.is_top_list && !self.waits.is_empty())?;
        self.db_time_ns.filter(|time| *time > 0)?;
        Some(self.share(cpu + total_of(self.classes().into_iter().map(|(_, ns)| ns))))
    }

    /// Returns the share of DB time in foreground waits of these classes.
    #[must_use]
    pub fn class_share(&self, classes: &[&str]) -> f64 {
        let all = self.classes();
        let of = all.iter().filter(|(class, _)| classes.contains(&class.as_str()));
        self.share(total_of(of.map(|(_, ns)| *ns)))
    }

    /// Returns a setting's value in lower case; empty if it is not known.
    #[must_use]
    pub fn setting(&self, name: &str) -> String {
        self.settings.get(name).map(|value| value.to_ascii_lowercase()).unwrap_or_default()
    }

    /// Returns the command of a study that varies one factor of this workload; empty for a
    /// period that is no run of one.
    #[must_use]
    pub fn study(&self, factor: &str) -> String {
        let workload = self.workload.as_ref();
        workload.map_or(String::new(), |workload| format!("plumb study {workload} --factor {factor}"))
    }
}

impl Reached {
    fn of(share: &LimitShare) -> Reached {
        let (what, limit) = (share.what.clone(), share.limit.clone());
        Reached { what, share: share.shares().0, limit, is_link: false }
    }
}

fn statistic(record: &Record, name: &str) -> Option<u64> {
    record.statistics.iter().find(|row| row.name == name).map(|row| row.total)
}

fn host(record: &Record) -> HostSignals {
    let busy = |cpu: &HostCpu| {
        let total = cpu.total_ns();
        (total > 0).then(|| (cpu.user_ns + cpu.system_ns + cpu.steal_ns) as f64 / total as f64)
    };
    let host = &record.header.host;
    let queued = record.sessions.iter().filter(|session| session.kind == SessionKind::Foreground);
    let queued: Vec<u64> = queued.filter_map(|session| session.run_queue_ns).collect();
    HostSignals {
        cpus: host.cpu_quota.or(host.cpus.map(f64::from)),
        busy: record.host_cpu.as_ref().and_then(busy),
        load: record.host_cpu.as_ref().and_then(|cpu| cpu.load_end),
        run_queue_ns: (!queued.is_empty()).then(|| queued.iter().sum()),
    }
}

fn log(record: &Record) -> LogSignals {
    // A server counts its users' calls, the engine the operations or rows of a workload.
    let calls = ["user calls", "execute count", "rows inserted"];
    let calls = calls.into_iter().filter_map(|name| statistic(record, name)).find(|count| *count > 0);
    let switch = |event: &&WaitEvent| event.event == "log file switch completion";
    let switches = record.foreground_events.iter().chain(&record.background_events).filter(switch);
    LogSignals {
        commits: record.transactions(),
        writes: statistic(record, "redo writes"),
        bytes: statistic(record, "redo size"),
        calls,
        switches: Some(total_of(switches.map(|event| event.waits))),
        direct: record.log.as_ref().map(|log| log.direct),
    }
}

/// Returns the medium; a virtual disk says nothing about rotation.
fn medium(record: &Record) -> Option<Medium> {
    let device = record.devices.first()?;
    match device.rotational? {
        false => Some(Medium::Flash),
        true if device.virtual_reason.is_none() => Some(Medium::Disk),
        true => None,
    }
}

fn functions(record: &Record) -> Vec<(String, [IoTally; 2])> {
    let mut functions: Vec<(String, [IoTally; 2])> = Vec::new();
    for row in &record.io_functions {
        let name = row.database_function();
        let add = |sums: &mut [IoTally; 2]| {
            sums[0].add(&row.reads);
            sums[1].add(&row.writes);
        };
        match functions.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sums)) => add(sums),
            None => functions.push((name.to_string(), [row.reads, row.writes])),
        }
    }
    functions
}

fn tablespaces(record: &Record) -> Vec<TablespaceIo> {
    let mut tablespaces: Vec<TablespaceIo> = Vec::new();
    for file in record.io_files.iter().filter(|file| !file.tablespace.starts_with('(')) {
        let at = tablespaces.iter().position(|known| known.name == file.tablespace).unwrap_or_else(|| {
            let name = file.tablespace.clone();
            tablespaces.push(TablespaceIo { name, block_bytes: file.block_bytes, ..Default::default() });
            tablespaces.len() - 1
        });
        let sum = &mut tablespaces[at];
        sum.reads.add(&file.reads);
        sum.writes.add(&file.writes);
        if let Some(single) = file.single_reads() {
            sum.single.get_or_insert_with(IoTally::default).add(&single);
        }
    }
    tablespaces
}

/// Returns the parts that the workload uses, by what it counted.
fn uses(record: &Record) -> Uses {
    let counted = |name: &str| statistic(record, name).is_some_and(|count| count > 0);
    let writes = |stream: &IoStream| record.io_functions.iter().any(|row| row.function == stream.name());
    let commits = record.transactions().is_some() || counted("redo size");
    Uses {
        sort: record.sort.is_some(),
        log: commits || writes(&IoStream::LogWrites),
        cache: counted("session logical reads"),
        writers: counted("DBWR write batches") || counted("physical writes from cache"),
    }
}

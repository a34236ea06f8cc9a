//! Figures of a run, in one table: name, unit, group, and the way to read it from a record.
//!
//! Reports of runs, comparisons and the lines of `plumb info` read the same rows, so that a figure
//! has one name and one definition. A figure whose name comes from the record itself (an event, a
//! statistic, a file) has no row: its group reads all of them.
//!
//! A figure is a number whose name is the same in all runs. Figures of a device, or of a file in a
//! run's own directory, are named by purpose or rank, because the path often differs.

use crate::operation::{operations, total};
use crate::{
    HostCpu, IoFunction, IoGroup, IoTally, ProcessUse, Record, SessionTime, TablespaceStats, WaitEvent,
};
use plumb_events::{Direction, IoStream, SessionKind};
use plumb_units::total_of;
use serde::Serialize;
use std::collections::BTreeMap;

/// A table of the report; tests are corrected for each other within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureGroup {
    /// Elapsed time; for a database also DB time, its CPU and
    /// that of background processes; seconds.
    Time,
    /// Measures taken by the target itself, each in its unit.
    Measure,
    /// Host: load average, and shares of its processors, per cent.
    Host,
    /// The load profile, per second.
    Load,
    /// The load profile, per transaction.
    Transaction,
    /// Quotients of counters, each in the unit its name says.
    Ratio,
    /// Parts of the time of all sessions of a kind; seconds.
    TimeModel,
    /// CPU and waits by class of the foreground; seconds.
    Class,
    /// Foreground wait time by event; seconds.
    Event,
    /// Background wait time by event; seconds.
    Background,
    /// Mean time of a request by function and direction, from `IoTally::time_ns`; nanoseconds.
    Io,
    /// Mean time of a request by type of file; nanoseconds.
    FileType,
    /// Mean time of a request by stream and direction; nanoseconds.
    Stream,
    /// Mean time of a request by tablespace, reads of one block and of several apart; nanoseconds.
    Tablespace,
    /// Mean time of a request by tablespace and file; nanoseconds.
    File,
    /// Block devices by rank, each figure in the unit its name says.
    Device,
    Statistic,
    /// The line of `plumb info`; no table of a comparison.
    Line,
}

impl FigureGroup {
    /// The tables of a comparison, in the order of its report.
    pub const ALL: [FigureGroup; 17] = [
        FigureGroup::Time,
        FigureGroup::Measure,
        FigureGroup::Host,
        FigureGroup::Load,
        FigureGroup::Transaction,
        FigureGroup::Ratio,
        FigureGroup::TimeModel,
        FigureGroup::Class,
        FigureGroup::Event,
        FigureGroup::Background,
        FigureGroup::Io,
        FigureGroup::FileType,
        FigureGroup::Stream,
        FigureGroup::Tablespace,
        FigureGroup::File,
        FigureGroup::Device,
        FigureGroup::Statistic,
    ];
}

/// A figure that every run may have.
#[derive(Debug)]
pub struct FigureRow {
    pub group: FigureGroup,
    pub name: &'static str,
    pub unit: &'static str,
    read: fn(&Record) -> Option<f64>,
}

impl FigureRow {
    /// Returns the figure of a run; `None` if the record lacks it.
    pub fn of(&self, run: &Record) -> Option<f64> {
        (self.read)(run)
    }
}

const fn row(
    group: FigureGroup,
    name: &'static str,
    unit: &'static str,
    read: fn(&Record) -> Option<f64>,
) -> FigureRow {
    FigureRow { group, name, unit, read }
}

pub const ELAPSED: &str = "Elapsed";
pub const DB_TIME: &str = "DB Time";
/// The processor time, also among the wait classes.
pub const DB_CPU: &str = "DB CPU";
pub const ACTIVE_SESSIONS: &str = "Average Active Sessions";
const READ_BYTES: &str = "physical read total bytes";
const WRITE_BYTES: &str = "physical write total bytes";
const LOG_WRITE: &str = "log file parallel write";

use FigureGroup::{Host, Line, Ratio, Time, TimeModel};

/// All figures with a name of their own, in the order of printing within their groups.
pub const FIGURES: &[FigureRow] = &[
    row(Time, ELAPSED, "s", |run| Some(seconds(run.header.elapsed_ns))),
    // A command has only its own figures.
    row(Time, DB_TIME, "s", |run| run.header.db_time_ns.filter(|_| run.command.is_none()).map(seconds)),
    row(Time, DB_CPU, "s", |run| run.header.db_cpu_ns.filter(|_| run.command.is_none()).map(seconds)),
    row(Time, "Background CPU", "s", background_cpu),
    row(Host, "Load at begin snapshot", "", |run| run.host_cpu.as_ref()?.load_begin),
    row(Host, "Load at end snapshot", "", |run| run.host_cpu.as_ref()?.load_end),
    row(Host, "% User time", "%", |run| host_share(run, |cpu| cpu.user_ns)),
    row(Host, "% System time", "%", |run| host_share(run, |cpu| cpu.system_ns)),
    row(Host, "% I/O wait time", "%", |run| host_share(run, |cpu| cpu.iowait_ns)),
    // A database's report does not print it.
    row(Host, "% Steal time", "%", |run| {
        host_share(run, |cpu| cpu.steal_ns).filter(|share| run.imported.is_none() || *share > 0.0)
    }),
    row(Host, "% Idle time", "%", |run| host_share(run, |cpu| cpu.idle_ns)),
    row(Ratio, ACTIVE_SESSIONS, "", |run| rate(run, seconds(run.header.db_time_ns?))),
    row(Ratio, "% Blocks changed per Read", "%", |run| {
        Some(100.0 * quotient(run, &["db block changes"], &["session logical reads"])?)
    }),
    row(Ratio, "Rollback per transaction %", "%", |run| {
        Some(100.0 * quotient(run, &["user rollbacks"], &["user commits", "user rollbacks"])?)
    }),
    row(Ratio, "Rows per Sort", "", |run| {
        quotient(run, &["sorts (rows)"], &["sorts (memory)", "sorts (disk)"])
    }),
    row(Ratio, "Buffer Hit %", "%", |run| {
        Some(100.0 * quotient(run, &["buffer cache hits"], &["session logical reads"])?)
    }),
    row(Ratio, "KB per Read Request", "KB", |run| {
        Some(quotient(run, &[READ_BYTES], &["physical read total IO requests"])? / 1024.0)
    }),
    row(Ratio, "KB per Write Request", "KB", |run| {
        Some(quotient(run, &[WRITE_BYTES], &["physical write total IO requests"])? / 1024.0)
    }),
    // A commit that waits longer than the write it depends on waits for a processor, too.
    row(Ratio, "log file sync / parallel write", "", |run| {
        Some(mean_wait_ns(run, "log file sync")? / mean_wait_ns(run, LOG_WRITE)?)
    }),
    row(TimeModel, "foreground: CPU outside waits", "s", |run| of_kind(run, FOREGROUND, |it| it.cpu_ns)),
    row(TimeModel, "foreground: waits", "s", |run| of_kind(run, FOREGROUND, |it| it.wait_ns)),
    row(TimeModel, "foreground: CPU inside waits", "s", |run| of_kind(run, FOREGROUND, |it| it.wait_cpu_ns)),
    row(TimeModel, "foreground: run queue", "s", |run| of_kind(run, FOREGROUND, queued)),
    row(TimeModel, "foreground: unaccounted", "s", |run| of_kind(run, FOREGROUND, unaccounted)),
    row(TimeModel, "foreground: idle waits", "s", |run| of_kind(run, FOREGROUND, |it| it.idle_ns)),
    row(TimeModel, "background: CPU outside waits", "s", |run| of_kind(run, BACKGROUND, |it| it.cpu_ns)),
    row(TimeModel, "background: waits", "s", |run| of_kind(run, BACKGROUND, |it| it.wait_ns)),
    row(TimeModel, "background: CPU inside waits", "s", |run| of_kind(run, BACKGROUND, |it| it.wait_cpu_ns)),
    row(TimeModel, "background: run queue", "s", |run| of_kind(run, BACKGROUND, queued)),
    row(TimeModel, "background: unaccounted", "s", |run| of_kind(run, BACKGROUND, unaccounted)),
    row(TimeModel, "background: idle waits", "s", |run| of_kind(run, BACKGROUND, |it| it.idle_ns)),
    row(Line, "SESSIONS", "", |run| {
        let count = sessions(run);
        (run.imported.is_none() || count > 0).then_some(count as f64)
    }),
    row(Line, "ELAPSED", "s", |run| Some(seconds(run.header.elapsed_ns))),
    row(Line, "DB CPU", "/s", |run| rate(run, seconds(run.header.db_cpu_ns?))),
    row(Line, "DB Tm", "/s", |run| rate(run, seconds(run.header.db_time_ns?))),
    row(Line, "EXECUTES", "/s", |run| count_rate(run, "execute count")),
    row(Line, "LIO", "/s", |run| count_rate(run, "session logical reads")),
    row(Line, "PREADS", "/s", |run| {
        count_rate(run, "physical reads").or_else(|| measured(run, &[": reads", " read requests"]))
    }),
    row(Line, "READ_MBS", "MB/s", |run| {
        let measured = || measured(run, &[": bytes read", " read bandwidth"]);
        Some(count_rate(run, READ_BYTES).or_else(measured)? / MB)
    }),
    row(Line, "PWRITES", "/s", |run| {
        count_rate(run, "physical writes").or_else(|| measured(run, &[": writes", " write requests"]))
    }),
    row(Line, "WRITE_MBS", "MB/s", |run| {
        let measured = || measured(run, &[": bytes written", " write bandwidth"]);
        Some(count_rate(run, WRITE_BYTES).or_else(measured)? / MB)
    }),
    row(Line, "REDO_MBS", "MB/s", |run| Some(count_rate(run, "redo size")? / MB)),
    row(Line, "DFSR_LAT", "us", |run| Some(mean_wait_ns(run, "db file sequential read")? / 1e3)),
    row(Line, "DPR_LAT", "us", |run| Some(mean_wait_ns(run, "direct path read")? / 1e3)),
    row(Line, "DFPR_LAT", "us", |run| Some(mean_wait_ns(run, "db file parallel read")? / 1e3)),
    row(Line, "DFPW_LAT", "us", |run| Some(mean_wait_ns(run, "db file parallel write")? / 1e3)),
    row(Line, "LFPW_LAT", "us", |run| Some(mean_wait_ns(run, LOG_WRITE)? / 1e3)),
    row(Line, "CPU_US/OP", "/op", |run| of_process(run, |used| used.cpu_ns as f64 / 1e3)),
    row(Line, "CS/OP", "/op", |run| {
        of_process(run, |used| (used.voluntary_switches + used.involuntary_switches) as f64)
    }),
    row(Line, "RKB/OP", "/op", |run| each(run, total(run, READ_BYTES).unwrap_or(0) as f64 / 1024.0)),
    row(Line, "WKB/OP", "/op", |run| each(run, total(run, WRITE_BYTES).unwrap_or(0) as f64 / 1024.0)),
];

const MB: f64 = 1_048_576.0;
const FOREGROUND: SessionKind = SessionKind::Foreground;
const BACKGROUND: SessionKind = SessionKind::Background;

/// Returns a figure of the table by its name; `None` if the record lacks it.
pub fn figure(run: &Record, group: FigureGroup, name: &str) -> Option<f64> {
    FIGURES.iter().find(|row| row.group == group && row.name == name)?.of(run)
}

/// True if a figure is divided by a count that a run may lack: without it the
/// figure is missing, not 0.
pub fn is_quotient(group: FigureGroup, name: &str) -> bool {
    match group {
        FigureGroup::Transaction | FigureGroup::Ratio => true,
        FigureGroup::Device => name.ends_with(EACH),
        _ => false,
    }
}

/// Suffix of figures of a single device request.
const EACH: &str = " each";
/// Returns the figures of a group in a run, in the order of printing; names are unique.
pub fn figures(group: FigureGroup, run: &Record) -> Vec<(String, f64)> {
    let of_table = || {
        let own = FIGURES.iter().filter(|row| row.group == group);
        own.filter_map(|row| Some((row.name.to_string(), row.of(run)?))).collect()
    };
    match group {
        FigureGroup::Ratio if run.command.is_some() => Vec::new(),
        FigureGroup::Time
        | FigureGroup::Host
        | FigureGroup::Ratio
        | FigureGroup::TimeModel
        | FigureGroup::Line => of_table(),
        FigureGroup::Measure => run.measures.iter().map(|row| (row.name.clone(), row.value)).collect(),
        FigureGroup::Load => {
            let seconds = seconds(run.header.elapsed_ns.max(1));
            run.load_profile.iter().map(|row| (row.name.clone(), row.total / seconds)).collect()
        }
        FigureGroup::Transaction => {
            let Some(transactions) = run.transactions() else { return Vec::new() };
            let each = |row: &crate::LoadRow| (row.name.clone(), row.total / transactions as f64);
            run.load_profile.iter().map(each).collect()
        }
        FigureGroup::Class => classes(run),
        FigureGroup::Event => waited(&run.foreground_events),
        FigureGroup::Background => waited(&run.background_events),
        FigureGroup::Io
        | FigureGroup::Stream
        | FigureGroup::FileType
        | FigureGroup::Tablespace
        | FigureGroup::File => tallies(group, run)
            .into_iter()
            .filter(|(_, tally)| tally.requests > 0)
            .filter_map(|(name, tally)| Some((name, tally.time_ns? as f64 / tally.requests as f64)))
            .collect(),
        FigureGroup::Device => devices(run),
        FigureGroup::Statistic => {
            let moved = run.statistics.iter().filter(|statistic| statistic.total > 0);
            moved.map(|statistic| (statistic.name.clone(), statistic.total as f64)).collect()
        }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// CPU of the background; an imported report has no sessions.
fn background_cpu(run: &Record) -> Option<f64> {
    if run.command.is_some() || run.imported.is_some() {
        return None;
    }
    let background = run.sessions.iter().filter(|session| session.kind == BACKGROUND);
    Some(seconds(background.map(|session| session.cpu_ns + session.wait_cpu_ns).sum()))
}

fn host_share(run: &Record, part: fn(&HostCpu) -> u64) -> Option<f64> {
    let cpu = run.host_cpu.as_ref()?;
    Some(100.0 * part(cpu) as f64 / cpu.total_ns().max(1) as f64)
}

/// Growth of a counter; 0 if the run lacks it.
fn statistic(run: &Record, name: &str) -> f64 {
    run.statistics.iter().find(|row| row.name == name).map_or(0.0, |row| row.total as f64)
}

/// Returns a quotient of sums of counters; `None` if the run lacks a counter,
/// or the denominator is 0.
fn quotient(run: &Record, of: &[&str], by: &[&str]) -> Option<f64> {
    let sum = |names: &[&str]| names.iter().map(|name| statistic(run, name)).sum::<f64>();
    let is_known = of.iter().all(|name| run.statistics.iter().any(|row| row.name == *name));
    (is_known && sum(by) > 0.0).then(|| sum(of) / sum(by))
}

/// Returns the mean wait for an event over all sessions; `None` without a wait.
fn mean_wait_ns(run: &Record, name: &str) -> Option<f64> {
    let all =
        || run.foreground_events.iter().chain(&run.background_events).filter(|event| event.event == name);
    let waits = total_of(all().map(|event| event.waits));
    (waits > 0).then(|| all().map(|event| event.time_ns).sum::<u64>() as f64 / waits as f64)
}

/// Returns the sum of a part of all sessions of a kind, seconds; `None` without such a session.
fn of_kind(run: &Record, kind: SessionKind, part: fn(&SessionTime) -> u64) -> Option<f64> {
    let own = || run.sessions.iter().filter(move |session| session.kind == kind);
    own().next()?;
    Some(own().map(|session| part(session) as f64).sum::<f64>() / 1e9)
}

fn queued(session: &SessionTime) -> u64 {
    session.run_queue_ns.unwrap_or(0)
}

fn unaccounted(session: &SessionTime) -> u64 {
    session.unaccounted_ns().max(0) as u64
}

/// Requested number of sessions, otherwise that of foreground sessions.
fn sessions(run: &Record) -> usize {
    let asked = run.receipts.iter().find(|receipt| receipt.setting == "sessions");
    let foreground = || run.sessions.iter().filter(|session| session.kind == FOREGROUND).count();
    asked.and_then(|receipt| receipt.asked.parse().ok()).unwrap_or_else(foreground)
}

/// Returns the measure of an imported report whose name ends so. Of several, such as those of two
/// devices, none is the whole.
fn measured(run: &Record, ends: &[&str]) -> Option<f64> {
    let own = |name: &str| ends.iter().any(|end| name.ends_with(end));
    let found = || run.measures.iter().filter(|measure| run.imported.is_some() && own(&measure.name));
    let all = found().find(|measure| measure.name.starts_with("all "));
    let one = found().next().filter(|_| found().count() == 1);
    all.or(one).map(|measure| measure.value)
}

fn rate(run: &Record, amount: f64) -> Option<f64> {
    (run.header.elapsed_ns > 0).then(|| amount / seconds(run.header.elapsed_ns))
}

fn count_rate(run: &Record, name: &str) -> Option<f64> {
    rate(run, total(run, name)? as f64)
}

/// Amount per operation; `None` if nothing counts operations.
fn each(run: &Record, amount: f64) -> Option<f64> {
    Some(amount / operations(run)?.1 as f64)
}

fn of_process(run: &Record, amount: fn(&ProcessUse) -> f64) -> Option<f64> {
    each(run, amount(run.process.as_ref()?))
}

fn classes(run: &Record) -> Vec<(String, f64)> {
    if run.command.is_some() {
        return Vec::new();
    }
    let mut classes: BTreeMap<&str, u64> = BTreeMap::new();
    for event in run.foreground_events.iter().filter(|event| !event.is_idle()) {
        *classes.entry(event.wait_class.as_str()).or_default() += event.time_ns;
    }
    let cpu = run.header.db_cpu_ns.map(|ns| (DB_CPU.to_string(), seconds(ns)));
    let waits = classes.into_iter().map(|(class, ns)| (class.to_string(), seconds(ns)));
    cpu.into_iter().chain(waits).collect()
}

fn waited(events: &[WaitEvent]) -> Vec<(String, f64)> {
    let busy = events.iter().filter(|event| !event.is_idle() && event.waits > 0);
    busy.map(|event| (event.event.clone(), seconds(event.time_ns))).collect()
}

/// Sums requests in a direction, by function, stream, type of file, tablespace or file.
pub fn tallies(group: FigureGroup, run: &Record) -> Vec<(String, IoTally)> {
    let mut sums: Vec<(String, IoTally)> = Vec::new();
    let mut add = |(name, tally): (String, IoTally)| match sums.iter_mut().find(|(known, _)| *known == name) {
        Some((_, sum)) => sum.add(&tally),
        None => sums.push((name, tally)),
    };
    match group {
        FigureGroup::Io => run.io_by_function().iter().flat_map(directions).for_each(add),
        FigureGroup::Stream => run.io_functions.iter().flat_map(of_stream).for_each(add),
        FigureGroup::FileType => run.io_by_file_type().iter().flat_map(of_type).for_each(add),
        FigureGroup::Tablespace => run.io_by_tablespace().iter().flat_map(of_tablespace).for_each(add),
        _ => {
            for file in &run.io_files {
                // Directories differ between runs, so only the file name identifies the file.
                let name =
                    format!("{} {}", file.tablespace, file.path.rsplit('/').next().unwrap_or_default());
                add((format!("{name}: reads"), file.reads));
                add((format!("{name}: writes"), file.writes));
            }
        }
    }
    sums
}

/// Returns the reads and writes of a group, each under its name.
fn directions(group: &IoGroup) -> [(String, IoTally); 2] {
    [(format!("{}: reads", group.name), group.reads), (format!("{}: writes", group.name), group.writes)]
}

/// Returns the requests of a stream; an imported report has functions alone.
fn of_stream(row: &IoFunction) -> Vec<(String, IoTally)> {
    let known = IoStream::named(&row.function);
    let tally = |stream: IoStream| match stream.direction() {
        Direction::Read => row.reads,
        Direction::Write => row.writes,
    };
    known.map(|stream| (row.function.clone(), tally(stream))).into_iter().collect()
}

/// Returns the requests of a type of file, small and large ones apart where they are counted so.
fn of_type(group: &IoGroup) -> Vec<(String, IoTally)> {
    let mut rows = directions(group).to_vec();
    if let (Some([reads, writes]), Some(large)) = (group.small(), group.large) {
        let sized = [
            ("small reads", reads),
            ("large reads", large.reads),
            ("small writes", writes),
            ("large writes", large.writes),
        ];
        rows.extend(sized.map(|(name, tally)| (format!("{}: {name}", group.name), tally)));
    }
    rows
}

fn of_tablespace(stats: &TablespaceStats) -> Vec<(String, IoTally)> {
    let name = |part: &str| format!("{}: {part}", stats.tablespace);
    let mut rows = vec![(name("reads"), stats.reads), (name("writes"), stats.writes)];
    rows.extend(stats.single.map(|single| (name("1-block reads"), single)));
    rows.extend(stats.multiblock().map(|multiblock| (name("multiblock reads"), multiblock)));
    rows
}

/// Returns figures of each device by rank, from the kernel's counters.
fn devices(run: &Record) -> Vec<(String, f64)> {
    let elapsed = seconds(run.header.elapsed_ns.max(1));
    let mut figures = Vec::new();
    for (rank, device) in (1..).zip(&run.io_devices) {
        for (direction, tally) in [("reads", device.reads), ("writes", device.writes)] {
            if tally.requests == 0 {
                continue;
            }
            let requests = tally.requests as f64;
            figures.extend([
                (format!("device {rank} {direction}/s"), requests / elapsed),
                (format!("device {rank} {direction} MB/s"), tally.bytes as f64 / 1_048_576.0 / elapsed),
                (format!("device {rank} {direction} KB{EACH}"), tally.bytes as f64 / 1024.0 / requests),
            ]);
            let each_ms = tally.time_ns.map(|time_ns| time_ns as f64 / 1e6 / requests);
            figures.extend(each_ms.map(|ms| (format!("device {rank} {direction} ms{EACH}"), ms)));
        }
        if let Some(weighted_ns) = device.weighted_ns {
            figures.push((format!("device {rank} queue"), seconds(weighted_ns) / elapsed));
        }
        if let Some(busy_ns) = device.busy_ns {
            figures.push((format!("device {rank} % busy"), (100.0 * seconds(busy_ns) / elapsed).min(100.0)));
        }
    }
    figures
}

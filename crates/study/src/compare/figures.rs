//! Figures of a run that a comparison tests, table by table.
//!
//! A figure is a number whose name is the same in both runs. Figures of a device, or of a file in a
//! run's own directory, are named by purpose or rank, because the path often differs.

use plumb_events::{Direction, IoStream, SessionKind};
use plumb_record::{HostCpu, IoFunction, IoGroup, IoTally, Record, SessionTime, TablespaceStats, WaitEvent};
use plumb_units::total_of;
use serde::Serialize;
use std::collections::BTreeMap;

/// A table of the report; tests are corrected for each other within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Elapsed time; for a database also DB time, its CPU and that of background processes;
    /// seconds.
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
}

impl Group {
    /// All groups, in the order of the report.
    pub const ALL: [Group; 17] = [
        Group::Time,
        Group::Measure,
        Group::Host,
        Group::Load,
        Group::Transaction,
        Group::Ratio,
        Group::TimeModel,
        Group::Class,
        Group::Event,
        Group::Background,
        Group::Io,
        Group::FileType,
        Group::Stream,
        Group::Tablespace,
        Group::File,
        Group::Device,
        Group::Statistic,
    ];
}

/// True if a figure is divided by a count that a run may lack: without it the
/// figure is missing, not 0.
pub fn is_quotient(group: Group, name: &str) -> bool {
    match group {
        Group::Transaction | Group::Ratio => true,
        Group::Device => name.ends_with(EACH),
        _ => false,
    }
}

/// Suffix of figures of a single device request.
const EACH: &str = " each";
pub const ELAPSED: &str = "Elapsed";
/// CPU among the wait classes.
const DB_CPU: &str = "DB CPU";

/// Returns the figures of a table in a run, in the order of printing; names are unique.
pub fn figures(group: Group, run: &Record) -> Vec<(String, f64)> {
    match group {
        Group::Time => times(run),
        Group::Measure => run.measures.iter().map(|row| (row.name.clone(), row.value)).collect(),
        Group::Host => host(run),
        Group::Load => {
            let seconds = seconds(run.header.elapsed_ns.max(1));
            run.load_profile.iter().map(|row| (row.name.clone(), row.total / seconds)).collect()
        }
        Group::Transaction => {
            let Some(transactions) = run.transactions() else { return Vec::new() };
            let each = |row: &plumb_record::LoadRow| (row.name.clone(), row.total / transactions as f64);
            run.load_profile.iter().map(each).collect()
        }
        Group::Ratio => ratios(run),
        Group::TimeModel => time_model(run),
        Group::Class => classes(run),
        Group::Event => waited(&run.foreground_events),
        Group::Background => waited(&run.background_events),
        Group::Io | Group::Stream | Group::FileType | Group::Tablespace | Group::File => tallies(group, run)
            .into_iter()
            .filter(|(_, tally)| tally.requests > 0)
            .filter_map(|(name, tally)| Some((name, tally.time_ns? as f64 / tally.requests as f64)))
            .collect(),
        Group::Device => devices(run),
        Group::Statistic => {
            let moved = run.statistics.iter().filter(|statistic| statistic.total > 0);
            moved.map(|statistic| (statistic.name.clone(), statistic.total as f64)).collect()
        }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn times(run: &Record) -> Vec<(String, f64)> {
    let header = &run.header;
    let mut times = vec![(ELAPSED, header.elapsed_ns)];
    // A command has only its own figures.
    if run.command.is_none() {
        let known = [("DB Time", header.db_time_ns), (DB_CPU, header.db_cpu_ns)];
        times.extend(known.into_iter().filter_map(|(name, ns)| Some((name, ns?))));
        // An imported report has no sessions.
        if run.imported.is_none() {
            let background = run.sessions.iter().filter(|session| session.kind == SessionKind::Background);
            let used = background.map(|session| session.cpu_ns + session.wait_cpu_ns);
            times.push(("Background CPU", used.sum()));
        }
    }
    times.into_iter().map(|(name, ns)| (name.to_string(), seconds(ns))).collect()
}

fn host(run: &Record) -> Vec<(String, f64)> {
    let Some(cpu) = &run.host_cpu else { return Vec::new() };
    let all = cpu.total_ns();
    type Part = fn(&HostCpu) -> u64;
    let parts: [(&str, Part); 5] = [
        ("% User time", |cpu| cpu.user_ns),
        ("% System time", |cpu| cpu.system_ns),
        ("% I/O wait time", |cpu| cpu.iowait_ns),
        ("% Steal time", |cpu| cpu.steal_ns),
        ("% Idle time", |cpu| cpu.idle_ns),
    ];
    let load = [("Load at begin snapshot", cpu.load_begin), ("Load at end snapshot", cpu.load_end)];
    let load = load.into_iter().filter_map(|(name, load)| Some((name.to_string(), load?)));
    let share = |(name, of): (&str, fn(&HostCpu) -> u64)| {
        (name.to_string(), 100.0 * of(cpu) as f64 / all.max(1) as f64)
    };
    load.chain(parts.map(share)).collect()
}

/// Growth of a counter; 0 if the run lacks it.
fn statistic(run: &Record, name: &str) -> f64 {
    run.statistics.iter().find(|row| row.name == name).map_or(0.0, |row| row.total as f64)
}

/// Name, factor, and the counters whose sums form numerator and denominator.
type Ratio = (&'static str, f64, &'static [&'static str], &'static [&'static str]);

/// Quotients of counters; a run without the denominator lacks the figure.
const RATIOS: [Ratio; 6] = [
    ("% Blocks changed per Read", 100.0, &["db block changes"], &["session logical reads"]),
    ("Rollback per transaction %", 100.0, &["user rollbacks"], &["user commits", "user rollbacks"]),
    ("Rows per Sort", 1.0, &["sorts (rows)"], &["sorts (memory)", "sorts (disk)"]),
    ("Buffer Hit %", 100.0, &["buffer cache hits"], &["session logical reads"]),
    (
        "KB per Read Request",
        1.0 / 1024.0,
        &["physical read total bytes"],
        &["physical read total IO requests"],
    ),
    (
        "KB per Write Request",
        1.0 / 1024.0,
        &["physical write total bytes"],
        &["physical write total IO requests"],
    ),
];

fn ratios(run: &Record) -> Vec<(String, f64)> {
    if run.command.is_some() {
        return Vec::new();
    }
    let sum = |names: &[&str]| names.iter().map(|name| statistic(run, name)).sum::<f64>();
    let known = |names: &[&str]| names.iter().all(|name| run.statistics.iter().any(|row| row.name == *name));
    let active = |db_time_ns: u64| db_time_ns as f64 / run.header.elapsed_ns.max(1) as f64;
    let active = run.header.db_time_ns.map(|ns| ("Average Active Sessions".to_string(), active(ns)));
    let mut ratios = Vec::from_iter(active);
    for (name, factor, of, by) in RATIOS.iter().filter(|(_, _, of, by)| known(of) && sum(by) > 0.0) {
        ratios.push(((*name).to_string(), factor * sum(of) / sum(by)));
    }
    // A commit that waits longer than the write it depends on waits for a processor, too.
    let mean = |name: &str| {
        let all =
            || run.foreground_events.iter().chain(&run.background_events).filter(|event| event.event == name);
        let waits = total_of(all().map(|event| event.waits));
        (waits > 0).then(|| all().map(|event| event.time_ns).sum::<u64>() as f64 / waits as f64)
    };
    if let (Some(sync), Some(write)) = (mean("log file sync"), mean("log file parallel write")) {
        ratios.push(("log file sync / parallel write".to_string(), sync / write));
    }
    ratios
}

fn time_model(run: &Record) -> Vec<(String, f64)> {
    let kinds = [("foreground", SessionKind::Foreground), ("background", SessionKind::Background)];
    type Part = fn(&SessionTime) -> f64;
    let parts: [(&str, Part); 6] = [
        ("CPU outside waits", |session| session.cpu_ns as f64),
        ("waits", |session| session.wait_ns as f64),
        ("CPU inside waits", |session| session.wait_cpu_ns as f64),
        ("run queue", |session| session.run_queue_ns.unwrap_or(0) as f64),
        ("unaccounted", |session| session.unaccounted_ns().max(0) as f64),
        ("idle waits", |session| session.idle_ns as f64),
    ];
    let mut model = Vec::new();
    for (kind_name, kind) in kinds {
        let own = || run.sessions.iter().filter(move |session| session.kind == kind);
        if own().next().is_some() {
            let sum = |of: fn(&SessionTime) -> f64| own().map(of).sum::<f64>() / 1e9;
            model.extend(parts.map(|(name, of)| (format!("{kind_name}: {name}"), sum(of))));
        }
    }
    model
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
pub fn tallies(group: Group, run: &Record) -> Vec<(String, IoTally)> {
    let mut sums: Vec<(String, IoTally)> = Vec::new();
    let mut add = |(name, tally): (String, IoTally)| match sums.iter_mut().find(|(known, _)| *known == name) {
        Some((_, sum)) => sum.add(&tally),
        None => sums.push((name, tally)),
    };
    match group {
        Group::Io => run.io_by_function().iter().flat_map(directions).for_each(add),
        Group::Stream => run.io_functions.iter().flat_map(of_stream).for_each(add),
        Group::FileType => run.io_by_file_type().iter().flat_map(of_type).for_each(add),
        Group::Tablespace => run.io_by_tablespace().iter().flat_map(of_tablespace).for_each(add),
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
    let name = |what: &str| format!("{}: {what}", stats.tablespace);
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

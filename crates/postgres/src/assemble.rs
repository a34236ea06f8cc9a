//! Derives the record of a run from its evidence, in the form that the engine's runs have.
//!
//! Time off CPU is exact for each process; samples divide it among wait events. The error of an
//! event's time follows from its number of samples: sqrt(p(1-p)/n) of the time off CPU. Time
//! off CPU without an event is a row of its own, because no event is no proof of work.
//!
//! Names of events are the server's. Classes are those of all reports, so that two targets can be
//! compared: what waits for data is User I/O of sessions and System I/O of background processes.

use crate::evidence::ServerEvidence;
use crate::process::On;
use crate::receipts;
use crate::watch::{INTERVAL, Process, WatchedProcesses, is_at_rest};
use crate::workload::WorkOutcome;
use plumb_events::{SessionKind, Unit};
use plumb_host::device::DeviceDescription;
use plumb_record::{
    Check, Device, Finding, Header, HostCpu, IDLE_CLASS, LoadRow, Memory, ParameterRow, Phase, ProcessUse,
    Receipts, Record, Sampling, SamplingError, SessionTime, SettingRow, StatisticRow, WaitEvent,
};
use plumb_study::disturbance::{self, Stretch};
use plumb_study::machine;
use plumb_units::Nanos;
use plumb_workload::Work;
use std::collections::BTreeMap;
use std::time::Duration;

/// Row of the time off CPU without an event.
pub const NO_EVENT: &str = "off CPU, no event";
/// Row of the time off CPU of a process that no sample saw there.
const NOT_SAMPLED: &str = "off CPU, not sampled";
const MEGABYTE: f64 = 1024.0 * 1024.0;

/// All that is known of a run when it has ended.
pub struct MadeRun {
    pub evidence: ServerEvidence,
    pub outcome: WorkOutcome,
    pub checks: Vec<Check>,
    pub devices: Vec<DeviceDescription>,
    pub work: Work,
    pub command_line: String,
    pub begin: Nanos,
    pub wall: (Duration, Duration),
    pub host_cpu: Option<HostCpu>,
    pub stretch: Stretch,
    pub title: String,
    /// Name and version of the server.
    pub server: String,
}

/// Time of an event with the variance of its estimate.
#[derive(Debug, Clone, Copy, Default)]
struct Share {
    samples: u64,
    time: f64,
    variance: f64,
}

#[must_use]
pub fn record(ran: &MadeRun) -> Record {
    let (evidence, watched) = (&ran.evidence, &ran.evidence.watched);
    let sessions: Vec<SessionTime> = sessions(watched);
    let foreground = events(watched, SessionKind::Foreground);
    let busy = foreground.iter().filter(|(event, _)| !event.is_idle()).map(|(event, _)| event.time_ns);
    let cpu = cpu_of(watched, Process::is_foreground);
    let Receipts { receipts, readings } = receipts::receipts(evidence);
    let (begin, end) = ran.wall;
    let header = Header {
        elapsed_ns: evidence.elapsed.0,
        db_time_ns: Some(cpu.0 + busy.sum::<u64>()),
        db_cpu_ns: Some(cpu.0),
        command_line: ran.command_line.clone(),
        seed: Some(ran.work.seed()),
        settings_hash: hash(evidence),
        clock_precision_ns: machine::clock_precision_ns(),
        ..machine::header(ran.title.clone(), ran.work.workload.name, [begin, end])
    };
    let error = |(event, share): &(WaitEvent, Share)| SamplingError {
        event: event.event.clone(),
        error_ns: share.variance.sqrt().round() as u64,
    };
    let sampling = Sampling {
        interval_ns: INTERVAL.0,
        samples: watched.samples,
        late: watched.late,
        cost_ns: watched.cost.0,
        errors: foreground.iter().map(error).collect(),
    };
    Record {
        devices: ran
            .devices
            .iter()
            .map(|device| Device::of(device, "by the server", "it opens its files itself"))
            .collect(),
        circumstances: Some(disturbance::judge(&ran.stretch)),
        checks: ran.checks.clone(),
        receipts,
        readings,
        findings: findings(evidence),
        phases: phases(ran),
        memory: memory(watched),
        load_profile: load_profile(evidence, &header),
        host_cpu: ran.host_cpu.clone(),
        process: Some(ProcessUse {
            cpu_ns: cpu_of(watched, |_| true).0 + watched.unseen_cpu.0,
            ..ProcessUse::default()
        }),
        background_events: events(watched, SessionKind::Background)
            .into_iter()
            .map(|(event, _)| event)
            .collect(),
        foreground_events: foreground.into_iter().map(|(event, _)| event).collect(),
        sampling: Some(sampling),
        sessions,
        statistics: statistics(ran),
        parameters: parameters(ran),
        settings: settings(evidence),
        responses: ran.outcome.responses.clone(),
        server: Some(ran.server.clone()),
        ..Record::of(header)
    }
}

fn cpu_of(watched: &WatchedProcesses, which: fn(&Process) -> bool) -> Nanos {
    let ours = watched.processes.iter().filter(|process| which(process));
    Nanos(ours.map(|process| process.counters.cpu.0).sum())
}

fn kind_of(process: &Process) -> SessionKind {
    if process.is_foreground() { SessionKind::Foreground } else { SessionKind::Background }
}

/// True for plumb's own session that takes readings before and after the work.
fn only_reads(process: &Process) -> bool {
    let waits_for_client = process.samples.keys().all(|((class, _), _)| class == "Client");
    process.kind == "client backend" && waits_for_client && process.counters.cpu.0 < process.elapsed.0 / 100
}

fn working(watched: &WatchedProcesses) -> impl Iterator<Item = &Process> {
    watched.processes.iter().filter(|process| !only_reads(process))
}

/// Divides the time off CPU of processes among events, by their samples off CPU.
fn events(watched: &WatchedProcesses, kind: SessionKind) -> Vec<(WaitEvent, Share)> {
    let mut shares: BTreeMap<(String, String), Share> = BTreeMap::new();
    for process in working(watched).filter(|process| kind_of(process) == kind) {
        let off = process.off().0 as f64;
        let samples = || process.samples.iter().filter(|((_, on), _)| *on == On::Off);
        let all: u64 = samples().map(|(_, count)| *count).sum();
        if all == 0 && off > 0.0 {
            let rest = shares.entry(("Other".to_string(), NOT_SAMPLED.to_string())).or_default();
            (rest.time, rest.samples) = (rest.time + off, rest.samples + 1);
        }
        for (((class, event), _), count) in samples() {
            let share = shares.entry(named(class, event, kind)).or_default();
            let part = *count as f64 / all as f64;
            share.samples += count;
            share.time += off * part;
            share.variance += off * off * part * (1.0 - part) / all as f64;
        }
    }
    let event = |((class, event), share): ((String, String), Share)| {
        let event = WaitEvent {
            event,
            wait_class: class,
            waits: share.samples,
            time_ns: share.time.round() as u64,
            max_ns: None,
            histogram: Vec::new(),
            latency: None,
        };
        (event, share)
    };
    shares.into_iter().map(event).collect()
}

/// Returns class and name of an event in reports.
fn named(class: &str, event: &str, kind: SessionKind) -> (String, String) {
    let data = if kind == SessionKind::Foreground { "User I/O" } else { "System I/O" };
    let class = match class {
        "IO" => data,
        // A session that waits for its client has nothing to do.
        "Client" | "Activity" => IDLE_CLASS,
        "LWLock" | "BufferPin" | "Buffer" => "Concurrency",
        "Lock" => "Application",
        _ => "Other",
    };
    (class.to_string(), if event.is_empty() { NO_EVENT.to_string() } else { event.to_string() })
}

/// Returns the parts of each process's time. Processes of a kind get numbers in place of those of
/// the kernel, which no two runs share.
fn sessions(watched: &WatchedProcesses) -> Vec<SessionTime> {
    let mut numbers: BTreeMap<&str, u64> = BTreeMap::new();
    let session = |process: &'_ Process, number: u64| {
        let off = process.off().0;
        let samples = process.samples.iter().filter(|((_, on), _)| *on == On::Off);
        let (idle, all) = samples.fold((0, 0), |(idle, all), (sample, count)| {
            (idle + if is_at_rest(sample) { *count } else { 0 }, all + count)
        });
        let idle_ns = (off as f64 * idle as f64 / (all.max(1)) as f64).round() as u64;
        SessionTime {
            name: format!("{} {number}", process.kind),
            role: process.kind.clone(),
            kind: kind_of(process),
            elapsed_ns: process.elapsed.0,
            cpu_ns: process.counters.cpu.0,
            wait_cpu_ns: 0,
            wait_ns: off - idle_ns,
            idle_ns,
            run_queue_ns: Some(process.counters.queue.0),
        }
    };
    let mut found = Vec::new();
    for process in working(watched) {
        let number = numbers.entry(&process.kind).or_default();
        *number += 1;
        found.push(session(process, *number));
    }
    found
}

fn statistics(ran: &MadeRun) -> Vec<StatisticRow> {
    let (evidence, watched) = (&ran.evidence, &ran.evidence.watched);
    let io = || watched.processes.iter().filter_map(|process| process.counters.io);
    let row = |name: &str, unit, total| StatisticRow { name: name.to_string(), unit, total };
    let mut rows = vec![
        row("physical read total bytes", Unit::Bytes, io().map(|io| io.read_bytes.0).sum()),
        row("physical write total bytes", Unit::Bytes, io().map(|io| io.write_bytes.0).sum()),
        row("read call bytes", Unit::Bytes, io().map(|io| io.rchar.0).sum()),
        row("write call bytes", Unit::Bytes, io().map(|io| io.wchar.0).sum()),
        row("redo size", Unit::Bytes, evidence.log.bytes.0),
        row("temporary file bytes", Unit::Bytes, watched.temporary_bytes.0),
        row("parallel workers", Unit::Count, watched.workers),
        row("control file changes", Unit::Count, watched.control_changes),
        row("CPU of ended processes (usec)", Unit::Count, watched.unseen_cpu.0 / 1000),
    ];
    if evidence.done.commits > 0 {
        rows.push(row("user commits", Unit::Count, evidence.done.commits));
    }
    rows.extend(evidence.log.syncs.map(|syncs| row("redo synch writes", Unit::Count, syncs)));
    rows.extend(ran.outcome.statistics.iter().map(|(name, total)| row(name, Unit::Count, *total)));
    rows
}

fn load_profile(evidence: &ServerEvidence, header: &Header) -> Vec<LoadRow> {
    let row = |name: &str, total: f64, is_count| LoadRow { name: name.to_string(), total, is_count };
    let io = || evidence.watched.processes.iter().filter_map(|process| process.counters.io);
    let megabytes = |bytes: u64| bytes as f64 / MEGABYTE;
    vec![
        row("DB Time(s)", header.db_time() as f64 / 1e9, false),
        row("DB CPU(s)", header.db_cpu() as f64 / 1e9, false),
        row("Redo size (MB)", megabytes(evidence.log.bytes.0), false),
        row("Physical reads (MB)", megabytes(io().map(|io| io.read_bytes.0).sum()), false),
        row("Physical writes (MB)", megabytes(io().map(|io| io.write_bytes.0).sum()), false),
        row("User commits", evidence.done.commits as f64, true),
    ]
}

fn phases(ran: &MadeRun) -> Vec<Phase> {
    let phase = |(phase, begin, end): &(plumb_events::Phase, Nanos, Nanos)| Phase {
        name: phase.name().to_string(),
        operation: ran.work.workload.measures.to_string(),
        start_ns: begin.saturating_sub(ran.begin).0,
        end_ns: end.saturating_sub(ran.begin).0,
        rows: ran.outcome.rows,
        bytes: 0,
        direction: None,
    };
    ran.outcome.phases.iter().map(phase).collect()
}

fn memory(watched: &WatchedProcesses) -> Memory {
    let grown = watched.processes.iter().map(|process| process.memory_grown.0).sum();
    Memory { peak_rss_bytes: Some(grown), ..Memory::default() }
}

/// Findings that every run of a server has to state.
fn findings(evidence: &ServerEvidence) -> Vec<Finding> {
    let watched = &evidence.watched;
    let mut found = Vec::new();
    let all = cpu_of(watched, |_| true).0.max(1);
    if watched.unseen_cpu.0 > all / 20 {
        found.push(Finding {
            what: "Processes that ended used CPU time after their last sample, which no session's row has."
                .to_string(),
            evidence: format!(
                "{} of {} by /proc/PID/stat of the first process, in ticks of 10 ms",
                watched.unseen_cpu,
                Nanos(all)
            ),
            ..Finding::default()
        });
    }
    if watched.late > watched.samples / 10 {
        found.push(Finding {
            what: "Many samples of wait events came late, so that long waits count for too little."
                .to_string(),
            evidence: format!("{} of {} samples", watched.late, watched.samples),
            advice: "Leave a processor free for the sampler.".to_string(),
            ..Finding::default()
        });
    }
    found
}

fn parameters(ran: &MadeRun) -> Vec<ParameterRow> {
    let values = ran.work.values();
    values.map(|(name, value)| ParameterRow { name: name.to_string(), value: value.to_string() }).collect()
}

/// Returns the settings that a run has given or varied; the server has some hundred others.
fn settings(evidence: &ServerEvidence) -> Vec<SettingRow> {
    let named = |name: &str| evidence.asked.iter().any(|asked| asked.name == name);
    let given = evidence
        .in_force
        .iter()
        .filter(|set| named(&set.name) || ["command line", "session"].contains(&set.source.as_str()));
    let row = |set: &crate::session::InForce| SettingRow {
        name: set.name.clone(),
        value: set.shown(),
        taken: None,
        is_default: set.value == set.default,
        source: if named(&set.name) { "study".to_string() } else { set.source.clone() },
        description: String::new(),
    };
    given.map(row).collect()
}

/// Hashes the effective values of all settings.
fn hash(evidence: &ServerEvidence) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for set in &evidence.in_force {
        for byte in format!("{}={}\n", set.name, set.value).bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Counters;
    use plumb_units::Bytes;

    fn process(kind: &str, samples: &[(&str, &str, On, u64)]) -> Process {
        let samples = samples
            .iter()
            .map(|(class, event, on, count)| (((class.to_string(), event.to_string()), *on), *count));
        Process {
            pid: 1,
            kind: kind.to_string(),
            leader: None,
            elapsed: Nanos(1_000_000_000),
            counters: Counters { cpu: Nanos(500_000_000), queue: Nanos(100_000_000), io: None },
            memory_grown: Bytes(0),
            samples: samples.collect(),
            ended: false,
        }
    }

    #[test]
    fn time_off_cpu_is_divided_by_samples_off_cpu_alone_and_has_an_error() {
        let backend = process(
            "client backend",
            &[
                ("IO", "BuffileWrite", On::Off, 30),
                ("", "", On::Off, 10),
                ("IO", "BuffileRead", On::Cpu, 50),
                ("", "", On::Cpu, 10),
            ],
        );
        let watched = WatchedProcesses { processes: vec![backend], ..WatchedProcesses::default() };
        let found = events(&watched, SessionKind::Foreground);
        let time =
            |name: &str| found.iter().find(|(event, _)| event.event == name).map(|(event, _)| event.time_ns);
        // 400 ms off CPU: 30 of 40 samples there, and 10.
        assert_eq!(time("BuffileWrite"), Some(300_000_000));
        assert_eq!(time(NO_EVENT), Some(100_000_000));
        assert_eq!(time("BuffileRead"), None, "it was on a processor");
        let (_, share) = found.iter().find(|(event, _)| event.event == "BuffileWrite").expect("there");
        let error = 400e6 * (0.75f64 * 0.25 / 40.0).sqrt();
        assert!((share.variance.sqrt() - error).abs() < 1.0);
        let session = &sessions(&watched)[0];
        assert_eq!((session.wait_ns, session.idle_ns), (400_000_000, 0));
        assert_eq!(session.unaccounted_ns(), 0);
    }

    #[test]
    fn sessions_that_wait_for_their_client_are_idle_and_those_at_rest_are_left_out() {
        let mut readings = process("client backend", &[("Client", "ClientRead", On::Off, 100)]);
        readings.counters.cpu = Nanos(1_000_000);
        let writer =
            process("walwriter", &[("Activity", "WalWriterMain", On::Off, 9), ("IO", "WALSync", On::Off, 1)]);
        let watched = WatchedProcesses { processes: vec![readings, writer], ..WatchedProcesses::default() };
        assert!(events(&watched, SessionKind::Foreground).is_empty());
        let background = events(&watched, SessionKind::Background);
        let class = |name: &str| {
            background
                .iter()
                .find(|(event, _)| event.event == name)
                .map(|(event, _)| event.wait_class.as_str())
        };
        assert_eq!((class("WalWriterMain"), class("WALSync")), (Some(IDLE_CLASS), Some("System I/O")));
        assert_eq!(sessions(&watched).len(), 1);
    }

    #[test]
    fn a_process_that_no_sample_saw_off_cpu_keeps_its_time_in_a_row() {
        let watched = WatchedProcesses {
            processes: vec![process("parallel worker", &[])],
            ..WatchedProcesses::default()
        };
        let found = events(&watched, SessionKind::Foreground);
        assert_eq!((found[0].0.event.as_str(), found[0].0.time_ns), (NOT_SAMPLED, 400_000_000));
    }

    #[test]
    fn processes_and_waits_of_every_version_have_a_kind_and_a_class() {
        // Other classes have no row of their own in reports.
        let known =
            ["", "IO", "Client", "Activity", "LWLock", "BufferPin", "Buffer", "Lock", "IPC", "Timeout"];
        for version in crate::recorded::VERSIONS {
            let rows = crate::recorded::rows(version, "activity.tsv");
            let mut kinds = std::collections::BTreeSet::new();
            for row in &rows {
                let [kind, class, event] = [&row[0], &row[1], &row[2]];
                assert!(known.contains(&class.as_str()), "{version}: {row:?}");
                let (shown, name) = named(class, event, SessionKind::Foreground);
                assert_eq!(name, if event.is_empty() { NO_EVENT } else { event });
                assert_eq!(shown == "User I/O", class == "IO", "{version}: {row:?}");
                assert_eq!(row[3] == "true", kind == "parallel worker", "a leader: {version}: {row:?}");
                kinds.insert(kind.as_str());
            }
            for kind in ["client backend", "parallel worker", "checkpointer", "walwriter"] {
                assert!(kinds.contains(kind), "{version}: {kinds:?}");
            }
            assert_eq!(kinds.contains("io worker"), version >= 18, "{version}: {kinds:?}");
            let is_temporary = |row: &Vec<String>| row[2].eq_ignore_ascii_case("BufFileWrite");
            assert!(rows.iter().any(is_temporary), "{version}: a sort wrote temporary files");
        }
    }
}

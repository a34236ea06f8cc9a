//! Records, environments and a target of made-up figures, for tests of everything behind a run.

use crate::LabError;
use crate::bundle::{Environment, Settled};
use crate::canary::Canary;
use crate::record::Record;
use crate::record::*;
use crate::target::{Preparation, RunError, Target};
use crate::vocabulary::Assignment;
use plumb_engine::instance::Cancel;
use plumb_events::{SessionKind, Unit};

/// A record of a build that took so long with so many servers: each half CPU, a quarter
/// waits, some of the run queue, the rest unaccounted; and a coordinator that waited for them.
pub fn record(elapsed_ns: u64, servers: u64) -> Record {
    let session = |name: String, cpu_ns, wait_ns, idle_ns, run_queue_ns| SessionTime {
        name,
        role: "PX sort server".to_string(),
        kind: SessionKind::Foreground,
        elapsed_ns,
        cpu_ns,
        wait_cpu_ns: wait_ns / 10,
        wait_ns,
        idle_ns,
        run_queue_ns: Some(run_queue_ns),
    };
    let mut sessions: Vec<SessionTime> = (0..servers)
        .map(|server| session(format!("p{server:03}"), elapsed_ns / 2, elapsed_ns / 4, 0, elapsed_ns / 100))
        .collect();
    sessions.push(session("coordinator".to_string(), 1_000, 0, elapsed_ns - 2_000, 0));
    let wait = |event: &str, class: &str, time_ns| WaitEvent {
        event: event.to_string(),
        wait_class: class.to_string(),
        waits: 10,
        time_ns,
        max_ns: time_ns / 5,
        histogram: Vec::new(),
        latency: None,
    };
    let waited = servers * (elapsed_ns / 4);
    let header = header(elapsed_ns, servers * (elapsed_ns / 2) + 1_000, waited);
    Record {
        checks: vec![Check {
            name: "keys in order".to_string(),
            passed: true,
            detail: "all".to_string(),
            elapsed_ns: 5,
        }],
        foreground_events: vec![
            wait("direct path read", "User I/O", waited / 3),
            wait("direct path write temp", "User I/O", waited - waited / 3),
            wait("PX Deq: Execute Reply", IDLE_CLASS, elapsed_ns - 2_000),
        ],
        sessions,
        statistics: vec![StatisticRow {
            name: "physical read total bytes".to_string(),
            total: 1 << 30,
            unit: Unit::Bytes,
        }],
        completion: Completion::Exact,
        ..Record::of(header)
    }
}

fn header(elapsed_ns: u64, db_cpu_ns: u64, waited: u64) -> Header {
    Header {
        title: "PLUMB REPORT  Workload: large-sort".to_string(),
        workload: "large-sort".to_string(),
        plumb_version: "0.1.0".to_string(),
        git_revision: None,
        host: host(),
        begin_time: "2026-01-01T00:00:00Z".to_string(),
        end_time: "2026-01-01T00:00:01Z".to_string(),
        elapsed_ns,
        db_time_ns: db_cpu_ns + waited,
        db_cpu_ns,
        command_line: "plumb run large-sort".to_string(),
        seed: 1996,
        settings_hash: String::new(),
        clock_source: None,
        clock_precision_ns: None,
    }
}

fn host() -> Host {
    Host {
        cpu_quota: None,
        name: "vm".to_string(),
        cpus: 8,
        cpu_model: "model".to_string(),
        memory_bytes: 1 << 33,
        kernel: "Linux".to_string(),
    }
}

/// Where nothing ran.
pub fn environment() -> Environment {
    Environment {
        plumb_version: env!("CARGO_PKG_VERSION").to_string(),
        git_revision: None,
        target: "made-up figures".to_string(),
        host: host(),
        devices: Vec::new(),
        calibration_doubts: Vec::new(),
        calibration_date: None,
        limits: Vec::new(),
        settings: Vec::new(),
        begin_ns: 1_767_225_600_000_000_000,
        begin_time: "2026-01-01T00:00:00Z".to_string(),
        command_line: "plumb study".to_string(),
        spawn_ns: None,
    }
}

/// What a made-up run gives, by the number of runs before it and its settings.
pub type Script = Box<dyn FnMut(usize, &[Assignment]) -> Result<Record, RunError>>;

/// A target that does no work.
pub struct Scripted {
    /// What its runs give.
    pub script: Script,
    /// Runs made.
    pub runs: usize,
    /// What lies before each run.
    pub settled: Settled,
}

impl Scripted {
    /// A target whose files are not in the page cache.
    pub fn new(script: impl FnMut(usize, &[Assignment]) -> Result<Record, RunError> + 'static) -> Scripted {
        let settled =
            Settled { waited_ns: 1, idle: true, resident_pages: 0, total_pages: 100, ..Settled::default() };
        Scripted { script: Box::new(script), runs: 0, settled }
    }
}

impl Target for Scripted {
    fn environment(&mut self) -> Result<Environment, LabError> {
        Ok(environment())
    }

    fn prepare(&mut self, _: &Preparation<'_>) -> Result<(), LabError> {
        Ok(())
    }

    fn ready(&mut self, _: &[Assignment]) -> Result<Settled, LabError> {
        Ok(self.settled)
    }

    /// The machine is as fast before each run.
    fn sing(&self) -> Canary {
        Canary { cpu_ns: 3_000_000, read_ns: None }
    }

    fn run(&mut self, settings: &[Assignment], _: &Cancel) -> Result<Record, RunError> {
        self.runs += 1;
        (self.script)(self.runs - 1, settings)
    }
}

/// A receipt of a setting.
pub fn receipt(setting: &str, held: Held, evidence: &str) -> Receipt {
    Receipt {
        setting: setting.to_string(),
        asked: "asked".to_string(),
        evidence: evidence.to_string(),
        held,
        seen: Seen::Outside,
    }
}

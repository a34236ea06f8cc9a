//! Synthetic records, for tests of everything after a run.

use crate::trace::{Kind, Request, RunTrace, SessionTrace};
use crate::*;
use plumb_events::{Direction, SessionKind, Unit};

/// A record of a build with this elapsed time and number of servers. Each is half CPU, a quarter
/// waits, some run queue, the rest unaccounted; a coordinator waits for them.
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
        max_ns: Some(time_ns / 5),
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
        profile: None,
        host: host(),
        begin_time: "2026-01-01T00:00:00Z".to_string(),
        end_time: "2026-01-01T00:00:01Z".to_string(),
        elapsed_ns,
        db_time_ns: Some(db_cpu_ns + waited),
        db_cpu_ns: Some(db_cpu_ns),
        command_line: "plumb run large-sort".to_string(),
        seed: Some(1996),
        settings_hash: String::new(),
        clock_source: None,
        clock_precision_ns: None,
    }
}

/// A machine of eight processors.
pub fn host() -> Host {
    Host {
        cpu_quota: None,
        name: "vm".to_string(),
        cpus: Some(8),
        cpu_model: "model".to_string(),
        memory_bytes: Some(1 << 33),
        kernel: "Linux".to_string(),
    }
}

pub fn receipt(setting: &str, held: Held, evidence: &str) -> Receipt {
    Receipt {
        setting: setting.to_string(),
        asked: "asked".to_string(),
        evidence: evidence.to_string(),
        held,
        seen: Seen::Outside,
    }
}

/// Two sessions: one appends to a log, the other writes blocks in random order.
pub fn trace() -> RunTrace {
    let kind = |stream: &str, event: &str, direction| Kind {
        stream: stream.to_string(),
        event: event.to_string(),
        direction,
    };
    let append = |number: u64| Request {
        begin_ns: 4_000_000 * number,
        latency_ns: 3_900_000 + 1000 * number,
        kind: 0,
        file: 0,
        offset: 4096 + 512 * number,
        bytes: 512 * (1 + number % 2),
    };
    let block = |number: u64| Request {
        begin_ns: 1_000_000 * number,
        latency_ns: 200_000,
        kind: 1 + (number % 2) as usize,
        file: 1,
        offset: 8192 * (number * 7 % 5),
        bytes: 8192,
    };
    RunTrace {
        elapsed_ns: 20_000_000,
        dropped: 3,
        files: vec!["/data/plumb-run-1/redo01.log".to_string(), "/data/plumb-run-1/users01.dbf".to_string()],
        kinds: vec![
            kind("log writes", "log file parallel write", Direction::Write),
            kind("data writes", "db file parallel write", Direction::Write),
            kind("cache reads", "db file sequential read", Direction::Read),
        ],
        sessions: vec![
            SessionTrace { name: "session p000".to_string(), requests: (0..5).map(append).collect() },
            SessionTrace { name: "DBW0".to_string(), requests: (0..6).map(block).collect() },
        ],
    }
}

//! A run in a line: the figures that awr_info.sh of SLOB prints of an AWR report, and what an operation cost.
//!
//! ```text
//! FILE|SESSIONS|ELAPSED|DB CPU|DB Tm|EXECUTES|LIO|PREADS|READ_MBS|...|TOP WAIT|OP|CPU_US/OP|CS/OP|RKB/OP|WKB/OP|
//! ```
//! DB CPU to REDO_MBS are per second, as a load profile has them; ELAPSED is seconds, latencies are microseconds. An
//! operation is what the workload counts: a statement, else a row that was inserted or sorted. Its cost is that of the whole
//! process, background sessions too: CPU in user and kernel mode, context switches of both kinds, and kilobytes that were
//! read from and written to files. What a record does not have is left blank.

use plumb_record::operation::{operations, total};
use plumb_record::{Record, WaitEvent};
use plumb_report::format::{Figure, Percent};

/// The head of the columns.
pub const HEAD: &str = "FILE|SESSIONS|ELAPSED|DB CPU|DB Tm|EXECUTES|LIO|PREADS|READ_MBS|PWRITES|WRITE_MBS|REDO_MBS|\
                        DFSR_LAT|DPR_LAT|DFPR_LAT|DFPW_LAT|LFPW_LAT|TOP WAIT|OP|CPU_US/OP|CS/OP|RKB/OP|WKB/OP|";

const MB: f64 = 1024.0 * 1024.0;

/// The columns of a run, under the name of its bundle.
#[must_use]
pub fn line(name: &str, run: &Record) -> String {
    let seconds = run.header.elapsed_ns as f64 / 1e9;
    let rate = |total: f64| if seconds > 0.0 { short(total / seconds) } else { String::new() };
    let count = |name: &str| total(run, name).map_or(String::new(), |total| rate(total as f64));
    let megabytes = |name: &str| total(run, name).map_or(String::new(), |total| rate(total as f64 / MB));
    let mut fields = vec![
        name.to_string(),
        sessions(run).to_string(),
        short(seconds),
        rate(run.header.db_cpu() as f64 / 1e9),
        rate(run.header.db_time() as f64 / 1e9),
        count("execute count"),
        count("session logical reads"),
        count("physical reads"),
        megabytes("physical read total bytes"),
        count("physical writes"),
        megabytes("physical write total bytes"),
        megabytes("redo size"),
    ];
    let latencies = [
        "db file sequential read",
        "direct path read",
        "db file parallel read",
        "db file parallel write",
        "log file parallel write",
    ];
    fields.extend(latencies.map(|event| latency_us(run, event)));
    fields.push(top_wait(run));
    fields.extend(costs(run));
    fields.join("|") + "|"
}

/// Three digits, or all of a number that has more before its point.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || size == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// The sessions that were asked for, or else the foreground sessions there were.
fn sessions(run: &Record) -> usize {
    let asked = run.receipts.iter().find(|receipt| receipt.setting == "sessions");
    let foreground = || {
        run.sessions.iter().filter(|session| session.kind == plumb_events::SessionKind::Foreground).count()
    };
    asked.and_then(|receipt| receipt.asked.parse().ok()).unwrap_or_else(foreground)
}

/// The mean wait for an event over all sessions, microseconds.
fn latency_us(run: &Record, name: &str) -> String {
    let events = run.foreground_events.iter().chain(&run.background_events);
    let (waits, time_ns) = events
        .filter(|event| event.event == name)
        .fold((0, 0), |(waits, time), event| (waits + event.waits, time + event.time_ns));
    if waits == 0 { String::new() } else { format!("{:.0}", time_ns as f64 / 1e3 / waits as f64) }
}

/// The longest of CPU and waits, with its share of DB time.
fn top_wait(run: &Record) -> String {
    let busy = run.foreground_events.iter().filter(|event| !event.is_idle());
    let longest: Option<&WaitEvent> = busy.max_by_key(|event| event.time_ns);
    let (name, time_ns) = match longest {
        Some(event) if event.time_ns > run.header.db_cpu() => (event.event.as_str(), event.time_ns),
        _ => ("DB CPU", run.header.db_cpu()),
    };
    format!("{name} {}", Percent::of(time_ns, run.header.db_time()).figure()).trim_end().to_string()
}

/// What an operation is, and its CPU in microseconds, context switches, kilobytes read and written.
fn costs(run: &Record) -> [String; 5] {
    let Some((name, operations)) = operations(run) else { return Default::default() };
    let each = |amount: f64| short(amount / operations as f64);
    let kilobytes = |name: &str| each(total(run, name).unwrap_or(0) as f64 / 1024.0);
    let process = |of: fn(&plumb_record::ProcessUse) -> f64| {
        run.process.as_ref().map_or(String::new(), |used| each(of(used)))
    };
    [
        name.to_string(),
        process(|used| used.cpu_ns as f64 / 1e3),
        process(|used| (used.voluntary_switches + used.involuntary_switches) as f64),
        kilobytes("physical read total bytes"),
        kilobytes("physical write total bytes"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::fixture;
    use plumb_record::ProcessUse;

    #[test]
    fn a_run_has_as_many_fields_as_the_head_and_what_is_unknown_is_blank() {
        let mut run = fixture::large_sort();
        run.process = Some(ProcessUse {
            cpu_ns: 34_000_000_000,
            voluntary_switches: 90_000,
            involuntary_switches: 10_000,
        });
        for run in [&run, &fixture::empty()] {
            assert_eq!(line("x", run).matches('|').count(), HEAD.matches('|').count());
        }
        insta::assert_snapshot!(format!("{HEAD}\n{}\n{}\n", line("a", &run), line("b", &fixture::empty())));
    }
}

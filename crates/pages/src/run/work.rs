//! The figures that a workload is run for: commits and their latency, operations and theirs, reads
//! a second, rows, bytes.
//!
//! A record says by its counters what the workload did, so no workload is known by name.

use plumb_events::LatencyHistogram;
use plumb_record::{Record, Response, WaitEvent};
use plumb_report::Headline;
use plumb_report::format::{Average, Count, Figure, PerSecond, Throughput};
use plumb_units::{Nanos, total_of};

/// Kinds of operation with a tile of their own.
const OPERATIONS_MAX: usize = 2;
/// Fewest durations above a quantile for which it is shown.
const ABOVE_MIN: f64 = 5.0;

/// Returns the workload's own figures.
pub(super) fn figures(record: &Record) -> Vec<Headline> {
    let mut figures = Vec::from_iter(commits(record).filter(|_| record.responses.is_empty()));
    figures.extend(record.responses.iter().take(OPERATIONS_MAX).map(|response| operations(record, response)));
    figures.extend(reads(record).filter(|_| record.sort.is_none()));
    figures.extend(rows(record));
    figures.extend(io(record));
    figures
}

fn statistic(record: &Record, name: &str) -> u64 {
    total_of(record.statistics.iter().filter(|row| row.name == name).map(|row| row.total))
}

fn rate(record: &Record, total: u64) -> String {
    rate_over(record.header.elapsed_ns, total)
}

fn rate_over(elapsed_ns: u64, total: u64) -> String {
    let rate = PerSecond { total: total as f64, elapsed_ns }.rate();
    Count(rate.round() as u64).figure()
}

fn tile(name: impl Into<String>, value: String, aside: String) -> Headline {
    Headline { name: name.into(), value, aside }
}

/// Returns `p50 210 us, p99 1.2 ms`, as far as the durations allow.
fn quantiles(latency: &LatencyHistogram) -> String {
    let shown = [("p50", 0.5), ("p99", 0.99)].into_iter().filter_map(|(name, share)| {
        let above = latency.count() as f64 * (1.0 - share);
        (above >= ABOVE_MIN).then(|| format!("{name} {}", latency.quantile(share)))
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Returns transactions a second with the time until a commit is durable.
fn commits(record: &Record) -> Option<Headline> {
    let transactions = record.transactions()?;
    let mut aside = Vec::new();
    let (waits, micros) =
        (statistic(record, "redo synch writes"), statistic(record, "redo synch time (usec)"));
    aside.extend(
        Nanos(micros.saturating_mul(1000)).0.checked_div(waits).map(|ns| format!("durable in {}", Nanos(ns))),
    );
    let sync = record.foreground_events.iter().find(|event| event.event == "log file sync");
    let sync = sync.and_then(|event| event.latency.as_ref()).map(quantiles).filter(|shown| !shown.is_empty());
    aside.extend(sync.map(|shown| format!("log file sync {shown}")));
    Some(tile("Commits", format!("{}/s", rate(record, transactions)), aside.join(", ")))
}

/// Returns operations a second with their response times.
fn operations(record: &Record, response: &Response) -> Headline {
    let elapsed_ns = response.elapsed_ns.unwrap_or(record.header.elapsed_ns);
    let value = format!("{}/s", rate_over(elapsed_ns, response.latency.count()));
    let times = quantiles(&response.latency);
    let aside = if times.is_empty() { format!("mean {}", response.latency.mean()) } else { times };
    tile(format!("Operations: {}", response.operation), value, aside)
}

/// Returns reads of one block a second with the time of a read.
fn reads(record: &Record) -> Option<Headline> {
    let single = |event: &&WaitEvent| event.event == "db file sequential read" && event.waits > 0;
    let event = record.foreground_events.iter().find(single)?;
    let average = Average { total_ns: event.time_ns, count: event.waits }.figure();
    let times = event.latency.as_ref().map(quantiles).filter(|shown| !shown.is_empty());
    let aside = times.map_or(format!("avg {average}"), |shown| format!("avg {average}, {shown}"));
    Some(tile("Block reads", format!("{}/s", rate(record, event.waits)), aside))
}

/// Returns rows sorted, inserted or loaded a second.
fn rows(record: &Record) -> Option<Headline> {
    let sorted = record.sort.as_ref().map(|sort| sort.rows);
    let counted = [
        ("Rows sorted", sorted.unwrap_or(0)),
        ("Rows inserted", statistic(record, "rows inserted")),
        ("Rows loaded", statistic(record, "direct load rows")),
    ];
    let (name, total) = counted.into_iter().find(|(_, total)| *total > 0)?;
    Some(tile(name, format!("{}/s", rate(record, total)), format!("{} in all", Count(total).figure())))
}

/// Returns bytes and requests a second of all files.
fn io(record: &Record) -> Option<Headline> {
    let (read, written) =
        (statistic(record, "physical read total bytes"), statistic(record, "physical write total bytes"));
    let requests = statistic(record, "physical read total IO requests")
        .saturating_add(statistic(record, "physical write total IO requests"));
    let bytes = read.saturating_add(written);
    let throughput = Throughput { bytes, elapsed_ns: record.header.elapsed_ns }.figure();
    let aside = if requests > 0 { format!("{} requests/s", rate(record, requests)) } else { String::new() };
    (bytes > 0).then(|| tile("I/O", format!("{throughput} MB/s"), aside))
}

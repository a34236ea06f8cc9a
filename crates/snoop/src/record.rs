//! The record of a trace, in the form of a run's, so that reports and comparisons read it.
//!
//! Operations are wait events, files and operations have their tallies, and `snoop` has the rest.

use crate::live::Live;
use crate::syscalls::Effect;
use plumb_events::{Histogram, LatencyHistogram, Unit};
use plumb_record::{
    Completion, Header, IoFile, IoFunction, IoTally, Record, Snoop, SnoopCalls, StatisticRow, WaitEvent,
};
use plumb_units::Nanos;
use std::collections::BTreeMap;

/// Name of the workload in the records of traces.
pub const WORKLOAD: &str = "snoop";

/// Makes a record of a trace's sums.
#[must_use]
pub fn record(header: Header, snoop: Snoop, live: &Live) -> Record {
    let mut record = Record::of(header);
    record.foreground_events = live
        .tally()
        .operations()
        .map(|(name, effect, operation)| WaitEvent {
            event: name.to_string(),
            wait_class: if effect == Effect::Sync { "Commit" } else { "User I/O" }.to_string(),
            waits: operation.times.count(),
            time_ns: operation.time_ns,
            max_ns: Some(operation.times.max().0),
            histogram: by_powers(&operation.times),
            latency: Some(operation.times.clone()),
        })
        .collect();
    let tallies = |name: fn(&SnoopCalls) -> &str| {
        let mut sums: BTreeMap<&str, [IoTally; 2]> = BTreeMap::new();
        for row in snoop.calls.iter().filter(|row| row.effect != "sync") {
            let own = IoTally { requests: row.calls, bytes: row.bytes, time_ns: Some(row.time_ns) };
            sums.entry(name(row)).or_default()[usize::from(row.effect == "write")].add(&own);
        }
        sums.into_iter().map(|(name, [reads, writes])| (name.to_string(), reads, writes)).collect::<Vec<_>>()
    };
    record.io_functions = tallies(|row| &row.operation)
        .into_iter()
        .map(|(function, reads, writes)| IoFunction { function, part_of: None, reads, writes, large: None })
        .collect();
    record.io_files = tallies(|row| &row.file)
        .into_iter()
        .map(|(path, reads, writes)| IoFile {
            tablespace: String::new(),
            path,
            reads,
            writes,
            block_bytes: None,
            sizes: Vec::new(),
            buffer_waits: None,
        })
        .collect();
    record.completion = Completion::Exact;
    record.statistics = statistics(&snoop);
    record.snoop = Some(snoop);
    record
}

/// Makes a record of the sums of samples, which have no times.
#[must_use]
pub fn sampled(header: Header, snoop: Snoop) -> Record {
    let statistics = statistics(&snoop);
    Record { statistics, snoop: Some(snoop), ..Record::of(header) }
}

/// Counts by powers of two of a microsecond, as the record of a run has them.
fn by_powers(times: &LatencyHistogram) -> Vec<u64> {
    let mut counts = Histogram::default();
    for (upper, count) in times.buckets() {
        counts.0[Histogram::bucket(Nanos(upper.0.saturating_sub(1)))] += count;
    }
    counts.0.to_vec()
}

fn statistics(snoop: &Snoop) -> Vec<StatisticRow> {
    let row = |name: &str, total: u64, unit: Unit| StatisticRow { name: name.to_string(), total, unit };
    let calls =
        |effect: &str| snoop.calls.iter().filter(|row| row.effect == effect).map(|row| row.calls).sum();
    let bytes =
        |effect: &str| snoop.calls.iter().filter(|row| row.effect == effect).map(|row| row.bytes).sum();
    let disk = |reads: bool| {
        let is_read = |flags: &str| flags.starts_with('R');
        snoop.requests.iter().filter(move |row| is_read(&row.flags) == reads)
    };
    let mut rows = vec![
        row("calls that read", calls("read"), Unit::Count),
        row("calls that write", calls("write"), Unit::Count),
        row("calls that sync", calls("sync"), Unit::Count),
        row("bytes read by calls", bytes("read"), Unit::Bytes),
        row("bytes written by calls", bytes("write"), Unit::Bytes),
        row("disk read requests", disk(true).map(|row| row.requests).sum(), Unit::Count),
        row("disk read bytes", disk(true).map(|row| row.bytes).sum(), Unit::Bytes),
        row("disk other requests", disk(false).map(|row| row.requests).sum(), Unit::Count),
        row("disk written bytes", disk(false).map(|row| row.bytes).sum(), Unit::Bytes),
    ];
    rows.push(row("events lost", snoop.lost(), Unit::Count));
    rows
}

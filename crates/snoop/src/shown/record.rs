//! The record of a trace, in the form of a run's, so that reports and comparisons read it.
//!
//! Operations are wait events, files and operations have their tallies, and `snoop` has the rest.

use crate::kernel::syscalls::Effect;
use crate::shown::live::Live;
use plumb_events::{Histogram, LatencyHistogram, Statistic, Unit};
use plumb_record::{
    Completion, Header, IoFile, IoFunction, IoTally, Record, Snoop, SnoopCalls, SnoopRequests, StatisticRow,
    WaitEvent,
};
use plumb_units::Nanos;
use std::collections::BTreeMap;

/// Name of the workload in the records of traces.
pub const WORKLOAD: &str = "snoop";

/// Makes a record of a trace's sums.
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
    type Of = fn(&SnoopRequests) -> u64;
    let row = |name: &str, total: u64, unit: Unit| StatisticRow { name: name.to_string(), total, unit };
    let calls =
        |effect: &str| snoop.calls.iter().filter(|row| row.effect == effect).map(|row| row.calls).sum();
    let bytes =
        |effect: &str| snoop.calls.iter().filter(|row| row.effect == effect).map(|row| row.bytes).sum();
    let disk = |letter: char, of: Of| {
        snoop.requests.iter().filter(|row| letter_of(&row.flags) == letter).map(of).sum::<u64>()
    };
    let (count, moved): (Of, Of) = (|row| row.requests, |row| row.bytes);
    vec![
        row("calls that read", calls("read"), Unit::Count),
        row("calls that write", calls("write"), Unit::Count),
        row("calls that sync", calls("sync"), Unit::Count),
        row("bytes read by calls", bytes("read"), Unit::Bytes),
        row("bytes written by calls", bytes("write"), Unit::Bytes),
        row(Statistic::PhysicalReadRequests.name(), disk('R', count), Unit::Count),
        row(Statistic::PhysicalReadBytes.name(), disk('R', moved), Unit::Bytes),
        row(Statistic::PhysicalWriteRequests.name(), disk('W', count), Unit::Count),
        row(Statistic::PhysicalWriteBytes.name(), disk('W', moved), Unit::Bytes),
        row("disk flushes", disk('F', count), Unit::Count),
        row("disk discards", disk('D', count), Unit::Count),
        row("events lost", snoop.lost(), Unit::Count),
    ]
}

/// Returns the letter of a request by its flags: the leading F of `FWS` asks for a flush before it.
fn letter_of(flags: &str) -> char {
    let after = flags.strip_prefix('F').filter(|rest| rest.starts_with(['R', 'W', 'D']));
    after.unwrap_or(flags).chars().next().unwrap_or('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_summed_by_direction_under_the_names_of_other_reports() {
        let request = |flags: &str, bytes| SnoopRequests {
            flags: flags.to_string(),
            requests: 1,
            bytes,
            ..SnoopRequests::default()
        };
        let rows = [("RA", 1), ("R", 2), ("WS", 4), ("FWFS", 8), ("FF", 0), ("DS", 16)];
        let requests = rows.map(|(flags, bytes)| request(flags, bytes)).to_vec();
        let statistics = statistics(&Snoop { requests, ..Snoop::default() });
        let total = |name: &str| statistics.iter().find(|row| row.name == name).expect("a row").total;
        assert_eq!((total("physical read total IO requests"), total("physical read total bytes")), (2, 3));
        assert_eq!((total("physical write total IO requests"), total("physical write total bytes")), (2, 12));
        assert_eq!((total("disk flushes"), total("disk discards")), (1, 1));
    }
}

//! The buffer cache and its writers.

use super::{TGDBA, average, is_io_bound, own_waits, percent, waited};
use crate::rule::{FindingRule, Observed, Rank};
use crate::signals::{Origin, Signals};
use plumb_record::WaitEvent;
use plumb_units::{Nanos, total_of};

pub(super) const RULES: &[FindingRule] = &[
    FindingRule {
        id: "R13",
        rank: Rank::Saving,
        signal: "free buffer waits and write complete waits of DB time",
        threshold: "over 2%",
        origin: "Oracle Performance Tuning Guide; the number is own",
        caveat: "the cause is the time of the writers' own requests",
        advice: "more db_writer_processes, a larger db_cache_size, or a device that writes faster",
        judge: free_buffers,
    },
    FindingRule {
        id: "R14",
        rank: Rank::Saving,
        signal: "db file async I/O submit, average",
        threshold: "over 10 ms",
        origin: "MOS 1274737.1; andreynikolaev.wordpress.com, July 2010",
        caveat: "from 11.2 on",
        advice: "a submission that waits is a write: filesystemio_options=NONE with disk_asynch_io=TRUE does that",
        judge: async_submit,
    },
    FindingRule {
        id: "R16",
        rank: Rank::Saving,
        signal: "buffer busy waits of DB time",
        threshold: "over 2%",
        origin: "Oracle Performance Tuning Guide; the number is own",
        caveat: "contention in memory, not storage",
        advice: "sessions change the same blocks: spread them over more blocks",
        judge: busy_buffers,
    },
    FindingRule {
        id: "R22",
        rank: Rank::Saving,
        signal: "enq: HW - contention of DB time",
        threshold: "over 2%",
        origin: "askmac.cn/archives/enq-hw-contention.html; the number is own",
        caveat: "no fault of the storage",
        advice: "files that are large enough before the load",
        judge: extension,
    },
    FindingRule {
        id: "R25",
        rank: Rank::Remark,
        signal: "Buffer Pool Advisory at twice the size",
        threshold: "below 80% of the reads",
        origin: TGDBA,
        caveat: "valid for this workload; a hit ratio is no diagnosis",
        advice: "memory is cheaper than requests here: a larger cache",
        judge: advisory,
    },
];

fn together(signals: &Signals, events: &[&str], least: f64) -> Option<(String, u64)> {
    let waits: Vec<&WaitEvent> = events.iter().filter_map(|event| signals.wait(event)).collect();
    let ns = total_of(waits.iter().map(|wait| wait.time_ns));
    (signals.share(ns) > least).then(|| {
        let each = waits.iter().map(|wait| format!("{}: {}", wait.event, waited(signals, wait)));
        let each = each.collect::<Vec<_>>().join("; ");
        (format!("{each}; {}", own_waits(signals, ns)), ns)
    })
}

fn free_buffers(signals: &Signals) -> Option<Observed> {
    is_io_bound(signals).then_some(())?;
    let (evidence, ns) = together(signals, &["free buffer waits", "write complete waits"], 0.02)?;
    let sort = signals.run.as_ref().and_then(|run| run.sort.as_ref());
    let writes = signals.any_wait("db file parallel write").next();
    let writes = writes.map_or(String::new(), |wait| format!("; a batch of DBWR takes {}", average(wait)));
    let seen =
        Observed::new("Sessions wait for free buffers: DBWR does not keep up", evidence + &writes).saves(ns);
    Some(match sort {
        Some(sort) if !sort.direct_writes => seen
            .advise("sort_direct_writes=true takes runs past the cache; otherwise more db_writer_processes")
            .proved_by(signals.study("sort_direct_writes=false,true")),
        _ if signals.uses.writers => seen.proved_by(signals.study("db_writer_processes=1,4")),
        _ => seen,
    })
}

fn async_submit(signals: &Signals) -> Option<Observed> {
    const LIMIT_NS: u64 = 10_000_000;
    const WAITS_MIN: u64 = 20;
    is_io_bound(signals).then_some(())?;
    let mut waits = signals.any_wait("db file async I/O submit");
    let wait = waits.find(|wait| wait.waits >= WAITS_MIN && average(wait).0 > LIMIT_NS)?;
    let evidence = format!(
        "{} of {} on average, expected at most {}: the submission waits for the write",
        Nanos(wait.time_ns),
        average(wait),
        Nanos(LIMIT_NS)
    );
    let seen = Observed::new("Database writers wait to hand over their writes", evidence);
    Some(match signals.origin {
        Origin::Run => seen
            .advise("the device's queue is full, or a neighbour holds it: look at the device beside the run"),
        Origin::Import => seen,
    })
}

fn busy_buffers(signals: &Signals) -> Option<Observed> {
    let (evidence, ns) = together(signals, &["buffer busy waits"], 0.02)?;
    Some(Observed::new("Sessions wait for blocks that others change", evidence).saves(ns))
}

fn extension(signals: &Signals) -> Option<Observed> {
    let (evidence, ns) = together(signals, &["enq: HW - contention"], 0.02)?;
    Some(Observed::new("Sessions wait while files grow", evidence).saves(ns))
}

fn advisory(signals: &Signals) -> Option<Observed> {
    let twice = signals.cache.advisory.iter().filter(|line| (1.9..=2.1).contains(&line.size_factor));
    let line = twice.min_by(|one, two| one.read_factor.total_cmp(&two.read_factor))?;
    (is_io_bound(signals) && line.read_factor < 0.8).then(|| {
        let evidence =
            format!("at twice the size {} of the physical reads are expected", percent(line.read_factor));
        Observed::new("A larger buffer cache would save reads", evidence)
    })
}

//! Doubts about the figures themselves.

use super::OWN;
use crate::rule::{FindingRule, Observed, Rank};
use crate::signals::{Origin, RunFacts, Signals, TablespaceIo};
use plumb_figures::bound::{REQUEST_RATE_MOST, request_rate};
use plumb_record::{Finding, capital};
use plumb_units::{Bytes, Nanos, Rate, ValueRange, total_of};

pub(super) const RULES: &[FindingRule] = &[
    FindingRule {
        id: "D1",
        rank: Rank::Void,
        signal: "delay injected before each request",
        threshold: "any",
        origin: OWN,
        caveat: "",
        advice: "it is for tests of the laboratory; leave it out to measure",
        judge: delayed,
    },
    FindingRule {
        id: "D2",
        rank: Rank::Void,
        signal: "time in which none of the process's threads ran",
        threshold: "any",
        origin: OWN,
        caveat: "",
        advice: "its times say nothing: run it again",
        judge: stopped,
    },
    FindingRule {
        id: "G2",
        rank: Rank::Doubt,
        signal: "length of the interval, restarts",
        threshold: "over 90 minutes, or a restart",
        origin: OWN,
        caveat: "averages over hours hide peaks",
        advice: "take the report of a shorter interval around the slow time",
        judge: interval,
    },
    FindingRule {
        id: "D3",
        rank: Rank::Doubt,
        signal: "bytes by which files grew while measured",
        threshold: "any",
        origin: OWN,
        caveat: "",
        advice: "make the files large enough before the run",
        judge: grew,
    },
    FindingRule {
        id: "D4",
        rank: Rank::Doubt,
        signal: "bytes of an output for which no space was reserved",
        threshold: "any",
        origin: OWN,
        caveat: "",
        advice: "a disk that is too small shows when the output is written; write it to ext4, xfs, btrfs or tmpfs to know before",
        judge: not_reserved,
    },
    FindingRule {
        id: "D5",
        rank: Rank::Doubt,
        signal: "open flags of the files",
        threshold: "direct I/O asked for and not used",
        origin: OWN,
        caveat: "",
        advice: "put the files on a file system with direct I/O to measure a device",
        judge: through_page_cache,
    },
    FindingRule {
        id: "D6",
        rank: Rank::Doubt,
        signal: "I/O methods of the sessions",
        threshold: "two in one run",
        origin: OWN,
        caveat: "",
        advice: "raise the limit, or name an io_method that all sessions can have, before comparing runs",
        judge: method_replaced,
    },
    FindingRule {
        id: "D7",
        rank: Rank::Doubt,
        signal: "parallel servers, of the processors",
        threshold: "fewer, because of a limit",
        origin: OWN,
        caveat: "",
        advice: "raise the limit, or set the parallel_degree that it allows, before comparing runs",
        judge: fewer_servers,
    },
    FindingRule {
        id: "D8",
        rank: Rank::Doubt,
        signal: "memory that the settings allow, of that available",
        threshold: "more",
        origin: OWN,
        caveat: "",
        advice: "a machine that swaps measures its swap: lower sort_area_size, db_cache_size or parallel_degree",
        judge: memory_scarce,
    },
    FindingRule {
        id: "D9",
        rank: Rank::Doubt,
        signal: "rate of writes, of the raw sequential read",
        threshold: "over 105%",
        origin: OWN,
        caveat: "some devices write faster than they read",
        advice: "",
        judge: absorbed,
    },
    FindingRule {
        id: "D10",
        rank: Rank::Doubt,
        signal: "session time that is neither CPU nor a wait",
        threshold: "over 5%",
        origin: OWN,
        caveat: "",
        advice: "something is not measured: treat shares of DB time with care",
        judge: unaccounted,
    },
    FindingRule {
        id: "D11",
        rank: Rank::Remark,
        signal: "bytes over time of reads of a tablespace",
        threshold: "over 20 GB/s a request",
        origin: "a report with 630 KB in 0.01 ms, 63 GB/s",
        caveat: "",
        advice: "no device does this: judge by the wait event, not by this average",
        judge: impossible,
    },
    FindingRule {
        id: "D12",
        rank: Rank::Remark,
        signal: "reads of a tablespace x their time",
        threshold: "over three times DB time and background waits",
        origin: "reports of 12.1 on AIX with 22 s a read; the number is own",
        caveat: "",
        advice: "the read time is wrong: judge by the wait event",
        judge: too_long,
    },
];

/// Bytes and seconds of a read of a tablespace, as the source knows them.
fn read_of(of: &TablespaceIo) -> Option<[ValueRange; 2]> {
    let [bytes, ns] = [of.reads.bytes, of.reads.time_ns?].map(|sum| sum as f64 / of.reads.requests as f64);
    Some(of.printed_read.unwrap_or([ValueRange::exactly(bytes), ValueRange::exactly(ns / 1e9)]))
}
const READS_TO_JUDGE: u64 = 100;

/// Reports other work on the machine, or a cache that answered instead of the device.
pub(crate) fn of_circumstances(signals: &Signals) -> impl Iterator<Item = Finding> {
    let found = signals.run.iter().flat_map(|run| &run.circumstances);
    found.map(|circumstance| Finding {
        what: capital(circumstance.fact.words().1),
        evidence: circumstance.evidence.clone(),
        advice: circumstance.fact.advice().to_string(),
        ..Finding::default()
    })
}

fn run(signals: &Signals) -> Option<&RunFacts> {
    signals.run.as_ref()
}

fn delayed(signals: &Signals) -> Option<Observed> {
    let delay = run(signals)?.delay_ns;
    (delay > 0).then(|| {
        Observed::new(
            "A delay was injected into every request: the times are not the engine's",
            format!("debug_request_delay: {} before each, on average", Nanos(delay)),
        )
    })
}

fn stopped(signals: &Signals) -> Option<Observed> {
    let stopped = Nanos(run(signals)?.stopped_ns?);
    Some(Observed::new(
        "The run was stopped, or the machine suspended, while it was measured",
        format!("{stopped} in which none of its threads ran"),
    ))
}

fn interval(signals: &Signals) -> Option<Observed> {
    const LONGEST_NS: u64 = 90 * 60 * 1_000_000_000;
    if signals.origin == Origin::Run {
        return None;
    }
    let mut doubts = Vec::new();
    if signals.elapsed_ns > LONGEST_NS {
        doubts.push(format!("the interval is {:.0} minutes long", signals.elapsed_ns as f64 / 60e9));
    }
    if signals.server.restarted {
        doubts.push("the instance was restarted within it".to_string());
    }
    let advice = match signals.elapsed_ns > LONGEST_NS {
        true => "",
        false => "take the report of an interval without a restart",
    };
    (!doubts.is_empty())
        .then(|| Observed::new("The report's averages are of little worth", doubts.join("; ")).advise(advice))
}

/// True if the reads of a tablespace cannot have taken the time that its row says: more than DB
/// time and background waits together, several times over.
pub(super) fn is_too_long(signals: &Signals, of: &TablespaceIo) -> bool {
    const TIMES_MOST: u64 = 3;
    let background = total_of(signals.background.iter().map(|wait| wait.time_ns));
    let whole = signals.db_time().saturating_add(background);
    let is_known = signals.origin == Origin::Import && signals.db_time() > 0;
    is_known && of.reads.time_ns.is_some_and(|ns| ns / TIMES_MOST > whole)
}

/// True if no device moves the bytes of a tablespace's read in the time that its row says.
pub(super) fn is_impossible(of: &TablespaceIo) -> bool {
    read_of(of).is_some_and(|[bytes, seconds]| request_rate(bytes, seconds).low > REQUEST_RATE_MOST)
}

fn too_long(signals: &Signals) -> Option<Observed> {
    let of =
        signals.tablespaces.iter().filter(|of| is_too_long(signals, of)).max_by_key(|of| of.reads.time_ns)?;
    let ns = of.reads.time_ns?;
    let in_flight = match signals.elapsed_ns {
        0 => String::new(),
        elapsed_ns => format!(", {} at once through all of it", ns / elapsed_ns),
    };
    let evidence = format!(
        "{}: {} reads of {} are {}{in_flight}; DB time is {}",
        of.name,
        of.reads.requests,
        Nanos(ns / of.reads.requests.max(1)),
        Nanos(ns),
        Nanos(signals.db_time())
    );
    Some(Observed::new("IMPOSSIBLE: a tablespace's reads take longer than all sessions waited", evidence))
}

fn grew(signals: &Signals) -> Option<Observed> {
    let grown = run(signals)?.grown.as_ref()?;
    let evidence = format!(
        "{} of zeros were written; sessions waited {} on Data file init write",
        Bytes(grown.bytes),
        Nanos(grown.waited_ns)
    );
    Some(Observed::new("Files grew while the work was measured", evidence).advise(&grown.advice))
}

fn not_reserved(signals: &Signals) -> Option<Observed> {
    let bytes = run(signals)?.not_reserved_bytes;
    (bytes > 0).then(|| {
        Observed::new(
            "The output's space was not reserved before the sort",
            format!("its file system has no fallocate: the file was lengthened by {} of zeros", Bytes(bytes)),
        )
    })
}

fn through_page_cache(signals: &Signals) -> Option<Observed> {
    let reason = run(signals)?.through_page_cache.as_ref()?;
    Some(Observed::new("I/O went through the page cache although direct I/O is the default", reason))
}

fn method_replaced(signals: &Signals) -> Option<Observed> {
    let said = run(signals)?.method_replaced.as_ref()?;
    Some(Observed::new("Some sessions did not get the best I/O method", said))
}

fn fewer_servers(signals: &Signals) -> Option<Observed> {
    let reason = run(signals)?.fewer_servers.as_ref()?;
    Some(Observed::new("Fewer servers were started than there are processors", reason))
}

fn memory_scarce(signals: &Signals) -> Option<Observed> {
    let warning = run(signals)?.memory_scarce.as_ref()?;
    Some(Observed::new("The settings allow more memory than was available", warning))
}

fn absorbed(signals: &Signals) -> Option<Observed> {
    let absorbed = run(signals)?.absorbed.as_ref()?;
    let [rate, limit] = [absorbed.bytes_per_s, absorbed.limit_bytes_per_s].map(Rate);
    let evidence = format!("{} ran at {rate}, and the raw sequential read is {limit}", absorbed.stream);
    let advice =
        format!("a cache {} absorbs them: write more than it holds to see the device", absorbed.layer);
    Some(Observed::new("Writes are faster than the device reads", evidence).advise(advice))
}

fn unaccounted(signals: &Signals) -> Option<Observed> {
    let run = run(signals)?;
    let share = run.unaccounted_ns as f64 / run.sessions_ns.max(1) as f64;
    (share.abs() > 0.05).then(|| {
        let elapsed = run.sessions_ns as f64 / 1e9;
        let share = share * 100.0;
        Observed::new(
            "Part of the sessions' time is not accounted for",
            format!("{share:.1}% of {elapsed:.2} s over all sessions is neither CPU nor a wait"),
        )
    })
}

fn impossible(signals: &Signals) -> Option<Observed> {
    let read = signals.tablespaces.iter().filter(|of| of.reads.requests >= READS_TO_JUDGE);
    let rated = read.filter_map(|of| {
        let [bytes, seconds] = read_of(of)?;
        Some((of, bytes, seconds, request_rate(bytes, seconds)))
    });
    let (of, bytes, seconds, rate) = rated
        .filter(|(_, _, _, rate)| rate.low > REQUEST_RATE_MOST)
        .max_by_key(|(of, ..)| of.reads.requests)?;
    let evidence = format!(
        "{}: {} in at most {} a read on average, which is at least {}",
        of.name,
        Bytes(bytes.middle() as u64),
        Nanos((seconds.high * 1e9) as u64),
        Rate(rate.low)
    );
    Some(Observed::new("IMPOSSIBLE: a tablespace's read time is no latency of a device", evidence))
}

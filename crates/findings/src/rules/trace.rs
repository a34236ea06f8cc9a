//! Rules over a trace of another program: its calls next to the requests of the disks.
//!
//! A trace knows no sessions and no DB time, so shares are those of the elapsed time ([`GATE`]).
//! Threads that wait at the same time add up: a saving is bounded by the elapsed time.

use super::{OWN, count, percent};
use crate::rule::{FindingRule, Observed, Rank};
use crate::signals::Signals;
use plumb_record::{Snoop, SnoopAmplification, SnoopCalls, SnoopPattern, SnoopRequests};
use plumb_units::{Bytes, Nanos, total_of};

/// Share of the elapsed time below which no rule judges what the time was spent on.
const GATE: f64 = 0.10;
/// Bytes of the disks, of those of calls, from which on they are judged.
const TIMES_MIN: f64 = 2.0;
/// Bytes beyond those of calls below which an amplification is the file system's start.
const EXTRA_MIN: u64 = 1 << 20;
/// Least syncs of a storm, and most writes and bytes of one of them.
const SYNCS_MIN: u64 = 20;
const WRITES_A_SYNC: f64 = 2.0;
const BYTES_A_SYNC: u64 = 64 << 10;
/// Writes that the advice puts into one sync.
const WRITES_ADVISED: u64 = 8;
/// Size of a request that the advice asks for.
const LARGE: u64 = 128 << 10;
/// Compares the traced program with a changed one, each in a script of its own.
const STUDY: &str = "plumb study --command ./{program} --factor program=now,changed";

pub(super) const RULES: &[FindingRule] = &[
    FindingRule {
        id: "P1",
        rank: Rank::Doubt,
        signal: "events of the kernel without room in the buffers",
        threshold: "any",
        origin: OWN,
        caveat: "",
        advice: "sums are lower bounds and requests may lack their calls: trace a shorter time, or one process",
        judge: lost,
    },
    FindingRule {
        id: "P2",
        rank: Rank::Doubt,
        signal: "the source of the figures",
        threshold: "samples of /proc",
        origin: OWN,
        caveat: "",
        advice: "samples have no times, so no share of the elapsed time is known: trace it as root",
        judge: sampled,
    },
    FindingRule {
        id: "P3",
        rank: Rank::Saving,
        signal: "time in syncs and in writes that return when they are durable, of the elapsed time",
        threshold: "10% and more",
        origin: OWN,
        caveat: "a program that syncs less may lose more after a crash",
        advice: "sync less often: several changes before each sync; changed: a script with the program that does",
        judge: syncs,
    },
    FindingRule {
        id: "P4",
        rank: Rank::Saving,
        signal: "writes and bytes of a sync",
        threshold: "at most 2 writes and 64 KB, 20 syncs and more, with the time of P3",
        origin: OWN,
        caveat: "each sync may be a promise to another program",
        advice: "collect writes and sync them together; changed: a script with 8 writes a sync",
        judge: storm,
    },
    FindingRule {
        id: "P5",
        rank: Rank::Saving,
        signal: "bytes of the disks, of the bytes of calls in the same direction",
        threshold: "2 times and 1 MB more, with disk time of 10% of the elapsed time",
        origin: OWN,
        caveat: "bytes that are written back later belong to the last writer",
        advice: "requests of whole blocks, at multiples of a block; a file of full size before it is written",
        judge: amplified,
    },
    FindingRule {
        id: "P6",
        rank: Rank::Saving,
        signal: "time in sequential calls of at most 8 KB, of the elapsed time",
        threshold: "10% and more",
        origin: OWN,
        caveat: "a program that waits for each request's durability gains by P4 first",
        advice: "larger requests, or a buffer in the program; changed: a script with requests of 128 KB",
        judge: small,
    },
    FindingRule {
        id: "P7",
        rank: Rank::Saving,
        signal: "bytes that the file system read ahead, of those that the disks read beyond the calls",
        threshold: "half, with 1.5 times the calls' bytes read and disk time of 10% of the elapsed time",
        origin: OWN,
        caveat: "pages that were read ahead may serve a later reader",
        advice: "posix_fadvise(POSIX_FADV_RANDOM) or direct I/O; changed: a script with either",
        judge: read_ahead,
    },
    FindingRule {
        id: "P8",
        rank: Rank::Saving,
        signal: "writes of the disk to a block that was written shortly before",
        threshold: "10% of a file's writes, with disk time of 10% of the elapsed time",
        origin: OWN,
        caveat: "a log that ends within a block must write it again at the next commit",
        advice: "write whole blocks; for metadata, a file of full size and fdatasync instead of fsync",
        judge: again,
    },
];

/// Returns a trace with times.
fn traced(signals: &Signals) -> Option<&Snoop> {
    signals.trace.as_ref().filter(|snoop| !snoop.is_sampled())
}

/// Returns the share of the elapsed time, if it passes the gate.
fn gated(signals: &Signals, ns: u64) -> Option<f64> {
    let share = ns as f64 / signals.elapsed_ns.max(1) as f64;
    (share >= GATE).then_some(share)
}

/// Prints a part of the elapsed time: `4.20 s of 10.00 s elapsed (42%)`.
fn of_elapsed(signals: &Signals, ns: u64) -> String {
    let share = ns as f64 / signals.elapsed_ns.max(1) as f64;
    format!("{} of {} elapsed ({})", Nanos(ns), Nanos(signals.elapsed_ns), percent(share))
}

/// Returns a part of a time as a saving: at most the elapsed time.
fn part(signals: &Signals, ns: u64, share: f64) -> u64 {
    ((ns as f64 * share.clamp(0.0, 1.0)) as u64).min(signals.elapsed_ns)
}

fn lost(signals: &Signals) -> Option<Observed> {
    let snoop = traced(signals).filter(|snoop| snoop.lost() > 0)?;
    let events = total_of(snoop.buffers.iter().map(|buffer| buffer.events));
    let evidence = format!("{} of {} events", count(snoop.lost()), count(events));
    Some(Observed::new("Events were lost", evidence))
}

fn sampled(signals: &Signals) -> Option<Observed> {
    let snoop = signals.trace.as_ref().filter(|snoop| snoop.is_sampled())?;
    let calls = total_of(snoop.calls.iter().map(|row| row.calls));
    let evidence = format!("{} calls without a time each", count(calls));
    Some(Observed::new("The figures are samples, and no rule over times can judge them", evidence))
}

/// Waits for durability: their number, time, and time at the disk.
struct Waits {
    count: u64,
    ns: u64,
    disk_ns: u64,
}

fn waits(snoop: &Snoop) -> Waits {
    // A durable write is a write and a sync in one call.
    let of = |row: &SnoopCalls| if row.effect == "sync" { row.calls } else { row.durable };
    let part = |row: &SnoopCalls, ns: u64| {
        let share = of(row) as f64 / row.calls.max(1) as f64;
        (ns as f64 * share) as u64
    };
    Waits {
        count: total_of(snoop.calls.iter().map(of)),
        ns: total_of(snoop.calls.iter().map(|row| part(row, row.time_ns))),
        disk_ns: total_of(snoop.calls.iter().map(|row| part(row, row.disk_time_ns))),
    }
}

fn syncs(signals: &Signals) -> Option<Observed> {
    let Waits { count: number, ns, disk_ns } = waits(traced(signals)?);
    gated(signals, ns)?;
    let evidence = format!(
        "{} syncs and durable writes of {} on average: {}; {} of it at the disk",
        count(number),
        Nanos(ns / number.max(1)),
        of_elapsed(signals, ns),
        Nanos(disk_ns)
    );
    let seen = Observed::new("The program waits until its writes are durable", evidence);
    Some(seen.saves(part(signals, ns, 1.0)).proved_by(STUDY))
}

fn storm(signals: &Signals) -> Option<Observed> {
    let snoop = traced(signals)?;
    let Waits { count: syncs, ns, .. } = waits(snoop);
    gated(signals, ns).filter(|_| syncs >= SYNCS_MIN)?;
    let writes = || snoop.calls.iter().filter(|row| row.effect == "write");
    let [number, bytes] = [total_of(writes().map(|row| row.calls)), total_of(writes().map(|row| row.bytes))];
    let a_sync = number as f64 / syncs as f64;
    if a_sync > WRITES_A_SYNC || bytes / syncs > BYTES_A_SYNC {
        return None;
    }
    let saves = part(signals, ns, 1.0 - a_sync / WRITES_ADVISED as f64);
    let evidence = format!(
        "{} writes / {} syncs = {a_sync:.1}, {} a sync; with {WRITES_ADVISED} writes a sync at most {} less",
        count(number),
        count(syncs),
        Bytes(bytes / syncs),
        of_elapsed(signals, saves)
    );
    Some(Observed::new("Nearly every write is synced alone", evidence).saves(saves).proved_by(STUDY))
}

/// Returns the disk's time of requests in a direction, with their number.
fn at_disk(snoop: &Snoop, direction: &str) -> [u64; 2] {
    let letter = if direction == "read" { 'R' } else { 'W' };
    // The leading F of `FWS` asks for a flush before the data.
    let is_of = |row: &&SnoopRequests| row.bytes > 0 && row.flags.trim_start_matches('F').starts_with(letter);
    let rows = || snoop.requests.iter().filter(is_of);
    [total_of(rows().map(|row| row.time_ns)), total_of(rows().map(|row| row.requests))]
}

fn read_ahead_of(row: &SnoopAmplification) -> u64 {
    total_of(row.parts.iter().filter(|part| part.how == "read-ahead").map(|part| part.bytes))
}

fn amplified(signals: &Signals) -> Option<Observed> {
    let snoop = traced(signals)?;
    let judged = snoop.amplification.iter().filter_map(|row| {
        // Bytes that were read ahead have a rule of their own.
        let moved = row.disk_bytes.saturating_sub(read_ahead_of(row));
        let times = moved as f64 / row.call_bytes.max(1) as f64;
        let is_much = row.call_bytes > 0 && times >= TIMES_MIN && moved - row.call_bytes >= EXTRA_MIN;
        let [ns, _] = at_disk(snoop, &row.direction);
        gated(signals, ns).filter(|_| is_much)?;
        Some((part(signals, ns, 1.0 - 1.0 / times), row, times, ns))
    });
    let (saves, row, times, ns) = judged.max_by_key(|(saves, ..)| *saves)?;
    let parts: Vec<String> =
        row.parts.iter().map(|part| format!("{} {}", Bytes(part.bytes), part.how)).collect();
    let evidence = format!(
        "{}: {} by calls, {} at the disks ({}), {times:.2} times; {} at the disk",
        row.direction,
        Bytes(row.call_bytes),
        Bytes(row.disk_bytes),
        parts.join(", "),
        of_elapsed(signals, ns)
    );
    let what = format!("The disks {} more than the program asks for", row.direction);
    Some(Observed::new(what, evidence).saves(saves).proved_by(STUDY))
}

fn small(signals: &Signals) -> Option<Observed> {
    let snoop = traced(signals)?;
    let is_small = |row: &&SnoopPattern| row.view == "calls" && row.name.starts_with("small ");
    let judged = snoop.patterns.iter().filter(is_small).filter_map(|pattern| {
        let effect = if pattern.name.ends_with("reads") { "read" } else { "write" };
        let rows = || snoop.calls.iter().filter(|row| row.file == pattern.file && row.effect == effect);
        let [calls, bytes, ns] = [
            total_of(rows().map(|row| row.calls)),
            total_of(rows().map(|row| row.bytes)),
            total_of(rows().map(|row| row.time_ns)),
        ];
        gated(signals, ns).map(|_| (ns, pattern, effect, bytes / calls.max(1)))
    });
    let (ns, pattern, effect, each) = judged.max_by_key(|(ns, ..)| *ns)?;
    let saves = part(signals, ns, 1.0 - each as f64 / LARGE as f64);
    let evidence = format!(
        "{} of {} {effect}s of {} begin where the one before ended, {} each: {}; with {} each at most {} less",
        count(pattern.requests),
        count(pattern.of),
        pattern.file,
        Bytes(each),
        of_elapsed(signals, ns),
        Bytes(LARGE),
        Nanos(saves)
    );
    Some(Observed::new("Sequential requests are small", evidence).saves(saves).proved_by(STUDY))
}

fn read_ahead(signals: &Signals) -> Option<Observed> {
    const TIMES: f64 = 1.5;
    let snoop = traced(signals)?;
    let row = snoop.amplification.iter().find(|row| row.direction == "read" && row.call_bytes > 0)?;
    let (extra, ahead) = (row.disk_bytes.saturating_sub(row.call_bytes), read_ahead_of(row));
    let is_much = row.disk_bytes as f64 >= TIMES * row.call_bytes as f64 && extra >= EXTRA_MIN;
    let [ns, _] = at_disk(snoop, "read");
    gated(signals, ns).filter(|_| is_much && ahead * 2 >= extra)?;
    let saves = part(signals, ns, extra.min(ahead) as f64 / row.disk_bytes.max(1) as f64);
    let evidence = format!(
        "{} by calls, {} at the disks, {} of them read ahead; {} at the disk",
        Bytes(row.call_bytes),
        Bytes(row.disk_bytes),
        Bytes(ahead),
        of_elapsed(signals, ns)
    );
    Some(Observed::new("Blocks are read ahead in vain", evidence).saves(saves).proved_by(STUDY))
}

fn again(signals: &Signals) -> Option<Observed> {
    let snoop = traced(signals)?;
    let [ns, requests] = at_disk(snoop, "write");
    gated(signals, ns)?;
    let is_again = |row: &&SnoopPattern| row.view == "disk" && row.name == "one block written again";
    let found = snoop.patterns.iter().filter(is_again).max_by_key(|row| row.requests)?;
    let share = found.requests as f64 / requests.max(1) as f64;
    let saves = part(signals, ns, share);
    let evidence = format!(
        "{}: {}, {} of {} writes; writes are {} at the disk",
        found.file,
        found.arithmetic,
        count(found.requests),
        count(found.of),
        of_elapsed(signals, ns)
    );
    Some(Observed::new("One block is written again and again", evidence).saves(saves).proved_by(STUDY))
}

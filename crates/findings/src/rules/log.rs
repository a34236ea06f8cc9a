//! The log: writes, commits, switches, and the room in it.

use super::{
    EVENT_GATE, OWN, TGDBA, average, count, is_io_bound, own_waits, own_waits_less, percent, waited,
};
use crate::rule::{FindingRule, Observed, Rank};
use crate::signals::{Medium, Origin, Signals};
use plumb_record::WaitEvent;
use plumb_units::{Nanos, total_of};

/// MOS note 1376916.1, numbers by sateeshv-dbainfo.blogspot.com, August 2015.
const MOS: &str = "MOS 1376916.1";
const MS: u64 = 1_000_000;

pub(super) const RULES: &[FindingRule] = &[
    FindingRule {
        id: "R6",
        rank: Rank::Saving,
        signal: "log file parallel write, average",
        threshold: "over 20 ms; over 5 ms on flash (own)",
        origin: MOS,
        caveat: "small and large log writes take different times",
        advice: "look at the device of the log: other users of it, its write cache, its stripe",
        judge: slow_writes,
    },
    FindingRule {
        id: "R7",
        rank: Rank::Saving,
        signal: "log file sync, average, over that of log file parallel write",
        threshold: "over 3",
        origin: MOS,
        caveat: "a ratio of averages proves no cause: one write serves many commits",
        advice: "the rest is not the device: look at the processors, and at the number of commits at once",
        judge: sync_over_write,
    },
    FindingRule {
        id: "R8",
        rank: Rank::Saving,
        signal: "user calls or rows of a commit",
        threshold: "below 30, with commits above 15% of DB time",
        origin: MOS,
        caveat: "short transactions are the nature of some applications",
        advice: "commit more at once",
        judge: commits_often,
    },
    FindingRule {
        id: "R9",
        rank: Rank::Remark,
        signal: "log switches an hour",
        threshold: "over 4; over 12 is critical",
        origin: "MOS 1376916.1; Oracle Siebel guide E14004_01: one in 10 to 15 minutes",
        caveat: "a batch has its own peak",
        advice: "larger log files",
        judge: switches,
    },
    FindingRule {
        id: "R10",
        rank: Rank::Saving,
        signal: "log file switch (checkpoint incomplete) of DB time",
        threshold: "from 5% on; critical from 50% on",
        origin: "Oracle Enterprise Manager metric reference E16282",
        caveat: "a short run with small log files waits at its end",
        advice: "more or larger log files, or database writers that write faster",
        judge: checkpoint_incomplete,
    },
    FindingRule {
        id: "R11",
        rank: Rank::Saving,
        signal: "log file switch (archiving needed) of DB time",
        threshold: "over 1%",
        origin: TGDBA,
        caveat: "often a full archive destination, and no matter of I/O",
        advice: "room or a faster device for the archives, or more log files",
        judge: archiving_needed,
    },
    FindingRule {
        id: "R12",
        rank: Rank::Saving,
        signal: "log buffer space of DB time",
        threshold: "over 1%",
        origin: "Oracle Reference, log buffer space; the number is own",
        caveat: "the buffer itself is seldom too small since 10g",
        advice: "the log is written more slowly than it is made: a faster device for it, or a larger log_buffer",
        judge: buffer_space,
    },
    FindingRule {
        id: "L3",
        rank: Rank::Remark,
        signal: "log writes through the page cache",
        threshold: "log file waits above 15% of DB time, log files not opened for direct I/O",
        origin: OWN,
        caveat: "",
        advice: "log_file_io=direct writes whole log blocks past the page cache",
        judge: buffered,
    },
    FindingRule {
        id: "R29",
        rank: Rank::Remark,
        signal: "Data Guard events in the background, with log file sync",
        threshold: "over 5% of DB time",
        origin: "event names differ by release; from memory",
        caveat: "",
        advice: "commits wait for the standby: look at its network and its log device",
        judge: data_guard,
    },
];

const SYNC: &str = "log file sync";
const WRITE: &str = "log file parallel write";

/// Sums an event's waits of the foreground and the background.
fn all_waits(signals: &Signals, event: &str) -> Option<WaitEvent> {
    let mut waits = signals.any_wait(event);
    let first = waits.next()?.clone();
    Some(waits.fold(first, |mut sum, next| {
        sum.waits += next.waits;
        sum.time_ns += next.time_ns;
        sum
    }))
}

/// Time of foreground sessions in commits: waits for the log, and writes of it. In a server one
/// process writes, and sessions wait for it: that is one time and is counted once.
fn commit_ns(signals: &Signals) -> u64 {
    if signals.origin == Origin::Import {
        return signals.wait(SYNC).map_or(0, |sync| sync.time_ns);
    }
    total_of([SYNC, WRITE].into_iter().filter_map(|event| Some(signals.wait(event)?.time_ns)))
}

fn slow_writes(signals: &Signals) -> Option<Observed> {
    const WRITES_MIN: u64 = 20;
    let write = all_waits(signals, WRITE).filter(|write| write.waits >= WRITES_MIN)?;
    let limit = if signals.medium == Some(Medium::Flash) { 5 * MS } else { 20 * MS };
    let waiting = commit_ns(signals);
    if average(&write).0 <= limit || signals.share(waiting) < EVENT_GATE || !is_io_bound(signals) {
        return None;
    }
    let saves = (waiting as f64 * (1.0 - limit as f64 / average(&write).0 as f64)) as u64;
    let evidence = format!(
        "{} writes of {} on average, expected at most {}; sessions wait {} for commits; at {} a write {}",
        count(write.waits),
        average(&write),
        Nanos(limit),
        Nanos(waiting),
        Nanos(limit),
        own_waits_less(signals, saves)
    );
    Some(Observed::new("Log writes are slow", evidence).saves(saves).proved_by(sync_study(signals)))
}

fn sync_study(signals: &Signals) -> String {
    if signals.uses.log { signals.study("log_sync_method=fdatasync,open_datasync") } else { String::new() }
}

fn sync_over_write(signals: &Signals) -> Option<Observed> {
    const RATIO_MAX: f64 = 3.0;
    let sync = signals.wait(SYNC).filter(|sync| signals.share(sync.time_ns) >= EVENT_GATE)?;
    let write = all_waits(signals, WRITE)?;
    let ratio = average(sync).0 as f64 / average(&write).0.max(1) as f64;
    if ratio <= RATIO_MAX || !is_io_bound(signals) {
        return None;
    }
    let saves = sync.time_ns.saturating_sub(sync.waits * average(&write).0);
    let evidence = format!(
        "log file sync {} over log file parallel write {} is {ratio:.1}; with one write each {}",
        average(sync),
        average(&write),
        own_waits_less(signals, saves)
    );
    Some(Observed::new("Commits wait longer than their log writes take", evidence).saves(saves))
}

fn commits_often(signals: &Signals) -> Option<Observed> {
    const CALLS_MIN: f64 = 30.0;
    let commits = signals.log.commits.filter(|commits| *commits > 0)?;
    let calls = signals.log.calls? as f64 / commits as f64;
    let waiting = commit_ns(signals);
    if calls >= CALLS_MIN || signals.share(waiting) <= 0.15 {
        return None;
    }
    let saves = (waiting as f64 * (1.0 - calls / CALLS_MIN)) as u64;
    let evidence = format!(
        "{calls:.1} calls or rows of each of {} transactions; {} waiting for the log; at 30 each {}",
        count(commits),
        Nanos(waiting),
        own_waits_less(signals, saves)
    );
    let seen = Observed::new("Transactions are small, and their commits cost", evidence).saves(saves);
    Some(match signals.workload.as_deref() {
        Some("redo") => seen
            .advise("commit more rows at once: a larger --buffer")
            .proved_by("plumb study redo --factor buffer=1K,64K"),
        _ => seen,
    })
}

fn switches(signals: &Signals) -> Option<Observed> {
    const SHORTEST_NS: u64 = 600_000_000_000;
    let switches = signals.log.switches.filter(|_| signals.elapsed_ns >= SHORTEST_NS)?;
    let per_hour = switches as f64 * 3600e9 / signals.elapsed_ns as f64;
    (is_io_bound(signals) && per_hour > 4.0).then(|| {
        let how = if per_hour > 12.0 { "far too often" } else { "often" };
        let minutes = 60.0 / per_hour;
        let evidence = format!(
            "{} switches in {}: one in {minutes:.1} minutes",
            count(switches),
            Nanos(signals.elapsed_ns)
        );
        let size = signals.setting("log_file_size");
        let seen = Observed::new(format!("Log files are switched {how}"), evidence);
        if size.is_empty() {
            seen
        } else {
            seen.advise(format!("a log_file_size above {}", size.to_uppercase()))
        }
    })
}

fn over(signals: &Signals, event: &str, least: f64) -> Option<(String, u64)> {
    let wait = signals.wait(event).filter(|wait| signals.share(wait.time_ns) > least)?;
    is_io_bound(signals).then_some(())?;
    let evidence = format!("{}; {}", waited(signals, wait), own_waits(signals, wait.time_ns));
    Some((evidence, wait.time_ns))
}

fn checkpoint_incomplete(signals: &Signals) -> Option<Observed> {
    let (evidence, ns) = over(signals, "log file switch (checkpoint incomplete)", EVENT_GATE)?;
    let what = if signals.share(ns) >= 0.5 { "mostly wait" } else { "wait" };
    let seen = Observed::new(format!("Sessions {what} for checkpoints that give log files back"), evidence)
        .saves(ns);
    Some(seen.proved_by(log_size_study(signals)))
}

fn log_size_study(signals: &Signals) -> String {
    if signals.uses.log { signals.study("log_file_size=64M,512M") } else { String::new() }
}

fn archiving_needed(signals: &Signals) -> Option<Observed> {
    let (evidence, ns) = over(signals, "log file switch (archiving needed)", 0.01)?;
    Some(
        Observed::new("Sessions wait for the archiver", evidence)
            .saves(ns)
            .proved_by(log_size_study(signals)),
    )
}

fn buffer_space(signals: &Signals) -> Option<Observed> {
    let (evidence, ns) = over(signals, "log buffer space", 0.01)?;
    let study = if signals.uses.log { signals.study("log_buffer=8M,64M") } else { String::new() };
    Some(Observed::new("Sessions wait for room in the log buffer", evidence).saves(ns).proved_by(study))
}

fn buffered(signals: &Signals) -> Option<Observed> {
    let waiting = commit_ns(signals);
    let is_buffered = signals.log.direct == Some(false);
    (is_buffered && is_io_bound(signals) && signals.share(waiting) > 0.15).then(|| {
        let evidence = format!("log file waits are {} of DB time", percent(signals.share(waiting)));
        Observed::new("Log files are written through the page cache", evidence)
            .proved_by(signals.study("log_file_io=buffered,direct"))
    })
}

fn data_guard(signals: &Signals) -> Option<Observed> {
    let is_remote = |event: &str| {
        ["SYNC Remote Write", "LGWR-LNS wait", "Redo Transport"].iter().any(|name| event.starts_with(name))
    };
    let remote: Vec<&WaitEvent> =
        signals.waits.iter().chain(&signals.background).filter(|wait| is_remote(&wait.event)).collect();
    let ns = total_of(remote.iter().map(|wait| wait.time_ns));
    signals.wait(SYNC).filter(|_| signals.share(ns) > EVENT_GATE)?;
    let each = remote.iter().map(|wait| format!("{} {}", wait.event, Nanos(wait.time_ns)));
    Some(Observed::new("Commits wait for a standby database", each.collect::<Vec<_>>().join("; ")))
}

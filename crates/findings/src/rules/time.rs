//! Rules of the time model: I/O or not, processors, the top event, contention.

use super::{
    EVENT_GATE, IO_GATE, OWN, TGDBA, at_most, average, count, is_io_bound, own_waits, percent, waited,
};
use crate::rule::{FindingRule, Observed, Rank};
use crate::signals::{Origin, Signals};
use plumb_record::WaitEvent;
use plumb_units::{Nanos, total_of};

pub(super) const RULES: &[FindingRule] = &[
    FindingRule {
        id: "G1",
        rank: Rank::Remark,
        signal: "User I/O, foreground System I/O and Commit, of DB time",
        threshold: "below 10%, and another class of waits above 30%",
        origin: "Oracle Performance Tuning Guide: time model; the number is own",
        caveat: "",
        advice: "storage settings will change little here: look at that class first",
        judge: not_storage,
    },
    FindingRule {
        id: "G3",
        rank: Rank::Saving,
        signal: "busy processors, load average, run queue, resmgr:cpu quantum",
        threshold: "over 90% busy, load above the processors, or queueing above 10% of DB time",
        origin: "asktom.oracle.com 9478011800346563145",
        caveat: "I/O wait is idle time and no proof of a slow disk",
        advice: "fix the processors first: waits include time in the run queue",
        judge: processors,
    },
    FindingRule {
        id: "G4",
        rank: Rank::Saving,
        signal: "CPU and waits as a share of DB time",
        threshold: "below 80%, or above 120%: of reports only",
        origin: OWN,
        caveat: "some calls of the operating system have no wait event",
        advice: "look at the host's run queue and paging in the interval: Oracle times neither",
        judge: captured,
    },
    FindingRule {
        id: "R24",
        rank: Rank::Saving,
        signal: "CPU of DB time, that inside waits included",
        threshold: "from 70% on; of reports from 50% on, where no class of waits is larger",
        origin: TGDBA,
        caveat: "DB CPU excludes time in the run queue",
        advice: "storage settings will change little here; more processors would",
        judge: cpu,
    },
    FindingRule {
        id: "R5",
        rank: Rank::Saving,
        signal: "share of the largest event in DB time",
        threshold: "db file sequential read 30%, scattered 25%, direct path read 20%, log file sync and parallel write 15%",
        origin: "github.com/pcambell/awrrptanalyzor",
        caveat: "a large share is a candidate, not a fault",
        advice: "",
        judge: top_event,
    },
    FindingRule {
        id: "L1",
        rank: Rank::Saving,
        signal: "latch waits of DB time",
        threshold: "over 5%",
        origin: OWN,
        caveat: "a busy processor lengthens every latch wait",
        advice: "many sessions meet at one place in memory: fewer sessions, or work spread over more blocks",
        judge: latches,
    },
    FindingRule {
        id: "L2",
        rank: Rank::Saving,
        signal: "enq: TX, enq: TM of DB time",
        threshold: "over 5%",
        origin: "askmac.cn",
        caveat: "",
        advice: "sessions change the same rows: shorter transactions, or an order of changes that all keep",
        judge: row_locks,
    },
];

/// Events with the share of DB time from which on they are named.
const CANDIDATES: [(&str, f64); 11] = [
    ("db file sequential read", 0.30),
    ("db file scattered read", 0.25),
    ("cell single block physical read", 0.20),
    ("cell multiblock physical read", 0.25),
    ("cell smart table scan", 0.25),
    ("direct path read", 0.20),
    ("direct path write", 0.20),
    ("db file parallel read", 0.25),
    ("external table read", 0.30),
    ("log file sync", 0.15),
    ("log file parallel write", 0.15),
];

fn not_storage(signals: &Signals) -> Option<Observed> {
    let io = signals.class_share(&["User I/O", "System I/O", "Commit"]);
    // Storage may be among the events of an unknown class.
    const UNKNOWN_MOST: f64 = 0.20;
    if io >= IO_GATE || signals.db_time() == 0 || signals.unknown_share() > UNKNOWN_MOST {
        return None;
    }
    let is_other = |class: &str| !["User I/O", "System I/O", "Commit", "unknown"].contains(&class);
    let classes = signals.classes().into_iter().filter(|(class, _)| is_other(class));
    let (class, ns) = classes.max_by_key(|(_, ns)| *ns)?;
    (signals.share(ns) > 0.30).then(|| {
        Observed::new(
            format!("Sessions wait for {class}, not for storage"),
            format!(
                "I/O and commits are {} of DB time, {class} is {}",
                percent(io),
                percent(signals.share(ns))
            ),
        )
    })
}

fn processors(signals: &Signals) -> Option<Observed> {
    let host = &signals.host;
    // The doubt about others on the processors has been stated already.
    let others = signals.run.as_ref().is_some_and(|run| run.shared_processors);
    if others && signals.share(host.run_queue_ns.unwrap_or(0)) <= 0.10 {
        return None;
    }
    let mut seen = Vec::new();
    seen.extend(
        host.busy.filter(|busy| *busy > 0.90).map(|busy| format!("the host was {} busy", percent(busy))),
    );
    // A load average of one minute says nothing of a shorter run.
    let is_long = signals.elapsed_ns >= 60_000_000_000;
    let loaded = host.load.zip(host.cpus).filter(|(load, cpus)| is_long && load > cpus);
    seen.extend(loaded.map(|(load, cpus)| format!("load average {load:.1} on {cpus} processors")));
    let queued = host.run_queue_ns.unwrap_or(0);
    if signals.share(queued) > 0.10 {
        let share = percent(signals.share(queued));
        seen.push(format!("sessions queued {} for a processor, {share} of DB time", Nanos(queued)));
    }
    let managed = signals.wait("resmgr:cpu quantum").filter(|wait| signals.share(wait.time_ns) > EVENT_GATE);
    seen.extend(managed.map(|wait| format!("resmgr:cpu quantum: {}", waited(signals, wait))));
    let mut saves = queued + managed.map_or(0, |wait| wait.time_ns);
    (!seen.is_empty()).then_some(())?;
    if signals.origin == Origin::Run {
        return Some(Observed::new("Sessions queue for the processors", seen.join("; ")).saves(saves));
    }
    // Oracle times no run queue: it is part of the waits, or of no class at all.
    if let Some(lost) = signals.captured().map(|share| 1.0 - share).filter(|lost| *lost > 0.05) {
        saves += (lost * signals.db_time() as f64) as u64;
        seen.push(format!("{} of DB time is neither CPU nor a wait", percent(lost)));
    }
    // Hardware is no advice before this one.
    Some(Observed::new("Sessions queue for the processors", seen.join("; ")).saves(saves).ranked(Rank::Doubt))
}

/// Says how much of DB time a report accounts for, where no full host explains the rest.
fn captured(signals: &Signals) -> Option<Observed> {
    let share = signals.captured().filter(|_| signals.origin == Origin::Import)?;
    if share > 1.20 {
        let evidence = format!(
            "CPU and waits are {} of DB time: a session may have several requests at once, and each wait counts",
            percent(share)
        );
        let advice = "shares of waits are of the requests' time, not of the sessions': they are upper bounds";
        let seen = Observed::new("Waits for asynchronous requests overlap", evidence);
        return Some(seen.advise(advice).ranked(Rank::Remark));
    }
    if share >= 0.80 || processors(signals).is_some() {
        return None;
    }
    let lost = ((1.0 - share) * signals.db_time() as f64) as u64;
    let what = format!("{} of DB time is neither CPU nor a wait", percent(1.0 - share));
    let evidence = format!("CPU and waits are {} of {} DB time", percent(share), Nanos(signals.db_time()));
    Some(Observed::new(what, evidence).saves(lost))
}

fn cpu(signals: &Signals) -> Option<Observed> {
    let run = signals.run.as_ref();
    if run.is_some_and(|run| run.did_nothing) {
        return None;
    }
    // Waits use processor time, too: a buffered read is a copy.
    let used = run.map(|run| run.cpu_ns).filter(|ns| *ns > 0).or(signals.db_cpu_ns)?;
    let share = signals.share(used);
    if share < 0.70 && signals.origin == Origin::Import {
        return largest(signals, share);
    }
    if share < 0.70 || at_limit(signals) {
        return None;
    }
    let reached = signals.reached.iter().max_by(|one, two| one.share.total_cmp(&two.share));
    let reached = reached.map_or(String::new(), |reached| {
        format!("; {} reached {} of {}", reached.what, percent(reached.share), reached.limit)
    });
    // Without any wait the work would still take the time of its CPU.
    let waits = (1.0 - share).max(0.0);
    let evidence = format!(
        "CPU is {} of DB time; storage without any wait would save at most {}{reached}",
        percent(share),
        percent(waits)
    );
    let advice = match run {
        Some(run) if run.quota => {
            "storage settings will change little here; a larger CPU quota would, and more processors would not"
        }
        Some(run) if run.shared_processors => {
            "others had part of the processors: repeat it without them before you add any"
        }
        _ => "",
    };
    Some(Observed::new("The work is bound by the processors, not by the storage", evidence).advise(advice))
}

/// Says that a reported system computes more than it waits for any class of events.
fn largest(signals: &Signals, share: f64) -> Option<Observed> {
    let (class, ns) = signals.classes().into_iter().max_by_key(|(_, ns)| *ns)?;
    (share >= 0.50 && share > signals.share(ns)).then(|| {
        let evidence = format!("the largest class of waits, {class}, is {}", percent(signals.share(ns)));
        Observed::new(format!("CPU is {} of DB time", percent(share)), evidence)
            .advise("statements that compute less come first: fewer blocks read from the cache, fewer parses")
    })
}

/// True if a device's limit explains the time.
fn at_limit(signals: &Signals) -> bool {
    signals.reached.iter().any(|reached| reached.share >= super::reads::LIMIT_SHARE)
}

fn top_event(signals: &Signals) -> Option<Observed> {
    // A few waits have no average to speak of.
    const WAITS_MIN: u64 = 20;
    let is_named = |wait: &&WaitEvent| {
        let candidate = CANDIDATES.iter().find(|(event, _)| *event == wait.event);
        let is_large = candidate.is_some_and(|(_, share)| signals.share(wait.time_ns) > *share);
        is_large && wait.waits >= WAITS_MIN
    };
    let wait = signals.waits.iter().filter(is_named).max_by_key(|wait| wait.time_ns)?;
    if !is_io_bound(signals) {
        return None;
    }
    let mut evidence = waited(signals, wait);
    let mut saves = wait.time_ns;
    let floor = signals.device_read_ns.filter(|_| wait.event == "db file sequential read");
    if let Some(floor) = floor.filter(|floor| *floor < average(wait).0) {
        let at_floor = (average(wait).0 - floor) * wait.waits;
        evidence.push_str(&format!(
            "; the device alone answers in {}: storage at that speed would save {}, a cache that has the blocks all of it",
            Nanos(floor),
            at_most(signals, at_floor)
        ));
    } else {
        saves = wait.time_ns;
        evidence.push_str(&format!("; {}", own_waits(signals, saves)));
    }
    let (advice, mut factor) = match signals.origin {
        Origin::Run => advice_of(signals, &wait.event),
        Origin::Import => (advice_of_reports(&wait.event), ""),
    };
    if wait.event.starts_with("log file") && signals.workload.as_deref() == Some("redo") {
        factor = "buffer=1K,64K";
    }
    let study = if factor.is_empty() { String::new() } else { signals.study(factor) };
    let what = format!("{} is {} of DB time", wait.event, percent(signals.share(wait.time_ns)));
    Some(Observed::new(what, evidence).advise(advice).saves(saves).proved_by(study))
}

/// Returns advice for an event of a server, by that server's own means.
fn advice_of_reports(event: &str) -> &'static str {
    match event {
        "db file sequential read" | "cell single block physical read" => {
            "statements that read less, a larger buffer cache, or a faster device"
        }
        "db file parallel read" => {
            "each wait is for a batch of single blocks: a larger buffer cache, or a device that takes more requests at once"
        }
        "db file scattered read" | "cell multiblock physical read" => {
            "fewer full scans, or a device that reads more MB/s"
        }
        "direct path read" => "fewer or smaller scans, or a device that reads more MB/s",
        "log file sync" => "fewer commits, or a device with a shorter sync for the log",
        _ => "a faster device, or fewer requests",
    }
}

/// Returns advice for an event, and the factor of the study that would prove it.
fn advice_of(signals: &Signals, event: &str) -> (&'static str, &'static str) {
    match event {
        "db file sequential read" if signals.uses.cache => (
            "a larger db_cache_size keeps more of these blocks; else more sessions at once, or a faster device",
            "db_cache_size=16M,256M",
        ),
        "db file sequential read" => ("a faster device, or fewer reads", ""),
        // A wait is for a batch of single blocks, so that its average is no latency of a read.
        "db file parallel read" => (
            "each wait is for a batch of single blocks: a cache that has them, or a device that takes more requests at once",
            if signals.uses.cache { "db_cache_size=16M,256M" } else { "" },
        ),
        "db file scattered read" => (
            "larger requests (db_file_multiblock_read_count) where the device takes them, or a cache that has the table",
            "db_file_multiblock_read_count=16,128",
        ),
        "direct path read" => (
            "more requests at once (io_method, scan_read_ahead), or a device that reads faster",
            "filesystemio_options=directio,setall",
        ),
        "direct path write" => {
            ("more requests at once, or a device that writes faster", "filesystemio_options=directio,setall")
        }
        "log file sync" | "log file parallel write" => (
            "commit more rows at once, a device with a shorter sync for the log, or another log_sync_method",
            "log_sync_method=fdatasync,open_datasync",
        ),
        _ => ("a faster device, or fewer requests", ""),
    }
}

fn contention(signals: &Signals, events: &[&str], least: f64) -> Option<(String, u64)> {
    let waits: Vec<&WaitEvent> = events.iter().filter_map(|event| signals.wait(event)).collect();
    let ns = total_of(waits.iter().map(|wait| wait.time_ns));
    if signals.share(ns) <= least {
        return None;
    }
    let each = waits.iter().map(|wait| format!("{}: {}", wait.event, waited(signals, wait)));
    let each = each.collect::<Vec<_>>().join("; ");
    Some((format!("{each}; {}", own_waits(signals, ns)), ns))
}

fn latches(signals: &Signals) -> Option<Observed> {
    let events =
        ["latch free", "latch: cache buffers chains", "latch: shared pool", "latch: redo allocation"];
    let (evidence, ns) = contention(signals, &events, EVENT_GATE)?;
    let reads_log = signals.origin == Origin::Run && signals.wait("latch free").is_some();
    let advice = if reads_log && signals.share(signals.wait("latch free")?.time_ns) > EVENT_GATE {
        "statements read old row versions from the log, one session at a time: shorter statements, or a larger log"
    } else {
        ""
    };
    Some(Observed::new("Sessions wait for each other's latches", evidence).advise(advice).saves(ns))
}

fn row_locks(signals: &Signals) -> Option<Observed> {
    let events = ["enq: TX - row lock contention", "enq: TX - contention", "enq: TM - contention"];
    let (evidence, ns) = contention(signals, &events, EVENT_GATE)?;
    let commits = signals.log.commits.filter(|commits| *commits > 0);
    let commits = commits.map_or(String::new(), |commits| format!("; {} transactions", count(commits)));
    Some(Observed::new("Sessions wait for rows that others have changed", evidence + &commits).saves(ns))
}

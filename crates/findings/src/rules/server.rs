//! Signals that only a server's report has.

use super::{EVENT_GATE, OWN, TGDBA, at_most, is_io_bound, percent};
use crate::rule::{FindingRule, Observed, Rank};
use crate::signals::{Origin, Signals};
use plumb_record::WaitEvent;
use plumb_units::{Nanos, total_of};

pub(super) const RULES: &[FindingRule] = &[
    FindingRule {
        id: "R23",
        rank: Rank::Saving,
        signal: "control file sequential read and parallel write, foreground and background",
        threshold: "over 5% of their time and DB time",
        origin: "Oracle Performance Tuning Guide; the number is own",
        caveat: "large counts are normal on RAC",
        advice: "fewer log switches and checkpoints, or a faster device for control files",
        judge: control_files,
    },
    FindingRule {
        id: "R26",
        rank: Rank::Remark,
        signal: "SQL ordered by Reads: the first five",
        threshold: "over 50% of the reads",
        origin: TGDBA,
        caveat: "a block of PL/SQL has the reads of its statements, too",
        advice: "tune these statements before the storage",
        judge: few_statements,
    },
    FindingRule {
        id: "R27",
        rank: Rank::Doubt,
        signal: "RMAN and Data Pump, of the bytes of IOStat by Function",
        threshold: "over 30%",
        origin: OWN,
        caveat: "scrubbing of Exadata cells is counted so",
        advice: "compare with an interval without a backup",
        judge: backup,
    },
    FindingRule {
        id: "R28",
        rank: Rank::Saving,
        signal: "gc waits of DB time",
        threshold: "blocks lost over 1%, gc buffer busy over 5%",
        origin: TGDBA,
        caveat: "",
        advice: "the interconnect or a hot block, not the disk",
        judge: cluster,
    },
    FindingRule {
        id: "R30",
        rank: Rank::Remark,
        signal: "filesystemio_options, disk_asynch_io, dbwr_io_slaves",
        threshold: "NONE or ASYNCH on a file system, FALSE, or any",
        origin: TGDBA,
        caveat: "ASM and Exadata ignore filesystemio_options",
        advice: "filesystemio_options=SETALL avoids a second cache and lets writers overlap their requests",
        judge: settings,
    },
];

fn control_files(signals: &Signals) -> Option<Observed> {
    let events = ["control file sequential read", "control file parallel write"];
    let waits: Vec<&WaitEvent> = events.into_iter().flat_map(|event| signals.any_wait(event)).collect();
    let ns = total_of(waits.iter().map(|wait| wait.time_ns));
    let whole = signals.db_time() + total_of(signals.background.iter().map(|wait| wait.time_ns));
    let share = ns as f64 / whole.max(1) as f64;
    (share > EVENT_GATE && is_io_bound(signals)).then(|| {
        let in_front = total_of(events.into_iter().filter_map(|event| Some(signals.wait(event)?.time_ns)));
        let evidence = format!(
            "{} of control file I/O, {} of foreground and background time; sessions wait: {}",
            Nanos(ns),
            percent(share),
            at_most(signals, in_front)
        );
        Observed::new("Control files are busy", evidence).saves(in_front)
    })
}

fn few_statements(signals: &Signals) -> Option<Observed> {
    let [largest, most] = signals.server.top_sql_reads.filter(|[_, most]| *most > 0.5)?;
    is_io_bound(signals).then(|| {
        let [largest, most] = [largest, most].map(percent);
        let evidence = format!("the largest makes {largest} of all reads, the five together at most {most}");
        Observed::new("Five statements make most of the reads", evidence)
    })
}

fn backup(signals: &Signals) -> Option<Observed> {
    let counted = || {
        let bytes = |name: Option<&str>| {
            let of = signals.functions.iter().filter(|(known, _)| name.is_none_or(|name| known == name));
            total_of(of.map(|(_, [reads, writes])| reads.bytes + writes.bytes))
        };
        let own = bytes(Some("RMAN")) + bytes(Some("Data Pump"));
        (own > 0).then(|| own as f64 / bytes(None).max(1) as f64)
    };
    let share = signals.server.backup_bytes.or_else(counted).filter(|share| *share > 0.3)?;
    Some(Observed::new("A backup ran in the interval", format!("{} of the bytes moved", percent(share))))
}

fn cluster(signals: &Signals) -> Option<Observed> {
    let share = |events: &[&str]| {
        let of = signals.waits.iter().filter(|wait| events.iter().any(|event| wait.event.starts_with(event)));
        let ns = total_of(of.map(|wait| wait.time_ns));
        (ns, signals.share(ns))
    };
    let lost = share(&["gc cr block lost", "gc current block lost"]);
    let busy = share(&["gc buffer busy"]);
    if lost.1 <= 0.01 && busy.1 <= EVENT_GATE {
        return None;
    }
    let ns = lost.0 + busy.0;
    let evidence = format!(
        "blocks lost {}, gc buffer busy {} of DB time: {}",
        percent(lost.1),
        percent(busy.1),
        at_most(signals, ns)
    );
    Some(Observed::new("Instances wait for each other's blocks", evidence).saves(ns))
}

fn settings(signals: &Signals) -> Option<Observed> {
    if signals.origin == Origin::Run || signals.server.asm || !is_io_bound(signals) {
        return None;
    }
    let mut seen = Vec::new();
    let options = signals.setting("filesystemio_options");
    if ["none", "asynch"].contains(&options.as_str()) {
        seen.push(format!("filesystemio_options = {}", options.to_uppercase()));
    }
    if signals.setting("disk_asynch_io") == "false" {
        seen.push("disk_asynch_io = FALSE".to_string());
    }
    let slaves = signals.setting("dbwr_io_slaves");
    if !slaves.is_empty() && slaves != "0" {
        seen.push(format!("dbwr_io_slaves = {slaves}"));
    }
    (!seen.is_empty())
        .then(|| Observed::new("Settings keep I/O from overlapping or cache it twice", seen.join("; ")))
}

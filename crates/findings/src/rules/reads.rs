//! Reads: latency by event and by tablespace, sizes of requests, limits of the device.

use super::{EVENT_GATE, OWN, TDPPT, at_most, average, count, is_io_bound, percent, waited};
use crate::rule::{FindingRule, Observed, Rank};
use crate::signals::{Medium, Origin, Signals, TablespaceIo};
use plumb_record::{IoTally, WaitEvent};
use plumb_units::{Bytes, Nanos, total_of};

const MS: u64 = 1_000_000;
/// HP and Oracle, configuration guide, page 15; Maclean's AWR guide.
const GUIDES: &str = "HP/Oracle guide, page 15; Maclean's AWR guide";
/// Share of a limit from which on it explains the rate.
pub(super) const LIMIT_SHARE: f64 = 0.80;

pub(super) const RULES: &[FindingRule] = &[
    FindingRule {
        id: "R1",
        rank: Rank::Saving,
        signal: "db file sequential read, average",
        threshold: "over 10 ms, critical over 20 ms; over 2 ms on flash, 1 ms on Exadata (own); 1,000 waits",
        origin: TDPPT,
        caveat: "reads that a cache answers hide slow ones",
        advice: "compare it with the device alone (plumb calibrate); look for other users of the device and its queue",
        judge: single_blocks,
    },
    FindingRule {
        id: "R2",
        rank: Rank::Saving,
        signal: "histogram of db file sequential read",
        threshold: "over 5% of the waits above 16 ms, or two humps",
        origin: "flashdba.com, When Averages Lie, 2014",
        caveat: "a histogram of all sessions mixes foreground and background",
        advice: "the tail has a cause of its own: a slower tier, a queue, a neighbour; a trace shows which requests",
        judge: tail,
    },
    FindingRule {
        id: "R3",
        rank: Rank::Saving,
        signal: "db file scattered read, direct path read, average",
        threshold: "over 15 ms; over 20 ms direct",
        origin: GUIDES,
        caveat: "the time grows with the size of a request: never compare it with reads of one block",
        advice: "judge by MB/s: many large requests at once queue",
        judge: several_blocks,
    },
    FindingRule {
        id: "R4",
        rank: Rank::Remark,
        signal: "requests of a direct read, over its waits",
        threshold: "over 1.5, with 20% of DB time",
        origin: "Oracle Reference, direct path read",
        caveat: "",
        advice: "do not judge it by its average: take requests from IOStat by Function",
        judge: waits_are_not_requests,
    },
    FindingRule {
        id: "R15",
        rank: Rank::Saving,
        signal: "read by other session of DB time",
        threshold: "over 2%",
        origin: "Oracle Reference, read by other session; the number is own",
        caveat: "a symptom of slow reads",
        advice: "many sessions read the same blocks at once: a larger cache, or scans that do not start together",
        judge: read_by_others,
    },
    FindingRule {
        id: "R17",
        rank: Rank::Saving,
        signal: "direct path read temp and write temp of DB time",
        threshold: "over 5%; over 25% of a sort that this program ran",
        origin: "Oracle Reference, direct path read temp; the number is own",
        caveat: "an average wait is no I/O time; a few large sorts may be right so",
        advice: "more memory for sorts and hash joins",
        judge: temp,
    },
    FindingRule {
        id: "R18",
        rank: Rank::Saving,
        signal: "Av Rd of a tablespace",
        threshold: "over 20 ms with more than 10 reads a second",
        origin: "Maclean's AWR guide; the gate is own",
        caveat: "columns are swapped in 11.2.0.4, and absent or wrong from 12c on",
        advice: "a hot file or a slow tier: compare it with the other tablespaces at the same request size",
        judge: slow_tablespace,
    },
    FindingRule {
        id: "T3",
        rank: Rank::Remark,
        signal: "time of a KB read from the tablespace with most read time",
        threshold: "for comparing: of reports without DB time",
        origin: OWN,
        caveat: "blocks that a device's cache holds answer faster",
        advice: "compare the time of a KB with that of other systems, not the time of a read",
        judge: largest_tablespace,
    },
    FindingRule {
        id: "T1",
        rank: Rank::Saving,
        signal: "time of reads of one size in two tablespaces",
        threshold: "twice as long, 1,000 reads each",
        origin: OWN,
        caveat: "blocks that a device's cache holds answer faster",
        advice: "both read the same size: put the slower one where the faster one is",
        judge: unlike_tablespaces,
    },
    FindingRule {
        id: "T2",
        rank: Rank::Remark,
        signal: "reads of one block from the temporary tablespace",
        threshold: "over 100,000",
        origin: "a report with 1,773,780 of them, its largest count",
        caveat: "",
        advice: "a merge in several passes, or a hash join that spills: more memory for it, or larger requests",
        judge: small_temp_reads,
    },
    FindingRule {
        id: "R19",
        rank: Rank::Remark,
        signal: "reads of several blocks, of all",
        threshold: "for choosing a test: of reports only",
        origin: OWN,
        caveat: "smart scans of Exadata are not in it",
        advice: "test a storage with this mix",
        judge: mix,
    },
    FindingRule {
        id: "R20",
        rank: Rank::Saving,
        signal: "rate, of the device's own at the same size",
        threshold: "from 80% on",
        origin: OWN,
        caveat: "averages hide peaks, and a calibration may read from a cache",
        advice: "a faster device helps this part; more memory or servers do not",
        judge: device_limit,
    },
    FindingRule {
        id: "R21",
        rank: Rank::Saving,
        signal: "rate, of the link's",
        threshold: "from 80% on",
        origin: OWN,
        caveat: "several paths share a link",
        advice: "another or a faster path to the storage",
        judge: link_limit,
    },
];

fn single_blocks(signals: &Signals) -> Option<Observed> {
    const WAITS_MIN: u64 = 1000;
    let events = ["cell single block physical read", "db file sequential read"];
    let wait = events.into_iter().find_map(|event| signals.wait(event))?;
    let limit = match (wait.event.as_str(), signals.medium) {
        ("cell single block physical read", _) => MS,
        (_, Some(Medium::Flash)) => 2 * MS,
        _ => 10 * MS,
    };
    let is_judged =
        is_io_bound(signals) && wait.waits >= WAITS_MIN && signals.share(wait.time_ns) >= EVENT_GATE;
    if !is_judged || average(wait).0 <= limit {
        return None;
    }
    let reference = signals.device_read_ns.filter(|ns| *ns < limit).unwrap_or(limit);
    let saves = (average(wait).0 - reference) * wait.waits;
    let evidence = format!(
        "{}, expected at most {} each; at {}: {}",
        waited(signals, wait),
        Nanos(limit),
        Nanos(reference),
        at_most(signals, saves)
    );
    let what = if average(wait).0 > 2 * limit { "very slow" } else { "slow" };
    Some(Observed::new(format!("Reads of one block are {what}"), evidence).saves(saves))
}

/// First entry of the histogram above 16 ms: 2^14 microseconds.
const ABOVE_16_MS: usize = 15;

fn tail(signals: &Signals) -> Option<Observed> {
    const WAITS_MIN: u64 = 1000;
    let wait = signals.wait("db file sequential read").filter(|wait| wait.waits >= WAITS_MIN)?;
    if !is_io_bound(signals) || signals.share(wait.time_ns) < EVENT_GATE || wait.histogram.is_empty() {
        return None;
    }
    let all = total_of(wait.histogram.iter().copied());
    let slow = total_of(wait.histogram.iter().skip(ABOVE_16_MS).copied());
    let share = slow as f64 / all.max(1) as f64;
    if share > 0.05 {
        let saves = time_above(&wait.histogram, ABOVE_16_MS).min(wait.time_ns);
        let evidence = format!(
            "{} of {} waits last longer than 16 ms ({}); the average is {}; without them: {}",
            count(slow),
            count(all),
            percent(share),
            average(wait),
            at_most(signals, saves)
        );
        return Some(
            Observed::new("Some reads of one block are far slower than the others", evidence).saves(saves),
        );
    }
    let [fast, slow] = humps(&wait.histogram)?;
    // The second hump's waits would take the time of the first.
    let excess: u64 = wait
        .histogram
        .iter()
        .enumerate()
        .skip(slow - 1)
        .map(|(entry, waits)| waits * (middle(entry) - middle(fast)))
        .sum();
    let saves = excess.min(wait.time_ns);
    let evidence = format!(
        "the waits gather around {} and around {}; the average of {} is neither; at the faster: {}",
        Nanos(middle(fast)),
        Nanos(middle(slow)),
        average(wait),
        at_most(signals, saves)
    );
    Some(Observed::new("Reads of one block have two speeds", evidence).saves(saves))
}

/// Middle of an entry of the histogram, nanoseconds: entry i holds [2^(i-1), 2^i) us.
fn middle(entry: usize) -> u64 {
    (1500 << entry.min(40)) >> 1
}

fn time_above(histogram: &[u64], first: usize) -> u64 {
    histogram.iter().enumerate().skip(first).map(|(entry, waits)| waits * middle(entry)).sum()
}

/// Returns two maxima that hold a tenth of the waits each, with a valley of less than a quarter of
/// the lower one between them.
fn humps(histogram: &[u64]) -> Option<[usize; 2]> {
    let all = total_of(histogram.iter().copied());
    let at = |entry: usize| histogram.get(entry).copied().unwrap_or(0);
    let is_maximum = |entry: &usize| {
        let before = entry.checked_sub(1).map_or(0, at);
        at(*entry) >= before && at(*entry) > at(entry + 1) && at(*entry) * 10 >= all.max(1)
    };
    let maxima: Vec<usize> = (0..histogram.len()).filter(is_maximum).collect();
    let (first, last) = (*maxima.first()?, *maxima.last()?);
    let valley = (first..=last).map(at).min()?;
    (last >= first + 2 && valley * 4 < at(first).min(at(last))).then_some([first, last])
}

fn several_blocks(signals: &Signals) -> Option<Observed> {
    const WAITS_MIN: u64 = 100;
    let limits = [("db file scattered read", 15 * MS), ("direct path read", 20 * MS)];
    let slow = |(event, limit): (&str, u64)| {
        let wait = signals.wait(event)?;
        let is_judged = wait.waits >= WAITS_MIN && signals.share(wait.time_ns) >= EVENT_GATE;
        (is_judged && average(wait).0 > limit).then_some((wait.clone(), limit))
    };
    let (wait, limit): (WaitEvent, u64) =
        limits.into_iter().filter_map(slow).max_by_key(|(wait, _)| wait.time_ns)?;
    let saves = (average(&wait).0 - limit) * wait.waits;
    let function = if wait.event == "direct path read" { "Direct Reads" } else { "Buffer Cache Reads" };
    let reads = signals.functions.iter().find(|(name, _)| name == function).map(|(_, [reads, _])| *reads);
    let size = reads.and_then(|reads| reads.bytes.checked_div(reads.requests));
    let size = size.map_or(String::new(), |bytes| format!(", requests of {}", Bytes(bytes)));
    let evidence = format!(
        "{}: {}{size}, expected at most {} each; at that: {}",
        wait.event,
        waited(signals, &wait),
        Nanos(limit),
        at_most(signals, saves)
    );
    is_io_bound(signals).then(|| Observed::new("Reads of several blocks are slow", evidence).saves(saves))
}

fn waits_are_not_requests(signals: &Signals) -> Option<Observed> {
    const RATIO_MIN: f64 = 1.5;
    let wait = signals.wait("direct path read").filter(|wait| signals.share(wait.time_ns) > 0.20)?;
    let (_, [reads, _]) = signals.functions.iter().find(|(name, _)| name == "Direct Reads")?;
    let ratio = reads.requests as f64 / wait.waits.max(1) as f64;
    (ratio > RATIO_MIN && signals.origin == Origin::Import).then(|| {
        let evidence = format!(
            "{} requests and {} waits: {ratio:.1} requests a wait",
            count(reads.requests),
            count(wait.waits)
        );
        Observed::new("Waits for direct reads are not requests", evidence)
    })
}

fn read_by_others(signals: &Signals) -> Option<Observed> {
    let wait = signals.wait("read by other session").filter(|wait| signals.share(wait.time_ns) > 0.02)?;
    is_io_bound(signals).then_some(())?;
    let evidence = format!("{}; without it: {}", waited(signals, wait), at_most(signals, wait.time_ns));
    let study = if signals.uses.cache { signals.study("db_cache_size=16M,256M") } else { String::new() };
    Some(
        Observed::new("Sessions wait for blocks that others read", evidence)
            .saves(wait.time_ns)
            .proved_by(study),
    )
}

fn temp(signals: &Signals) -> Option<Observed> {
    let events = ["direct path read temp", "direct path write temp"];
    let ns = total_of(events.into_iter().filter_map(|event| Some(signals.wait(event)?.time_ns)));
    let least = if signals.origin == Origin::Run { 0.25 } else { EVENT_GATE };
    if signals.share(ns) <= least || !is_io_bound(signals) {
        return None;
    }
    let passes = signals.server.work_area_passes.map_or(String::new(), |[once, more]| {
        format!("; {} work areas merged once, {} more than once", count(once), count(more))
    });
    let share = percent(signals.share(ns));
    let evidence = format!(
        "reads and writes of the temporary tablespace take {}, {share} of DB time{passes}; with room for all of it: {}",
        Nanos(ns),
        at_most(signals, ns)
    );
    let seen = Observed::new("Work areas spill to the temporary tablespace", evidence).saves(ns);
    Some(match signals.uses.sort {
        true => seen
            .advise("a larger sort_area_size writes less")
            .proved_by(signals.study("sort_area_size=4M,64M")),
        false => seen,
    })
}

/// Mean time of a tally; none without requests or without their time.
fn mean(tally: &IoTally) -> Option<u64> {
    tally.time_ns?.checked_div(tally.requests)
}

/// Returns the time of a KB read; times of requests of different sizes do not compare.
fn per_kb(of: &TablespaceIo) -> Option<String> {
    let kb = of.reads.bytes as f64 / 1024.0;
    (kb >= 1.0).then(|| Some(format!("{:.4} ms", of.reads.time_ns? as f64 / 1e6 / kb)))?
}

/// Names the tablespace whose reads take longest, where a report has tablespaces alone.
fn largest_tablespace(signals: &Signals) -> Option<Observed> {
    const READS_MIN: u64 = 1000;
    (signals.origin == Origin::Import && signals.db_time() == 0).then_some(())?;
    let judged = signals.tablespaces.iter().filter(|of| of.reads.requests >= READS_MIN);
    let of = judged.filter(|of| !super::doubts::is_impossible(of)).max_by_key(|of| of.reads.time_ns)?;
    let each = mean(&of.reads).filter(|each| *each > 0)?;
    let size = Bytes(of.reads.bytes / of.reads.requests);
    let evidence =
        format!("{} reads of {size} in {}, {} a KB", count(of.reads.requests), Nanos(each), per_kb(of)?);
    Some(Observed::new(format!("Reads of tablespace {} take most of the read time", of.name), evidence))
}

fn slow_tablespace(signals: &Signals) -> Option<Observed> {
    const LIMIT_NS: u64 = 20 * MS;
    let rate = |of: &TablespaceIo| of.reads.requests as f64 * 1e9 / signals.elapsed_ns.max(1) as f64;
    let slow = |of: &&TablespaceIo| {
        mean(&of.reads).is_some_and(|ns| ns > LIMIT_NS)
            && rate(of) > 10.0
            && !super::doubts::is_too_long(signals, of)
    };
    let of = signals.tablespaces.iter().filter(slow).max_by_key(|of| of.reads.time_ns)?;
    let each = mean(&of.reads)?;
    // No more than the sessions waited for reads.
    let waited = match signals.db_time() {
        0 => u64::MAX,
        time => (signals.class_share(&["User I/O"]) * time as f64) as u64,
    };
    let saves = ((each - LIMIT_NS) * of.reads.requests).min(waited);
    let evidence = format!(
        "{}: {} reads of {} on average ({}{} each{}), expected at most {}; at that: {}",
        of.name,
        count(of.reads.requests),
        Nanos(each),
        if signals.elapsed_ns > 0 { format!("{:.0} a second, ", rate(of)) } else { String::new() },
        Bytes(of.reads.bytes / of.reads.requests.max(1)),
        per_kb(of).map_or(String::new(), |time| format!(", {time} a KB")),
        Nanos(LIMIT_NS),
        at_most(signals, saves)
    );
    is_io_bound(signals)
        .then(|| Observed::new(format!("Reads of tablespace {} are slow", of.name), evidence).saves(saves))
}

/// Returns reads of one block; all reads where they are not counted apart but are of one block.
fn one_block(of: &TablespaceIo) -> Option<(IoTally, u64)> {
    let tally = of.single.unwrap_or(of.reads);
    let bytes = tally.bytes.checked_div(tally.requests)?;
    let is_single = of.single.is_some() || of.block_bytes.is_some_and(|block| bytes <= block * 5 / 4);
    is_single.then_some((tally, bytes))
}

fn unlike_tablespaces(signals: &Signals) -> Option<Observed> {
    const READS_MIN: u64 = 1000;
    is_io_bound(signals).then_some(())?;
    let timed = signals.tablespaces.iter().filter_map(|of| {
        let (tally, bytes) = one_block(of).filter(|(tally, _)| tally.requests >= READS_MIN)?;
        Some((of, tally, bytes, mean(&tally)?))
    });
    let timed: Vec<_> = timed.collect();
    let pairs = timed.iter().flat_map(|slow| timed.iter().map(move |fast| (slow, fast)));
    let alike = pairs.filter(|(slow, fast)| slow.2 * 4 <= fast.2 * 5 && fast.2 * 4 <= slow.2 * 5);
    let worst = alike.filter(|(slow, fast)| slow.3 >= 2 * fast.3 && fast.3 > 0);
    let (slow, fast) = worst.max_by_key(|(slow, fast)| (slow.3 - fast.3) * slow.1.requests)?;
    let saves = (slow.3 - fast.3) * slow.1.requests;
    if signals.share(saves) < EVENT_GATE {
        return None;
    }
    let evidence = format!(
        "reads of {}: {} of {} in {}, {} of {} in {}; at the faster: {}",
        Bytes(slow.2),
        count(slow.1.requests),
        Nanos(slow.3),
        slow.0.name,
        count(fast.1.requests),
        Nanos(fast.3),
        fast.0.name,
        at_most(signals, saves)
    );
    Some(
        Observed::new(
            format!("Reads of {} take longer than those of {}", slow.0.name, fast.0.name),
            evidence,
        )
        .saves(saves),
    )
}

fn small_temp_reads(signals: &Signals) -> Option<Observed> {
    const READS_MIN: u64 = 100_000;
    let is_temp = |of: &&TablespaceIo| of.name.to_ascii_uppercase().contains("TEMP");
    let of = signals.tablespaces.iter().filter(is_temp).max_by_key(|of| of.reads.requests)?;
    let (tally, bytes) = one_block(of).filter(|(tally, _)| tally.requests > READS_MIN)?;
    is_io_bound(signals).then_some(())?;
    let evidence = format!("{} reads of {} from {}", count(tally.requests), Bytes(bytes), of.name);
    Some(Observed::new("The temporary tablespace is read block by block", evidence))
}

fn mix(signals: &Signals) -> Option<Observed> {
    if signals.origin == Origin::Run || !is_io_bound(signals) {
        return None;
    }
    let sum =
        |of: fn(&[IoTally; 2]) -> u64| total_of(signals.functions.iter().map(|(_, tallies)| of(tallies)));
    let (reads, read_bytes) = (sum(|[reads, _]| reads.requests), sum(|[reads, _]| reads.bytes));
    let writes = sum(|[_, writes]| writes.requests);
    let each = read_bytes.checked_div(reads)?;
    let share = reads as f64 / (reads + writes) as f64;
    let evidence = format!(
        "{} reads of {} on average, {} of all requests; {} writes",
        count(reads),
        Bytes(each),
        percent(share),
        count(writes)
    );
    Some(Observed::new("The mix of requests", evidence))
}

fn limit(signals: &Signals, is_link: bool) -> Option<Observed> {
    let of = signals.reached.iter().filter(|reached| reached.is_link == is_link);
    let reached = of.max_by(|one, two| one.share.total_cmp(&two.share))?;
    if reached.share < LIMIT_SHARE || signals.run.as_ref().is_some_and(|run| run.did_nothing) {
        return None;
    }
    let part = percent(reached.share);
    let cpu = signals.run.as_ref().map(|run| run.cpu_ns).or(signals.db_cpu_ns);
    let cpu = cpu.map_or(String::new(), |ns| format!("; CPU is {} of DB time", percent(signals.share(ns))));
    let of = if is_link { "link" } else { "device" };
    let what = format!("The {} run at the {of}'s limit", reached.what);
    let io = signals.waits.iter().filter(|wait| wait.wait_class == "User I/O").map(|wait| wait.time_ns);
    Some(Observed::new(what, format!("{part} of {}{cpu}", reached.limit)).saves(total_of(io)))
}

fn device_limit(signals: &Signals) -> Option<Observed> {
    limit(signals, false)
}

fn link_limit(signals: &Signals) -> Option<Observed> {
    limit(signals, true)
}

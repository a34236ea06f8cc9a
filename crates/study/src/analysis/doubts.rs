//! Objections to the data of a claim, raised before any of its figures is read.
//!
//! - INVALID: a receipt contradicts its setting, a result was wrong, or no run of an arm finished.
//!   Also: no receipt shows that the treatment took effect, or the page cache kept the files of a
//!   treatment of the I/O path.
//! - IMPOSSIBLE: a figure that the machine cannot have produced.

use super::used_blocks::{UsedBlocks, fault};
use crate::definition::Claim;
use plumb_proof::effect::Change;
use plumb_record::{self as record, Held, Record};
use plumb_units::{Bytes, RowCount, median};
use std::collections::BTreeSet;

/// Share of the files' pages that the page cache may hold at the start of a run.
const RESIDENT_SHARE_MAX: f64 = 0.05;
/// Factor allowed above the calibration, because caches below the file system favour smaller files.
const CALIBRATION_SLACK: f64 = 1.5;
/// Factor by which the scheduler's clocks may exceed the processors present.
const CPU_SLACK: f64 = 1.05;
const MEGABYTE: f64 = 1024.0 * 1024.0;

/// Returns the reasons that make a claim invalid, a sentence each.
pub(super) fn contradictions(used: &UsedBlocks<'_>, claim: &Claim) -> Vec<String> {
    let plan = &used.contents.plan;
    let arms = claim.all_arms(&plan.design);
    let mut found = faults(used, &arms);
    found.extend(contradicted(used, &arms));
    if used.blocks.is_empty() {
        return found;
    }
    for change in [Some(claim.change), claim.with].into_iter().flatten() {
        found.extend(without_effect(used, &arms, change));
        found.extend(one_treatment(used, claim));
        found.extend(alike(used, claim, change));
        found.extend(kept_in_cache(used, &arms, change));
    }
    found
}

/// Returns wrong results; if no block is left, the fault that spoiled the first.
fn faults(used: &UsedBlocks<'_>, arms: &[usize]) -> Vec<String> {
    let runs = used.contents.runs.iter().filter(|run| arms.contains(&run.arm_index));
    let faults: Vec<_> = runs.filter_map(|run| Some((run, fault(run)?))).collect();
    let wrong = faults.iter().filter(|(run, _)| run.record.is_some() && run.block.is_some());
    let mut found: Vec<String> =
        wrong.map(|(run, why)| format!("run {} ({}): {why}", run.number, run.arm)).collect();
    if let Some((run, why)) = faults.first().filter(|_| found.is_empty() && used.blocks.is_empty()) {
        found.push(format!("no block came to its end: run {} ({}): {why}", run.number, run.arm));
    }
    found
}

pub(super) fn contradicted(used: &UsedBlocks<'_>, arms: &[usize]) -> Vec<String> {
    let records = used.records(arms);
    let reasons = records.iter().flat_map(|(run, record)| {
        let contradicted = record.receipts.iter().filter(|receipt| receipt.held == Held::Contradicted);
        contradicted.map(move |receipt| {
            format!(
                "a receipt contradicts {} = {} in run {} ({}): {}",
                receipt.setting, receipt.asked, run.number, run.arm, receipt.evidence
            )
        })
    });
    reasons.collect()
}

/// Reports a change none of whose settings has a receipt that held in any run.
fn without_effect(used: &UsedBlocks<'_>, arms: &[usize], change: Change) -> Option<String> {
    let factor = &used.contents.plan.study.factors[change.factor];
    let settings = factor.differing(change.from, change.to);
    // Levels with equal settings are compared to measure noise, so there is no effect to show.
    if settings.is_empty() {
        return None;
    }
    let records = used.records(arms);
    let receipts = || {
        let all = records.iter().flat_map(|(_, record)| &record.receipts);
        all.filter(|receipt| settings.contains(&receipt.setting.as_str()))
    };
    if receipts().any(|receipt| receipt.held == Held::Held) {
        return None;
    }
    let why = receipts().next().map_or("it left no receipt", |receipt| receipt.evidence.as_str());
    Some(format!("nothing shows that {} took effect: {why}", settings.join(" and ")))
}

/// Reports commands given identical treatments: the study did not vary what differs between them.
fn one_treatment(used: &UsedBlocks<'_>, claim: &Claim) -> Option<String> {
    let plan = &used.contents.plan;
    let sides = claim.sides(&plan.design);
    let given = |arms: &[usize]| {
        let runs = used.records(arms).into_iter();
        runs.filter_map(|(_, record)| Some(&record.command.as_ref()?.treatment)).collect::<BTreeSet<_>>()
    };
    let (to, from) = (given(&sides.to), given(&sides.from));
    let same = !plan.study.expects_same && !to.is_empty() && !to.is_disjoint(&from);
    same.then(|| {
        "one treatment: runs on both sides had the same executables, arguments, environment and files; expects = \"same\" \
         says where that is meant"
            .to_string()
    })
}

/// Reports a setting whose readings from outside are alike on both sides: whatever the program
/// says, the change did nothing there.
fn alike(used: &UsedBlocks<'_>, claim: &Claim, change: Change) -> Option<String> {
    let plan = &used.contents.plan;
    let sides = claim.sides(&plan.design);
    let settings = plan.study.factors[change.factor].differing(change.from, change.to);
    let readings = |arms: &[usize], name: &str| {
        let records = used.records(arms).into_iter().map(|(_, record)| record);
        let readings = records.flat_map(|record| &record.readings).filter(|reading| reading.setting == name);
        let (values, steps): (Vec<f64>, Vec<f64>) =
            readings.map(|reading| (reading.value, reading.step)).unzip();
        // A run far from the others has a step of its own size, which says nothing of the median.
        (!values.is_empty()).then(|| (median(&values), median(&steps)))
    };
    let compared = settings.iter().filter_map(|name| {
        let ((to, one), (from, other)) = (readings(&sides.to, name)?, readings(&sides.from, name)?);
        Some((*name, from, to, one.max(other)))
    });
    let compared: Vec<_> = compared.collect();
    let differs = |(_, from, to, step): &(&str, f64, f64, f64)| (from - to).abs() > *step;
    // A setting of the level without a reading may have had its effect.
    let is_alike = compared.len() == settings.len() && !compared.iter().any(differs);
    let (name, from, to, step) = compared.first().filter(|_| is_alike)?;
    let evidence = used.records(&sides.to).into_iter().find_map(|(_, record)| {
        let own = record.receipts.iter().find(|receipt| receipt.setting == *name);
        own.map(|receipt| receipt.evidence.clone())
    });
    let level = |level: usize| {
        let sets = &plan.study.factors[change.factor].levels[level].settings;
        sets.iter().find(|set| set.name == **name).map(|set| set.value.as_str())
    };
    let levels = [change.from, change.to].map(level);
    // Levels that are sizes have readings of bytes.
    let are_sizes = levels.iter().flatten().all(|value| is_size(value)) && from.min(*to) >= MEGABYTE;
    let figure = |reading: f64| if are_sizes { Bytes(reading as u64).to_string() } else { figure(reading) };
    let cure = match (levels, are_sizes) {
        ([Some(one), Some(other)], true) => format!(
            "; for this work {one} and {other} are one treatment: if both have enough, try one well below {}",
            figure(from.min(*to))
        ),
        _ => String::new(),
    };
    (!plan.study.expects_same).then(|| {
        format!(
            "the evidence of {name} is alike on both sides: {} and {}, not more than {} apart{cure}; last seen: {}",
            figure(*from),
            figure(*to),
            figure(*step),
            evidence.unwrap_or_default()
        )
    })
}

/// True for a number with a unit of bytes.
fn is_size(value: &str) -> bool {
    value.ends_with(|letter: char| letter.is_ascii_alphabetic()) && plumb_units::parse_size(value).is_ok()
}

/// Formats a reading: bytes and counts in groups of three digits.
fn figure(reading: f64) -> String {
    if reading.abs() < 1000.0 { format!("{reading:.3}") } else { RowCount(reading as u64).to_string() }
}

/// True if the only evidence of the treatment is that it was requested.
pub(super) fn asked_only(used: &UsedBlocks<'_>, claim: &Claim) -> bool {
    let plan = &used.contents.plan;
    let records = used.records(&claim.all_arms(&plan.design));
    // Different executables or files are evidence, whatever the study declares.
    let held = |arms: &[usize]| {
        let commands = used.records(arms).into_iter().filter_map(|(_, record)| record.command.as_ref());
        let files = commands.flat_map(|command| command.executables.iter().chain(&command.files));
        files.filter_map(|file| file.sha256.clone()).collect::<BTreeSet<_>>()
    };
    let sides = claim.sides(&plan.design);
    if held(&sides.to) != held(&sides.from) {
        return false;
    }
    [Some(claim.change), claim.with].into_iter().flatten().any(|change| {
        let settings = plan.study.factors[change.factor].differing(change.from, change.to);
        let receipts = records.iter().flat_map(|(_, record)| &record.receipts);
        let best = receipts
            .filter(|receipt| settings.contains(&receipt.setting.as_str()) && receipt.held == Held::Held)
            .map(|receipt| receipt.seen)
            .max();
        best == Some(record::Seen::Asked)
    })
}

/// Reports a treatment of the I/O path whose requests the page cache answered.
fn kept_in_cache(used: &UsedBlocks<'_>, arms: &[usize], change: Change) -> Option<String> {
    let factor = &used.contents.plan.study.factors[change.factor];
    let known = &used.contents.environment.settings;
    let mut settings = factor.differing(change.from, change.to);
    settings.retain(|name| known.iter().any(|facts| facts.name == *name && facts.about_io));
    let kept = used.records(arms).into_iter().find(|(run, _)| {
        run.settled.resident_pages as f64 > RESIDENT_SHARE_MAX * run.settled.total_pages as f64
    });
    let (run, _) = kept.filter(|_| !settings.is_empty())?;
    Some(format!(
        "the page cache kept {} of {} pages of the files before run {}: {} said nothing about a device",
        run.settled.resident_pages,
        run.settled.total_pages,
        run.number,
        settings.join(" and ")
    ))
}

/// Returns figures beyond a physical bound, a sentence each.
pub(super) fn beyond_bound(used: &UsedBlocks<'_>, claim: &Claim) -> Vec<String> {
    let arms = claim.all_arms(&used.contents.plan.design);
    let mut found = Vec::new();
    for (run, record) in used.records(&arms) {
        let reasons = [processors(record), in_flight(record), device(used, record)].into_iter().flatten();
        found.extend(
            reasons.chain(stated(used, record)).map(|why| format!("run {} ({}): {why}", run.number, run.arm)),
        );
    }
    found
}

fn seconds(record: &Record) -> f64 {
    (record.header.elapsed_ns as f64 / 1e9).max(1e-9)
}

/// Checks the bounds that the study's author states.
fn stated(used: &UsedBlocks<'_>, record: &Record) -> Vec<String> {
    let exceeded = used.contents.plan.study.bounds.iter().filter_map(|bound| {
        let total = record.statistics.iter().find(|row| row.name == bound.statistic)?.total;
        let rate = total as f64 / seconds(record);
        (rate > bound.per_second_max).then(|| {
            format!(
                "{} ran at {rate:.0}/s, and {:.0}/s is the most: {}",
                bound.statistic, bound.per_second_max, bound.reason
            )
        })
    });
    exceeded.collect()
}

/// Reports more processor time than the processors can give.
fn processors(record: &Record) -> Option<String> {
    let (cpu, cpus) = (record.header.db_cpu() as f64 / 1e9, record.header.host.cpus?);
    let most = seconds(record) * f64::from(cpus) * CPU_SLACK + 0.01;
    (cpu > most).then(|| format!("{cpu:.2} s of CPU in {:.2} s on {cpus} processors", seconds(record)))
}

/// Reports more requests in flight than the queue depth allows, by Little's law: rate times time.
fn in_flight(record: &Record) -> Option<String> {
    let depth = record.settings.iter().find(|setting| setting.name == "io_queue_depth")?;
    let most = depth.value.parse::<f64>().ok()? * record.sessions.len().max(1) as f64;
    let tallies = record.io_functions.iter().flat_map(|row| [row.reads, row.writes]);
    let time: u64 = tallies.filter_map(|tally| tally.time_ns).sum();
    let on_their_way = time as f64 / 1e9 / seconds(record);
    (on_their_way > most).then(|| {
        format!(
            "{on_their_way:.0} requests on their way on average, and {} sessions may have {most:.0} at once",
            record.sessions.len()
        )
    })
}

/// Reports more bytes per second past the page cache than the calibration measured.
fn device(used: &UsedBlocks<'_>, record: &Record) -> Option<String> {
    let direct = record.receipts.iter().any(|receipt| {
        receipt.setting == "filesystemio_options"
            && ["directio", "setall"].contains(&receipt.asked.as_str())
            && receipt.held == Held::Held
    });
    let environment = &used.contents.environment;
    // A calibration disturbed by other load or a cache is no bound.
    let known = environment.calibration_doubts.is_empty();
    let limits = environment.limits.iter().filter(|limit| known && limit.unit == "MB/s");
    let most = limits.map(|limit| limit.high * MEGABYTE).fold(0.0, f64::max);
    if !direct || most == 0.0 {
        return None;
    }
    ["physical read total bytes", "physical write total bytes"].into_iter().find_map(|name| {
        let total = record.statistics.iter().find(|row| row.name == name)?.total;
        let rate = total as f64 / seconds(record);
        (rate > most * CALIBRATION_SLACK).then(|| {
            format!(
                "{name} at {}/s, and the device gave at most {}/s when it was calibrated",
                Bytes(rate as u64),
                Bytes(most as u64)
            )
        })
    })
}

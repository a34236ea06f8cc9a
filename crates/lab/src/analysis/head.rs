//! How a study ran: its end, arms, design and the list of runs.

use super::result::{Arm, Counted, Design, StudyRun, StudyState};
use super::seen::{Seen, fault};
use crate::bundle::{Ended, RunRecord, Stop};
use crate::calendar::Moment;
use crate::plan::Until;
use crate::record::{MeasuredLimits, Record, SettingRow};
use crate::study::Factor;
use crate::vocabulary::TakesEffect;
use plumb_proof::design::Order;
use std::time::Duration;

/// What happens between two runs.
const SETTLING: &str = "the data files are made durable and dropped from the page cache, and the block device is waited for \
                        until nothing moves on it, for 2 s at most";

/// When the study ended: its state, the time, and how long after its begin, nanoseconds.
pub(super) fn ended(seen: &Seen<'_>) -> (StudyState, String, u64) {
    let contents = seen.contents;
    let ended =
        |run: &RunRecord| run.start_ns + run.record.as_ref().map_or(0, |record| record.header.elapsed_ns);
    let last = contents.runs.iter().map(ended).max().unwrap_or(0);
    let elapsed_ns = contents.end.map_or(last, |end| end.end_ns);
    let state = match contents.end.map(|end| end.stop) {
        None | Some(Stop::Interrupted) => StudyState::Interrupted,
        Some(_) => StudyState::Finished,
    };
    let end = Duration::from_nanos(contents.environment.begin_ns + elapsed_ns);
    (state, Moment::of(end).iso(), elapsed_ns)
}

pub(super) fn arms(seen: &Seen<'_>) -> Vec<Arm> {
    let plan = &seen.contents.plan;
    let arm = |(arm, levels): (usize, &Vec<usize>)| {
        let records = if seen.contents.has_ended() { seen.records(&[arm]) } else { Vec::new() };
        let mut values: Vec<f64> =
            records.iter().map(|(_, record)| plan.study.measure.value(record)).collect();
        values.sort_unstable_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median = match values.len() {
            0 => None,
            odd if odd % 2 == 1 => Some(values[middle]),
            _ => Some(f64::midpoint(values[middle - 1], values[middle])),
        };
        let (least, most) = (values.first().copied(), values.last().copied());
        Arm { name: plan.arm_name(arm), levels: levels.clone(), median, least, most }
    };
    plan.design.arms.iter().enumerate().map(arm).collect()
}

pub(super) fn design(seen: &Seen<'_>) -> Design {
    let plan = &seen.contents.plan;
    let study = &plan.study;
    let names = |word: &Vec<usize>| {
        word.iter().map(|factor| study.factors[*factor].name.as_str()).collect::<Vec<_>>().join(" x ")
    };
    let confounded = plan.design.defining_words.iter().map(|word| {
        format!("{} is constant: each part of it looks like the product of the others", names(word))
    });
    Design {
        kind: plan.design.resolution().map_or_else(
            || "full factorial".to_string(),
            |resolution| format!("regular fraction, resolution {resolution}"),
        ),
        confounded: confounded.collect(),
        reference_arm: plan.schedule.reference,
        order: match study.order {
            Order::Shuffled => "every order of a block equally likely".to_string(),
            Order::Williams => "Williams: every slot follows every other equally often".to_string(),
        },
        seed: plan.schedule.seed,
        stopping: stopping(seen),
        blocks_used: seen.blocks.len() as u64,
        blocks_marked: seen.marked.clone(),
        warm_up_runs: seen.contents.runs.iter().filter(|run| run.block.is_none()).count() as u64,
        settling: SETTLING.to_string(),
        not_randomised: not_randomised(seen),
    }
}

/// What no draw decided, in a sentence.
fn not_randomised(seen: &Seen<'_>) -> String {
    let made = created(seen);
    let files = match &made[..] {
        [] => "the database, made once for all arms".to_string(),
        _ => format!(
            "the databases, made once for each level of {}, so that where its files came to lie counts as the level's",
            made.join(" and ")
        ),
    };
    format!(
        "only the order of runs within blocks was drawn; not the machine, the day, the rows of the table, nor {files}"
    )
}

/// The factors whose levels take effect when a database is made.
pub(super) fn created<'a>(seen: &Seen<'a>) -> Vec<&'a str> {
    let at_creation = |name: &str| {
        let known = &seen.contents.environment.settings;
        known.iter().any(|facts| facts.name == name && facts.takes_effect == TakesEffect::Creation)
    };
    let factors = seen.contents.plan.study.factors.iter();
    let varied = |factor: &&Factor| {
        (1..factor.levels.len()).any(|level| factor.differing(0, level).into_iter().any(at_creation))
    };
    factors.filter(varied).map(|factor| factor.name.as_str()).collect()
}

/// When it was to stop, and why it did if that was another reason.
fn stopping(seen: &Seen<'_>) -> String {
    let plan = &seen.contents.plan;
    let rule = match plan.until {
        Until::Blocks => format!("after {} blocks", plan.study.blocks),
        Until::Decided => {
            format!("when every claim is decided or hardly can be, at most {} blocks", plan.study.blocks)
        }
    };
    let why = match seen.contents.end.map(|end| end.stop) {
        Some(Stop::Planned | Stop::Decided) => return rule,
        Some(Stop::Budget) => "another block would not have fitted the budget",
        Some(Stop::Failures) => "three blocks failed",
        Some(Stop::Interrupted) => "it was stopped from outside",
        Some(Stop::Ended) => "it was ended where it had been stopped",
        None => "it has not ended",
    };
    format!("{rule}; {why}")
}

pub(super) fn runs(seen: &Seen<'_>) -> Vec<StudyRun> {
    let measure = &seen.contents.plan.study.measure;
    let shown = seen.contents.has_ended();
    let row = |run: &RunRecord| {
        let record = run.record.as_ref();
        let validity = record.map(Record::validity);
        StudyRun {
            number: run.number,
            block: run.block,
            position: run.position,
            slot: run.slot,
            arm: run.arm_index,
            start_ns: run.start_ns,
            elapsed_ns: record.filter(|_| shown).map(|record| record.header.elapsed_ns),
            value: record.filter(|_| shown).map(|record| measure.value(record)),
            counted: counted(seen, run),
            validity: validity.as_ref().map(|validity| validity.state),
            basis: match (&run.ended, validity) {
                (Ended::Failed { reason }, _) => reason.clone(),
                (Ended::Finished, validity) => validity.map_or(String::new(), |validity| validity.basis),
            },
        }
    };
    seen.contents.runs.iter().map(row).collect()
}

fn counted(seen: &Seen<'_>, run: &RunRecord) -> Counted {
    if run.block.is_none() {
        return Counted::WarmUp;
    }
    if seen.counts(run) {
        return Counted::Yes;
    }
    let block = seen.marked.iter().find(|marked| run.block == Some(marked.block));
    let of_block = || block.map_or("its block is not used", |marked| marked.reason.as_str()).to_string();
    Counted::No { reason: fault(run).unwrap_or_else(of_block) }
}

/// The device's limits, with the shares of the run that reached most of them.
pub(super) fn calibration(seen: &Seen<'_>) -> Option<MeasuredLimits> {
    let found = seen.contents.runs.iter().filter_map(|run| run.record.as_ref()?.calibration.clone());
    let most = |calibration: &MeasuredLimits| {
        let shares =
            calibration.shares.iter().map(|share| share.reached_bytes_per_s / share.limit_bytes_per_s);
        shares.fold(0.0, f64::max)
    };
    found.max_by(|one, two| most(one).total_cmp(&most(two)))
}

/// The settings that all arms share.
pub(super) fn settings(seen: &Seen<'_>) -> Vec<SettingRow> {
    let factors = &seen.contents.plan.study.factors;
    let levels = || factors.iter().flat_map(|factor| &factor.levels);
    let varied = |name: &str| levels().any(|level| level.settings.iter().any(|set| set.name == name));
    let first = seen.contents.runs.iter().find_map(|run| run.record.as_ref());
    let settings = first.map(|record| record.settings.iter()).into_iter().flatten();
    settings.filter(|setting| !varied(&setting.name)).cloned().collect()
}

//! Origin of a difference: the elapsed time as the sum of its parts.
//!
//! In a parallel build several sessions work at once, so their CPU and waits exceed the elapsed
//! time. The time in which foreground sessions were not idle has parts: CPU, every wait event, time
//! ready to run without a processor, and the unaccounted rest. Each part is divided by the average
//! number of active sessions:
//!
//! ```text
//! active sessions = sum of (elapsed - idle) over foreground sessions / elapsed
//! part of elapsed = part / active sessions            the parts sum to the elapsed time
//! ```
//!
//! Rejected: dividing by the degree. Servers of the scan end early and those of the sort wait for
//! them, so no number of lanes makes the parts add up. Rejected: dividing by all sessions, idle
//! ones included. The coordinator waits for its servers all the time, and would take a share of
//! every difference.
//!
//! A part of an arm is the mean over its counted runs, a part of several arms the mean over those.
//! Averages are linear, so the sum stays exact. The remainder of rounding to nanoseconds joins the
//! unaccounted part, which the report derives.
//!
//! Runs that end by the clock have equal elapsed times. If elapsed times are equal and the work is
//! not, all times are those of one operation, as in comparisons. No share is stated of a difference
//! whose interval includes 0.
//!
//! Phases cut a run by time instead of by kind. For both cuts, the difference has Student's
//! interval over blocks, uncorrected: it shows which parts deserve attention, and proves nothing.

use super::CONFIDENCE;
use super::used_blocks::UsedBlocks;
use crate::analysis::result::{
    ArmPair, Covered, EndsNanos, PhasePart, ProfilePair, RunProfile, Why, WhyPart,
};
use crate::bundle::RunRecord;
use crate::definition::{Claim, Sides};
use plumb_events::SessionKind;
use plumb_proof::average::{RatioOfMeans, ratio_of_means};
use plumb_proof::student;
use plumb_record::Record;
use plumb_record::operation::operations;
use std::collections::BTreeMap;

/// Name of the time on a processor in a database's runs.
const DB_CPU: &str = "DB CPU";
/// Sentence that explains the parts of two sets of a database's runs.
const PARTS_OF_ACTIVE: &str = "each part of the time in which foreground sessions were not idle, divided by the average number \
                               of them that was active; means over the runs";
const RUN_QUEUE: &str = "run queue";
/// Parts by name: wait class, and nanoseconds of the elapsed time.
type Parts = BTreeMap<String, (String, f64)>;

/// Decomposes a claim's difference; `None` without a counted run.
pub(super) fn why(used: &UsedBlocks<'_>, claim: &Claim) -> Option<Why> {
    let plan = &used.contents.plan;
    let sides = claim.sides(&plan.design);
    let name = |arms: &[usize], level: usize| match arms {
        [arm] => plan.arm_name(*arm),
        _ => {
            let factor = &plan.study.factors[claim.change.factor];
            format!("{}={}", factor.name, factor.levels[level].label)
        }
    };
    let (cpu, basis) = plan.study.vocabulary.parts();
    let (from, to) = (used.records(&sides.from), used.records(&sides.to));
    let per = of_same_time(&from, &to);
    let factor = |record: &Record| match per {
        Some(_) => 1.0 / done(record).max(1.0),
        None => 1.0,
    };
    let (reference_elapsed, reference) = mean_parts(&from, cpu, factor)?;
    let (treatment_elapsed, treatment) = mean_parts(&to, cpu, factor)?;
    let names = reference.keys().chain(treatment.keys()).collect::<std::collections::BTreeSet<_>>();
    let part = |name: &String| {
        let class = reference.get(name).or(treatment.get(name)).map_or("", |(class, _)| class.as_str());
        let nanos = |parts: &Parts| parts.get(name).map_or(0, |(_, nanos)| nanos.round() as u64);
        WhyPart {
            name: name.clone(),
            wait_class: class.to_string(),
            reference_ns: nanos(&reference),
            treatment_ns: nanos(&treatment),
            ends: ends(used, &sides, |record| {
                let parts = parts(record, cpu);
                let own = parts.iter().filter(|(own, ..)| own == name).map(|(_, _, nanos)| nanos);
                own.sum::<f64>() * factor(record)
            }),
        }
    };
    Some(Why {
        basis: basis.to_string(),
        per: per.map(str::to_string),
        ends: ends(used, &sides, |record| record.header.elapsed_ns as f64 * factor(record)),
        reference: name(&sides.from, claim.change.from),
        treatment: name(&sides.to, claim.change.to),
        reference_elapsed_ns: reference_elapsed.round() as u64,
        treatment_elapsed_ns: treatment_elapsed.round() as u64,
        parts: names.into_iter().map(part).collect(),
        phases: phases(used, &sides),
    })
}

/// Relative difference up to which elapsed times, and amounts of work, count as equal.
const SAME: f64 = 0.02;

/// Number of operations of a run; 0 if nothing counts them.
fn done(record: &Record) -> f64 {
    operations(record).map_or(0.0, |(_, count)| count as f64)
}

/// Returns the operation whose count differs in equal elapsed time. `None` if both sides did the
/// same work, because then their elapsed times differ.
fn of_same_time(from: &[(&RunRecord, &Record)], to: &[(&RunRecord, &Record)]) -> Option<&'static str> {
    let mean = |runs: &[(&RunRecord, &Record)], of: &dyn Fn(&Record) -> f64| {
        runs.iter().map(|(_, record)| of(record)).sum::<f64>() / runs.len().max(1) as f64
    };
    let near = |of: &dyn Fn(&Record) -> f64| {
        let (one, two) = (mean(from, of), mean(to, of));
        (one - two).abs() <= SAME * one.max(two)
    };
    let (name, _) = operations(from.first()?.1)?;
    let counted = from.iter().chain(to).all(|(_, record)| done(record) > 0.0);
    let same_time = near(&|record| record.header.elapsed_ns as f64);
    (counted && same_time && !near(&done)).then_some(name)
}

/// Phases of both sides' runs, in the order of the first run.
fn phases(used: &UsedBlocks<'_>, sides: &Sides) -> Vec<PhasePart> {
    let (reference, treatment) = (used.records(&sides.from), used.records(&sides.to));
    let mut names: Vec<&str> = Vec::new();
    for phase in reference.iter().chain(&treatment).flat_map(|(_, record)| &record.phases) {
        if !names.contains(&phase.name.as_str()) {
            names.push(&phase.name);
        }
    }
    let mean = |runs: &[(&RunRecord, &Record)], name: &str| {
        let each = runs.iter().zip(counts(runs));
        each.map(|((_, record), count)| lasted(record, name) / count).sum::<f64>().round() as u64
    };
    let part = |name: &str| PhasePart {
        name: name.to_string(),
        reference_ns: mean(&reference, name),
        treatment_ns: mean(&treatment, name),
        ends: ends(used, sides, |record| lasted(record, name)),
    };
    names.into_iter().map(part).collect()
}

/// Total time of a phase in a run, nanoseconds.
fn lasted(record: &Record, name: &str) -> f64 {
    let own = record.phases.iter().filter(|phase| phase.name == name);
    own.map(|phase| phase.end_ns.saturating_sub(phase.start_ns) as f64).sum()
}

/// Interval of a figure's difference over blocks.
fn ends(used: &UsedBlocks<'_>, sides: &Sides, figure: impl Fn(&Record) -> f64) -> Option<EndsNanos> {
    of_differences(&differences(used, sides, figure))
}

/// Differences of a figure between the means of both sides, by block.
fn differences(used: &UsedBlocks<'_>, sides: &Sides, figure: impl Fn(&Record) -> f64) -> Vec<f64> {
    // The two runs of the reference count as one arm.
    let of_arm = |runs: &[&RunRecord], arm: usize| {
        let own = runs.iter().filter(|run| run.arm_index == arm);
        let values: Vec<f64> = own.filter_map(|run| Some(figure(run.record.as_ref()?))).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let mean = |runs: &[&RunRecord], arms: &[usize]| {
        let values: Vec<f64> = arms.iter().filter_map(|arm| of_arm(runs, *arm)).collect();
        values.iter().sum::<f64>() / values.len().max(1) as f64
    };
    used.blocks.iter().map(|(_, runs)| mean(runs, &sides.to) - mean(runs, &sides.from)).collect()
}

/// Share of the difference in the statistic that the claim's measure excludes, over blocks. It is
/// the ratio of two mean differences, of that statistic and of the whole. `None` if the measure
/// excludes nothing, or the share's interval is unbounded.
pub(super) fn covered(used: &UsedBlocks<'_>, claim: &Claim) -> Option<Covered> {
    let rest = claim.measure.as_ref()?;
    let whole = rest.taken_from().filter(|_| claim.with.is_none())?;
    let sides = claim.sides(&used.contents.plan.design);
    let wholes = differences(used, &sides, |record| whole.value(record));
    let parts = differences(used, &sides, |record| whole.value(record) - rest.value(record));
    let RatioOfMeans { ratio: share, interval } = ratio_of_means(&parts, &wholes, 1.0 - CONFIDENCE)?;
    let is_told = interval.low.is_finite();
    let parts = rest.taken_off().iter().map(|part| part.title()).collect();
    is_told.then(|| Covered { parts, of: whole.title(), share, low: interval.low, high: interval.high })
}

/// Decomposes the difference of two sets of runs, each run's times multiplied by its own factor.
/// `None` without a run whose sessions were active. Paired sets give the parts intervals.
pub(crate) fn between(
    [reference, treatment]: [(&str, &[Record]); 2],
    factor: impl Fn(&Record) -> f64,
    is_paired: bool,
) -> Option<Why> {
    let scaled = |record: &Record| {
        let factor = factor(record);
        let parts = parts(record, DB_CPU).into_iter();
        parts.map(|(name, class, nanos)| (name, class, nanos * factor)).collect::<Vec<_>>()
    };
    let mean = |runs: &[Record]| {
        let count = runs.len() as f64;
        let elapsed: f64 = runs.iter().map(|run| run.header.elapsed_ns as f64 * factor(run) / count).sum();
        let mut sum = Parts::new();
        for (name, class, nanos) in runs.iter().flat_map(scaled) {
            sum.entry(name).or_insert((class, 0.0)).1 += nanos / count;
        }
        (!sum.is_empty()).then_some((elapsed, sum))
    };
    let (reference_elapsed, reference_parts) = mean(reference.1)?;
    let (treatment_elapsed, treatment_parts) = mean(treatment.1)?;
    let names =
        reference_parts.keys().chain(treatment_parts.keys()).collect::<std::collections::BTreeSet<_>>();
    let of_run = |run: &Record, name: &str| {
        scaled(run).iter().filter(|(own, ..)| own == name).map(|(_, _, nanos)| nanos).sum::<f64>()
    };
    let ends = |name: &str| {
        let pairs = reference.1.iter().zip(treatment.1).filter(|_| is_paired);
        let differences: Vec<f64> = pairs.map(|(one, two)| of_run(two, name) - of_run(one, name)).collect();
        of_differences(&differences)
    };
    let part = |name: &String| {
        let known = reference_parts.get(name).or(treatment_parts.get(name));
        let nanos = |parts: &Parts| parts.get(name).map_or(0, |(_, nanos)| nanos.round() as u64);
        WhyPart {
            name: name.clone(),
            wait_class: known.map_or(String::new(), |(class, _)| class.clone()),
            reference_ns: nanos(&reference_parts),
            treatment_ns: nanos(&treatment_parts),
            ends: ends(name),
        }
    };
    Some(Why {
        basis: PARTS_OF_ACTIVE.to_string(),
        per: None,
        ends: is_paired
            .then(|| {
                let elapsed = |run: &Record| run.header.elapsed_ns as f64 * factor(run);
                let pairs = reference.1.iter().zip(treatment.1);
                of_differences(&pairs.map(|(one, two)| elapsed(two) - elapsed(one)).collect::<Vec<_>>())
            })
            .flatten(),
        reference: reference.0.to_string(),
        treatment: treatment.0.to_string(),
        reference_elapsed_ns: reference_elapsed.round() as u64,
        treatment_elapsed_ns: treatment_elapsed.round() as u64,
        parts: names.into_iter().map(part).collect(),
        phases: Vec::new(),
    })
}

/// 95% interval of the mean of differences; `None` of fewer than two.
fn of_differences(differences: &[f64]) -> Option<EndsNanos> {
    let interval = student::interval(differences, 1.0 - CONFIDENCE)?;
    Some(EndsNanos { low_ns: interval.low.round() as i64, high_ns: interval.high.round() as i64 })
}

/// Mean elapsed time of some runs, and the means of its parts, each run's times
/// multiplied by its own factor.
fn mean_parts(
    runs: &[(&RunRecord, &Record)],
    cpu: &str,
    factor: impl Fn(&Record) -> f64,
) -> Option<(f64, Parts)> {
    if runs.is_empty() {
        return None;
    }
    let (mut elapsed, mut sum) = (0.0, Parts::new());
    for ((_, record), count) in runs.iter().zip(counts(runs)) {
        let factor = factor(record) / count;
        elapsed += record.header.elapsed_ns as f64 * factor;
        for (name, class, nanos) in parts(record, cpu) {
            sum.entry(name).or_insert((class, 0.0)).1 += nanos * factor;
        }
    }
    Some((elapsed, sum))
}

/// Divisor of each run in a mean over arms: arms have equal weight, although the reference
/// has two runs per block.
fn counts(runs: &[(&RunRecord, &Record)]) -> Vec<f64> {
    let mut of_arm: BTreeMap<usize, usize> = BTreeMap::new();
    runs.iter().for_each(|(run, _)| *of_arm.entry(run.arm_index).or_default() += 1);
    runs.iter().map(|(run, _)| (of_arm[&run.arm_index] * of_arm.len()) as f64).collect()
}

/// Parts of one run's elapsed time, processor time under `cpu_name`, without the unaccounted part.
fn parts(record: &Record, cpu_name: &str) -> Vec<(String, String, f64)> {
    let foreground = || record.sessions.iter().filter(|session| session.kind == SessionKind::Foreground);
    let busy: f64 = foreground().map(|session| session.elapsed_ns as f64 - session.idle_ns as f64).sum();
    if busy <= 0.0 {
        return Vec::new();
    }
    let scale = record.header.elapsed_ns as f64 / busy;
    let cpu: u64 = foreground().map(|session| session.cpu_ns).sum();
    let queued: u64 = foreground().filter_map(|session| session.run_queue_ns).sum();
    let own =
        [(cpu_name, cpu), (RUN_QUEUE, queued)].map(|(name, nanos)| (name.to_string(), String::new(), nanos));
    let waits = record.foreground_events.iter().filter(|event| !event.is_idle());
    let waits = waits.map(|event| (event.event.clone(), event.wait_class.clone(), event.time_ns));
    own.into_iter().chain(waits).map(|(name, class, nanos)| (name, class, nanos as f64 * scale)).collect()
}

/// I/O profiles of a typical run of either arm.
pub(super) fn profiles(used: &UsedBlocks<'_>, pair: ArmPair) -> Option<ProfilePair> {
    Some(ProfilePair { reference: typical(used, pair.reference)?, treatment: typical(used, pair.treatment)? })
}

/// Returns the run with the arm's median elapsed time, the lower of two middle ones.
fn typical(used: &UsedBlocks<'_>, arm: usize) -> Option<RunProfile> {
    let mut records = used.records(&[arm]);
    records.sort_by_key(|(run, record)| (record.header.elapsed_ns, run.number));
    let (run, record) = records.get(records.len().checked_sub(1)? / 2)?;
    Some(RunProfile {
        arm: run.arm.clone(),
        run: run.number,
        elapsed_ns: record.header.elapsed_ns,
        profile: record.io_profile.clone(),
        phases: record.phases.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_unaccounted_time_sum_to_the_elapsed_time() {
        for record in
            [plumb_record::fixture::record(1_000_000_000, 3), plumb_record::fixture::record(70_000_003, 1)]
        {
            let foreground = record.sessions.iter().filter(|session| session.kind == SessionKind::Foreground);
            let (mut busy, mut rest) = (0.0, 0.0);
            for session in foreground {
                busy += session.elapsed_ns as f64 - session.idle_ns as f64;
                rest += session.unaccounted_ns() as f64;
            }
            let sum: f64 = parts(&record, "DB CPU").iter().map(|(_, _, nanos)| nanos).sum();
            let whole = sum + rest * record.header.elapsed_ns as f64 / busy;
            assert!((whole - record.header.elapsed_ns as f64).abs() < 1.0, "{whole}");
        }
    }
}

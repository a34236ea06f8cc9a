//! Where a difference comes from: the elapsed time as the sum of its parts.
//!
//! A parallel build has several sessions at work at once, so their CPU and waits add up to more than
//! the elapsed time. Each part of the time in which foreground sessions were not idle (CPU, every wait
//! event, time ready to run without a processor, what is unaccounted) is divided by how many of them were active on
//! average:
//!
//! ```text
//! active sessions = sum of (elapsed - idle) over foreground sessions / elapsed
//! part of elapsed = part / active sessions            the parts sum to the elapsed time
//! ```
//!
//! Why not by the degree: servers of the scan end early and those of the sort wait for them, so that there
//! is no number of lanes by which the parts would add up. Why not by all sessions, idle ones too: the coordinator
//! waits for its servers all the time, and would take a share of every difference.
//!
//! A part of an arm is the mean over its counted runs, one of several arms the mean over these; averages are linear, so that the sum stays exact. What
//! rounding to nanoseconds leaves is with the unaccounted part, which the report derives.
//!
//! Runs that end by the clock last alike whatever they do. Where their elapsed times are the same
//! and their work is not, all times are those of one operation, as comparisons have it. Of a
//! difference that is not told from nothing no share is stated.
//!
//! Phases are the other way to cut a run: by when, not by what for. Of both kinds the difference has an interval over blocks,
//! Student's, each alone: they say which parts are worth looking at, and nothing is proved of them.

use super::CONFIDENCE;
use super::seen::Seen;
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

/// The name of the time on a processor in a database's runs.
const DB_CPU: &str = "DB CPU";
/// How the parts of two sets of a database's runs came about.
const PARTS_OF_ACTIVE: &str = "each part of the time in which foreground sessions were not idle, divided by the average number \
                               of them that was active; means over the runs";
/// The name of the time without a processor.
const RUN_QUEUE: &str = "run queue";
/// Parts by name: wait class and nanoseconds of the elapsed time.
type Parts = BTreeMap<String, (String, f64)>;

/// The decomposition of a claim's difference; none without a run that counts.
pub(super) fn why(seen: &Seen<'_>, claim: &Claim) -> Option<Why> {
    let plan = &seen.contents.plan;
    let sides = claim.sides(&plan.design);
    let name = |arms: &[usize], level: usize| match arms {
        [arm] => plan.arm_name(*arm),
        _ => {
            let factor = &plan.study.factors[claim.change.factor];
            format!("{}={}", factor.name, factor.levels[level].label)
        }
    };
    let (cpu, basis) = plan.study.vocabulary.parts();
    let (from, to) = (seen.records(&sides.from), seen.records(&sides.to));
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
            ends: ends(seen, &sides, |record| {
                let parts = parts(record, cpu);
                let own = parts.iter().filter(|(own, ..)| own == name).map(|(_, _, nanos)| nanos);
                own.sum::<f64>() * factor(record)
            }),
        }
    };
    Some(Why {
        basis: basis.to_string(),
        per: per.map(str::to_string),
        ends: ends(seen, &sides, |record| record.header.elapsed_ns as f64 * factor(record)),
        reference: name(&sides.from, claim.change.from),
        treatment: name(&sides.to, claim.change.to),
        reference_elapsed_ns: reference_elapsed.round() as u64,
        treatment_elapsed_ns: treatment_elapsed.round() as u64,
        parts: names.into_iter().map(part).collect(),
        phases: phases(seen, &sides),
    })
}

/// Elapsed times, and amounts of work, this near to each other, a share, are the same.
const SAME: f64 = 0.02;

/// The operations of a run, a count; 0 where nothing counts them.
fn done(record: &Record) -> f64 {
    operations(record).map_or(0.0, |(_, count)| count as f64)
}

/// The operation that runs of both sides did more or less often in the same time; none where they
/// did the same work, for then their elapsed times are what differs.
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

/// The phases of both sides' runs, as the first run has them in order.
fn phases(seen: &Seen<'_>, sides: &Sides) -> Vec<PhasePart> {
    let (reference, treatment) = (seen.records(&sides.from), seen.records(&sides.to));
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
        ends: ends(seen, sides, |record| lasted(record, name)),
    };
    names.into_iter().map(part).collect()
}

/// How long a phase of a run lasted in all, nanoseconds.
fn lasted(record: &Record, name: &str) -> f64 {
    let own = record.phases.iter().filter(|phase| phase.name == name);
    own.map(|phase| phase.end_ns.saturating_sub(phase.start_ns) as f64).sum()
}

/// The interval of the difference of a figure over blocks.
fn ends(seen: &Seen<'_>, sides: &Sides, figure: impl Fn(&Record) -> f64) -> Option<EndsNanos> {
    of_differences(&differences(seen, sides, figure))
}

/// The difference of a figure between the means of both sides, by block.
fn differences(seen: &Seen<'_>, sides: &Sides, figure: impl Fn(&Record) -> f64) -> Vec<f64> {
    // The reference's two runs are one arm's.
    let of_arm = |runs: &[&RunRecord], arm: usize| {
        let own = runs.iter().filter(|run| run.arm_index == arm);
        let values: Vec<f64> = own.filter_map(|run| Some(figure(run.record.as_ref()?))).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let mean = |runs: &[&RunRecord], arms: &[usize]| {
        let values: Vec<f64> = arms.iter().filter_map(|arm| of_arm(runs, *arm)).collect();
        values.iter().sum::<f64>() / values.len().max(1) as f64
    };
    seen.blocks.iter().map(|(_, runs)| mean(runs, &sides.to) - mean(runs, &sides.from)).collect()
}

/// How much of the difference is in what the claim's measure takes off, by block: the ratio of the means of the difference of that and of the
/// whole one; none of a measure that takes nothing off, or where the whole is not told from nothing.
pub(super) fn covered(seen: &Seen<'_>, claim: &Claim) -> Option<Covered> {
    let rest = claim.measure.as_ref()?;
    let whole = rest.taken_from().filter(|_| claim.with.is_none())?;
    let sides = claim.sides(&seen.contents.plan.design);
    let wholes = differences(seen, &sides, |record| whole.value(record));
    let parts = differences(seen, &sides, |record| whole.value(record) - rest.value(record));
    let RatioOfMeans { ratio: share, interval } = ratio_of_means(&parts, &wholes, 1.0 - CONFIDENCE)?;
    let is_told = interval.low.is_finite();
    let parts = rest.taken_off().iter().map(|part| part.title()).collect();
    is_told.then(|| Covered { parts, of: whole.title(), share, low: interval.low, high: interval.high })
}

/// The decomposition of the difference of two sets of runs, each time of a run times its own factor; none without a run
/// whose sessions did something. Where they are pairs the parts have intervals over them.
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

/// The 95% interval of the mean of differences; none of fewer than two.
fn of_differences(differences: &[f64]) -> Option<EndsNanos> {
    let interval = student::interval(differences, 1.0 - CONFIDENCE)?;
    Some(EndsNanos { low_ns: interval.low.round() as i64, high_ns: interval.high.round() as i64 })
}

/// The mean elapsed time of some runs, and the means of its parts, each time of a run times its own
/// factor.
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

/// What each run is divided by in a mean over arms: these count alike, and the reference has two runs a block.
fn counts(runs: &[(&RunRecord, &Record)]) -> Vec<f64> {
    let mut of_arm: BTreeMap<usize, usize> = BTreeMap::new();
    runs.iter().for_each(|(run, _)| *of_arm.entry(run.arm_index).or_default() += 1);
    runs.iter().map(|(run, _)| (of_arm[&run.arm_index] * of_arm.len()) as f64).collect()
}

/// The parts of one run's elapsed time, the time on a processor under this name, without the unaccounted one.
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

/// The I/O profiles of a typical run of either arm.
pub(super) fn profiles(seen: &Seen<'_>, pair: ArmPair) -> Option<ProfilePair> {
    Some(ProfilePair { reference: typical(seen, pair.reference)?, treatment: typical(seen, pair.treatment)? })
}

/// The run whose elapsed time is the arm's median, the lower of the two in the middle.
fn typical(seen: &Seen<'_>, arm: usize) -> Option<RunProfile> {
    let mut records = seen.records(&[arm]);
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
    fn the_parts_and_what_the_sessions_leave_unaccounted_sum_to_the_elapsed_time() {
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

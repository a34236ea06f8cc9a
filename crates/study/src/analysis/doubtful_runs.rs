//! Counted runs with doubtful circumstances: other work used the machine, or a cache answered.
//!
//! A block holds runs of all arms, so a disturbed block costs precision more than it misleads. A
//! cache that answers instead of the device is part of an arm, and its figures would be taken for
//! the device's.

use super::result::{CachedArm, DoubtfulFact, DoubtfulRuns};
use super::used_blocks::UsedBlocks;
use crate::bundle::RunRecord;
use plumb_record::{Circumstance, Fact, Record};
use std::collections::{BTreeMap, BTreeSet};

/// Summarizes doubtful runs of used blocks; `None` if no run was judged.
pub(super) fn figure(used: &UsedBlocks<'_>) -> Option<DoubtfulRuns> {
    let all: Vec<usize> = (0..used.contents.plan.schedule.arms).collect();
    let runs = used.records(&all);
    let judged = runs.iter().filter(|(_, record)| knows_of_others(record)).count();
    let mut facts: BTreeMap<Fact, Vec<(&RunRecord, &Circumstance)>> = BTreeMap::new();
    for (run, record) in &runs {
        for circumstance in record.doubtful() {
            facts.entry(circumstance.fact).or_default().push((run, circumstance));
        }
    }
    let disturbed = |record: &Record| record.doubtful().any(|found| found.fact.is_disturbance());
    let disturbed: Vec<&RunRecord> =
        runs.iter().filter(|(_, record)| disturbed(record)).map(|(run, _)| *run).collect();
    let known = runs.iter().any(|(_, record)| record.circumstances.is_some());
    known.then(|| DoubtfulRuns {
        runs: runs.len() as u64,
        judged: judged as u64,
        disturbed: disturbed.len() as u64,
        disturbed_blocks: blocks(disturbed.iter().copied()),
        facts: facts.into_iter().filter_map(|(fact, found)| of_fact(fact, &found)).collect(),
        cached: cached(used),
    })
}

/// True if the machine's use by others could be separated from the run's own.
fn knows_of_others(record: &Record) -> bool {
    let mut found = record.circumstances.iter().flatten();
    found.any(|found| matches!(found.fact, Fact::Device | Fact::Processors))
}

fn blocks<'a>(runs: impl Iterator<Item = &'a RunRecord>) -> u64 {
    runs.filter_map(|run| run.block).collect::<BTreeSet<_>>().len() as u64
}

fn of_fact(fact: Fact, found: &[(&RunRecord, &Circumstance)]) -> Option<DoubtfulFact> {
    let (run, most) = found.iter().max_by(|one, two| one.1.share.total_cmp(&two.1.share))?;
    Some(DoubtfulFact {
        fact,
        runs: found.len() as u64,
        blocks: blocks(found.iter().map(|(run, _)| *run)),
        most: most.share,
        run: run.number,
        arm: run.arm.clone(),
        evidence: most.evidence.clone(),
    })
}

/// Returns the arms most of whose runs read from the page cache, with the mean of their shares.
fn cached(used: &UsedBlocks<'_>) -> Vec<CachedArm> {
    let of_arm = |arm: usize| {
        let records = used.records(&[arm]);
        let found = records.iter().flat_map(|(_, record)| record.doubtful());
        let shares: Vec<f64> =
            found.filter(|found| found.fact == Fact::PageCache).map(|found| found.share).collect();
        let most = 2 * shares.len() > records.len();
        most.then(|| CachedArm { arm, share: shares.iter().sum::<f64>() / shares.len() as f64 })
    };
    (0..used.contents.plan.schedule.arms).filter_map(of_arm).collect()
}

impl DoubtfulRuns {
    /// True if some arms read from memory and others did not.
    pub(super) fn compares_memory_with_a_device(&self, arms: usize) -> bool {
        !self.cached.is_empty() && self.cached.len() < arms
    }

    /// Returns the remark on an arm that read from memory, for its claim's verdict.
    #[must_use]
    pub fn of_arm(&self, arm: usize, name: &str, arms: usize) -> Option<String> {
        let cached = self.cached.iter().find(|cached| cached.arm == arm)?;
        let what = match self.compares_memory_with_a_device(arms) {
            true => "this compares memory with a device",
            false => "this measures memory",
        };
        let share = 100.0 * cached.share;
        Some(format!("{share:.0}% of the reads of {name} were answered by the page cache: {what}"))
    }
}

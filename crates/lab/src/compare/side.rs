//! What is compared: a run, or an arm of a study with its runs.
//!
//! A study's bundle is read as everything else that follows from it is: with its checksums, its plan and its order.

use super::{Pairing, Period};
use crate::LabError;
use crate::bundle::{CALIBRATION, Contents, RUNS, run_record};
use crate::plan::Plan;
use crate::record::Record;
use crate::vocabulary::Kinds;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Both sets of runs, and how they belong together.
#[derive(Debug)]
pub(super) struct Sides {
    pub(super) first: Period,
    pub(super) second: Period,
    pub(super) pairing: Pairing,
    /// What was left out, and why.
    pub(super) remarks: Vec<String>,
}

/// One set of runs, each with its block.
struct Side {
    source: String,
    arm: Option<String>,
    study: Option<PathBuf>,
    runs: Vec<(Option<u64>, Record)>,
}

fn refuse(why: String) -> LabError {
    LabError::Sides { why }
}

impl Sides {
    pub(super) fn read(first: &str, second: &str, kinds: &Kinds) -> Result<Sides, LabError> {
        let (first, second) = (Side::read(first, kinds)?, Side::read(second, kinds)?);
        if first.arm.is_some() && (&first.study, &first.arm) == (&second.study, &second.arm) {
            return Err(refuse(format!("{} is on both sides; name two different arms", first.source)));
        }
        let version = |side: &Side| side.runs.first().map(|(_, run)| run.schema_version);
        if let (Some(one), Some(two)) = (version(&first), version(&second))
            && one != two
        {
            return Err(refuse(format!(
                "{} has records of schema version {one}, and {} of version {two}, in which DB time and CPU mean \
                 something else; compare records of one version",
                first.source, second.source
            )));
        }
        let workload = |side: &Side| side.runs.first().map(|(_, run)| run.header.workload.clone());
        if let (Some(one), Some(two)) = (workload(&first), workload(&second))
            && one != two
        {
            return Err(refuse(format!(
                "{} ran {one}, and {} ran {two}: different workloads do not compare; name two bundles of the same",
                first.source, second.source
            )));
        }
        if first.study.is_some() && first.study == second.study {
            paired(first, second)
        } else {
            Ok(apart(first, second))
        }
    }
}

/// Runs of the same block side by side, without blocks in which a run is missing or wrong.
fn paired(first: Side, second: Side) -> Result<Sides, LabError> {
    let by_block = |side: Side| {
        let runs = side.runs.into_iter().filter_map(|(block, run)| Some((block?, run)));
        (Period { source: side.source, arm: side.arm, runs: Vec::new() }, runs.collect::<BTreeMap<_, _>>())
    };
    let ((mut first, ours), (mut second, mut theirs)) = (by_block(first), by_block(second));
    let blocks = ours.len().max(theirs.len());
    for (block, one) in ours {
        if let Some(two) = theirs.remove(&block)
            && [&one, &two].iter().all(|run| run.checks.iter().all(|check| check.passed))
        {
            first.runs.push(one);
            second.runs.push(two);
        }
    }
    let used = first.runs.len();
    if used == 0 {
        let why =
            "no block in which both arms finished and were verified; resume the study, or compare other arms";
        return Err(LabError::NoRuns { path: PathBuf::from(first.source), why: why.to_string() });
    }
    let left_out =
        format!("{} of {blocks} blocks left out: a run did not finish or failed verification", blocks - used);
    let remarks = if used < blocks { vec![left_out] } else { Vec::new() };
    Ok(Sides { first, second, pairing: Pairing::Blocks, remarks })
}

fn apart(first: Side, second: Side) -> Sides {
    let period = |side: Side| Period {
        source: side.source,
        arm: side.arm,
        runs: side.runs.into_iter().map(|(_, run)| run).collect(),
    };
    let single = first.runs.len() == 1 || second.runs.len() == 1;
    let pairing = if single { Pairing::Single } else { Pairing::Apart };
    Sides { first: period(first), second: period(second), pairing, remarks: Vec::new() }
}

impl Side {
    fn read(named: &str, kinds: &Kinds) -> Result<Side, LabError> {
        let path = Path::new(named);
        if path.exists() {
            return Side::single(named, path, kinds);
        }
        // A path may have colons too.
        let splits = named.match_indices(':').map(|(at, _)| (&named[..at], &named[at + 1..]));
        let mut studies = splits.filter(|(bundle, _)| Path::new(bundle).join(RUNS).is_dir());
        match studies.next() {
            Some((bundle, arm)) => Side::of_study(bundle, arm, kinds),
            None => Err(LabError::BundleRead {
                path: path.to_path_buf(),
                why: "there is no such file or directory; name a bundle of `plumb run`, or BUNDLE:ARM of a study"
                    .to_string(),
            }),
        }
    }

    fn single(named: &str, path: &Path, kinds: &Kinds) -> Result<Side, LabError> {
        if path.join(RUNS).is_dir() {
            let (_, contents) = Contents::read(path, kinds)?;
            return Err(refuse(format!(
                "{named} is the bundle of a study; name an arm, as in {named}:1; its arms are {}",
                arms(&contents.plan)
            )));
        }
        if path.join(CALIBRATION).exists() {
            return Err(refuse(format!(
                "{named} is the bundle of a calibration; name those of runs, or of arms of a study: a new calibration \
                 compares itself with the one before it"
            )));
        }
        let (_, record) = run_record(path)?;
        Ok(Side { source: named.to_string(), arm: None, study: None, runs: vec![(None, record)] })
    }

    fn of_study(bundle: &str, named: &str, kinds: &Kinds) -> Result<Side, LabError> {
        let path = Path::new(bundle);
        let (_, contents) = Contents::read(path, kinds)?;
        if !contents.has_ended() {
            return Err(refuse(format!(
                "{bundle} has not ended, and a look at its figures would be a test with a price; go on with `plumb study \
                 --resume {bundle}`, or end it where it is with `plumb report --end {bundle}`"
            )));
        }
        let Contents { plan, runs, .. } = contents;
        let count = plan.design.arms.len();
        let number = named.parse().ok().and_then(|number: usize| number.checked_sub(1));
        let by_name = (0..count).find(|arm| plan.arm_name(*arm) == named);
        let Some(arm) = by_name.or(number.filter(|arm| *arm < count)) else {
            return Err(refuse(format!("{bundle} has no arm {named:?}; its arms are {}", arms(&plan))));
        };
        // The second run of the reference is in a slot of its own.
        let ours = runs.into_iter().filter(|run| run.slot == arm && run.block.is_some());
        let runs: Vec<_> = ours.filter_map(|run| Some((run.block, run.record?))).collect();
        let name = plan.arm_name(arm);
        if runs.is_empty() {
            let why = format!("no run of arm {name} finished; resume the study, or name another arm");
            return Err(LabError::NoRuns { path: path.to_path_buf(), why });
        }
        let study = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        Ok(Side { source: bundle.to_string(), arm: Some(name), study: Some(study), runs })
    }
}

fn arms(plan: &Plan) -> String {
    let arms = (0..plan.design.arms.len()).map(|arm| format!("{} ({})", arm + 1, plan.arm_name(arm)));
    arms.collect::<Vec<_>>().join(", ")
}

//! A side of a comparison: a run, or an arm of a study with its runs.
//!
//! A study's bundle is read with its checksums, its plan and its order, as for an analysis.

use super::measure_question::{self, MeasureQuestion};
use super::{Pairing, Period, SideReader};
use crate::StudyError;
use crate::bundle::{CALIBRATION, Contents, RUNS, run_period, run_record};
use crate::plan::Plan;
use crate::vocabulary::Kinds;
use plumb_record::Record;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Both sets of runs and their pairing.
#[derive(Debug)]
pub(super) struct Sides {
    pub(super) first: Period,
    pub(super) second: Period,
    pub(super) pairing: Pairing,
    /// Measures and claims of their study, if they are arms of one.
    pub(super) asked: Vec<MeasureQuestion>,
    /// Sentences about runs left out, with the reason.
    pub(super) remarks: Vec<String>,
}

/// One set of runs, each with its block.
struct Side {
    source: String,
    study: Option<OfStudy>,
    runs: Vec<(Option<u64>, Record)>,
}

struct OfStudy {
    /// Canonical path of the bundle.
    bundle: PathBuf,
    arm: usize,
    contents: Contents,
}

impl OfStudy {
    /// Returns the arm's warm-up with a plan; a copy without names has an empty one.
    fn explained(&self) -> Option<&Record> {
        let runs = self.contents.runs.iter().filter(|run| run.arm_index == self.arm);
        let has_plan = |record: &&Record| record.plan.as_ref().is_some_and(|plan| !plan.is_empty());
        runs.filter_map(|run| run.record.as_ref()).find(has_plan)
    }
}

fn refuse(why: String) -> StudyError {
    StudyError::Sides { why }
}

impl Sides {
    pub(super) fn read(
        named: [&str; 2],
        kinds: &Kinds,
        reading: SideReader<'_>,
    ) -> Result<Sides, StudyError> {
        let [first, second] = named.map(|named| match reading(named) {
            Some(Ok(record)) => {
                Ok(Side { source: named.to_string(), study: None, runs: vec![(None, record)] })
            }
            Some(Err(why)) => Err(refuse(why)),
            None => Side::read(named, kinds),
        });
        let (first, second) = (first?, second?);
        let same = match (&first.study, &second.study) {
            (Some(one), Some(two)) if one.bundle == two.bundle => Some((one, two)),
            _ => None,
        };
        if same.is_some_and(|(one, two)| one.arm == two.arm) {
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
        // An imported report names its database in place of a workload.
        let imported = |side: &Side| side.runs.iter().any(|(_, run)| run.imported.is_some());
        let is_imported = imported(&first) || imported(&second);
        if let (Some(one), Some(two)) = (workload(&first), workload(&second))
            && one != two
            && !is_imported
        {
            return Err(refuse(format!(
                "{} ran {one}, and {} ran {two}: different workloads do not compare; name two bundles of the same",
                first.source, second.source
            )));
        }
        match same.map(|(one, two)| measure_question::of_study(&one.contents, one.arm, two.arm)) {
            Some(asked) => paired(first, second, asked),
            None => {
                let mut sides = apart(first, second);
                let warning = "an imported report is of other work, or of other data: only rates compare";
                sides.remarks.extend(is_imported.then(|| warning.to_string()));
                Ok(sides)
            }
        }
    }
}

/// Pairs runs of the same block; a block with a missing or wrong run is left out.
fn paired(first: Side, second: Side, asked: Vec<MeasureQuestion>) -> Result<Sides, StudyError> {
    let by_block = |side: Side| {
        let (period, runs) = side.into_period();
        let runs = runs.into_iter().filter_map(|(block, run)| Some((block?, run)));
        (period, runs.collect::<BTreeMap<_, _>>())
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
        return Err(StudyError::NoRuns { path: PathBuf::from(first.source), why: why.to_string() });
    }
    let left_out =
        format!("{} of {blocks} blocks left out: a run did not finish or failed verification", blocks - used);
    let remarks = if used < blocks { vec![left_out] } else { Vec::new() };
    Ok(Sides { first, second, pairing: Pairing::Blocks, asked, remarks })
}

/// Reads the runs of one side, which is compared with nothing.
pub(super) fn period(named: &str, kinds: &Kinds) -> Result<Period, StudyError> {
    Side::read(named, kinds).map(Side::whole)
}

fn apart(first: Side, second: Side) -> Sides {
    let single = first.runs.len() == 1 || second.runs.len() == 1;
    let pairing = if single { Pairing::Single } else { Pairing::Apart };
    let (first, second) = (first.whole(), second.whole());
    Sides { first, second, pairing, asked: Vec::new(), remarks: Vec::new() }
}

impl Side {
    fn whole(self) -> Period {
        let (period, runs) = self.into_period();
        Period { runs: runs.into_iter().map(|(_, run)| run).collect(), ..period }
    }

    /// Returns the set without its runs, and the runs.
    fn into_period(self) -> (Period, Vec<(Option<u64>, Record)>) {
        let arm = self.study.as_ref().map(|study| study.contents.plan.arm_name(study.arm));
        let explained = self.study.as_ref().and_then(OfStudy::explained);
        let plan = explained.and_then(|record| record.plan.clone());
        let request_sizes = explained.and_then(|record| record.request_sizes.clone());
        (Period { source: self.source, arm, runs: Vec::new(), plan, request_sizes }, self.runs)
    }

    fn read(named: &str, kinds: &Kinds) -> Result<Side, StudyError> {
        let path = Path::new(named);
        if path.exists() {
            return Side::single(named, path, kinds);
        }
        // A path may contain colons, too.
        let splits = || named.match_indices(':').map(|(at, _)| (&named[..at], &named[at + 1..]));
        if let Some((bundle, arm)) = splits().find(|(bundle, _)| Path::new(bundle).join(RUNS).is_dir()) {
            return Side::of_study(bundle, arm, kinds);
        }
        match splits().find_map(|(bundle, period)| Some((Path::new(bundle), snapshots(period)?))) {
            Some((bundle, period)) if bundle.exists() => {
                let (_, record) = run_period(bundle, period)?;
                Ok(Side { source: named.to_string(), study: None, runs: vec![(None, record)] })
            }
            _ => Err(StudyError::BundleRead {
                path: path.to_path_buf(),
                why: "there is no such file or directory; name a bundle of `plumb run`, BUNDLE:3-7 for the period between two of \
                      its snapshots, or BUNDLE:ARM of a study"
                    .to_string(),
            }),
        }
    }

    fn single(named: &str, path: &Path, kinds: &Kinds) -> Result<Side, StudyError> {
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
        Ok(Side { source: named.to_string(), study: None, runs: vec![(None, record)] })
    }

    fn of_study(bundle: &str, named: &str, kinds: &Kinds) -> Result<Side, StudyError> {
        let path = Path::new(bundle);
        let (_, contents) = Contents::read(path, kinds)?;
        if !contents.has_ended() {
            return Err(refuse(format!(
                "{bundle} has not ended, and a look at its figures would be a test with a price; go on with `plumb study \
                 --resume {bundle}`, or end it where it is with `plumb report --end {bundle}`"
            )));
        }
        let plan = &contents.plan;
        let count = plan.design.arms.len();
        let number = named.parse().ok().and_then(|number: usize| number.checked_sub(1));
        let by_name = (0..count).find(|arm| plan.arm_name(*arm) == named);
        let Some(arm) = by_name.or(number.filter(|arm| *arm < count)) else {
            return Err(refuse(format!("{bundle} has no arm {named:?}; its arms are {}", arms(plan))));
        };
        // The second run of the reference is in a slot of its own, and left out.
        let ours = contents.runs.iter().filter(|run| run.slot == arm && run.block.is_some());
        let runs: Vec<_> = ours.filter_map(|run| Some((run.block, run.record.clone()?))).collect();
        if runs.is_empty() {
            let why = format!(
                "no run of arm {} finished; resume the study, or name another arm",
                plan.arm_name(arm)
            );
            return Err(StudyError::NoRuns { path: path.to_path_buf(), why });
        }
        let study =
            OfStudy { bundle: path.canonicalize().unwrap_or_else(|_| path.to_path_buf()), arm, contents };
        Ok(Side { source: bundle.to_string(), study: Some(study), runs })
    }
}

/// Parses the snapshots of `3-7`.
fn snapshots(period: &str) -> Option<(usize, usize)> {
    let (first, last) = period.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

fn arms(plan: &Plan) -> String {
    let arms = (0..plan.design.arms.len()).map(|arm| format!("{} ({})", arm + 1, plan.arm_name(arm)));
    arms.collect::<Vec<_>>().join(", ")
}

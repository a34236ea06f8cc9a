//! The runs that a side of a comparison names: `BUNDLE`, or `BUNDLE:ARM` of a study.
//!
//! A bundle of `plumb run` gives one run. A study's gives the runs of an arm, by its name or by its number
//! in the report; the reference's second run of a block, which is there to measure noise, is left
//! aside. Two arms of one study are paired by block: what both ran in the same block, in random
//! order, compares. A block in which either run did not finish or failed verification is left out, and
//! the report says so.

use crate::calibrate::CALIBRATION;
use crate::failure::Failure;
use plumb_report::ReportContext;
use plumb_report::compare::{Pairing, Period};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The directory of a study's runs, in its bundle.
const RUNS: &str = "runs";
/// The record of a single run, in its bundle.
const RECORD: &str = "record.json";

/// What is compared.
#[derive(Debug)]
pub struct Sides {
    /// The first.
    pub first: Period,
    /// The second.
    pub second: Period,
    /// How their runs belong together.
    pub pairing: Pairing,
    /// What was left out, a sentence each.
    pub remarks: Vec<String>,
}

/// One side as it was read.
struct Side {
    source: String,
    arm: Option<String>,
    /// The study that it is an arm of.
    study: Option<PathBuf>,
    runs: Vec<Run>,
}

/// A run that finished.
struct Run {
    block: Option<u64>,
    record: ReportContext,
}

/// What a study keeps of a run, as far as a comparison needs it.
#[derive(Deserialize)]
struct StoredRun {
    arm: String,
    arm_index: usize,
    /// None for a warm-up.
    block: Option<u64>,
    slot: usize,
    /// None when it did not finish.
    record: Option<serde_json::Value>,
}

impl Sides {
    /// Reads both sides.
    ///
    /// # Errors
    /// When one is no bundle or no arm, when both are the same, or when they ran different workloads.
    pub fn read(first: &str, second: &str) -> Result<Sides, Failure> {
        let (first, second) = (Side::read(first)?, Side::read(second)?);
        if first.arm.is_some() && (&first.study, &first.arm) == (&second.study, &second.arm) {
            return Err(Failure::usage(format!(
                "{} is on both sides; name two different arms",
                first.source
            )));
        }
        let workload = |side: &Side| side.runs.first().map(|run| run.record.header.workload.clone());
        if let (Some(one), Some(two)) = (workload(&first), workload(&second))
            && one != two
        {
            return Err(Failure::usage(format!(
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

/// Two arms of one study, block by block.
fn paired(first: Side, second: Side) -> Result<Sides, Failure> {
    let by_block = |side: Side| {
        let runs = side.runs.into_iter().filter_map(|run| Some((run.block?, run.record)));
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
        return Err(Failure::run(format!(
            "{}: no block in which both arms finished and were verified; resume the study, or compare other arms",
            first.source
        )));
    }
    let left_out =
        format!("{} of {blocks} blocks left out: a run did not finish or failed verification", blocks - used);
    let remarks = if used < blocks { vec![left_out] } else { Vec::new() };
    Ok(Sides { first, second, pairing: Pairing::Blocks, remarks })
}

/// Two sets that were not run together.
fn apart(first: Side, second: Side) -> Sides {
    let period = |side: Side| Period {
        source: side.source,
        arm: side.arm,
        runs: side.runs.into_iter().map(|run| run.record).collect(),
    };
    let single = first.runs.len() == 1 || second.runs.len() == 1;
    let pairing = if single { Pairing::Single } else { Pairing::Apart };
    Sides { first: period(first), second: period(second), pairing, remarks: Vec::new() }
}

impl Side {
    fn read(named: &str) -> Result<Side, Failure> {
        let path = Path::new(named);
        if path.exists() {
            return Side::single(named, path);
        }
        // An arm's name may hold colons, and so may a path: the first split at a study's bundle counts.
        let splits = named.match_indices(':').map(|(at, _)| (&named[..at], &named[at + 1..]));
        let mut studies = splits.filter(|(bundle, _)| Path::new(bundle).join(RUNS).is_dir());
        match studies.next() {
            Some((bundle, arm)) => Side::of_study(bundle, arm),
            None => Err(Failure::run(format!(
                "cannot read {named}: there is no such file or directory; name a bundle of `plumb run`, or BUNDLE:ARM of a study"
            ))),
        }
    }

    /// The run of a bundle.
    fn single(named: &str, path: &Path) -> Result<Side, Failure> {
        if path.join(RUNS).is_dir() {
            let arms = arms(&stored(path)?);
            return Err(Failure::usage(format!(
                "{named} is the bundle of a study; name an arm, as in {named}:1; its arms are {}",
                listed(&arms)
            )));
        }
        if path.join(CALIBRATION).exists() {
            return Err(Failure::usage(format!(
                "{named} is the bundle of a calibration; name those of runs, or of arms of a study: a new calibration \
                 compares itself with the one before it"
            )));
        }
        let record = if path.is_dir() { path.join(RECORD) } else { path.to_path_buf() };
        let text = fs::read_to_string(&record).map_err(|error| {
            Failure::run(format!(
                "cannot read {}: {error}; name a bundle's directory or its {RECORD}",
                record.display()
            ))
        })?;
        let run = Run { block: None, record: parse(&record, &text)? };
        Ok(Side { source: named.to_string(), arm: None, study: None, runs: vec![run] })
    }

    /// The runs of an arm.
    fn of_study(bundle: &str, named: &str) -> Result<Side, Failure> {
        let path = Path::new(bundle);
        let stored = stored(path)?;
        let arms = arms(&stored);
        let number = named.parse().ok().and_then(|number: usize| number.checked_sub(1));
        let known = arms
            .iter()
            .find(|(_, arm)| *arm == named)
            .or_else(|| arms.iter().find(|(index, _)| Some(**index) == number));
        let Some((&arm_index, arm)) = known else {
            return Err(Failure::usage(format!(
                "{bundle} has no arm {named:?}; its arms are {}",
                listed(&arms)
            )));
        };
        let mut runs = Vec::new();
        for (file, run) in stored {
            if run.slot == arm_index
                && run.block.is_some()
                && let Some(record) = run.record
            {
                runs.push(Run { block: run.block, record: parse(&file, &record.to_string())? });
            }
        }
        if runs.is_empty() {
            return Err(Failure::run(format!(
                "{bundle}: no run of arm {arm} finished; resume the study, or name another arm"
            )));
        }
        let study = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        Ok(Side { source: bundle.to_string(), arm: Some(arm.clone()), study: Some(study), runs })
    }
}

fn parse(file: &Path, text: &str) -> Result<ReportContext, Failure> {
    ReportContext::from_json(text).map_err(|error| Failure::run(format!("{}: {error}", file.display())))
}

/// The runs of a study in order of execution, each with its file.
fn stored(bundle: &Path) -> Result<Vec<(PathBuf, StoredRun)>, Failure> {
    let directory = bundle.join(RUNS);
    let unreadable = |path: &Path, error: &dyn std::fmt::Display| {
        Failure::run(format!("cannot read {}: {error}; name a study's bundle that is whole", path.display()))
    };
    let entries = fs::read_dir(&directory).map_err(|error| unreadable(&directory, &error))?;
    let mut files = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| unreadable(&directory, &error))?;
    files.retain(|file| file.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    let mut runs = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).map_err(|error| unreadable(&file, &error))?;
        let run = serde_json::from_str(&text).map_err(|error| unreadable(&file, &error))?;
        runs.push((file, run));
    }
    Ok(runs)
}

/// The names of the arms by their index.
fn arms(runs: &[(PathBuf, StoredRun)]) -> BTreeMap<usize, String> {
    runs.iter().map(|(_, run)| (run.arm_index, run.arm.clone())).collect()
}

fn listed(arms: &BTreeMap<usize, String>) -> String {
    let arms = arms.iter().map(|(index, arm)| format!("{} ({arm})", index + 1));
    arms.collect::<Vec<_>>().join(", ")
}

//! Reads a bundle: the study, its environment and order, and the raw records.

use super::record::{self, EndFile, Environment, OrderFile, RunRecord, Stop};
use super::{END, ENVIRONMENT, Manifest, ORDER, RECORD, RUNS, STUDY};
use crate::plan::{Plan, PlanOptions};
use crate::vocabulary::Kinds;
use crate::{StudyError, definition};
use plumb_units::{Nanos, hex};
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use std::path::Path;

/// Bytes of a hash that distinguishes two studies under one path.
const ID_BYTES: usize = 5;

/// Input of an analysis: the files of a bundle, parsed and checked.
#[derive(Debug, Clone)]
pub struct Contents {
    pub plan: Plan,
    pub environment: Environment,
    /// Runs in order of execution.
    pub runs: Vec<RunRecord>,
    /// End of the study; `None` while it runs, or after it was killed.
    pub end: Option<EndFile>,
}

impl Contents {
    /// True if no further block will run. Figures may be read only then.
    pub fn has_ended(&self) -> bool {
        self.end.is_some_and(|end| end.stop != Stop::Interrupted)
    }

    /// Time that the study has run, without pauses.
    pub fn ran(&self) -> Nanos {
        let ended =
            |run: &RunRecord| run.start_ns + run.record.as_ref().map_or(0, |record| record.header.elapsed_ns);
        let last = self.runs.iter().map(ended).max().unwrap_or(0);
        Nanos(self.end.map_or(last, |end| end.end_ns))
    }

    /// Short name of this study among all studies: a hash of its text and start time.
    pub fn id(&self) -> String {
        let text = format!("{} {}", self.plan.study.hash(), self.environment.begin_ns);
        hex(&Sha256::digest(text)[..ID_BYTES])
    }

    /// Reads a bundle and checks every file against its checksum. Fails if a file is missing, has
    /// changed, or does not parse.
    pub fn read(directory: &Path, kinds: &Kinds) -> Result<(Manifest, Contents), StudyError> {
        let manifest = Manifest::read(directory)?;
        let shown = directory.join(STUDY).display().to_string();
        let study = definition::parse_kept(&shown, &manifest.text(directory, STUDY)?, kinds)?;
        let environment: Environment = parsed(directory, &manifest, ENVIRONMENT)?;
        let order: OrderFile = parsed(directory, &manifest, ORDER)?;
        let plan = Plan::new(study, PlanOptions::default(), order.until, order.seed)?;
        if OrderFile::of(&plan) != order {
            let why = "its order is not the one that study and seed give".to_string();
            return Err(StudyError::Tampered { path: directory.join(ORDER), why });
        }
        // Next to a failed run's record lies its standard error.
        let names = manifest.names().filter(|name| name.starts_with(RUNS) && name.ends_with(RECORD));
        let runs = names.map(|name| record::read(&directory.join(name), &manifest.text(directory, name)?));
        let mut runs: Vec<RunRecord> = runs.collect::<Result<_, _>>()?;
        runs.sort_by_key(|run| run.number);
        runs.iter().try_for_each(|run| fits(&plan, run, directory))?;
        let end = manifest.lists(END).then(|| parsed(directory, &manifest, END)).transpose()?;
        Ok((manifest, Contents { plan, environment, runs, end }))
    }
}

/// Checks that a run has its place in the plan.
fn fits(plan: &Plan, run: &RunRecord, directory: &Path) -> Result<(), StudyError> {
    let planned = match (run.block, run.position) {
        // The warm-up of a resumed study runs the reference.
        (None, 0) => run.arm_index == plan.schedule.reference,
        (block, position) => {
            let block = usize::try_from(block.unwrap_or(0)).unwrap_or(usize::MAX);
            let cells = if block <= plan.study.blocks { plan.block(block) } else { Vec::new() };
            let found = cells.into_iter().find(|cell| cell.position as u64 == position);
            found.is_some_and(|cell| (cell.slot, cell.arm) == (run.slot, run.arm_index))
        }
    };
    let named = run.arm_index < plan.design.arms.len() && plan.arm_name(run.arm_index) == run.arm;
    if planned && named {
        return Ok(());
    }
    let path = directory.join(super::record_name(run.number));
    Err(StudyError::Tampered { path, why: "the order has no such run at this place".to_string() })
}

fn parsed<T: DeserializeOwned>(directory: &Path, manifest: &Manifest, name: &str) -> Result<T, StudyError> {
    let text = manifest.text(directory, name)?;
    serde_json::from_str(&text)
        .map_err(|error| StudyError::BundleRead { path: directory.join(name), why: error.to_string() })
}

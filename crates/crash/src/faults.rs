//! Disks that fail: reads, writes and syncs that end with EIO, a full disk, a flipped bit, and
//! writes that are lost or misdirected.
//!
//! A fault reported by an error loses nothing: the database is opened again on a working disk, and
//! has the acknowledged world. For silent faults the rule is weaker: an error that names the fault,
//! or the right answer, but never a wrong answer without an error. There are two exceptions. At the
//! end of the log, lost records cannot be told from records never written, so an earlier commit's
//! world may be found. If the last write of a table's block was lost, the block is as before it:
//! columns without an index may have older values.

use super::operation::{AfterError, Course, run_noting, steps};
use super::world::{Content, World};
use super::{Base, Run, survivors};
use plumb_engine::EngineError;
use plumb_io::sim::power::Survivors;
use plumb_io::sim::{Faults, MemoryDisk};
use plumb_units::{RowId, SplitMix};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Read,
    Write,
    Sync,
    /// All syncs from a chosen one on.
    Syncs,
    Full,
    Flip,
    Lose,
    Misdirect,
}

pub const FAULTS: [Fault; 8] = [
    Fault::Read,
    Fault::Write,
    Fault::Sync,
    Fault::Syncs,
    Fault::Full,
    Fault::Flip,
    Fault::Lose,
    Fault::Misdirect,
];

/// Counts of runs on disks with a fault.
#[derive(Debug, Default, Clone, Copy)]
pub struct FaultTally {
    pub cycles: u64,
    /// Runs that the fault ended.
    pub ended: u64,
    /// Databases that reported an error when they were opened or read.
    pub named: u64,
    /// Databases whose log ended early.
    pub shorter: u64,
    /// Databases with rows of an earlier commit, in columns without an index.
    pub older: u64,
}

/// Runs on a disk with a fault and checks the result. Panics with the seed after a violation.
pub fn faulty(base: &Base, seed: u64, fault: Fault, tally: &mut FaultTally) {
    let said = || format!("seed {seed} {fault:?}");
    let mut random = SplitMix(seed);
    let disk = base.copy();
    let history = RefCell::new(vec![World::default()]);
    let note = |world: &World| {
        if history.borrow().last() != Some(world) {
            history.borrow_mut().push(world.clone());
        }
    };
    let before = undisturbed(base, &disk, &mut random, note);
    let Run { acknowledged: before, mut written, .. } =
        before.unwrap_or_else(|error| panic!("{}: {error}", said()));
    let disk = disk.restart(Survivors::All);
    disk.plan_faults(plan(fault, &mut random));
    // A log that ends early may lose only commits of the faulty run.
    let begun = history.borrow().len() - 1;
    let run = match base.open(&disk) {
        Ok(instance) => {
            let course = Course { sessions: 2, after_error: AfterError::GoOn };
            run_noting(&instance, &mut random, before, steps(40), course, note)
        }
        Err(error) => Run::ended(before, error),
    };
    let history = history.into_inner();
    written.extend(run.written.iter().cloned());
    tally.cycles += 1;
    tally.ended += u64::from(run.error.is_some());
    let struck = match fault {
        Fault::Flip => Some(flip(&disk, &mut random)),
        _ => disk.struck(),
    };
    let is_silent = matches!(fault, Fault::Flip | Fault::Lose | Fault::Misdirect);
    // A process that ends leaves what it has written. After a failed sync it does not know what
    // that is.
    let left = if is_silent { Survivors::All } else { survivors(&mut random, disk.unsynced()) };
    let found = base.read(&disk.restart(left));
    match (found, is_silent) {
        (Ok(found), _) if run.require(&found).is_ok() => {}
        (Err(_), true) => tally.named += 1,
        (Err(error), false) => panic!("{}: {error}", said()),
        (Ok(found), true) if struck.as_deref().is_some_and(is_log) && history[begun..].contains(&found) => {
            tally.shorter += 1;
        }
        (Ok(found), true) if fault != Fault::Flip && is_older(&run.acknowledged, &found, &written) => {
            tally.older += 1;
        }
        (Ok(found), _) => panic!("{} ({struck:?}): {}", said(), run.acknowledged.difference(&found)),
    }
}

/// True if only the long texts differ, which have no index: each may have any earlier value.
fn is_older(expected: &World, found: &World, written: &BTreeSet<(i64, String)>) -> bool {
    let is_older = |(id, (place, (key, text, long))): (&i64, &(RowId, Content))| {
        let same =
            expected.rows.get(id).is_some_and(|row| (row.0, row.1.0, &row.1.1) == (*place, *key, text));
        same && written.contains(&(*id, long.clone()))
    };
    let same_rows = World { rows: expected.rows.clone(), ..found.clone() };
    same_rows == *expected && found.rows.len() == expected.rows.len() && found.rows.iter().all(is_older)
}

fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "log")
}

fn undisturbed(
    base: &Base,
    disk: &Arc<MemoryDisk>,
    random: &mut SplitMix,
    note: impl FnMut(&World),
) -> Result<Run, EngineError> {
    let instance = base.open(disk)?;
    let course = Course { sessions: 2, after_error: AfterError::End };
    let run = run_noting(&instance, random, World::default(), steps(30), course, note);
    match run.error {
        Some(error) => Err(error),
        None => Ok(run),
    }
}

/// Returns the fault, at a place that most runs reach.
fn plan(fault: Fault, random: &mut SplitMix) -> Faults {
    let nth = Some(1 + random.below(60));
    match fault {
        Fault::Read => Faults { fail_read: nth, ..Faults::default() },
        Fault::Write => Faults { fail_write: nth, ..Faults::default() },
        Fault::Sync => Faults { fail_sync: nth, ..Faults::default() },
        Fault::Syncs => Faults { fail_syncs: nth, ..Faults::default() },
        Fault::Full => Faults { capacity: Some(random.below(100) << 10), ..Faults::default() },
        Fault::Lose => Faults { lose_write: nth, ..Faults::default() },
        Fault::Misdirect => Faults { misdirect_write: nth, ..Faults::default() },
        Fault::Flip => Faults::default(),
    }
}

/// Flips a bit of a file. Returns the file.
fn flip(disk: &MemoryDisk, random: &mut SplitMix) -> PathBuf {
    let paths = disk.paths();
    let path = paths[random.below(paths.len() as u64) as usize].clone();
    let bits = 8 * disk.length(&path).max(1);
    disk.flip_bit(&path, random.below(bits));
    path
}

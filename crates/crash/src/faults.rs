//! Disks that fail: reads, writes and syncs that end with EIO, a disk that is full, a bit that
//! turns, writes that come to nothing or go elsewhere.
//!
//! A fault that an error reports loses nothing: after it, the database is opened again on a disk
//! that works, and has the world of what was acknowledged. Of what a disk does without a word the
//! rule is weaker: an error that names it, or the right answer; and never a wrong one that says
//! nothing. There are two exceptions. At the end of the log, what was there cannot be told from
//! what never was, so the world of an earlier commit may be found. And a block of a table whose
//! last write went nowhere lies there as it was before: columns that no index has may be what they
//! were before.

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

/// A fault of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Read,
    Write,
    Sync,
    /// All syncs from one on.
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
    /// Databases that said what was wrong when they were opened or read.
    pub named: u64,
    /// Databases whose log ended early.
    pub shorter: u64,
    /// Databases with rows of an earlier commit, in columns that no index has.
    pub older: u64,
}

/// A run on a disk with a fault, and the oracle. Panics with the seed when it finds something.
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
    // What is there already does not come to the end of the log.
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
    // A process that ends leaves what it has written; one that had an error of a sync does not know
    // what that is.
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

/// True if all is there, but for the long texts, which no index has: they may be as they once were.
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

/// The fault, at a place that a run comes to in most cases.
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

/// Turns a bit of a file. Gives the file.
fn flip(disk: &MemoryDisk, random: &mut SplitMix) -> PathBuf {
    let paths = disk.paths();
    let path = paths[random.below(paths.len() as u64) as usize].clone();
    let bits = 8 * disk.length(&path).max(1);
    disk.flip_bit(&path, random.below(bits));
    path
}

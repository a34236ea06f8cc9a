//! A disk in memory that loses power.
//!
//! For each file it keeps the bytes that processes see and those on the medium. A write, a
//! truncation and a new name are seen at once and durable after a sync of the file or directory. A
//! write with O_DSYNC becomes durable with the length that it needs, and with no other change of
//! its file. When the power goes, any subset of the unsynced sectors has reached the medium
//! ([`Survivors`]): blocks are torn, and writes between two syncs arrive in any order. From then on
//! each call fails with EIO, and [`MemoryDisk::restart`](super::MemoryDisk::restart) returns the
//! disk that a restarted machine finds.
//!
//! Mechanism: unsynced changes are a list in the order of their calls. A power loss applies the
//! survivors of the list, sector by sector. Every call is a request with a number, at which the
//! power can be cut. A hash covers all requests: two runs with equal hashes issued the same
//! requests in the same order.
//!
//! Assumed, and so not tested:
//! - a sector of 512 bytes is written whole or not at all;
//! - synced bytes stay;
//! - names of one directory become durable in the order of their creation, as in a journal.
//!
//! [`Faults`](super::Faults) has the failures of faulty devices.
//!
//! Limits: one mutex, and a copy of each written byte, so for databases of some hundred kilobytes.

use plumb_events::locked;
use plumb_units::{SplitMix, mix};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// Bytes that are written whole or not at all.
pub const SECTOR: usize = 512;

/// Unsynced changes that have reached the medium when the power goes. Changes are numbered from 0
/// in the order of their calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survivors {
    /// None of the unsynced changes survives.
    None,
    /// Each of the unsynced changes survives.
    All,
    /// All changes but this one survive.
    AllBut(usize),
    /// Only the change of this number survives.
    Only(usize),
    /// All survive, but one change loses every other sector.
    AllTorn(usize),
    /// Each sector survives by a coin toss of this seed.
    Random(u64),
}

/// A change that is not durable yet.
#[derive(Debug, Clone)]
enum Change {
    Write {
        file: usize,
        offset: u64,
        bytes: Vec<u8>,
    },
    Length {
        file: usize,
        bytes: u64,
    },
    /// Names of a directory and their new files: durable all together or not at all.
    Names(Vec<(PathBuf, Option<usize>)>),
}

/// The bytes of a file. Unchanged bytes are shared with the disk from which this one was made.
#[derive(Debug, Clone, Default)]
struct Content {
    seen: Arc<Vec<u8>>,
    durable: Arc<Vec<u8>>,
}

#[derive(Debug, Default)]
struct State {
    contents: Vec<Content>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    pending: Vec<Change>,
    requests: u64,
    hash: u64,
    /// Number of the request at which the power goes.
    fails_at: Option<u64>,
    /// State of the random numbers that the disk draws.
    drawn: SplitMix,
}

/// The medium and the changes not yet durable.
#[derive(Debug, Default)]
pub(super) struct Power(Mutex<State>);

impl Power {
    /// Creates an empty disk; `seed` determines the random numbers that it draws.
    pub(super) fn new(seed: u64) -> Power {
        Power(Mutex::new(State { drawn: SplitMix(seed), ..State::default() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.0)
    }

    pub(super) fn fail_at(&self, request: Option<u64>) {
        self.state().fails_at = request;
    }

    pub(super) fn requests(&self) -> u64 {
        self.state().requests
    }

    pub(super) fn trace_hash(&self) -> u64 {
        self.state().hash
    }

    pub(super) fn unsynced(&self) -> usize {
        self.state().pending.len()
    }

    pub(super) fn draw(&self) -> u128 {
        let mut state = self.state();
        let mut next = || u128::from(state.drawn.draw());
        next() << 64 | next()
    }

    /// Returns the disk that a restarted machine finds.
    pub(super) fn after_power_loss(&self, survivors: Survivors) -> Power {
        let state = self.state();
        let mut contents: Vec<Content> = state.contents.clone();
        let mut names = state.durable_names.clone();
        // Names survive up to the first lost change of each directory, as in a journal.
        let mut names_end: BTreeMap<PathBuf, bool> = BTreeMap::new();
        for (number, change) in state.pending.iter().enumerate() {
            let keeps = |part: usize| survivors.keeps(number, part);
            match change {
                Change::Write { file, offset, bytes } => {
                    for (sector, piece) in
                        bytes.chunks(SECTOR).enumerate().filter(|(sector, _)| keeps(*sector))
                    {
                        put(&mut contents[*file].durable, *offset as usize + sector * SECTOR, piece);
                    }
                }
                Change::Length { file, bytes } if keeps(0) => {
                    Arc::make_mut(&mut contents[*file].durable).resize(*bytes as usize, 0);
                }
                Change::Length { .. } => {}
                Change::Names(changed) => {
                    let ended = names_end.entry(parent(&changed[0].0)).or_default();
                    *ended |= !keeps(0);
                    if !*ended {
                        set_names(&mut names, changed);
                    }
                }
            }
        }
        contents.iter_mut().for_each(|content| content.seen = Arc::clone(&content.durable));
        let state = State {
            contents,
            durable_names: names.clone(),
            names,
            drawn: state.drawn.clone(),
            ..State::default()
        };
        Power(Mutex::new(state))
    }

    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.state().names.keys().cloned().collect()
    }

    pub(super) fn open(&self, path: &Path, create: bool) -> Result<usize, Errno> {
        let mut state = self.state();
        state.request(1, path_hash(path), 0, create as usize)?;
        match (state.names.get(path).copied(), create) {
            (Some(_), true) => Err(Errno::EXIST),
            (Some(file), false) => Ok(file),
            (None, false) => Err(Errno::NOENT),
            (None, true) => {
                let file = state.contents.len();
                state.contents.push(Content::default());
                state.set_names(vec![(path.to_path_buf(), Some(file))]);
                Ok(file)
            }
        }
    }

    pub(super) fn remove(&self, path: &Path) -> Result<(), Errno> {
        let mut state = self.state();
        state.request(2, path_hash(path), 0, 0)?;
        if !state.names.contains_key(path) {
            return Err(Errno::NOENT);
        }
        state.set_names(vec![(path.to_path_buf(), None)]);
        Ok(())
    }

    /// Renames a file, and replaces any file of the new name.
    pub(super) fn rename(&self, from: &Path, to: &Path) -> Result<(), Errno> {
        let mut state = self.state();
        state.request(3, path_hash(to), 0, 0)?;
        let file = *state.names.get(from).ok_or(Errno::NOENT)?;
        state.set_names(vec![(to.to_path_buf(), Some(file)), (from.to_path_buf(), None)]);
        Ok(())
    }

    pub(super) fn exists(&self, path: &Path) -> bool {
        self.state().names.contains_key(path)
    }

    pub(super) fn sync_directory(&self, path: &Path) -> Result<(), Errno> {
        let mut state = self.state();
        state.request(4, path_hash(path), 0, 0)?;
        let of_directory =
            |change: &Change| matches!(change, Change::Names(them) if parent(&them[0].0) == path);
        state.settle(of_directory);
        Ok(())
    }

    pub(super) fn length(&self, file: usize) -> u64 {
        self.state().contents[file].seen.len() as u64
    }

    pub(super) fn set_length(&self, file: usize, bytes: u64) -> Result<(), Errno> {
        let mut state = self.state();
        state.request(5, file as u64, bytes, 0)?;
        Arc::make_mut(&mut state.contents[file].seen).resize(bytes as usize, 0);
        state.pending.push(Change::Length { file, bytes });
        Ok(())
    }

    pub(super) fn read(&self, file: usize, into: &mut [u8], offset: u64) -> Result<usize, Errno> {
        let mut state = self.state();
        state.request(6, file as u64, offset, into.len())?;
        let seen = &state.contents[file].seen;
        let from = (offset as usize).min(seen.len());
        let length = into.len().min(seen.len() - from);
        into[..length].copy_from_slice(&seen[from..from + length]);
        Ok(length)
    }

    pub(super) fn write(&self, file: usize, from: &[u8], offset: u64) -> Result<usize, Errno> {
        let mut state = self.state();
        state.request(7, file as u64, offset, from.len())?;
        put(&mut state.contents[file].seen, offset as usize, from);
        state.pending.push(Change::Write { file, offset, bytes: from.to_vec() });
        Ok(from.len())
    }

    /// Makes the written bytes of the file and its length durable.
    pub(super) fn sync(&self, file: usize) -> Result<(), Errno> {
        let mut state = self.state();
        state.request(8, file as u64, 0, 0)?;
        let of_file = |change: &Change| match change {
            Change::Write { file: it, .. } | Change::Length { file: it, .. } => *it == file,
            Change::Names(_) => false,
        };
        state.settle(of_file);
        Ok(())
    }

    /// Makes these bytes of the file and its length durable, as a write with O_DSYNC does. Changes
    /// of other bytes stay pending.
    pub(super) fn sync_range(&self, file: usize, range: Range<u64>) -> Result<(), Errno> {
        let mut state = self.state();
        state.request(8, file as u64, range.start, (range.end - range.start) as usize)?;
        state.settle(|change| matches!(change, Change::Length { file: it, .. } if *it == file));
        let (start, end) = (range.start as usize, range.end as usize);
        let Content { seen, durable } = &mut state.contents[file];
        if let Some(bytes) = seen.get(start..end) {
            put(durable, start, bytes);
        }
        let pending = std::mem::take(&mut state.pending).into_iter();
        state.pending = pending.flat_map(|change| change.without(file, &range)).collect();
        Ok(())
    }

    /// Returns the disk that another process finds after this one is killed: it sees all writes,
    /// and pending changes stay pending.
    pub(super) fn after_kill(&self) -> Power {
        let state = self.state();
        Power(Mutex::new(State {
            contents: state.contents.clone(),
            names: state.names.clone(),
            durable_names: state.durable_names.clone(),
            pending: state.pending.clone(),
            drawn: state.drawn.clone(),
            ..State::default()
        }))
    }

    /// Flips a bit in the bytes that processes see and in those on the medium.
    pub(super) fn flip(&self, path: &Path, bit: u64) {
        let mut state = self.state();
        let Some(file) = state.names.get(path).copied() else { return };
        let (at, mask) = ((bit / 8) as usize, 1 << (bit % 8));
        let Content { seen, durable } = &mut state.contents[file];
        for bytes in [seen, durable] {
            if let Some(byte) = Arc::make_mut(bytes).get_mut(at) {
                *byte ^= mask;
            }
        }
    }
}

impl Change {
    /// Returns the parts of a write outside of a range that has become durable.
    fn without(self, of: usize, range: &Range<u64>) -> Vec<Change> {
        match self {
            Change::Write { file, offset, bytes } if file == of => {
                let end = offset + bytes.len() as u64;
                let [before, behind] = [offset..range.start.min(end), range.end.max(offset)..end];
                let part = |part: Range<u64>| {
                    let kept =
                        part.start.checked_sub(offset)? as usize..part.end.checked_sub(offset)? as usize;
                    let bytes = bytes.get(kept)?.to_vec();
                    (!bytes.is_empty()).then_some(Change::Write { file, offset: part.start, bytes })
                };
                [part(before), part(behind)].into_iter().flatten().collect()
            }
            other => vec![other],
        }
    }
}

impl State {
    /// Counts and hashes a request; fails if the power is gone.
    fn request(&mut self, kind: u64, what: u64, offset: u64, length: usize) -> Result<(), Errno> {
        if self.fails_at.is_some_and(|at| self.requests >= at) {
            return Err(Errno::IO);
        }
        self.requests += 1;
        for part in [kind, what, offset, length as u64] {
            self.hash = mix(self.hash ^ part).wrapping_add(part);
        }
        Ok(())
    }

    fn set_names(&mut self, changed: Vec<(PathBuf, Option<usize>)>) {
        set_names(&mut self.names, &changed);
        self.pending.push(Change::Names(changed));
    }

    /// Applies the pending changes of a kind to the medium, in order.
    fn settle(&mut self, kind: impl Fn(&Change) -> bool) {
        let (settled, pending) = std::mem::take(&mut self.pending).into_iter().partition(kind);
        self.pending = pending;
        let settled: Vec<Change> = settled;
        for change in settled {
            match change {
                Change::Write { file, offset, bytes } => {
                    put(&mut self.contents[file].durable, offset as usize, &bytes);
                }
                Change::Length { file, bytes } => {
                    Arc::make_mut(&mut self.contents[file].durable).resize(bytes as usize, 0);
                }
                Change::Names(changed) => set_names(&mut self.durable_names, &changed),
            }
        }
    }
}

impl Survivors {
    /// True if a sector of a change has reached the medium.
    pub fn keeps(self, change: usize, sector: usize) -> bool {
        match self {
            Survivors::None => false,
            Survivors::All => true,
            Survivors::AllBut(one) => change != one,
            Survivors::Only(one) => change == one,
            Survivors::AllTorn(one) => change != one || sector.is_multiple_of(2),
            Survivors::Random(seed) => mix(seed ^ mix((change as u64) << 32 | sector as u64)) & 1 == 1,
        }
    }
}

fn set_names(names: &mut BTreeMap<PathBuf, usize>, changed: &[(PathBuf, Option<usize>)]) {
    for (path, file) in changed {
        match file {
            Some(file) => names.insert(path.clone(), *file),
            None => names.remove(path),
        };
    }
}

fn put(bytes: &mut Arc<Vec<u8>>, offset: usize, piece: &[u8]) {
    let bytes = Arc::make_mut(bytes);
    let end = offset + piece.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[offset..end].copy_from_slice(piece);
}

fn parent(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new(".")).to_path_buf()
}

fn path_hash(path: &Path) -> u64 {
    path.as_os_str().as_encoded_bytes().iter().fold(0, |hash, byte| mix(hash ^ u64::from(*byte)))
}

#[cfg(test)]
mod tests;

//! Files in memory, which may be told to fail.
//!
//! As the null device they measure the engine's own cost. In tests they fail on purpose: the n-th
//! read or write returns an error, transfers are short, a quota runs out. Faults are numbers that
//! the test chooses, so the same plan gives the same failure every time.
//!
//! [`record_durable_calls`] lists the calls that make something durable, on any disk, because only
//! the order of syncs and renames survives a loss of power.
//!
//! [`MemoryDisk::with_power`] makes a disk that can lose power: see [`power`].
//!
//! Limits: nothing survives the process.

pub mod power;

use plumb_events::locked;
use power::{Power, Survivors};
use rustix::io::Errno;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};

const CHUNK: usize = 1 << 20;

/// Planned faults; the default has none.
#[derive(Debug, Default)]
pub struct Faults {
    /// The n-th read from now, counted from 1, fails with EIO.
    pub fail_read: Option<u64>,
    /// The n-th write from now, counted from 1, fails with EIO.
    pub fail_write: Option<u64>,
    /// The n-th write from now, counted from 1, succeeds and changes nothing.
    pub lose_write: Option<u64>,
    /// The n-th write from now, counted from 1, succeeds but goes 4 KiB past its place.
    pub misdirect_write: Option<u64>,
    /// The n-th sync from now, counted from 1, fails with EIO.
    pub fail_sync: Option<u64>,
    /// The n-th sync from now, counted from 1, and all later ones fail with EIO.
    pub fail_syncs: Option<u64>,
    /// Every n-th transfer moves only half of what was requested, in units of 512 bytes.
    pub short_every: Option<u64>,
    /// Every n-th call is interrupted (EINTR) before it moves a byte.
    pub interrupt_every: Option<u64>,
    /// Writes fail with ENOSPC after this number of bytes in all.
    pub capacity: Option<u64>,
    /// Writes to files below this directory fail with ENOSPC.
    pub full: Option<PathBuf>,
    /// Space cannot be reserved for a file (EOPNOTSUPP), as on ext2.
    pub no_allocation: bool,
}

/// A call that makes something durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DurableCall {
    /// fdatasync or fsync of a file.
    SyncFile(PathBuf),
    /// fsync of a directory, for its names.
    SyncDirectory(PathBuf),
    /// Rename of a new file to this path: the file was synced, its directory not yet.
    Replace(PathBuf),
}

thread_local! {
    static DURABLE_CALLS: RefCell<Option<Vec<DurableCall>>> = const { RefCell::new(None) };
}

/// Lists the calls of this thread, in order, by which `work` makes something durable.
pub fn record_durable_calls<T>(work: impl FnOnce() -> T) -> (T, Vec<DurableCall>) {
    DURABLE_CALLS.set(Some(Vec::new()));
    let result = work();
    (result, DURABLE_CALLS.take().unwrap_or_default())
}

pub(crate) fn note(call: impl FnOnce() -> DurableCall) {
    DURABLE_CALLS.with_borrow_mut(|calls| {
        if let Some(calls) = calls {
            calls.push(call());
        }
    });
}

/// A set of files in memory.
#[derive(Debug, Default)]
pub struct MemoryDisk {
    files: Mutex<BTreeMap<PathBuf, Arc<MemoryFile>>>,
    faults: Arc<FaultState>,
    /// Contents of a disk that can lose power; `files` is unused then.
    power: Option<Arc<Power>>,
}

#[derive(Debug, Default)]
struct FaultState {
    plan: Mutex<Faults>,
    armed: std::sync::atomic::AtomicBool,
    calls: AtomicU64,
    reads: AtomicU64,
    writes: AtomicU64,
    syncs: AtomicU64,
    written: AtomicU64,
    /// File of the last write that was lost or misdirected.
    struck: Mutex<Option<PathBuf>>,
    stall: Stall,
}

/// Blocks transfers, as a device that no longer answers does.
#[derive(Debug, Default)]
struct Stall {
    state: Mutex<StallState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct StallState {
    standing: Standing,
    /// Number of transfers that are blocked.
    held: usize,
}

/// Part of a device that does not answer.
#[derive(Debug, Default)]
enum Standing {
    #[default]
    Nothing,
    File(PathBuf),
    All,
}

impl Stall {
    fn pass(&self, path: &Path) {
        let mut state = locked(&self.state);
        state.held += 1;
        while match &state.standing {
            Standing::Nothing => false,
            Standing::File(standing) => standing == path,
            Standing::All => true,
        } {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.held -= 1;
    }

    fn set(&self, standing: Standing) {
        locked(&self.state).standing = standing;
        self.changed.notify_all();
    }
}

impl MemoryDisk {
    /// Creates a disk without files and faults.
    pub fn new() -> Arc<MemoryDisk> {
        Arc::new(MemoryDisk::default())
    }

    /// Creates a disk without files that can lose power. `seed` determines the
    /// random numbers that it draws.
    pub fn with_power(seed: u64) -> Arc<MemoryDisk> {
        Arc::new(MemoryDisk { power: Some(Arc::new(Power::new(seed))), ..MemoryDisk::default() })
    }

    fn power(&self) -> &Power {
        self.power.as_deref().expect("the disk was made with power to lose")
    }

    /// True if it can lose power, and so
    /// keeps small files too ([`Disk::replace`](crate::Disk::replace)).
    pub fn has_power(&self) -> bool {
        self.power.is_some()
    }

    /// Cuts the power at request number `request`, counted from 0: that one and all
    /// later fail. `None` cancels it.
    ///
    /// # Panics
    /// When the disk cannot lose power; so do the next functions.
    pub fn lose_power_at(&self, request: Option<u64>) {
        self.power().fail_at(request);
    }

    /// Returns the number of requests since it was made or restarted.
    pub fn requests(&self) -> u64 {
        self.power().requests()
    }

    /// Returns a hash of all requests so far: kind, file, offset and length
    /// of each, in their order.
    pub fn trace_hash(&self) -> u64 {
        self.power().trace_hash()
    }

    /// Returns the number of changes that are not durable yet.
    pub fn unsynced(&self) -> usize {
        self.power().unsynced()
    }

    /// Returns the disk that a machine finds when it restarts after losing power now.
    pub fn restart(&self, survivors: Survivors) -> Arc<MemoryDisk> {
        let power = Some(Arc::new(self.power().after_power_loss(survivors)));
        Arc::new(MemoryDisk { power, ..MemoryDisk::default() })
    }

    /// Returns the disk that the next process finds if this one is killed now,
    /// while the machine runs on.
    pub fn after_kill(&self) -> Arc<MemoryDisk> {
        let power = Some(Arc::new(self.power().after_kill()));
        Arc::new(MemoryDisk { power, ..MemoryDisk::default() })
    }

    /// Flips one bit of a file, also on the medium.
    pub fn flip_bit(&self, path: &Path, bit: u64) {
        self.power().flip(path, bit);
    }

    /// Returns the length of a file in bytes; 0 when it does not exist.
    pub fn length(&self, path: &Path) -> u64 {
        self.open(path, false).map_or(0, |file| file.length())
    }

    /// Returns the file of the last write that was lost or misdirected.
    pub fn struck(&self) -> Option<PathBuf> {
        locked(&self.faults.struck).clone()
    }

    /// Draws a random number from the seed of the disk; `None` without one.
    pub(crate) fn draw(&self) -> Option<u128> {
        self.power.as_ref().map(|power| power.draw())
    }

    pub(crate) fn exists(&self, path: &Path) -> bool {
        match &self.power {
            Some(power) => power.exists(path),
            None => locked(&self.files).contains_key(path),
        }
    }

    pub(crate) fn sync_directory(&self, path: &Path) -> Result<(), Errno> {
        let Some(power) = &self.power else { return Ok(()) };
        self.faults.judge_sync()?;
        power.sync_directory(path)
    }

    /// Writes a whole file next to `path` and renames it over that.
    pub(crate) fn replace(&self, beside: &Path, path: &Path, bytes: &[u8]) -> Result<(), Errno> {
        let Some(power) = &self.power else { return Ok(()) };
        self.faults.judge_whole(beside, bytes.len())?;
        let file = match power.open(beside, true) {
            // Left by an earlier loss of power.
            Err(Errno::EXIST) => power.open(beside, false)?,
            opened => opened?,
        };
        power.set_length(file, 0)?;
        power.write(file, bytes, 0)?;
        power.sync(file)?;
        power.rename(beside, path)
    }

    /// Plans faults from now on, and restarts their counts.
    pub fn plan_faults(&self, faults: Faults) {
        *locked(&self.faults.plan) = faults;
        let FaultState { calls, reads, writes, syncs, written, .. } = &*self.faults;
        for counter in [calls, reads, writes, syncs, written] {
            counter.store(0, Relaxed);
        }
        self.faults.armed.store(true, Relaxed);
    }

    /// Blocks all transfers from now on, until [`MemoryDisk::resume`].
    pub fn stall(&self) {
        self.faults.stall.set(Standing::All);
        self.faults.armed.store(true, Relaxed);
    }

    /// Blocks the transfers of one file.
    pub fn stall_file(&self, path: &Path) {
        self.faults.stall.set(Standing::File(path.to_path_buf()));
        self.faults.armed.store(true, Relaxed);
    }

    /// Lets blocked and later transfers proceed.
    pub fn resume(&self) {
        self.faults.stall.set(Standing::Nothing);
    }

    /// Returns the number of blocked transfers.
    pub fn held(&self) -> usize {
        locked(&self.faults.stall.state).held
    }

    /// Returns the paths of the files that exist.
    pub fn paths(&self) -> Vec<PathBuf> {
        match &self.power {
            Some(power) => power.paths(),
            None => locked(&self.files).keys().cloned().collect(),
        }
    }

    /// Returns the reads and writes since the faults were planned.
    pub fn calls(&self) -> (u64, u64) {
        (self.faults.reads.load(Relaxed), self.faults.writes.load(Relaxed))
    }

    pub(crate) fn open(&self, path: &Path, create: bool) -> Result<Arc<MemoryFile>, Errno> {
        if let Some(power) = &self.power {
            let content = Content::Power(Arc::clone(power), power.open(path, create)?);
            let (path, faults) = (path.to_path_buf(), Arc::clone(&self.faults));
            return Ok(Arc::new(MemoryFile { path, content, faults }));
        }
        let mut files = locked(&self.files);
        match (files.get(path), create) {
            (Some(_), true) => Err(Errno::EXIST),
            (Some(file), false) => Ok(Arc::clone(file)),
            (None, false) => Err(Errno::NOENT),
            (None, true) => {
                let (content, faults) = (Content::Plain(Chunks::default()), Arc::clone(&self.faults));
                let file = Arc::new(MemoryFile { path: path.to_path_buf(), content, faults });
                files.insert(path.to_path_buf(), Arc::clone(&file));
                Ok(file)
            }
        }
    }

    pub(crate) fn remove(&self, path: &Path) -> Result<(), Errno> {
        if let Some(power) = &self.power {
            return power.remove(path);
        }
        locked(&self.files).remove(path).map(|_| ()).ok_or(Errno::NOENT)
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> Result<(), Errno> {
        if let Some(power) = &self.power {
            return if power.exists(to) { Err(Errno::EXIST) } else { power.rename(from, to) };
        }
        let mut files = locked(&self.files);
        if files.contains_key(to) {
            return Err(Errno::EXIST);
        }
        let file = files.remove(from).ok_or(Errno::NOENT)?;
        files.insert(to.to_path_buf(), file);
        Ok(())
    }
}

/// Outcome of a call that returns no error.
enum Fate {
    /// It moves at most this number of bytes.
    Moves(usize),
    /// It reports this number of bytes, and moves none.
    Lost(usize),
    /// It moves this number of bytes to another place.
    Misdirected(usize),
}

/// Distance in bytes from the right place of a misdirected write to the wrong one.
const BESIDE: u64 = 4096;

impl FaultState {
    fn judge(&self, path: &Path, write: bool, length: usize) -> Result<Fate, Errno> {
        if !self.armed.load(Relaxed) {
            return Ok(Fate::Moves(length));
        }
        self.stall.pass(path);
        let plan = locked(&self.plan);
        let call = self.calls.fetch_add(1, Relaxed) + 1;
        let every = |period: Option<u64>| period.is_some_and(|n| call.is_multiple_of(n));
        if every(plan.interrupt_every) {
            return Err(Errno::INTR);
        }
        let (counter, failing) =
            if write { (&self.writes, plan.fail_write) } else { (&self.reads, plan.fail_read) };
        let number = Some(counter.fetch_add(1, Relaxed) + 1);
        if failing == number {
            return Err(Errno::IO);
        }
        if write && plan.full.as_ref().is_some_and(|directory| path.starts_with(directory)) {
            return Err(Errno::NOSPC);
        }
        if write && plan.lose_write == number {
            return Ok(Fate::Lost(length));
        }
        if write && plan.misdirect_write == number {
            return Ok(Fate::Misdirected(length));
        }
        if write
            && let Some(capacity) = plan.capacity
            && self.written.fetch_add(length as u64, Relaxed) + length as u64 > capacity
        {
            return Err(Errno::NOSPC);
        }
        if every(plan.short_every) && length > 512 {
            return Ok(Fate::Moves((length / 2).next_multiple_of(512).min(length - 512)));
        }
        Ok(Fate::Moves(length))
    }

    /// Decides the fate of a file that is written as a whole and synced. An interrupted write is
    /// repeated until all bytes are written.
    fn judge_whole(&self, path: &Path, length: usize) -> Result<(), Errno> {
        while let Err(errno) = self.judge(path, true, length) {
            if errno != Errno::INTR {
                return Err(errno);
            }
        }
        self.judge_sync()
    }

    fn judge_sync(&self) -> Result<(), Errno> {
        let count = self.syncs.fetch_add(1, Relaxed) + 1;
        let plan = locked(&self.plan);
        let fails = plan.fail_sync == Some(count) || plan.fail_syncs.is_some_and(|first| count >= first);
        if fails && self.armed.load(Relaxed) { Err(Errno::IO) } else { Ok(()) }
    }
}

/// A file of a [`MemoryDisk`], shared by those that opened it.
#[derive(Debug)]
pub struct MemoryFile {
    path: PathBuf,
    content: Content,
    faults: Arc<FaultState>,
}

#[derive(Debug)]
enum Content {
    Plain(Chunks),
    /// A disk that can lose power, and the file's number there.
    Power(Arc<Power>, usize),
}

impl MemoryFile {
    pub(crate) fn length(&self) -> u64 {
        match &self.content {
            Content::Plain(chunks) => chunks.length.load(Relaxed),
            Content::Power(power, file) => power.length(*file),
        }
    }

    pub(crate) fn truncate(&self, bytes: u64) -> Result<(), Errno> {
        match &self.content {
            Content::Plain(chunks) => chunks.length.store(bytes, Relaxed),
            Content::Power(power, file) => power.set_length(*file, bytes)?,
        }
        Ok(())
    }

    /// Extends the file without taking space, which writes do. Fails if the quota's
    /// rest is smaller than `bytes`.
    pub(crate) fn allocate(&self, bytes: u64) -> Result<(), Errno> {
        let armed = self.faults.armed.load(Relaxed);
        let plan = locked(&self.faults.plan);
        if armed && plan.capacity.is_some_and(|most| self.faults.written.load(Relaxed) + bytes > most) {
            return Err(Errno::NOSPC);
        }
        if armed && plan.no_allocation {
            return Err(Errno::OPNOTSUPP);
        }
        match &self.content {
            Content::Plain(chunks) => {
                chunks.length.fetch_max(bytes, Relaxed);
                Ok(())
            }
            Content::Power(power, file) => power.set_length(*file, bytes.max(power.length(*file))),
        }
    }

    pub(crate) fn read(&self, into: &mut [u8], offset: u64) -> Result<usize, Errno> {
        let (Fate::Moves(allowed) | Fate::Lost(allowed) | Fate::Misdirected(allowed)) =
            self.faults.judge(&self.path, false, into.len())?;
        let left = self.length().saturating_sub(offset);
        let length = allowed.min(usize::try_from(left).unwrap_or(usize::MAX));
        match &self.content {
            Content::Plain(chunks) => chunks.read(&mut into[..length], offset),
            Content::Power(power, file) => return power.read(*file, &mut into[..length], offset),
        }
        Ok(length)
    }

    pub(crate) fn write(&self, from: &[u8], offset: u64) -> Result<usize, Errno> {
        let strike = || *locked(&self.faults.struck) = Some(self.path.clone());
        let (length, offset) = match self.faults.judge(&self.path, true, from.len())? {
            Fate::Moves(length) => (length, offset),
            Fate::Lost(length) => {
                strike();
                return Ok(length);
            }
            Fate::Misdirected(length) => {
                strike();
                (length, offset + BESIDE)
            }
        };
        match &self.content {
            Content::Plain(chunks) => chunks.write(&from[..length], offset),
            Content::Power(power, file) => return power.write(*file, &from[..length], offset),
        }
        Ok(length)
    }

    /// Writes bytes that are durable when this returns.
    pub(crate) fn write_durable(&self, from: &[u8], offset: u64) -> Result<usize, Errno> {
        let length = self.write(from, offset)?;
        if let Content::Power(power, file) = &self.content {
            self.faults.judge_sync()?;
            power.sync_range(*file, offset..offset + length as u64)?;
        }
        Ok(length)
    }

    /// Plain memory has nothing to flush, but this may fail as planned.
    pub(crate) fn sync(&self) -> Result<(), Errno> {
        self.faults.judge_sync()?;
        match &self.content {
            Content::Plain(_) => Ok(()),
            Content::Power(power, file) => power.sync(*file),
        }
    }
}

/// Bytes in chunks of 1 MiB, each with a lock of its own.
#[derive(Debug, Default)]
struct Chunks {
    chunks: RwLock<Vec<Mutex<Box<[u8]>>>>,
    length: AtomicU64,
}

impl Chunks {
    fn read(&self, into: &mut [u8], offset: u64) {
        let chunks = self.chunks.read().unwrap_or_else(PoisonError::into_inner);
        let mut done = 0;
        while done < into.len() {
            let (chunk, within) = place(offset + done as u64);
            let part = (CHUNK - within).min(into.len() - done);
            let target = &mut into[done..done + part];
            match chunks.get(chunk) {
                Some(bytes) => target.copy_from_slice(&locked(bytes)[within..within + part]),
                None => target.fill(0),
            }
            done += part;
        }
    }

    fn write(&self, from: &[u8], offset: u64) {
        let end = offset + from.len() as u64;
        self.grow(end.div_ceil(CHUNK as u64) as usize);
        let chunks = self.chunks.read().unwrap_or_else(PoisonError::into_inner);
        let mut done = 0;
        while done < from.len() {
            let (chunk, within) = place(offset + done as u64);
            let part = (CHUNK - within).min(from.len() - done);
            locked(&chunks[chunk])[within..within + part].copy_from_slice(&from[done..done + part]);
            done += part;
        }
        self.length.fetch_max(end, Relaxed);
    }

    fn grow(&self, chunk_count: usize) {
        if self.chunks.read().unwrap_or_else(PoisonError::into_inner).len() >= chunk_count {
            return;
        }
        let mut chunks = self.chunks.write().unwrap_or_else(PoisonError::into_inner);
        while chunks.len() < chunk_count {
            chunks.push(Mutex::new(vec![0; CHUNK].into_boxed_slice()));
        }
    }
}

fn place(offset: u64) -> (usize, usize) {
    ((offset / CHUNK as u64) as usize, (offset % CHUNK as u64) as usize)
}

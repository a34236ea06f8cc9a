//! The blocks under recovery: records are done again in them, and they are written.
//!
//! A block that is new in the log, or has an image there, is not read; by the rule of images that is each block at first. When there are too
//! many they are written and given up; those that are changed again are then read back, all that a stretch of log wants at once. Reads and writes are
//! made in the order of the files, as many at a time as the channel takes, and adjacent blocks are written together.

use super::record::{BlockChange, Record, Start};
use super::recovery::LogHome;
use crate::EngineError;
use crate::cache::CacheOptions;
use crate::settings::Setting;
use crate::storage::block;
use crate::storage::tablespace::{Extent, Purpose};
use plumb_events::{Event, IoStream, Session};
use plumb_io::{Arena, Channel, IoBuffer, Operation, Request};
use plumb_units::{BlockAddress, BlockSize, Lsn};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of a write of adjacent blocks, and how many are in flight.
const JOINED: usize = 1 << 20;
const WRITES: usize = 8;
/// Blocks that memory is taken for at a time.
const SLAB: usize = 256;

/// Numbers of blocks follow each other: one multiplication spreads them.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(32) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

type ByAddress = BuildHasherDefault<AddressHasher>;

/// A block under recovery.
struct Recovering {
    purpose: Purpose,
    bytes: IoBuffer,
    /// Whether it is what somebody wrote, or has been made so.
    whole: bool,
    changed: bool,
}

/// Does records again.
pub(super) struct Replay<'a> {
    home: &'a LogHome<'a>,
    session: &'a Session,
    channel: Channel,
    /// Buffers for writes.
    staging: Vec<IoBuffer>,
    /// Memory of blocks that is not in use, by their size.
    spare: HashMap<BlockSize, Vec<IoBuffer>>,
    blocks: HashMap<BlockAddress, Recovering, ByAddress>,
    blocks_max: usize,
    /// Whether blocks have been given up, so that some have to be read back.
    has_given_up: bool,
    /// What may be done again, in the order of place.
    live: Vec<(Extent, Lsn)>,
    /// Blocks that were written.
    pub(super) written: u64,
}

/// Blocks that are kept: as many as the cache has, fewer where there are tablespaces of larger ones.
fn blocks_max(home: &LogHome<'_>) -> usize {
    let (own, largest) = (home.tablespaces.block_size(), home.tablespaces.largest_block());
    let frames = CacheOptions::of(home.settings, Setting::DbCacheSize, own).frame_count;
    (frames * own.bytes() / largest.bytes()).max(16)
}

impl<'a> Replay<'a> {
    pub(super) fn new(home: &'a LogHome<'a>, session: &'a Session) -> Result<Replay<'a>, EngineError> {
        let (arena, staging) = Arena::buffers(JOINED, WRITES)?;
        let mut live = home.live.to_vec();
        live.sort_unstable_by_key(|(extent, _)| (extent.file, extent.block));
        Ok(Replay {
            home,
            session,
            channel: home.access.method.channel(&[&arena])?,
            staging,
            spare: HashMap::default(),
            blocks: HashMap::default(),
            blocks_max: blocks_max(home),
            has_given_up: false,
            live,
            written: 0,
        })
    }

    /// Whether a block is of a segment that was there at that LSN and is still; else the space may be another's now.
    fn is_live(&self, address: BlockAddress, lsn: Lsn) -> bool {
        let place = (address.file.0, address.block.0);
        let behind = self.live.partition_point(|(extent, _)| (extent.file, extent.block) <= place);
        let found = behind.checked_sub(1).map(|at| self.live[at]);
        found.is_some_and(|(extent, created)| {
            extent.file == place.0 && place.1 < extent.block + extent.blocks && lsn >= created
        })
    }

    /// Reads what these records change and what has been given up.
    pub(super) fn prepare<'r>(
        &mut self,
        records: impl Iterator<Item = Record<'r>>,
    ) -> Result<(), EngineError> {
        if !self.has_given_up {
            return Ok(());
        }
        let mut defined: HashSet<BlockAddress, ByAddress> = HashSet::default();
        let mut missing: Vec<(BlockAddress, Purpose)> = Vec::new();
        for record in records {
            for change in record.changes().filter(|change| self.is_live(change.address, record.lsn)) {
                let is_new = !self.blocks.contains_key(&change.address) && defined.insert(change.address);
                if is_new && change.start == Start::Present {
                    missing.push((change.address, change.purpose));
                }
            }
        }
        if self.blocks.len() + missing.len() > self.blocks_max {
            self.give_up()?;
        }
        missing.sort_unstable_by_key(|(address, _)| *address);
        missing.truncate(self.blocks_max);
        self.read(&missing)
    }

    /// Does a record again; `path` is its log file.
    pub(super) fn redo(
        &mut self,
        record: &Record<'_>,
        path: impl Fn() -> PathBuf,
    ) -> Result<(), EngineError> {
        for change in record.changes() {
            if !self.is_live(change.address, record.lsn) {
                continue;
            }
            if !self.blocks.contains_key(&change.address) {
                self.take(&change)?;
            }
            let block = self.blocks.get_mut(&change.address).expect("just taken");
            if block.whole && block::lsn_of(&block.bytes) >= record.lsn.0 {
                continue;
            }
            if !block.whole && change.start == Start::Present {
                return Err(EngineError::CorruptBlock {
                    path: self.home.tablespaces.get(change.purpose).path(change.address).to_path_buf(),
                    address: change.address,
                    what: "checksum",
                    found: "another one".to_string(),
                    expected:
                        "that of its content: the log has no image of the block since the last checkpoint"
                            .to_string(),
                });
            }
            if change.apply(&mut block.bytes, record.lsn).is_none() {
                let why = format!("the record of LSN {} leads out of its block", record.lsn.0);
                return Err(EngineError::Log { path: path(), why });
            }
            (block.whole, block.changed) = (true, true);
        }
        Ok(())
    }

    /// Has a block that is not there yet.
    fn take(&mut self, change: &BlockChange<'_>) -> Result<(), EngineError> {
        if self.blocks.len() >= self.blocks_max {
            self.give_up()?;
        }
        if change.start == Start::Present {
            return self.read(&[(change.address, change.purpose)]);
        }
        // All of it comes from the log, and what it becomes later too.
        let bytes = self.memory(self.block_size(change.purpose))?;
        let block = Recovering { purpose: change.purpose, bytes, whole: false, changed: false };
        self.blocks.insert(change.address, block);
        Ok(())
    }

    fn block_size(&self, purpose: Purpose) -> BlockSize {
        self.home.tablespaces.get(purpose).block_size
    }

    fn memory(&mut self, block_size: BlockSize) -> Result<IoBuffer, EngineError> {
        let spare = self.spare.entry(block_size).or_default();
        if spare.is_empty() {
            *spare = Arena::buffers(block_size.bytes(), SLAB.min(self.blocks_max))?.1;
        }
        Ok(spare.pop().expect("memory was taken"))
    }

    /// Reads blocks, which are in the order of place.
    fn read(&mut self, blocks: &[(BlockAddress, Purpose)]) -> Result<(), EngineError> {
        for (number, (address, purpose)) in blocks.iter().enumerate() {
            let tablespace = self.home.tablespaces.get(*purpose);
            let mut buffer = self.memory(tablespace.block_size)?;
            // What the file does not have is zeros.
            buffer.fill(0);
            let request = Request {
                operation: Operation::ReadAtMost,
                file: Arc::clone(&tablespace.file(address.file)?.file),
                offset: address.block.byte_offset(tablespace.block_size),
                buffer,
                range: 0..tablespace.block_size.bytes(),
                event: Event::DbFileSequentialRead,
                stream: IoStream::CacheReads,
                tag: number as u64,
            };
            while !self.channel.has_room() {
                self.take_in(blocks)?;
            }
            self.channel.submit(self.session, request)?;
        }
        while self.channel.outstanding() > 0 {
            self.take_in(blocks)?;
        }
        Ok(())
    }

    fn take_in(&mut self, asked: &[(BlockAddress, Purpose)]) -> Result<(), EngineError> {
        let completion = self.channel.wait(self.session, Event::DbFileSequentialRead)?;
        let (address, purpose) = asked[completion.tag as usize];
        let whole = block::is_whole(&completion.buffer, address);
        let block = Recovering { purpose, bytes: completion.buffer, whole, changed: false };
        self.blocks.insert(address, block);
        Ok(())
    }

    /// Writes what has changed and forgets all.
    fn give_up(&mut self) -> Result<(), EngineError> {
        self.has_given_up = true;
        self.write()
    }

    /// Writes what has changed, in the order of the files.
    fn write(&mut self) -> Result<(), EngineError> {
        let mut blocks: Vec<_> = self.blocks.drain().collect();
        blocks.sort_unstable_by_key(|(address, _)| *address);
        let changed: Vec<usize> = (0..blocks.len()).filter(|at| blocks[*at].1.changed).collect();
        self.written += changed.len() as u64;
        let mut rest = changed.as_slice();
        while let Some(start) = rest.first() {
            let (first, block) = &blocks[*start];
            let follows = |(number, at): (usize, &usize)| {
                let (address, _) = &blocks[*at];
                address.file == first.file && address.block == first.block.plus(number as u32)
            };
            let most = JOINED / block.bytes.len();
            let count = rest.iter().take(most).enumerate().take_while(|it| follows(*it)).count();
            // Between two adjacent blocks there is none that has not changed.
            let joined = *start..rest[count - 1] + 1;
            rest = &rest[count..];
            self.write_joined(&blocks[joined])?;
        }
        while self.channel.outstanding() > 0 {
            let completion = self.channel.wait(self.session, Event::DbFileParallelWrite)?;
            self.staging.push(completion.buffer);
        }
        for (_, block) in blocks {
            self.spare.entry(self.block_size(block.purpose)).or_default().push(block.bytes);
        }
        Ok(())
    }

    fn write_joined(&mut self, blocks: &[(BlockAddress, Recovering)]) -> Result<(), EngineError> {
        let mut buffer = match self.staging.pop() {
            Some(buffer) => buffer,
            None => self.channel.wait(self.session, Event::DbFileParallelWrite)?.buffer,
        };
        let bytes = blocks[0].1.bytes.len();
        for ((_, block), target) in blocks.iter().zip(buffer.chunks_exact_mut(bytes)) {
            target.copy_from_slice(&block.bytes);
            block::set_checksum(target);
        }
        let (first, purpose) = (blocks[0].0, blocks[0].1.purpose);
        let tablespace = self.home.tablespaces.get(purpose);
        let range: Range<usize> = 0..blocks.len() * bytes;
        let request = Request {
            operation: Operation::Write,
            file: Arc::clone(&tablespace.file(first.file)?.file),
            offset: first.block.byte_offset(tablespace.block_size),
            buffer,
            range,
            event: Event::DbFileParallelWrite,
            stream: if purpose == Purpose::Indx { IoStream::IndexWrites } else { IoStream::DataWrites },
            tag: 0,
        };
        Ok(self.channel.submit(self.session, request)?)
    }

    /// Writes all and makes it durable.
    pub(super) fn finish(&mut self) -> Result<(), EngineError> {
        self.write()?;
        self.home.tablespaces.sync(self.session)
    }
}

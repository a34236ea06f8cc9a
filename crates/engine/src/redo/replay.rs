//! The blocks under recovery: records are applied in frames of the buffer cache, which keeps them.
//!
//! A block that the log formats, or has an image of, is not read. By the rule of images, that is
//! every block at its first change. At the end the blocks stay in the cache as dirty, because no
//! log that they need is released before they are written. So the database opens once its log has
//! been read, and the database writers do the rest. Only blocks of tables read by direct path are
//! written first, because direct reads bypass the cache.
//!
//! If there are too many blocks, all are written and evicted. Those that change again are read
//! back, all blocks of one stretch of log together. Reads and writes go in file order, as many at a
//! time as the channel takes, and adjacent blocks are written together.
//!
//! Rejected: writing all blocks before the database opens. The log of an import is read at the
//! device's speed, and writing as many bytes back takes as long again.

use super::log_home::{LiveExtent, LogHome};
use super::record::{BlockChange, Record, Start};
use crate::EngineError;
use crate::cache::{BufferCache, BufferCaches, CacheReader, ChangingBlock};
use crate::storage::block;
use crate::storage::tablespace::Purpose;
use plumb_events::{Event, IoStream, Session};
use plumb_io::{Arena, Channel, IoBuffer, Operation, Request};
use plumb_units::{BlockAddress, BlockSize, Lsn};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Most bytes of a write of adjacent blocks, and most writes in flight.
const JOINED: usize = 256 << 10;
const WRITES: usize = 32;

/// Hasher for block addresses: one multiplication spreads their consecutive numbers.
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

struct Recovering<'a> {
    purpose: Purpose,
    bytes: ChangingBlock<'a>,
    /// True if the buffer cache reads it, false for direct path.
    cached: bool,
    /// True if it verified when read, or has been restored since.
    whole: bool,
    changed: bool,
}

pub(super) struct Replay<'a> {
    home: &'a LogHome<'a>,
    session: &'a Session,
    channel: Channel,
    frames: CacheReader<'a>,
    /// Buffers for requests, and the bytes of one.
    staging: Vec<IoBuffer>,
    joined: usize,
    blocks: HashMap<BlockAddress, Recovering<'a>, ByAddress>,
    /// Blocks of each size that may still be kept.
    room: Room,
    /// LSN of each evicted block; the block must have it when it is read back.
    given_up: HashMap<BlockAddress, u64, ByAddress>,
    /// Extents in which records apply, sorted by place.
    live: Vec<LiveExtent>,
    /// Changed blocks; one that was evicted in between counts again.
    pub(super) block_count: u64,
    /// The highest LSN among blocks that were read, and its block.
    newest: Option<(u64, BlockAddress, Purpose)>,
}

/// Number of blocks, by block size.
type Room = HashMap<BlockSize, usize>;

/// Returns three quarters of each cache: the rest is for sessions after the recovery.
fn room_in(caches: &BufferCaches) -> Room {
    let of = |cache: &BufferCache| (cache.block_size(), (cache.options().frame_count * 3 / 4).max(1));
    caches.iter().map(of).collect()
}

/// Takes room for one block; `false` if none is left, or no cache has its size.
fn take_one(room: &mut Room, block_size: BlockSize) -> bool {
    let left = room.get_mut(&block_size).filter(|left| **left > 0);
    left.map(|left| *left -= 1).is_some()
}

impl<'a> Replay<'a> {
    pub(super) fn new(home: &'a LogHome<'a>, session: &'a Session) -> Result<Replay<'a>, EngineError> {
        // No more than all frames need: the kernel zeros the memory, much of the time of a short
        // recovery.
        let frames = home.caches.iter().map(|cache| cache.options().frame_count);
        let bytes = home.caches.iter().map(|cache| cache.options().frame_count * cache.block_size().bytes());
        let joined = JOINED.min(bytes.sum());
        let (arena, staging) = Arena::buffers(joined, WRITES.min(frames.sum()))?;
        let mut live = home.live.to_vec();
        live.sort_unstable_by_key(|live| (live.extent.file, live.extent.block));
        Ok(Replay {
            home,
            session,
            channel: home.access.method.channel(&[&arena])?,
            frames: CacheReader::verifying(session, home.caches),
            staging,
            joined,
            blocks: HashMap::default(),
            room: room_in(home.caches),
            given_up: HashMap::default(),
            live,
            block_count: 0,
            newest: None,
        })
    }

    fn extent_of(&self, address: BlockAddress) -> Option<&LiveExtent> {
        let place = (address.file.0, address.block.0);
        let behind = self
            .live
            .partition_point(|live| (live.extent.file, live.extent.block) <= place)
            .checked_sub(1)?;
        let found = &self.live[behind];
        let is_within = found.extent.file == place.0 && place.1 < found.extent.block + found.extent.blocks;
        is_within.then_some(found)
    }

    /// True if a live segment had the block at that LSN. Otherwise its space may be another's now.
    fn is_live(&self, change: &BlockChange<'_>, lsn: Lsn) -> bool {
        self.extent_of(change.address)
            .is_some_and(|live| lsn >= live.created && live.purpose == change.purpose)
    }

    /// Rejects a record with bytes that are no change, or with another tablespace than
    /// the block's file belongs to.
    pub(super) fn require_sound_record(&self, record: &Record<'_>) -> Result<(), String> {
        let other = |change: &BlockChange<'_>| {
            self.extent_of(change.address).filter(|live| live.purpose != change.purpose).is_some()
        };
        let mut bytes = 0;
        for change in record.changes() {
            bytes += change.bytes();
            if other(&change) {
                let (address, name) = (change.address, change.purpose.name());
                return Err(format!(
                    "changes {address} as a block of tablespace {name}, which its file is not of"
                ));
            }
        }
        match bytes == record.change_bytes() {
            true => Ok(()),
            false => {
                Err(format!("has {} bytes of changes, of which {bytes} make sense", record.change_bytes()))
            }
        }
    }

    /// Reads the evicted blocks that these records change.
    pub(super) fn prepare<'r>(
        &mut self,
        records: impl Iterator<Item = Record<'r>>,
    ) -> Result<(), EngineError> {
        if self.given_up.is_empty() {
            return Ok(());
        }
        let mut defined: HashSet<BlockAddress, ByAddress> = HashSet::default();
        let mut missing: Vec<(BlockAddress, Purpose)> = Vec::new();
        for record in records {
            for change in record.changes().filter(|change| self.is_live(change, record.lsn)) {
                let is_new = !self.blocks.contains_key(&change.address) && defined.insert(change.address);
                if is_new && change.start == Start::Present {
                    missing.push((change.address, change.purpose));
                }
            }
        }
        let tablespaces = self.home.tablespaces;
        let fits = |room: &mut Room, purpose| take_one(room, tablespaces.get(purpose).block_size);
        let mut room = self.room.clone();
        if !missing.iter().all(|(_, purpose)| fits(&mut room, *purpose)) {
            self.give_up()?;
        }
        let mut room = self.room.clone();
        missing.sort_unstable_by_key(|(address, _)| *address);
        missing.retain(|(_, purpose)| fits(&mut room, *purpose));
        self.read(&missing)
    }

    /// Applies a record; `path` is its log file.
    pub(super) fn redo(
        &mut self,
        record: &Record<'_>,
        path: impl Fn() -> PathBuf,
    ) -> Result<(), EngineError> {
        for change in record.changes() {
            if !self.is_live(&change, record.lsn) {
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
            self.block_count += u64::from(!block.changed);
            (block.whole, block.changed) = (true, true);
        }
        Ok(())
    }

    /// Loads a block that is not in memory.
    fn take(&mut self, change: &BlockChange<'_>) -> Result<(), EngineError> {
        if self.room.get(&self.block_size(change.purpose)) == Some(&0) {
            self.give_up()?;
        }
        if change.start == Start::Present {
            return self.read(&[(change.address, change.purpose)]);
        }
        // The log has all of it, and all later changes.
        let block = self.frame(change.address, change.purpose)?;
        self.blocks.insert(change.address, block);
        Ok(())
    }

    fn block_size(&self, purpose: Purpose) -> BlockSize {
        self.home.tablespaces.get(purpose).block_size
    }

    /// Takes a frame for a block that is not cached.
    fn frame(&mut self, address: BlockAddress, purpose: Purpose) -> Result<Recovering<'a>, EngineError> {
        let block_size = self.block_size(purpose);
        take_one(&mut self.room, block_size);
        let cached = self.extent_of(address).is_some_and(|live| live.cached);
        let bytes = self.frames.change_new(purpose, address)?;
        Ok(Recovering { purpose, bytes, cached, whole: false, changed: false })
    }

    /// Reads blocks, sorted by address.
    fn read(&mut self, blocks: &[(BlockAddress, Purpose)]) -> Result<(), EngineError> {
        for (number, (address, purpose)) in blocks.iter().enumerate() {
            let tablespace = self.home.tablespaces.get(*purpose);
            let range = 0..tablespace.block_size.bytes();
            while self.staging.is_empty() || !self.channel.has_room() {
                self.take_in(blocks)?;
            }
            let mut buffer = self.staging.pop().expect("just seen to be there");
            // Bytes after the end of the file read as zeros.
            buffer[range.clone()].fill(0);
            let request = Request {
                operation: Operation::ReadAtMost,
                file: Arc::clone(&tablespace.file(address.file)?.file),
                offset: address.block.byte_offset(tablespace.block_size),
                buffer,
                range,
                event: Event::DbFileSequentialRead,
                stream: IoStream::CacheReads,
                tag: number as u64,
            };
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
        let mut block = self.frame(address, purpose)?;
        let length = block.bytes.len();
        block.bytes.copy_from_slice(&completion.buffer[..length]);
        block.whole = block::is_whole(&block.bytes, address);
        let lsn = block::lsn_of(&block.bytes);
        if let Some(written) = self.given_up.get(&address).filter(|written| **written != lsn) {
            let path = self.home.tablespaces.get(purpose).path(address);
            return Err(block::wrong_change(Lsn(lsn), address, path, format!("that of LSN {written}")));
        }
        if block.whole {
            self.newest = self.newest.max(Some((lsn, address, purpose)));
        }
        self.staging.push(completion.buffer);
        self.blocks.insert(address, block);
        Ok(())
    }

    /// Rejects changed blocks that are not valid after their records: a whole batch
    /// may still contain any record. Checked once per block, because no session reads
    /// a block between two records.
    fn require_sound(&self) -> Result<(), EngineError> {
        for (address, block) in self.blocks.iter().filter(|(_, block)| block.changed) {
            let path = self.home.tablespaces.get(block.purpose).path(*address);
            block::verify_made(&block.bytes, *address, path)?;
        }
        Ok(())
    }

    /// Writes all changed blocks and evicts all blocks.
    fn give_up(&mut self) -> Result<(), EngineError> {
        self.require_sound()?;
        self.write(|_| true)?;
        let last = self.blocks.drain().map(|(address, block)| (address, block::lsn_of(&block.bytes)));
        self.given_up.extend(last);
        self.room = room_in(self.home.caches);
        Ok(())
    }

    /// Writes the selected changed blocks in file order.
    fn write(&mut self, which: impl Fn(&Recovering<'_>) -> bool) -> Result<(), EngineError> {
        let changed = self.blocks.iter().filter(|(_, block)| block.changed && which(block));
        let mut addresses: Vec<BlockAddress> = changed.map(|(address, _)| *address).collect();
        addresses.sort_unstable();
        let mut rest = addresses.as_slice();
        while let Some(first) = rest.first() {
            let follows = |(number, at): &(u32, &BlockAddress)| {
                at.file == first.file && at.block == first.block.plus(*number)
            };
            let most = self.joined / self.blocks[first].bytes.len();
            let count = (0..).zip(rest).take(most).take_while(follows).count();
            let (joined, behind) = rest.split_at(count);
            self.write_joined(joined)?;
            rest = behind;
        }
        while self.channel.outstanding() > 0 {
            let completion = self.channel.wait(self.session, Event::DbFileParallelWrite)?;
            self.staging.push(completion.buffer);
        }
        Ok(())
    }

    /// Writes adjacent blocks in one request.
    fn write_joined(&mut self, addresses: &[BlockAddress]) -> Result<(), EngineError> {
        let mut buffer = match self.staging.pop() {
            Some(buffer) => buffer,
            None => self.channel.wait(self.session, Event::DbFileParallelWrite)?.buffer,
        };
        let first = addresses[0];
        let purpose = self.blocks[&first].purpose;
        let tablespace = self.home.tablespaces.get(purpose);
        let bytes = tablespace.block_size.bytes();
        for (address, target) in addresses.iter().zip(buffer.chunks_exact_mut(bytes)) {
            let block = self.blocks.get_mut(address).expect("it has been changed and not given up");
            target.copy_from_slice(&block.bytes);
            block::set_checksum(target);
            block.changed = false;
        }
        let request = Request {
            operation: Operation::Write,
            file: Arc::clone(&tablespace.file(first.file)?.file),
            offset: first.block.byte_offset(tablespace.block_size),
            buffer,
            range: 0..addresses.len() * bytes,
            event: Event::DbFileParallelWrite,
            stream: if purpose == Purpose::Indx { IoStream::IndexWrites } else { IoStream::DataWrites },
            tag: 0,
        };
        Ok(self.channel.submit(self.session, request)?)
    }

    /// Leaves the blocks to the caches, as if the first record of the recovery had changed them. So
    /// no checkpoint completes without writing them. A block changed after the end of the log
    /// proves that the log lost its end.
    pub(super) fn finish(&mut self, Range { start: first, end }: Range<Lsn>) -> Result<(), EngineError> {
        if let Some((lsn, address, purpose)) = self.newest.filter(|(lsn, ..)| *lsn >= end.0) {
            let path = self.home.tablespaces.get(purpose).path(address);
            return Err(block::beyond_log(Lsn(lsn), address, path, end));
        }
        self.require_sound()?;
        self.write(|block| !block.cached)?;
        for (_, block) in self.blocks.drain().filter(|(_, block)| block.changed) {
            block.bytes.changed(first);
        }
        Ok(())
    }
}

//! Reads blocks through the cache: one by address, or several adjacent ones.
//!
//! A missing block is read into its frame by a call of the session itself
//! (`Method::channel_for_one`) and checked: whole, or with `db_block_checksum=off` its header
//! alone. The first access to 8K that a device has just put into memory may take longer than all
//! else in a read. Callers that must not trust the disk (recovery, `check`) use
//! [`CacheReader::verifying`]. Its frame is in the cache while it is being read, so a second
//! session waits for it (`read by other session`).
//!
//! A multiblock read claims frames for all missing blocks. One request reads the span from the
//! first to the last of them into a staging buffer. Only missing blocks are copied from it: of
//! the others the copy in the cache is the valid one. It waits only for its first block, while
//! it holds no frame, because two sessions that each hold frames and wait for more could
//! deadlock. So the read ends before the first block that is not available at once, and the
//! caller continues from there.
//!
//! A prefetch claims frames for missing blocks, adjacent or not. It submits one request each at
//! once (the block layer joins adjacent ones), and waits for all. It never waits for a frame, for
//! the same reason; blocks that it skips are read when they are requested.

use super::buffer_cache::{BlockCheck, BufferCache, Shared};
use super::caches::BufferCaches;
use super::handles::{ChangingBlock, OwnedFrame, PinnedBlock};
use super::latches::{Claim, Patience, WriteAhead};
use crate::EngineError;
use crate::storage::block::{self, Expected};
use crate::storage::tablespace::Purpose;
use plumb_events::{Event, IoStream, Session, Statistic};
use plumb_io::{Arena, Channel, Failed, File, IoBuffer, Operation, Request};
use plumb_units::{BlockAddress, Lsn};
use std::sync::Arc;

/// First touch count of a block that was requested singly.
const TOUCH_SINGLE: u8 = 1;
/// First touch count of a block of a multiblock read: the clock takes it next
/// unless it is requested.
const TOUCH_SCANNED: u8 = 0;

/// A session's reader over the caches of an instance.
#[derive(Debug)]
pub struct CacheReader<'a> {
    session: &'a Session,
    caches: &'a BufferCaches,
    check: BlockCheck,
    own: OneCache<'a>,
    /// Readers for other block sizes, made when first needed.
    sized: Vec<(Purpose, OneCache<'a>)>,
}

impl<'a> CacheReader<'a> {
    /// Makes a reader that verifies blocks as `db_block_checksum` says.
    pub fn new(session: &'a Session, caches: &'a BufferCaches) -> CacheReader<'a> {
        CacheReader::checking(caches.own().options().check, session, caches)
    }

    /// Makes a reader that verifies the checksum of each block
    /// it reads, at any `db_block_checksum`.
    pub fn verifying(session: &'a Session, caches: &'a BufferCaches) -> CacheReader<'a> {
        CacheReader::checking(BlockCheck::Whole, session, caches)
    }

    /// Makes a reader that verifies this part of each block it reads.
    pub fn checking(check: BlockCheck, session: &'a Session, caches: &'a BufferCaches) -> CacheReader<'a> {
        let own = OneCache::new(session, caches.own(), check);
        CacheReader { session, caches, check, own, sized: Vec::new() }
    }

    /// Returns the reader over the cache for a tablespace's block size.
    #[inline]
    fn of(&mut self, purpose: Purpose) -> Result<&mut OneCache<'a>, EngineError> {
        if purpose.own_size().is_none() { Ok(&mut self.own) } else { self.of_size(purpose) }
    }

    fn of_size(&mut self, purpose: Purpose) -> Result<&mut OneCache<'a>, EngineError> {
        let place = match self.sized.iter().position(|(of, _)| *of == purpose) {
            Some(place) => place,
            None => {
                self.sized.push((purpose, OneCache::new(self.session, self.caches.of(purpose)?, self.check)));
                self.sized.len() - 1
            }
        };
        Ok(&mut self.sized[place].1)
    }

    /// Returns the block, from the cache or from its file (`db file sequential read`).
    ///
    /// # Errors
    /// If no cache has its size, the read fails, the block is not the expected one,
    /// or the cache has failed.
    #[inline]
    pub fn get(
        &mut self,
        purpose: Purpose,
        address: BlockAddress,
        expected: Expected,
    ) -> Result<PinnedBlock<'a>, EngineError> {
        self.of(purpose)?.get(purpose, address, expected)
    }

    /// Takes the block exclusively, from the cache or from its file, to change it in place.
    ///
    /// # Errors
    /// The same errors as [`CacheReader::get`].
    pub fn change(
        &mut self,
        purpose: Purpose,
        address: BlockAddress,
        expected: Expected,
    ) -> Result<ChangingBlock<'a>, EngineError> {
        self.of(purpose)?.change(purpose, address, expected)
    }

    /// Takes a frame for a new block; its content on disk is not read.
    ///
    /// # Errors
    /// If no frame is available, no cache has its size, or the cache has failed.
    pub fn change_new(
        &mut self,
        purpose: Purpose,
        address: BlockAddress,
    ) -> Result<ChangingBlock<'a>, EngineError> {
        let reader = self.of(purpose)?;
        reader.shared.begin_new(reader.session, purpose, address)
    }

    /// Reads adjacent blocks of one extent from `first` on, from the cache or, by one
    /// request, from their file (`db file scattered read`). Returns 1 to `count` blocks; the
    /// caller continues after the last.
    ///
    /// # Errors
    /// The same errors as [`CacheReader::get`].
    ///
    /// # Panics
    /// If `count` is less than one.
    pub fn read_multiblock(
        &mut self,
        purpose: Purpose,
        first: BlockAddress,
        count: u32,
        expected: Expected,
    ) -> Result<Vec<PinnedBlock<'a>>, EngineError> {
        self.of(purpose)?.read_multiblock(purpose, first, count, expected)
    }

    /// Reads those of these blocks that are not cached, as far as buffers and free frames
    /// suffice (`db file parallel read`).
    ///
    /// # Errors
    /// The same errors as [`CacheReader::get`].
    pub fn prefetch(
        &mut self,
        purpose: Purpose,
        blocks: &[BlockAddress],
        expected: Expected,
    ) -> Result<(), EngineError> {
        self.of(purpose)?.prefetch(purpose, blocks, expected)
    }
}

/// A reader over one cache.
#[derive(Debug)]
struct OneCache<'a> {
    session: &'a Session,
    shared: &'a Shared,
    check: BlockCheck,
    /// Carries single requests, one at a time.
    alone: Channel,
    /// Carries the requests of a prefetch; opened when first needed.
    ahead: Option<Channel>,
    /// Staging buffer for adjacent blocks; made when first needed, replaced when too small.
    several: Option<IoBuffer>,
}

impl<'a> OneCache<'a> {
    fn new(session: &'a Session, cache: &'a BufferCache, check: BlockCheck) -> OneCache<'a> {
        let shared = cache.shared();
        OneCache {
            session,
            shared,
            check,
            alone: shared.method.channel_for_one(),
            ahead: None,
            several: None,
        }
    }

    #[inline]
    fn get(
        &mut self,
        purpose: Purpose,
        address: BlockAddress,
        expected: Expected,
    ) -> Result<PinnedBlock<'a>, EngineError> {
        self.session.count(Statistic::LogicalReads, 1);
        match self.shared.claim(self.session, purpose, address)? {
            Claim::Hit(pinned) => {
                self.session.count(Statistic::CacheHits, 1);
                self.check_header(&pinned, purpose, expected)?;
                Ok(pinned)
            }
            Claim::Miss(frame) => self.read_single(frame, purpose, address, expected),
            Claim::Unavailable => unreachable!("the session waits"),
        }
    }

    fn change(
        &mut self,
        purpose: Purpose,
        address: BlockAddress,
        expected: Expected,
    ) -> Result<ChangingBlock<'a>, EngineError> {
        loop {
            drop(self.get(purpose, address, expected)?);
            if let Some(block) = self.shared.latches.begin_change(self.session, address)? {
                return Ok(block);
            }
        }
    }

    fn read_multiblock(
        &mut self,
        purpose: Purpose,
        first: BlockAddress,
        count: u32,
        expected: Expected,
    ) -> Result<Vec<PinnedBlock<'a>>, EngineError> {
        assert!(count > 0, "a multiblock read has a first block");
        let mut claims: Vec<Claim<'a>> = Vec::new();
        for index in 0..count.min(self.shared.multiblock_max()) {
            let address = plus(first, index);
            let claim = match index {
                0 => self.shared.claim(self.session, purpose, address)?,
                _ => self.shared.latches.claim(self.session, purpose, address, Patience::Never)?,
            };
            match claim {
                Claim::Unavailable => break,
                claim => claims.push(claim),
            }
        }
        let missing = |claim: &Claim<'_>| matches!(claim, Claim::Miss(_));
        let hits = claims.iter().filter(|claim| !missing(claim)).count();
        self.session.count(Statistic::LogicalReads, claims.len() as u64);
        self.session.count(Statistic::CacheHits, hits as u64);
        let from = claims.iter().position(missing);
        if let (Some(from), Some(last)) = (from, claims.iter().rposition(missing)) {
            self.read_several(purpose, plus(first, from as u32), last + 1 - from)?;
        }
        let from = from.unwrap_or(0);
        let mut pinned = Vec::with_capacity(claims.len());
        for (index, claim) in claims.into_iter().enumerate() {
            pinned.push(match claim {
                Claim::Hit(block) => {
                    assert_eq!(
                        block.address(),
                        plus(first, index as u32),
                        "B2: a hit is the block asked for"
                    );
                    self.check_header(&block, purpose, expected)?;
                    block
                }
                Claim::Miss(mut frame) => {
                    let bytes = self.shared.latches.block_size.bytes();
                    let staging = self.several.as_deref().expect("just read into");
                    let read = &staging[(index - from) * bytes..(index + 1 - from) * bytes];
                    self.verify(read, purpose, plus(first, index as u32), expected)?;
                    frame.bytes_mut().copy_from_slice(read);
                    frame.arrived(self.session, TOUCH_SCANNED)
                }
                Claim::Unavailable => unreachable!("not kept above"),
            });
        }
        Ok(pinned)
    }

    fn prefetch(
        &mut self,
        purpose: Purpose,
        blocks: &[BlockAddress],
        expected: Expected,
    ) -> Result<(), EngineError> {
        let most = self.shared.latches.options.prefetch_blocks.min(self.shared.multiblock_max() as usize);
        let mut frames: Vec<(BlockAddress, Option<OwnedFrame<'a>>)> = Vec::with_capacity(most);
        for address in blocks {
            if frames.len() == most {
                break;
            }
            let frame = self.shared.latches.claim_missing(self.session, purpose, *address)?;
            frames.extend(frame.map(|frame| (*address, Some(frame))));
        }
        if frames.is_empty() {
            return Ok(());
        }
        let mut channel = match self.ahead.take() {
            Some(channel) => channel,
            None => {
                let files = self.shared.tablespaces.files_to_register(self.shared.latches.block_size);
                self.shared.method.channel_to(&files, &[])?
            }
        };
        let mut result = Ok(());
        for (tag, (address, frame)) in frames.iter_mut().enumerate() {
            let event = Event::DbFileParallelRead;
            let read = self.read_into(frame.as_mut().expect("claimed"), event, purpose, *address, tag as u64);
            result = result.and(read.and_then(|request| Ok(channel.submit(self.session, request)?)));
        }
        while channel.outstanding() > 0 {
            let outstanding = channel.outstanding();
            match channel.wait(self.session, Event::DbFileParallelRead) {
                Ok(completion) => {
                    let (address, frame) = &mut frames[completion.tag as usize];
                    let frame = frame.take().expect("a request is complete once");
                    let arrived = self.arrive(frame, completion.buffer, purpose, *address, expected);
                    result = result.and(arrived.map(drop));
                }
                Err(Failed { error, request }) => {
                    if let Some((tag, buffer)) = request {
                        let frame = frames[tag as usize].1.as_mut();
                        frame.expect("a request is complete once").restore(buffer);
                    }
                    result = result.and(Err(error.into()));
                }
            }
            if channel.outstanding() == outstanding {
                // The channel itself is broken; dropping it waits for the rest.
                return result;
            }
        }
        self.ahead = Some(channel);
        result
    }

    fn read_single(
        &mut self,
        mut frame: OwnedFrame<'a>,
        purpose: Purpose,
        address: BlockAddress,
        expected: Expected,
    ) -> Result<PinnedBlock<'a>, EngineError> {
        let request = self.read_into(&mut frame, Event::DbFileSequentialRead, purpose, address, 0)?;
        let mut buffer = None;
        let read = self.alone.carry_out(self.session, request, &mut buffer);
        match (read, buffer) {
            (Ok(_), Some(buffer)) => self.arrive(frame, buffer, purpose, address, expected),
            (read, buffer) => {
                buffer.into_iter().for_each(|buffer| frame.restore(buffer));
                Err(read.expect_err("what was read comes with its buffer").into())
            }
        }
    }

    /// Makes the request that reads a block into the buffer of its frame.
    fn read_into(
        &self,
        frame: &mut OwnedFrame<'a>,
        event: Event,
        purpose: Purpose,
        address: BlockAddress,
        tag: u64,
    ) -> Result<Request, EngineError> {
        let file = self.file(purpose, address)?;
        let bytes = self.shared.latches.block_size.bytes();
        Ok(self.request(event, file, address, (frame.lend(), bytes), tag))
    }

    /// Verifies the block that was read, and makes it available in its frame.
    fn arrive(
        &self,
        mut frame: OwnedFrame<'a>,
        buffer: IoBuffer,
        purpose: Purpose,
        address: BlockAddress,
        expected: Expected,
    ) -> Result<PinnedBlock<'a>, EngineError> {
        self.session.count(Statistic::PhysicalReadBlocks, 1);
        let verified = self.verify(&buffer, purpose, address, expected);
        frame.restore(buffer);
        verified.map(|()| frame.arrived(self.session, TOUCH_SINGLE))
    }

    /// Fills the staging buffer with adjacent blocks.
    fn read_several(
        &mut self,
        purpose: Purpose,
        first: BlockAddress,
        blocks: usize,
    ) -> Result<(), EngineError> {
        let bytes = blocks * self.shared.latches.block_size.bytes();
        let file = self.file(purpose, first)?;
        let buffer = match self.several.take() {
            Some(buffer) if buffer.len() >= bytes => buffer,
            _ => one_buffer(bytes)?,
        };
        let event = if blocks == 1 { Event::DbFileSequentialRead } else { Event::DbFileScatteredRead };
        let request = self.request(event, file, first, (buffer, bytes), 0);
        self.alone.carry_out(self.session, request, &mut self.several)?;
        self.session.count(Statistic::PhysicalReadBlocks, blocks as u64);
        Ok(())
    }

    fn file(&self, purpose: Purpose, address: BlockAddress) -> Result<Arc<File>, EngineError> {
        Ok(Arc::clone(&self.shared.tablespace(purpose).file(address.file)?.file))
    }

    fn request(
        &self,
        event: Event,
        file: Arc<File>,
        first: BlockAddress,
        (buffer, bytes): (IoBuffer, usize),
        tag: u64,
    ) -> Request {
        Request {
            operation: Operation::Read,
            file,
            offset: first.block.byte_offset(self.shared.latches.block_size),
            buffer,
            range: 0..bytes,
            event,
            stream: IoStream::CacheReads,
            tag,
        }
    }

    fn verify(
        &self,
        bytes: &[u8],
        purpose: Purpose,
        address: BlockAddress,
        expected: Expected,
    ) -> Result<(), EngineError> {
        let path = self.shared.tablespace(purpose).path(address);
        match self.check {
            BlockCheck::Whole => {
                self.session.count(Statistic::BlocksVerified, 1);
                block::verify(bytes, expected, address, path)?;
            }
            BlockCheck::Header => {
                self.session.count(Statistic::ChecksumsIgnored, 1);
                block::verify_header(bytes, expected, address, path)?;
            }
        }
        let lsn = Lsn(block::lsn_of(bytes));
        let is_live = expected.lsns.first_record().is_some();
        match self.shared.latches.log().map(WriteAhead::gap) {
            Some(gap) if is_live && gap.contains(&lsn) => {
                Err(block::beyond_log(lsn, address, path, gap.start))
            }
            _ => Ok(()),
        }
    }

    /// Checks the header again, because a cached block may have been read for another segment.
    #[inline]
    fn check_header(
        &self,
        block: &PinnedBlock<'_>,
        purpose: Purpose,
        expected: Expected,
    ) -> Result<(), EngineError> {
        if expected.matches(block) { Ok(()) } else { self.verify(block, purpose, block.address(), expected) }
    }
}

fn plus(first: BlockAddress, blocks: u32) -> BlockAddress {
    BlockAddress { file: first.file, block: first.block.plus(blocks) }
}

fn one_buffer(bytes: usize) -> Result<IoBuffer, EngineError> {
    let (_, mut buffers) = Arena::buffers(bytes, 1)?;
    Ok(buffers.pop().expect("one was asked for"))
}

//! The database writer: a background process that writes dirty blocks.
//!
//! It takes a batch of at most `db_block_write_batch` blocks from the dirty list,
//! oldest first, sorts it by file and block, copies each request's blocks to a
//! staging buffer, and submits them through a channel of its own: as many as it has buffers for by one call, which is
//! timed (`db file async I/O submit`: where the device or the file system does not take writes, it shows there first). When half of
//! them have been written the next half goes the same way. Each completion makes its frames clean at once, so sessions go on before the
//! batch is done.
//!
//! It has four times as many requests in flight as other sessions, 128 by default: its batches are known beforehand, and the more of
//! them the device has, the better it can order them. From 64 on a batch is half of what a common device queue holds (256).
//!
//! With the synchronous method there is one staging buffer and one request at a
//! time: writes of all sessions queue up behind the latency of a single one, and
//! no number of sort servers helps. That is what asynchronous I/O, more writers,
//! or direct writes each remove, and what this path is here to show.
//!
//! Requests are of one block, although joining adjacent ones costs less: a copy of
//! 8K is 1 us, a request 6 us of CPU, and `request_blocks` above one does join.
//! But a sort writes its runs in order, so nearly all of its blocks would be
//! joined, and the writer would do what direct writes do with their large buffers.
//! Four sessions writing 8K blocks through 20M of cache and one writer to a virtual
//! disk: 96 MB/s synchronous, 435 through a ring; with 16 blocks joined 760 and
//! 1,370. Joined, the comparison of the two paths would measure request sizes, and
//! the synchronous writer would look like an asynchronous one.
//!
//! A failed write closes the cache: the blocks of a request that failed are in
//! an unknown state, and the session that made them cannot be told otherwise. The
//! writer ends; others end after the batch they have in hand.

use super::buffer_cache::Shared;
use super::handles::DirtyBlock;
use crate::EngineError;
use crate::storage::block;
use crate::storage::tablespace::Purpose;
use plumb_events::{Event, IoStream, Role, Session, Statistic};
use plumb_io::{Arena, Channel, IoBuffer, MethodKind, Operation, Request};
use plumb_units::Lsn;
use std::ops::Range;
use std::sync::Arc;

/// The life of a database writer.
pub(super) fn run(shared: &Shared, number: usize) {
    // Dropped last: when it is counted as ended its channel is gone.
    let _ending = Ending(shared);
    let session = shared.recorder.numbered_session(Role::DatabaseWriter, number);
    let result = DatabaseWriter::new(shared, &session).and_then(DatabaseWriter::serve);
    if let Err(error) = result {
        shared.latches.fail(error.to_string());
    }
}

/// Writes one batch for a session that carries the writer's role itself.
///
/// # Errors
/// When a write fails: the cache is then closed.
pub(super) fn carry(shared: &Shared, session: &Session) -> Result<(), EngineError> {
    write_batch(shared, session, shared.latches.batch_now(session)?)
}

/// The same of blocks that were first changed before an LSN.
///
/// # Errors
/// As [`carry`].
pub(super) fn carry_changed(shared: &Shared, session: &Session, before: Lsn) -> Result<(), EngineError> {
    write_batch(shared, session, shared.latches.changed_now(session, before)?)
}

fn write_batch(shared: &Shared, session: &Session, batch: Vec<DirtyBlock>) -> Result<(), EngineError> {
    let result = DatabaseWriter::new(shared, session).and_then(|mut writer| writer.write(batch));
    result.inspect_err(|error| shared.latches.fail(error.to_string()))
}

/// Tells the cache that a writer has ended, however it ended.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.latches.fail("a database writer ended by a panic".to_string());
        }
        self.0.latches.writer_ended();
    }
}

/// A writer with its own way to the files.
struct DatabaseWriter<'a> {
    shared: &'a Shared,
    session: &'a Session,
    channel: Channel,
    staging: Vec<IoBuffer>,
    /// How many staging buffers there are, with those in flight.
    depth: usize,
}

/// Requests in flight for each that another session may have.
const DEPTH_FACTOR: usize = 4;
/// The most, whatever a session may have.
const DEPTH_MAX: usize = 256;

impl<'a> DatabaseWriter<'a> {
    fn new(shared: &'a Shared, session: &'a Session) -> Result<DatabaseWriter<'a>, EngineError> {
        let count = match shared.method.kind() {
            MethodKind::Sync => 1,
            MethodKind::Threads | MethodKind::IoUring => {
                // One in flight was asked for by name, and then it is one.
                let factor = if shared.method.queue_depth() > 1 { DEPTH_FACTOR } else { 1 };
                let depth = (shared.method.queue_depth() * factor).min(DEPTH_MAX);
                depth.max(shared.method.queue_depth()).min(shared.latches.options.batch_blocks)
            }
        };
        let bytes = shared.latches.options.request_blocks * shared.latches.block_size.bytes();
        let (arena, staging) = Arena::buffers(bytes, count)?;
        let channel = shared.method.channel_of(count, &[], &[&arena])?;
        Ok(DatabaseWriter { shared, session, channel, staging, depth: count })
    }

    fn serve(mut self) -> Result<(), EngineError> {
        while let Some(batch) = self.shared.latches.next_batch(self.session) {
            self.write(batch)?;
        }
        Ok(())
    }

    fn write(&mut self, mut batch: Vec<DirtyBlock<'_>>) -> Result<(), EngineError> {
        assert_eq!(self.channel.outstanding(), 0, "B8: the batch before is on disk");
        batch.sort_unstable_by_key(|block| block.address);
        self.session.count(Statistic::DbwrBatches, 1);
        let requests = requests(&batch, self.shared.latches.options.request_blocks);
        let submitted = self.submit(&mut batch, &requests);
        let settled = self.settle(&batch, &requests);
        submitted.and(settled)
    }

    /// Submits the batch: as many requests at once as there are buffers, and more when half of them have come back.
    fn submit(&mut self, batch: &mut [DirtyBlock<'_>], requests: &[Range<usize>]) -> Result<(), EngineError> {
        let mut next = 0;
        while next < requests.len() {
            let left = requests.len() - next;
            while self.staging.len() < left.min(self.depth.div_ceil(2)) {
                self.take_in(batch, requests)?;
            }
            for _ in 0..left.min(self.staging.len()) {
                let buffer = self.staging.pop().expect("not more than there are");
                let request = self.request(&mut batch[requests[next].clone()], buffer, next as u64)?;
                self.channel.submit(self.session, request)?;
                next += 1;
            }
            self.channel.flush_as(self.session, Event::DbFileAsyncIoSubmit)?;
        }
        Ok(())
    }

    /// Waits for everything in flight, failed or not. The first error is the one
    /// to report.
    fn settle(&mut self, batch: &[DirtyBlock<'_>], requests: &[Range<usize>]) -> Result<(), EngineError> {
        let mut result = Ok(());
        while self.channel.outstanding() > 0 {
            let outstanding = self.channel.outstanding();
            result = result.and(self.take_in(batch, requests));
            if self.channel.outstanding() == outstanding {
                // The way to the kernel itself is broken; dropping the channel waits.
                break;
            }
        }
        result
    }

    fn take_in(&mut self, batch: &[DirtyBlock<'_>], requests: &[Range<usize>]) -> Result<(), EngineError> {
        let completion = self.channel.wait(self.session, Event::DbFileParallelWrite)?;
        let blocks = &batch[requests[completion.tag as usize].clone()];
        self.session.count(Statistic::PhysicalWriteBlocks, blocks.len() as u64);
        self.session.count(Statistic::PhysicalWritesFromCache, blocks.len() as u64);
        self.shared.latches.written(blocks);
        self.staging.push(completion.buffer);
        Ok(())
    }

    /// Copies adjacent blocks to the buffer; their frames are no longer pinned then.
    fn request(
        &self,
        blocks: &mut [DirtyBlock<'_>],
        mut buffer: IoBuffer,
        tag: u64,
    ) -> Result<Request, EngineError> {
        let block_size = self.shared.latches.block_size;
        let range = 0..blocks.len() * block_size.bytes();
        assert!(range.end <= buffer.len(), "B8: a staging buffer takes a request");
        let (first, purpose) = (blocks[0].address, blocks[0].purpose);
        for (block, target) in blocks.iter_mut().zip(buffer.chunks_exact_mut(block_size.bytes())) {
            let bytes = block.bytes.take().expect("B8: each block is copied once");
            target.copy_from_slice(&bytes);
            if block.logged {
                block::set_checksum(target);
            }
        }
        Ok(Request {
            operation: Operation::Write,
            file: Arc::clone(&self.shared.tablespace(purpose).file(first.file)?.file),
            offset: first.block.byte_offset(block_size),
            buffer,
            range,
            event: Event::DbFileParallelWrite,
            stream: match purpose {
                Purpose::Temp => IoStream::TempWrites,
                Purpose::Indx => IoStream::IndexWrites,
                _ => IoStream::DataWrites,
            },
            tag,
        })
    }
}

/// Cuts a sorted batch into requests of adjacent blocks, at most `blocks_max` in one.
fn requests(batch: &[DirtyBlock<'_>], blocks_max: usize) -> Vec<Range<usize>> {
    let mut requests: Vec<Range<usize>> = Vec::with_capacity(batch.len().div_ceil(blocks_max));
    for (index, block) in batch.iter().enumerate() {
        let joins = |last: &Range<usize>| {
            assert!(batch[index - 1].address < block.address, "B8: each block of a batch is written once");
            let before = batch[last.end - 1].address;
            last.len() < blocks_max
                && before.file == block.address.file
                && before.block.plus(1) == block.address.block
        };
        match requests.last_mut() {
            Some(last) if joins(last) => last.end += 1,
            _ => requests.push(index..index + 1),
        }
    }
    requests
}

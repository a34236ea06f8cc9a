//! The database writer: a background process that writes dirty blocks.
//!
//! It takes a batch of at most `db_block_write_batch` blocks from the dirty list, oldest first,
//! and sorts it by file and block. It copies each request's blocks to a staging buffer and
//! submits, by one call, as many requests as it has buffers for. When half of them have been
//! written it submits the next half. Each completion makes its frames clean at once, so sessions
//! continue before the batch ends. `db file async I/O submit` times the submission, because a slow
//! device or file system shows there first.
//!
//! A writer has four times as many requests in flight as a session, 128 by default: its batches are
//! known beforehand, and the device orders a deep queue better. From `io_queue_depth` 64 on it has
//! 256, as many as a common device queue holds.
//!
//! With the synchronous method there is one staging buffer and one request at a time. Writes of all
//! sessions then queue behind the latency of a single one, and more sort servers do not help.
//! Asynchronous I/O, more writers and direct writes each remove that; this path exists to show it.
//!
//! Requests are of one block, although joining adjacent ones costs less: a copy of 8K takes 1 us, a
//! request 6 us of CPU. `request_blocks` above one joins them. But a sort writes its runs in order,
//! so nearly all of its blocks would be joined. The writer would do what direct writes do with
//! their large buffers. A comparison of the two paths would then measure request sizes, and the
//! synchronous writer would look like an asynchronous one. Four sessions wrote 8K blocks through
//! 20M of cache and one writer to a virtual disk at 96 MB/s synchronous and 435 through a ring;
//! with 16 blocks joined, at 760 and 1,370.
//!
//! A failed write closes the cache: the blocks of the request are in an unknown
//! state, and the session that made them must learn of it. That writer ends; the
//! others end after their current batch.

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

/// Serves batches until the cache stops or fails.
pub(super) fn run(shared: &Shared, number: usize) {
    // Dropped last, so that a writer counted as ended has no channel any more.
    let _ending = Ending(shared);
    let session = shared.recorder.numbered_session(Role::DatabaseWriter, number);
    let result = DatabaseWriter::new(shared, &session).and_then(DatabaseWriter::serve);
    if let Err(error) = result {
        shared.latches.fail(error.to_string());
    }
}

/// Writes one batch in a session that acts as the writer.
///
/// # Errors
/// If a write fails; the cache is then closed.
pub(super) fn carry(shared: &Shared, session: &Session) -> Result<(), EngineError> {
    write_batch(shared, session, shared.latches.batch_now(session)?)
}

/// Writes one batch of blocks first changed before an LSN in the calling session.
///
/// # Errors
/// The same errors as [`carry`].
pub(super) fn carry_changed(shared: &Shared, session: &Session, before: Lsn) -> Result<(), EngineError> {
    write_batch(shared, session, shared.latches.changed_now(session, before)?)
}

fn write_batch(shared: &Shared, session: &Session, batch: Vec<DirtyBlock>) -> Result<(), EngineError> {
    let result = DatabaseWriter::new(shared, session).and_then(|mut writer| writer.write(batch));
    result.inspect_err(|error| shared.latches.fail(error.to_string()))
}

/// Reports the writer's end to the cache, also after a panic.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.latches.fail("a database writer ended by a panic".to_string());
        }
        self.0.latches.writer_ended();
    }
}

/// A writer with its own channel to the files.
struct DatabaseWriter<'a> {
    shared: &'a Shared,
    session: &'a Session,
    channel: Channel,
    staging: Vec<IoBuffer>,
    /// Number of staging buffers, including those in flight.
    depth: usize,
}

/// Requests in flight of a writer for each one that a session may have.
const DEPTH_FACTOR: usize = 4;
/// Bound on the writer's requests in flight at any queue depth.
const DEPTH_MAX: usize = 256;

impl<'a> DatabaseWriter<'a> {
    fn new(shared: &'a Shared, session: &'a Session) -> Result<DatabaseWriter<'a>, EngineError> {
        let count = match shared.method.kind() {
            MethodKind::Sync => 1,
            MethodKind::Threads | MethodKind::IoUring => {
                // A queue depth of 1 was set on purpose, so the writer keeps to it.
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

    /// Submits the batch: as many requests as there are buffers, then more
    /// each time half have returned.
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

    /// Waits for all requests in flight, failed or not, and returns the first error.
    fn settle(&mut self, batch: &[DirtyBlock<'_>], requests: &[Range<usize>]) -> Result<(), EngineError> {
        let mut result = Ok(());
        while self.channel.outstanding() > 0 {
            let outstanding = self.channel.outstanding();
            result = result.and(self.take_in(batch, requests));
            if self.channel.outstanding() == outstanding {
                // The channel itself is broken; dropping it waits for the rest.
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

    /// Copies adjacent blocks to the buffer and so unpins their frames.
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

/// Cuts a sorted batch into requests of at most `blocks_max` adjacent blocks.
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

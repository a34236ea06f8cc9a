//! Sorted runs in the temporary tablespace.
//!
//! A run is a range of blocks of a temp segment: records one after the other from the front of each
//! block, none split over two, each block readable without the others ([`Packing`]). The runs of a
//! server follow one another in one segment, so that small runs waste no extent. A segment releases
//! its extents when the last run in it has been merged.
//!
//! Invariants:
//! - R1 The runs of a writer follow one another without a gap, and fill its segment.
//! - R2 Only blocks inside the segment are located.
//! - R3 Every block of a run holds a record.

use crate::cache::{CacheWriter, CacheWriterOptions};
use crate::sort::SortServer;
use crate::sort::area::RecordSink;
use crate::sort::format::Packing;
use crate::storage::block::{BlockKind, Content, HEADER_BYTES};
use crate::storage::control::SegmentExtent;
use crate::storage::tablespace::Purpose;
use crate::storage::tablespaces::Tablespaces;
use crate::storage::writer::{SegmentWriter, WriterOptions};
use crate::{EngineError, Instance};
use plumb_events::{Event, IoStream, Statistic};
use plumb_units::{BlockAddress, BlockNumber};
use std::sync::Arc;

/// The extents that hold runs.
#[derive(Debug)]
pub struct TempSegment {
    tablespaces: Arc<Tablespaces>,
    extents: Vec<SegmentExtent>,
    /// Number of the first block of each extent, counted through the segment.
    starts: Vec<u32>,
}

impl TempSegment {
    fn new(instance: &Instance, extents: Vec<SegmentExtent>) -> TempSegment {
        assert!(extents.iter().all(|extent| extent.used > 0), "R1: an extent of runs has blocks of them");
        let starts = extents
            .iter()
            .scan(0, |sum, extent| {
                let start = *sum;
                *sum += extent.used;
                Some(start)
            })
            .collect();
        TempSegment { tablespaces: instance.share_tablespaces(), extents, starts }
    }

    /// Returns the address of block number `index` of the segment, and the number of blocks without
    /// a gap from it on.
    pub fn locate(&self, index: u32) -> (BlockAddress, u32) {
        let extent = self.starts.partition_point(|start| *start <= index) - 1;
        let within = index - self.starts[extent];
        let SegmentExtent { extent, used } = self.extents[extent];
        assert!(within < used, "R2: block {index} is behind the segment's last");
        let first = extent.address(0);
        (BlockAddress { file: first.file, block: BlockNumber(first.block.0 + within) }, used - within)
    }
}

impl Drop for TempSegment {
    fn drop(&mut self) {
        let temp = self.tablespaces.get(Purpose::Temp);
        temp.release(self.extents.iter().map(|extent| extent.extent));
    }
}

/// A sorted run on disk, or a part of one.
#[derive(Debug, Clone)]
pub struct Run {
    /// Segment that its blocks are in.
    pub segment: Arc<TempSegment>,
    /// First block, counted through the segment.
    pub first: u32,
    /// Number of blocks of the run.
    pub blocks: u32,
    /// Number of records of the run.
    pub rows: u64,
    /// Bytes of records of the first block that belong to the part before this one.
    pub skip: u32,
    /// End of its records in the last block; `None` if it has all records of that block.
    pub until: Option<u32>,
}

/// Write path of runs: `sort_direct_writes`.
enum WritePath<'a> {
    /// The server writes through its own write buffers.
    Direct(SegmentWriter<'a>),
    /// The database writer writes, through the buffer cache.
    Conventional(CacheWriter<'a>),
}

impl WritePath<'_> {
    #[inline]
    fn block(&mut self) -> Result<&mut [u8], EngineError> {
        match self {
            WritePath::Direct(writer) => writer.block(),
            WritePath::Conventional(writer) => writer.block(),
        }
    }
}

/// Writes runs one after the other.
pub struct RunWriter<'a, P> {
    server: &'a SortServer<'a>,
    path: WritePath<'a>,
    packing: P,
    /// Records and bytes in the block being filled.
    content: Content,
    /// Blocks sealed so far, in all runs.
    blocks: u32,
    /// First block, number of blocks and of records of each finished run.
    runs: Vec<(u32, u32, u64)>,
    rows: u64,
}

impl<'a, P: Packing> RunWriter<'a, P> {
    /// Makes a writer with the write buffers of the plan.
    ///
    /// # Errors
    /// If buffers or a channel cannot be allocated.
    pub fn new(server: &'a SortServer<'a>) -> Result<RunWriter<'a, P>, EngineError> {
        let plan = server.plan;
        let tablespace = server.instance.tablespace(Purpose::Temp);
        let path = if plan.direct_writes {
            let options = WriterOptions {
                kind: BlockKind::Temp,
                lsn: server.lsn,
                buffer_bytes: plan.write_buffer_bytes,
                buffer_count: plan.write_buffer_count,
                event: Event::DirectPathWriteTemp,
                stream: IoStream::TempWrites,
            };
            let access = &server.instance.access;
            WritePath::Direct(SegmentWriter::new(server.session, access, tablespace, options)?)
        } else {
            let options = CacheWriterOptions { kind: BlockKind::Temp, lsn: server.lsn };
            let writer = CacheWriter::new(
                server.session,
                (server.instance.caches(), &server.instance.access),
                tablespace,
                options,
            )?;
            WritePath::Conventional(writer)
        };
        Ok(RunWriter {
            server,
            path,
            packing: P::default(),
            content: Content { entries: 0, used: 0 },
            blocks: 0,
            runs: Vec::new(),
            rows: 0,
        })
    }

    /// Waits until all blocks are written and returns the runs, with the bytes of their blocks.
    ///
    /// # Errors
    /// If a write of the runs failed.
    pub fn finish(self) -> Result<(Vec<Run>, u64), EngineError> {
        let SortServer { instance, session, .. } = *self.server;
        let tablespace = instance.tablespace(Purpose::Temp);
        assert_eq!(self.content.entries, 0, "R1: the last run has ended");
        let run_blocks: u32 = self.runs.iter().map(|(_, blocks, _)| blocks).sum();
        assert_eq!(run_blocks, self.blocks, "R1: runs fill their segment");
        let segment = match self.path {
            WritePath::Direct(writer) => TempSegment::new(instance, writer.finish()?),
            WritePath::Conventional(writer) => {
                let segment = TempSegment::new(instance, writer.finish()?);
                // Runs are read past the cache, and the next owner of these blocks must
                // not find ours in it.
                instance.caches().discard(
                    session,
                    Purpose::Temp,
                    segment.extents.iter().map(|extent| extent.extent),
                );
                segment
            }
        };
        let bytes = u64::from(self.blocks) * tablespace.block_size.bytes() as u64;
        let written: u32 = segment.extents.iter().map(|extent| extent.used).sum();
        assert_eq!(written, self.blocks, "R1: a segment has the blocks that were sealed");
        let segment = Arc::new(segment);
        let whole = |(first, blocks, rows)| {
            let segment = Arc::clone(&segment);
            Run { segment, first, blocks, rows, skip: 0, until: None }
        };
        Ok((self.runs.into_iter().map(whole).collect(), bytes))
    }

    /// Returns the number of records of the finished runs.
    pub(super) fn row_count(&self) -> u64 {
        self.runs.iter().map(|(.., rows)| rows).sum()
    }

    fn seal(&mut self) -> Result<(), EngineError> {
        let content = std::mem::replace(&mut self.content, Content { entries: 0, used: 0 });
        assert!(content.entries > 0, "R3: a block of a run holds a record");
        self.rows += u64::from(content.entries);
        match &mut self.path {
            WritePath::Direct(writer) => writer.seal(content)?,
            WritePath::Conventional(writer) => writer.seal(content)?,
        };
        self.blocks += 1;
        self.packing.begin_block();
        Ok(())
    }
}

impl<P: Packing> RecordSink for RunWriter<'_, P> {
    type Error = EngineError;

    #[inline]
    fn record(&mut self, record: &[u8]) -> Result<(), EngineError> {
        let start = HEADER_BYTES + self.content.used as usize;
        let length = match self.packing.put(record, &mut self.path.block()?[start..]) {
            Some(length) => length,
            None => {
                self.seal()?;
                let room = &mut self.path.block()?[HEADER_BYTES..];
                self.packing.put(record, room).expect("a block holds a record of the longest key")
            }
        };
        self.content.used += length as u16;
        self.content.entries += 1;
        Ok(())
    }

    fn end_run(&mut self) -> Result<(), EngineError> {
        if self.content.entries > 0 {
            self.seal()?;
        }
        let first = self.runs.last().map_or(0, |(first, blocks, _)| first + blocks);
        let rows = std::mem::take(&mut self.rows);
        if self.blocks > first {
            self.runs.push((first, self.blocks - first, rows));
        }
        self.server.session.count(Statistic::SortRunRows, rows);
        self.server.session.count(Statistic::SortKeyBytesShared, self.packing.bytes_saved());
        Ok(())
    }
}

#[cfg(test)]
mod tests;

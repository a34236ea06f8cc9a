//! Merges runs: read-ahead by forecasting, a tree of losers, one record at a time.
//!
//! Each run has one buffer that is being merged. The spare buffers read ahead for the runs whose
//! last buffered record is smallest, because those run out first. A block is verified when the
//! merge enters it, because its bytes are then loaded into the processor's cache anyhow. Strips
//! that are still in the sort area take part as runs do, without being read.
//!
//! Invariants:
//! - M1 A run has at most one request in flight, so its pieces arrive in order.
//! - M2 The run that has run out is served before any other run is read ahead; its own freed buffer
//!   is there for it, so the merge cannot starve.
//! - M3 A buffer is free, in flight, ready or being merged: none is lost, none is added.
//! - M4 A merge of runs without strips returns as many records as the runs have.

use crate::EngineError;
use crate::sort::SortServer;
use crate::sort::format::{Merger, RunFormat};
use crate::sort::merge_plan::MergeShape;
use crate::sort::run::Run;
use crate::storage::block::{self, HEADER_BYTES};
use crate::storage::tablespace::{Purpose, Tablespace};
use plumb_events::{Event, IoStream, Statistic};
use plumb_io::{Arena, Channel, IoBuffer, Operation, Request, strict_assert};
use plumb_units::{BlockAddress, BlockNumber};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::Arc;

/// Most pieces read ahead for a run: enough to keep a device busy with two runs.
const AHEAD_MAX: usize = 3;

/// Merges runs, and strips that stayed in memory, in one tournament, and hands their records to
/// `take` in order. Returns the number of records.
///
/// # Errors
/// If a block is corrupt, a read fails, the operation stops, or `take` fails.
pub fn merge<F: RunFormat>(
    server: &SortServer<'_>,
    runs: Vec<Run>,
    shape: MergeShape,
    strips: Vec<&[u8]>,
    mut take: impl FnMut(&[u8]) -> Result<(), EngineError>,
) -> Result<u64, EngineError> {
    let expected = strips.is_empty().then(|| runs.iter().map(|run| run.rows).sum::<u64>());
    let mut merge = RunMerge::<F>::new(server, runs, shape, strips)?;
    let mut rows = 0;
    while let record @ [_, ..] = merge.current() {
        take(record)?;
        rows += 1;
        merge.advance()?;
    }
    merge.end(rows);
    match expected.filter(|expected| *expected != rows) {
        // M4: a block of an earlier merge of this sort would verify too, so records are counted.
        Some(expected) => Err(EngineError::Verification {
            what: format!("records merged by {}", server.session.name()),
            found: rows.to_string(),
            expected: expected.to_string(),
        }),
        None => Ok(rows),
    }
}

/// A merge of runs and strips.
struct RunMerge<'s, F: RunFormat> {
    reader: RunReader<'s, F>,
    /// One of each run, then one of each strip.
    cursors: Vec<Cursor<'s>>,
    merger: F::Merger,
}

impl<'s, F: RunFormat> RunMerge<'s, F> {
    fn new(
        server: &'s SortServer<'s>,
        runs: Vec<Run>,
        shape: MergeShape,
        strips: Vec<&'s [u8]>,
    ) -> Result<RunMerge<'s, F>, EngineError> {
        assert!(!runs.is_empty(), "a merge has a run");
        assert!(runs.len() <= shape.fan_in, "{} runs in a merge of {}", runs.len(), shape.fan_in);
        let mut reader = RunReader::<F>::new(server, runs, shape)?;
        let mut cursors = Vec::with_capacity(reader.sources.len() + strips.len());
        for source in 0..reader.sources.len() {
            cursors.push(Cursor::default());
            enter_next_piece(&mut reader, &mut cursors, source)?;
        }
        cursors.extend(strips.into_iter().map(Cursor::of_strip));
        let mut sources: Vec<&[u8]> = cursors.iter().map(Cursor::rest).collect();
        let merger = F::Merger::new(&mut sources);
        let left: Vec<usize> = sources.into_iter().map(<[u8]>::len).collect();
        for (cursor, left) in cursors.iter_mut().zip(left) {
            cursor.at = cursor.end - left;
        }
        Ok(RunMerge { reader, cursors, merger })
    }

    /// Returns the smallest record left; no bytes at the end.
    #[inline]
    fn current(&self) -> &[u8] {
        self.merger.record()
    }

    /// Advances to the next record.
    #[inline]
    fn advance(&mut self) -> Result<(), EngineError> {
        let source = self.merger.source();
        let cursor = &mut self.cursors[source];
        if cursor.at == cursor.end && !cursor.enter_next_block(self.reader.server)? {
            self.reader.server.operation.check()?;
            enter_next_piece(&mut self.reader, &mut self.cursors, source)?;
        }
        let cursor = &mut self.cursors[source];
        let mut rest = cursor.rest();
        self.merger.replace(&mut rest);
        let left = rest.len();
        cursor.at = cursor.end - left;
        Ok(())
    }

    /// Counts rows and matches as statistics of the session.
    fn end(self, rows: u64) {
        let session = self.reader.server.session;
        session.count(Statistic::MergeRows, rows);
        self.merger.matches().count_in(session);
    }
}

/// Replaces the used piece of a run by its next one, if there is one. A strip has no next piece.
fn enter_next_piece<F: RunFormat>(
    reader: &mut RunReader<'_, F>,
    cursors: &mut [Cursor<'_>],
    source: usize,
) -> Result<(), EngineError> {
    if source >= reader.sources.len() {
        return Ok(());
    }
    let used_up = match std::mem::take(&mut cursors[source]).place {
        Place::Piece(piece) => Some(piece),
        Place::Strip(_) => None,
    };
    if let Some(piece) = reader.next_piece(source, used_up)? {
        cursors[source].place = Place::Piece(piece);
        let entered = cursors[source].enter_next_block(reader.server)?;
        assert!(entered, "a piece has at least one block");
    }
    Ok(())
}

/// Position of a merge in one source.
#[derive(Debug, Default)]
struct Cursor<'m> {
    place: Place<'m>,
    /// Number of blocks of the piece that have been entered.
    entered: u32,
    /// Range in the buffer that was not taken yet, of the strip or of the current block's records.
    at: usize,
    end: usize,
}

/// The records of a source.
#[derive(Debug)]
enum Place<'m> {
    Piece(Piece),
    Strip(&'m [u8]),
}

impl Default for Place<'_> {
    fn default() -> Self {
        Place::Strip(&[])
    }
}

impl<'m> Cursor<'m> {
    fn of_strip(strip: &'m [u8]) -> Cursor<'m> {
        Cursor { place: Place::Strip(strip), entered: 0, at: 0, end: strip.len() }
    }

    /// Returns the bytes of the strip, or of the current block, that were not taken yet.
    #[inline]
    fn rest(&self) -> &[u8] {
        let bytes: &[u8] = match &self.place {
            Place::Piece(piece) => &piece.buffer,
            Place::Strip(strip) => strip,
        };
        &bytes[self.at..self.end]
    }

    /// Verifies the next block of the piece; `false` if it has no more.
    fn enter_next_block(&mut self, server: &SortServer<'_>) -> Result<bool, EngineError> {
        let tablespace = server.instance.tablespace(Purpose::Temp);
        let block_bytes = tablespace.block_size.bytes();
        let Place::Piece(piece) = &self.place else { return Ok(false) };
        if self.entered == piece.blocks {
            return Ok(false);
        }
        let address =
            BlockAddress { file: piece.first.file, block: BlockNumber(piece.first.block.0 + self.entered) };
        let start = self.entered as usize * block_bytes;
        let block = &piece.buffer[start..start + block_bytes];
        let content = block::verify(block, server.written(), address, tablespace.path(address))?;
        server.session.count(Statistic::BlocksVerified, 1);
        let records = start + HEADER_BYTES;
        self.at = records + if self.entered == 0 { piece.skip as usize } else { 0 };
        self.entered += 1;
        let cut = piece.until.filter(|_| self.entered == piece.blocks);
        self.end = records + cut.map_or(content.used as usize, |until| until as usize);
        assert!(self.at <= self.end, "{address}: records from byte {} to {}", self.at, self.end);
        assert!(self.end <= start + block_bytes, "{address}: records up to byte {}", self.end);
        Ok(true)
    }
}

/// Adjacent blocks of a run in one buffer.
#[derive(Debug)]
struct Piece {
    buffer: IoBuffer,
    first: BlockAddress,
    blocks: u32,
    /// As in [`Run`], for the piece with the run's first or last block.
    skip: u32,
    until: Option<u32>,
}

/// A run being read, and the pieces read ahead of the merge.
struct Source {
    run: Run,
    /// Next block to request, counted through the segment.
    next: u32,
    /// Request in flight: its first block and number of blocks.
    in_flight: Option<(BlockAddress, u32)>,
    ready: VecDeque<Piece>,
    /// Last record of the newest piece, which forecasting compares.
    last_record: Vec<u8>,
}

impl Source {
    fn has_unread(&self) -> bool {
        self.next < self.run.first + self.run.blocks
    }
}

/// Reads the runs of one merge.
struct RunReader<'s, F> {
    server: &'s SortServer<'s>,
    tablespace: &'s Tablespace,
    channel: Channel,
    free: Vec<IoBuffer>,
    /// Number of buffers, free, in flight or in use.
    buffer_count: usize,
    sources: Vec<Source>,
    chunk_blocks: u32,
    /// Most pieces of a run read ahead.
    ready_max: usize,
    format: PhantomData<F>,
}

impl<'s, F: RunFormat> RunReader<'s, F> {
    fn new(
        server: &'s SortServer<'s>,
        runs: Vec<Run>,
        shape: MergeShape,
    ) -> Result<RunReader<'s, F>, EngineError> {
        let tablespace = server.instance.tablespace(Purpose::Temp);
        // With fewer runs than the shape allows, further buffers would be idle.
        let buffer_count = shape.buffer_count.min(runs.len() * (1 + AHEAD_MAX));
        let (arena, free) =
            Arena::buffers(shape.chunk_blocks as usize * tablespace.block_size.bytes(), buffer_count)?;
        let channel = server.instance.access.method.channel(&[&arena])?;
        let ready_max = (buffer_count / runs.len()).clamp(1, AHEAD_MAX);
        let source = |run: Run| Source {
            next: run.first,
            run,
            in_flight: None,
            ready: VecDeque::new(),
            last_record: Vec::new(),
        };
        let sources = runs.into_iter().map(source).collect();
        let mut reader = RunReader {
            server,
            tablespace,
            channel,
            free,
            buffer_count,
            sources,
            chunk_blocks: shape.chunk_blocks,
            ready_max,
            format: PhantomData,
        };
        for source in 0..reader.sources.len() {
            reader.request(source)?;
        }
        reader.channel.flush(server.session)?;
        Ok(reader)
    }

    /// Returns the next piece of a source and takes `used_up` back.
    fn next_piece(&mut self, source: usize, used_up: Option<Piece>) -> Result<Option<Piece>, EngineError> {
        self.free.extend(used_up.map(|piece| piece.buffer));
        assert!(self.free.len() <= self.buffer_count, "M3: a buffer has come back twice");
        strict_assert!(self.buffers_held() <= self.buffer_count, "M3: more buffers than there are");
        while let Some(completion) = self.channel.poll(self.server.session)? {
            self.take_in(completion);
        }
        let was_there = !self.sources[source].ready.is_empty();
        if !was_there && self.sources[source].in_flight.is_none() && self.sources[source].has_unread() {
            self.request(source)?;
        }
        // M2: only now may spare buffers read ahead for other runs.
        self.read_ahead()?;
        while self.sources[source].ready.is_empty() && self.sources[source].in_flight.is_some() {
            let completion = self.channel.wait(self.server.session, Event::DirectPathReadTemp)?;
            self.take_in(completion);
        }
        let piece = self.sources[source].ready.pop_front();
        if let Some(piece) = &piece {
            let statistic =
                if was_there { Statistic::MergeBlocksAhead } else { Statistic::MergeBlocksWaited };
            self.server.session.count(statistic, u64::from(piece.blocks));
        }
        Ok(piece)
    }

    /// Counts buffers that are not being merged.
    fn buffers_held(&self) -> usize {
        let of_source = |source: &Source| source.ready.len() + usize::from(source.in_flight.is_some());
        self.free.len() + self.sources.iter().map(of_source).sum::<usize>()
    }

    fn take_in(&mut self, completion: plumb_io::Completion) {
        let source = &mut self.sources[completion.tag as usize];
        let (first, blocks) = source.in_flight.take().expect("M1: one request a run");
        let bytes = blocks as usize * self.tablespace.block_size.bytes();
        assert_eq!(completion.range, 0..bytes, "M1: what arrives is what the run has in flight");
        let run = &source.run;
        // A run has one request in flight, so this piece ends where the next one begins.
        let skip = if source.next - blocks == run.first { run.skip } else { 0 };
        let until = run.until.filter(|_| !source.has_unread());
        let piece = Piece { buffer: completion.buffer, first, blocks, skip, until };
        let block_bytes = self.tablespace.block_size.bytes();
        let start = (blocks as usize - 1) * block_bytes;
        remember_last::<F>(&piece.buffer[start..start + block_bytes], &mut source.last_record);
        source.ready.push_back(piece);
    }

    /// Uses spare buffers for the runs that will run out first.
    fn read_ahead(&mut self) -> Result<(), EngineError> {
        let mut submitted = false;
        while !self.free.is_empty() {
            let wants = |source: &Source| {
                source.has_unread() && source.in_flight.is_none() && source.ready.len() < self.ready_max
            };
            let neediest =
                (0..self.sources.len()).filter(|index| wants(&self.sources[*index])).min_by(|one, two| {
                    let (one, two) = (&self.sources[*one], &self.sources[*two]);
                    one.ready.len().cmp(&two.ready.len()).then_with(|| runs_out_first::<F>(one, two))
                });
            let Some(source) = neediest else { break };
            self.request(source)?;
            submitted = true;
        }
        if submitted {
            self.channel.flush(self.server.session)?;
        }
        Ok(())
    }

    fn request(&mut self, index: usize) -> Result<(), EngineError> {
        let source = &mut self.sources[index];
        assert!(source.in_flight.is_none(), "M1: one request a run");
        assert!(source.has_unread(), "a request is for blocks of the run");
        let (first, adjacent) = source.run.segment.locate(source.next);
        let left = source.run.first + source.run.blocks - source.next;
        let blocks = self.chunk_blocks.min(adjacent).min(left);
        source.next += blocks;
        source.in_flight = Some((first, blocks));
        let block_size = self.tablespace.block_size;
        let session = self.server.session;
        session.count(Statistic::PhysicalReadBlocks, u64::from(blocks));
        session.count(Statistic::PhysicalReadsDirect, u64::from(blocks));
        session.count(Statistic::PhysicalReadsDirectTemp, u64::from(blocks));
        let request = Request {
            operation: Operation::Read,
            file: Arc::clone(&self.tablespace.file(first.file)?.file),
            offset: first.block.byte_offset(block_size),
            buffer: self.free.pop().expect("M2: a buffer is free for it"),
            range: 0..blocks as usize * block_size.bytes(),
            event: Event::DirectPathReadTemp,
            stream: IoStream::TempReads,
            tag: index as u64,
        };
        self.channel.submit(session, request)?;
        Ok(())
    }
}

/// Orders two runs by the last record that has arrived of each: the smaller one runs out first. A
/// run whose last block is corrupt may have none. It comes first, so that the merge soon ends with
/// the error of that block.
fn runs_out_first<F: RunFormat>(one: &Source, two: &Source) -> Ordering {
    match (one.last_record.is_empty(), two.last_record.is_empty()) {
        (false, false) => F::compare(&one.last_record, &two.last_record),
        (one_unknown, two_unknown) => two_unknown.cmp(&one_unknown),
    }
}

/// Copies the last record of a block. The block is verified only when the merge enters it; a
/// corrupt one gives a useless forecast here and an error there.
fn remember_last<F: RunFormat>(block: &[u8], last: &mut Vec<u8>) {
    let used = block::content_of(block).used as usize;
    F::last_record(block.get(HEADER_BYTES..HEADER_BYTES + used).unwrap_or(&[]), last);
}

#[cfg(test)]
mod tests;

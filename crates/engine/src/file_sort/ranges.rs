//! Divides a merge of all runs between servers, in equal shares of their records.
//!
//! The records of all runs are in one order: by key, then by run, then by place in the run. So a
//! key that half of the records share is divided too. The samples of the runs give the first record
//! of each share but the first. From that record follows, for every run, the number of its records
//! before the share: the samples on both sides narrow it to a few blocks, which are read.
//!
//! Shares differ by the records between two samples of a run. With very many runs and few samples
//! that is some per cent at most, otherwise next to nothing.

use crate::EngineError;
use crate::file_sort::record::FixedRecord;
use crate::file_sort::runs::{SampledRun, records_per_block};
use crate::sort::SortServer;
use crate::storage::block::{self, HEADER_BYTES};
use crate::storage::scattered_reader::{Piece, ScatteredOptions, ScatteredReader};
use crate::storage::tablespace::{Purpose, Tablespace};
use plumb_events::{Event, IoStream, Statistic};
use plumb_units::{BlockAddress, BlockNumber};
use std::ops::Range;

/// Most blocks of a request.
const REQUEST_BLOCKS_MAX: u64 = 16;
/// Number of requests in flight.
const REQUESTS: usize = 16;

/// Place of a record in the order of all records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    key: u128,
    run: usize,
    record: u64,
}

/// Returns for every share the range of records of each run that belongs to it.
pub(super) fn divide<const BYTES: usize, const KEY: usize>(
    server: &SortServer<'_>,
    runs: &[SampledRun],
    interval: u64,
    share_count: usize,
) -> Result<Vec<Vec<Range<u64>>>, EngineError> {
    let mut begins = vec![0; runs.len()];
    let mut shares = Vec::new();
    for splitter in splitters(runs, interval, share_count) {
        let ends = locate::<BYTES, KEY>(server, runs, interval, splitter)?;
        shares.push(ranges(&begins, &ends));
        begins = ends;
    }
    let all: Vec<u64> = runs.iter().map(|run| run.run.rows).collect();
    shares.push(ranges(&begins, &all));
    assert!(shares.len() <= share_count, "X2: {} shares for {share_count} servers", shares.len());
    Ok(shares)
}

fn ranges(begins: &[u64], ends: &[u64]) -> Vec<Range<u64>> {
    assert_eq!(begins.len(), ends.len(), "X2: a share has a range of every run");
    let range = |(begin, end): (&u64, &u64)| {
        assert!(begin <= end, "X2: a share begins at record {begin} of a run and ends at {end}");
        *begin..*end
    };
    begins.iter().zip(ends).map(range).collect()
}

/// Returns the first records of all shares but the first; fewer if there are fewer samples.
fn splitters(runs: &[SampledRun], interval: u64, share_count: usize) -> Vec<Position> {
    let of_run = |(run, sampled): (usize, &SampledRun)| {
        let keys = sampled.keys.iter().zip((0..).step_by(interval as usize));
        keys.map(move |(key, record)| Position { key: *key, run, record }).collect::<Vec<_>>()
    };
    let mut positions: Vec<Position> = runs.iter().enumerate().flat_map(of_run).collect();
    positions.sort_unstable();
    // A sample stands for the records from it up to the next, so share m of s begins
    // after m/s of the samples.
    let begin = |share: usize| positions.get(share * positions.len() / share_count).copied();
    (1..share_count).filter_map(begin).collect()
}

/// Returns the number of records of each run before the splitter.
fn locate<const BYTES: usize, const KEY: usize>(
    server: &SortServer<'_>,
    runs: &[SampledRun],
    interval: u64,
    splitter: Position,
) -> Result<Vec<u64>, EngineError> {
    let mut before = Vec::with_capacity(runs.len());
    let mut open = Vec::new();
    for (run, sampled) in runs.iter().enumerate() {
        let sample_is_before = |sample: usize| {
            Position { key: sampled.keys[sample], run, record: sample as u64 * interval } < splitter
        };
        let samples = partition_point(sampled.keys.len(), sample_is_before) as u64;
        if run == splitter.run || samples == 0 {
            before.push(if samples == 0 { 0 } else { splitter.record });
            continue;
        }
        // The last of these samples is before the splitter, the next one is not.
        let known = (samples - 1) * interval + 1;
        assert!(known <= sampled.run.rows, "X2: sample {samples} is of a record of the run");
        before.push(known);
        open.push((run, known..(samples * interval).min(sampled.run.rows)));
    }
    let mut reader = BlockCounter::<BYTES, KEY> { server, runs, splitter };
    reader.count(&open, &mut before)?;
    Ok(before)
}

fn partition_point(count: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        if is_before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Reads blocks of runs and counts records before a splitter.
struct BlockCounter<'a, const BYTES: usize, const KEY: usize> {
    server: &'a SortServer<'a>,
    runs: &'a [SampledRun],
    splitter: Position,
}

/// Adjacent blocks of a run to be read.
struct RunPiece {
    run: usize,
    /// First block, counted from the run's first.
    block: u64,
    blocks: u32,
    address: BlockAddress,
    records: Range<u64>,
}

impl<const BYTES: usize, const KEY: usize> BlockCounter<'_, BYTES, KEY> {
    /// Adds, for each run, the number of its given records that come before the splitter.
    fn count(&mut self, open: &[(usize, Range<u64>)], before: &mut [u64]) -> Result<(), EngineError> {
        let SortServer { instance, session, .. } = *self.server;
        let temp = instance.tablespace(Purpose::Temp);
        let per_block = records_per_block(temp.block_size, BYTES);
        let pieces: Vec<RunPiece> =
            open.iter().flat_map(|(run, records)| self.pieces(*run, records.clone(), per_block)).collect();
        if pieces.is_empty() {
            return Ok(());
        }
        let options = ScatteredOptions {
            piece_bytes: REQUEST_BLOCKS_MAX as usize * temp.block_size.bytes(),
            in_flight: REQUESTS.min(pieces.len()),
            event: Event::DirectPathReadTemp,
            stream: IoStream::TempReads,
        };
        ScatteredReader::new(session, &instance.access, options)?.read(
            pieces.len(),
            |number| {
                self.server.operation.check()?;
                let RunPiece { address, blocks, .. } = pieces[number];
                session.count(Statistic::PhysicalReadsDirectTemp, u64::from(blocks));
                Piece::of_blocks(session, temp, address, blocks)
            },
            |number, bytes| {
                let piece = &pieces[number];
                before[piece.run] += self.before_in(piece, bytes, (temp, per_block))?;
                Ok(())
            },
        )
    }

    /// Returns the blocks of these records of a run, cut where they are not adjacent.
    fn pieces(&self, run: usize, records: Range<u64>, per_block: u64) -> Vec<RunPiece> {
        let sorted = &self.runs[run].run;
        let mut pieces = Vec::new();
        if records.is_empty() {
            return pieces;
        }
        let mut block = records.start / per_block;
        let end = (records.end - 1) / per_block + 1;
        while block < end {
            let (address, adjacent) = sorted.segment.locate(sorted.first + block as u32);
            let blocks = (end - block).min(u64::from(adjacent)).min(REQUEST_BLOCKS_MAX) as u32;
            pieces.push(RunPiece { run, block, blocks, address, records: records.clone() });
            block += u64::from(blocks);
        }
        pieces
    }

    fn before_in(
        &self,
        piece: &RunPiece,
        bytes: &[u8],
        (temp, per_block): (&Tablespace, u64),
    ) -> Result<u64, EngineError> {
        let mut before = 0;
        for (index, block) in (0..piece.blocks).zip(bytes.chunks_exact(temp.block_size.bytes())) {
            let address =
                BlockAddress { file: piece.address.file, block: BlockNumber(piece.address.block.0 + index) };
            let content = block::verify(block, self.server.written(), address, temp.path(address))?;
            self.server.session.count(Statistic::BlocksVerified, 1);
            let records = FixedRecord::<BYTES, KEY>::records(
                &block[HEADER_BYTES..HEADER_BYTES + content.used as usize],
            );
            let first = (piece.block + u64::from(index)) * per_block;
            before += records
                .iter()
                .zip(first..)
                .filter(|(_, number)| piece.records.contains(number))
                .take_while(|(record, number)| {
                    let key = FixedRecord::<BYTES, KEY>::key(record);
                    Position { key, run: piece.run, record: *number } < self.splitter
                })
                .count() as u64;
        }
        Ok(before)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn shares_follow_one_another() {
        assert_eq!(super::ranges(&[0, 4], &[4, 9]), [0..4, 4..9]);
    }

    #[test]
    #[should_panic(expected = "X2: a share begins at record 5 of a run and ends at 4")]
    fn a_share_that_goes_back_is_noticed() {
        super::ranges(&[0, 5], &[4, 4]);
    }
}

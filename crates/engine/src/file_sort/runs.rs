//! Runs of records, and a sample of the keys in each.
//!
//! The merge is divided by the sample: one key in each interval of records of a run. Records have
//! one length, so the number of a record in its run gives its block and its place there.

use crate::EngineError;
use crate::file_sort::record::FixedRecord;
use crate::sort::SortServer;
use crate::sort::area::RecordSink;
use crate::sort::format::Unpacked;
use crate::sort::run::{Run, RunWriter};
use crate::storage::block::HEADER_BYTES;
use plumb_units::BlockSize;
use std::ops::Range;

/// Least distance of two sampled records: some blocks, which one request reads.
const SAMPLE_INTERVAL_MIN: u64 = 512;
/// Most sampled keys of all runs, 16 bytes each.
const SAMPLES_MAX: u64 = 256 * 1024;

/// Returns the distance of sampled records in `record_count` records.
pub(super) fn sample_interval(record_count: u64) -> u64 {
    record_count.div_ceil(SAMPLES_MAX).next_power_of_two().max(SAMPLE_INTERVAL_MIN)
}

/// Returns the number of records of a run in a block.
pub(super) fn records_per_block(block_size: BlockSize, record_bytes: usize) -> u64 {
    ((block_size.bytes() - HEADER_BYTES) / record_bytes) as u64
}

/// A run with a sample of its keys.
#[derive(Debug)]
pub(super) struct SampledRun {
    pub run: Run,
    /// Keys of the records 0, interval, 2 intervals, ...
    pub keys: Vec<u128>,
}

impl SampledRun {
    /// Returns the part of the run with these records; `None` if there are none.
    pub fn part(&self, records: Range<u64>, per_block: u64, record_bytes: usize) -> Option<Run> {
        assert!(records.end <= self.run.rows, "X2: records {records:?} of a run of {}", self.run.rows);
        if records.is_empty() {
            return None;
        }
        let last = records.end - 1;
        let first_block = (records.start / per_block) as u32;
        let bytes = |records: u64| records as u32 * record_bytes as u32;
        Some(Run {
            segment: self.run.segment.clone(),
            first: self.run.first + first_block,
            blocks: (last / per_block) as u32 - first_block + 1,
            rows: records.end - records.start,
            skip: bytes(records.start % per_block),
            until: Some(bytes(last % per_block + 1)),
        })
    }
}

/// Writes runs and samples their keys.
pub(super) struct SampledRunWriter<'a, const BYTES: usize, const KEY: usize> {
    writer: RunWriter<'a, Unpacked>,
    interval_mask: u64,
    /// Number of records in the run being written; `keys` is its sample.
    record_count: u64,
    keys: Vec<u128>,
    finished: Vec<Vec<u128>>,
}

impl<'a, const BYTES: usize, const KEY: usize> SampledRunWriter<'a, BYTES, KEY> {
    pub fn new(server: &'a SortServer<'a>, interval: u64) -> Result<Self, EngineError> {
        assert!(interval.is_power_of_two(), "a sample's records are counted by a mask");
        Ok(SampledRunWriter {
            writer: RunWriter::new(server)?,
            interval_mask: interval - 1,
            record_count: 0,
            keys: Vec::new(),
            finished: Vec::new(),
        })
    }

    /// Waits until all blocks are written; returns the runs and the bytes of their blocks.
    pub fn finish(self) -> Result<(Vec<SampledRun>, u64), EngineError> {
        let (runs, bytes) = self.writer.finish()?;
        assert_eq!(runs.len(), self.finished.len(), "X1: every run has a sample");
        let sampled = |(run, keys)| SampledRun { run, keys };
        Ok((runs.into_iter().zip(self.finished).map(sampled).collect(), bytes))
    }
}

impl<const BYTES: usize, const KEY: usize> RecordSink for SampledRunWriter<'_, BYTES, KEY> {
    type Error = EngineError;

    #[inline]
    fn record(&mut self, record: &[u8]) -> Result<(), EngineError> {
        let record: &[u8; BYTES] = record.try_into().expect("a whole record");
        if self.record_count & self.interval_mask == 0 {
            self.keys.push(FixedRecord::<BYTES, KEY>::key(record));
        }
        self.record_count += 1;
        self.writer.record(record)
    }

    fn end_run(&mut self) -> Result<(), EngineError> {
        if self.record_count > 0 {
            let samples = self.record_count.div_ceil(self.interval_mask + 1);
            assert_eq!(self.keys.len() as u64, samples, "a sample has every key that it should");
            assert!(self.keys.is_sorted(), "X1: a run is in order, as far as its sample shows");
            self.record_count = 0;
            self.finished.push(std::mem::take(&mut self.keys));
        }
        self.writer.end_run()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sort::fixture::with_server;

    #[test]
    #[should_panic(expected = "X1: a run is in order, as far as its sample shows")]
    fn a_run_out_of_order_is_noticed() {
        with_server(|server| {
            let mut writer = SampledRunWriter::<16, 3>::new(server, 1).expect("a writer");
            writer.record(&[2; 16]).expect("written");
            writer.record(&[1; 16]).expect("written");
            let _ = writer.end_run();
        });
    }
}

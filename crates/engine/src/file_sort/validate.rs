//! Judges a file of records as valsort does: order, count, repeated keys, checksum.
//!
//! The checksum is the sum of the CRC-32 (ISO 3309) of every record, in 128 bits. It does not
//! depend on the order, so the same records in two files give the same sum. A sort that loses a
//! record, or takes one twice, changes it.
//!
//! Servers take chunks in turn and check each on its own. At the end the last record of each chunk
//! is compared with the first of the next.

use crate::file_sort::input::{Chunk, RecordFile, RecordReader, chunk_bytes_min};
use crate::file_sort::record::FixedRecord;
use crate::parallel::servers::{self, Operation};
use crate::{EngineError, Instance};
use crc_fast::CrcAlgorithm::Crc32IsoHdlc;
use plumb_events::{Phase, Role, Session, now};
use std::cmp::Ordering;
use std::path::Path;

/// Reads in flight of each server, and most bytes of one.
const BUFFERS: usize = 16;
const CHUNK_BYTES_MAX: usize = 512 * 1024;

/// Summary of a file of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordSummary {
    /// Number of records in the file.
    pub record_count: u64,
    /// Sum of the CRC-32 of all records.
    pub checksum: u128,
    /// Number of records with the same key as the record before.
    pub duplicate_keys: u64,
    /// Number of records whose key is below that of the record before.
    pub unordered: u64,
    /// Number of the first unordered record, from 0.
    pub first_unordered: Option<u64>,
}

impl RecordSummary {
    fn follow(&mut self, number: u64, order: Ordering) {
        match order {
            Ordering::Less => {}
            Ordering::Equal => self.duplicate_keys += 1,
            Ordering::Greater => {
                self.unordered += 1;
                self.first_unordered = Some(self.first_unordered.map_or(number, |first| first.min(number)));
            }
        }
    }

    fn add(&mut self, other: &RecordSummary) {
        self.record_count += other.record_count;
        self.checksum = self.checksum.wrapping_add(other.checksum);
        self.duplicate_keys += other.duplicate_keys;
        self.unordered += other.unordered;
        self.first_unordered = self.first_unordered.into_iter().chain(other.first_unordered).min();
    }
}

/// First and last key of a chunk.
struct Edges {
    first_record: u64,
    first: u128,
    last: u128,
}

/// Reads a file of records and returns its summary.
///
/// # Errors
/// If it is not a file of such records, or a read fails.
pub fn validate<const BYTES: usize, const KEY: usize>(
    instance: &Instance,
    path: &Path,
) -> Result<RecordSummary, EngineError> {
    let coordinator = instance.recorder.session(Role::Coordinator);
    let begin = now();
    let least = chunk_bytes_min(BYTES);
    let chunk_bytes = (CHUNK_BYTES_MAX / least * least).max(least);
    let file = RecordFile::open(instance, &coordinator, path, (BYTES, chunk_bytes))?;
    let degree = instance.parallel_degree();
    let parts = servers::run_set(
        instance.operation(),
        &coordinator,
        (Role::CheckServer, degree),
        |session, operation, _| part::<BYTES, KEY>(instance, session, operation, &file),
    )?;
    let mut summary = RecordSummary::default();
    let mut edges = Vec::new();
    for (part, part_edges) in parts {
        summary.add(&part);
        edges.extend(part_edges);
    }
    edges.sort_unstable_by_key(|edges| edges.first_record);
    for pair in edges.windows(2) {
        summary.follow(pair[1].first_record, pair[0].last.cmp(&pair[1].first));
    }
    instance.recorder.phase(Phase::VerifyRecords, begin, summary.record_count);
    Ok(summary)
}

fn part<const BYTES: usize, const KEY: usize>(
    instance: &Instance,
    session: &Session,
    operation: &Operation,
    file: &RecordFile,
) -> Result<(RecordSummary, Vec<Edges>), EngineError> {
    let mut reader = RecordReader::new(session, &instance.access, file, BUFFERS)?;
    let mut summary = RecordSummary::default();
    let mut edges = Vec::new();
    while let Some(chunk) = reader.next()? {
        operation.check()?;
        edges.extend(look_at::<BYTES, KEY>(&chunk, &mut summary));
        reader.recycle([chunk.buffer])?;
    }
    Ok((summary, edges))
}

fn look_at<const BYTES: usize, const KEY: usize>(
    chunk: &Chunk,
    summary: &mut RecordSummary,
) -> Option<Edges> {
    let records = FixedRecord::<BYTES, KEY>::records(chunk.records());
    let first = FixedRecord::<BYTES, KEY>::key(records.first()?);
    let mut last = first;
    for (number, record) in (chunk.first..).zip(records) {
        summary.checksum += u128::from(crc_fast::checksum(Crc32IsoHdlc, record));
        let key = FixedRecord::<BYTES, KEY>::key(record);
        if number > chunk.first {
            summary.follow(number, last.cmp(&key));
        }
        last = key;
    }
    summary.record_count += records.len() as u64;
    Some(Edges { first_record: chunk.first, first, last })
}

//! A load: chunks of records as they were read, and their order.
//!
//! Records stay in the buffers that the device wrote them to. Entries of 16 bytes are sorted in
//! their place: the key and the record's position. A record is moved once, from its read buffer to
//! the run's write buffer. That move is a gather: neighbours in the order are far apart in memory,
//! so cache lines are prefetched some records ahead.

use crate::EngineError;
use crate::file_sort::input::Chunk;
use crate::file_sort::record::FixedRecord;
use crate::sort::area::RecordSink;
use plumb_io::{HugeVec, IoBuffer, prefetch};

/// Records prefetched ahead of the one being moved: about as long as a line
/// takes from memory, in moves.
const GATHER_AHEAD: usize = 12;

/// Bits of a record's position that are its number in its chunk; the others are the
/// chunk's number in the load.
const RECORD_BITS: u32 = 16;

/// Bytes of memory that a record takes besides its own.
pub(super) const ENTRY_BYTES: usize = size_of::<u128>();

/// Records that are about to become a run.
#[derive(Debug)]
pub(super) struct Load<const BYTES: usize, const KEY: usize> {
    chunks: Vec<Chunk>,
    /// Key and position of every record.
    entries: HugeVec<u128>,
}

impl<const BYTES: usize, const KEY: usize> Load<BYTES, KEY> {
    /// Makes an empty load with room for `chunk_count` chunks of `chunk_records` records.
    pub fn new(chunk_count: usize, chunk_records: usize) -> Result<Load<BYTES, KEY>, EngineError> {
        assert!(chunk_records <= 1 << RECORD_BITS, "a place numbers {chunk_records} records of a chunk");
        assert!(chunk_count <= 1 << (32 - RECORD_BITS), "a place numbers {chunk_count} chunks of a load");
        let mut entries = HugeVec::with_capacity(chunk_count * chunk_records)?;
        entries.supply(entries.capacity());
        Ok(Load { chunks: Vec::with_capacity(chunk_count), entries })
    }

    pub fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    pub fn record_count(&self) -> usize {
        self.entries.len()
    }

    pub fn mapped_bytes(&self) -> usize {
        self.entries.mapped_bytes()
    }

    /// Adds a chunk of records, for which there must be room.
    pub fn add(&mut self, chunk: Chunk) {
        assert!(
            self.chunks.len() < self.chunks.capacity(),
            "a load takes no more chunks than it has room for"
        );
        assert!(chunk.bytes <= chunk.buffer.len(), "X3: records lie inside their buffer");
        let number = (self.chunks.len() as u32) << RECORD_BITS;
        for (record, place) in FixedRecord::<BYTES, KEY>::records(chunk.records()).iter().zip(number..) {
            self.entries.push(FixedRecord::<BYTES, KEY>::key(record) | u128::from(place));
        }
        self.chunks.push(chunk);
    }

    /// Hands the records to `sink` in order, equal keys in the order they were read in. Returns the
    /// buffers and leaves the load empty.
    pub fn drain<S: RecordSink<Error = EngineError>>(
        &mut self,
        sink: &mut S,
    ) -> Result<Vec<IoBuffer>, EngineError> {
        self.entries.sort_unstable();
        let place = |entry: &u128| {
            let place = *entry as u32;
            let chunk = &self.chunks[(place >> RECORD_BITS) as usize];
            (&chunk.buffer, (place & ((1 << RECORD_BITS) - 1)) as usize * BYTES)
        };
        for (index, entry) in self.entries.iter().enumerate() {
            if let Some(later) = self.entries.get(index + GATHER_AHEAD) {
                let (buffer, at) = place(later);
                (0..BYTES).step_by(64).for_each(|line| prefetch(buffer, at + line));
                prefetch(buffer, at + BYTES - 1);
            }
            let (buffer, at) = place(entry);
            sink.record(&buffer[at..at + BYTES])?;
        }
        sink.end_run()?;
        self.entries.clear();
        Ok(self.chunks.drain(..).map(|chunk| chunk.buffer).collect())
    }
}

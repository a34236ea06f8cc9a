//! The sort area: records collected in a fixed amount of memory and sorted there.
//!
//! The area is cut into strips of equal size, each with memory of its own. A strip of words is
//! sorted as soon as it is full; text is sorted in smaller batches, which are appended to a strip.
//! So sorting is spread over the input. Sorting all of a large area at once would stop the scan's
//! reads meanwhile. Afterwards the processor would be idle until the disk has caught up. The form
//! of the records decides their layout and how they are sorted: [`words`], [`bytes`].
//!
//! When all strips are full one of them becomes a run and is filled again. Records that are still
//! in memory at the end stay there and are merged with the runs: an input a little larger than the
//! area costs little more than one that fits.
//!
//! Number of strips: for each doubling of a strip the standard library's sort costs 1 to 1.5 ns a
//! record more. With numbers of 64 bits it takes 12.6 ns a record for 64K of them, 15.4 for 256K,
//! 19.7 for 4M. A level of the merge costs 2 to 2.5 ns, so strips are large. As a rule there are
//! sixteen: enough to spill in small steps and to keep the disk busy. An area above 64 MB has more,
//! so that none takes long to sort.
//!
//! Rejected: distribution sorts. By the least significant digits first they lose at every size (13
//! to 30 ns). One pass by the highest bits, followed by the standard sort, wins 2 ns in strips of
//! 64K to 256K. That does not pay for the second buffer it needs.
//!
//! Invariants:
//! - A1 An area never has more strips than it was planned with: each is spare, in use, or
//!   not made yet.
//! - A2 Records come and go whole: an area takes or leaves a record, never a part.
//! - A3 A strip of words, and a mini-run of text, is in order once it is closed.
//! - A4 Sorting and packing keep the number of records.

pub mod bytes;
pub mod words;

use super::format::{Merger, RunFormat};
use super::tournament::Matches;
use plumb_io::{HugeVec, IoError};
use plumb_units::Nanos;
use std::fmt::Debug;

/// Most strips of an area, unless they would be larger than [`STRIP_BYTES_MAX`].
pub const STRIPS_MAX: usize = 16;

/// Largest strip of an area that has more than [`STRIPS_MAX`] for it: it is sorted in about 8 ms.
/// The buffers of a table queue last about as long, so scan servers continue.
pub const STRIP_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Fewest strips of an area that can give each [`STRIP_BYTES_MIN`]. With a single strip the disk is
/// idle while it is sorted, and the processor while it is written.
pub const STRIPS_MIN: usize = 3;

/// Least size of a strip in an area of more than [`STRIPS_MIN`] strips. Smaller ones raise the
/// fan-in of the merge and save little spilling.
pub const STRIP_BYTES_TARGET: usize = 1024 * 1024;

/// Smallest strip of an area that has several: when it is read back as a run,
/// its requests are still large.
pub const STRIP_BYTES_MIN: usize = 512 * 1024;

/// Memory that a record takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordSize {
    /// Bytes of the record, in memory and in a run; the mean if they differ.
    pub bytes: usize,
    /// Bytes of the entry that is sorted in place of the record; 0 if the record itself is.
    pub entry_bytes: usize,
}

impl RecordSize {
    /// Returns the size of records of `bytes` bytes in an area of this kind.
    pub fn new<A: SortArea>(bytes: usize) -> RecordSize {
        RecordSize { bytes, entry_bytes: A::ENTRY_BYTES }
    }

    /// Returns the number of records that fit `bytes` of memory while they
    /// are sorted; at least one.
    pub fn fitting(self, bytes: usize) -> usize {
        (bytes / (self.bytes + self.entry_bytes)).max(1)
    }
}

/// Memory that an area has mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mapped {
    /// Size of the mappings in bytes.
    pub bytes: usize,
    /// Time that the system took to supply it.
    pub time: Nanos,
}

/// Memory in which records are collected and sorted.
pub trait SortArea: Sized + Send + Debug {
    /// Bytes of the entry that is sorted in place of a record; 0 if the record itself is.
    const ENTRY_BYTES: usize;

    /// Makes an area of `bytes` bytes, cut into `strips`, for records of this size.
    ///
    /// # Errors
    /// If the kernel has no memory.
    fn new(bytes: usize, strips: usize, record: RecordSize) -> Result<Self, IoError>;

    /// Adds records from the front of `records`; returns the number of bytes taken. Fewer than all
    /// means that the area is full.
    ///
    /// # Errors
    /// If the kernel has no memory.
    fn fill(&mut self, records: &[u8]) -> Result<usize, IoError>;

    /// Sorts the records that are not sorted yet.
    ///
    /// # Errors
    /// If the kernel has no memory.
    fn close(&mut self) -> Result<(), IoError>;

    /// Makes room: hands the oldest strip to `sink` as a run. Returns the number of runs, 0 if
    /// no record is sorted yet.
    ///
    /// # Errors
    /// If the sink fails to take a record.
    fn spill<S: RecordSink>(&mut self, sink: &mut S) -> Result<u64, S::Error>;

    /// Returns the memory without records to the system, after the last record has come.
    /// Returns its size in bytes.
    fn release_spare(&mut self) -> usize;

    /// Returns the number of records in the area, sorted or not.
    fn len(&self) -> usize;

    /// True if the area has no records.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the most memory that the area has had.
    fn mapped(&self) -> Mapped;

    /// Returns the bytes of each sorted sequence.
    fn sources(&self) -> Vec<&[u8]>;
}

/// The memory of strips: allocated as records come, and used again.
#[derive(Debug)]
struct StripPool<T: Copy> {
    /// Empty strips that have memory.
    spare: Vec<HugeVec<T>>,
    /// Number of strips that may still be made.
    unmade: usize,
    /// Number of all strips: spare, unmade or in use.
    strips: usize,
    strip_bytes: usize,
    mapped: Mapped,
}

impl<T: Copy> StripPool<T> {
    fn new(bytes: usize, strips: usize) -> StripPool<T> {
        assert!(strips > 0, "an area has a strip");
        let strip_bytes = bytes / strips;
        StripPool { spare: Vec::new(), unmade: strips, strips, strip_bytes, mapped: Mapped::default() }
    }

    /// Takes an empty strip; `None` if all are in use.
    fn take(&mut self) -> Result<Option<HugeVec<T>>, IoError> {
        if let Some(strip) = self.spare.pop() {
            return Ok(Some(strip));
        }
        if self.unmade == 0 {
            return Ok(None);
        }
        let strip = HugeVec::with_capacity(self.strip_bytes / size_of::<T>())?;
        self.unmade -= 1;
        self.mapped.bytes += strip.mapped_bytes();
        Ok(Some(strip))
    }

    fn give_back(&mut self, mut strip: HugeVec<T>) {
        assert!(self.spare.len() + self.unmade < self.strips, "A1: a strip comes back that was not taken");
        assert_eq!(strip.capacity(), self.strip_bytes / size_of::<T>(), "A1: a strip keeps its size");
        strip.clear();
        self.spare.push(strip);
    }

    /// Returns the bytes of the strips that may still be taken.
    fn room(&self) -> usize {
        (self.spare.len() + self.unmade) * self.strip_bytes
    }

    /// Returns the memory of empty strips to the system; returns its size in bytes.
    fn release(&mut self) -> usize {
        self.spare.drain(..).count() * self.strip_bytes
    }

    /// Lets the system supply the memory that a strip is about to use, and notes the time.
    #[inline]
    fn supply(&mut self, strip: &mut HugeVec<T>, more: usize) {
        self.mapped.time += strip.supply(more);
    }

    /// Returns all memory that was ever mapped.
    fn mapped(&self) -> Mapped {
        self.mapped
    }
}

/// Takes sorted records, run by run.
pub trait RecordSink {
    /// Error of a record that cannot be taken.
    type Error;

    /// Takes the next record in order.
    ///
    /// # Errors
    /// If the sink cannot keep it.
    fn record(&mut self, record: &[u8]) -> Result<(), Self::Error>;

    /// Ends a run: the next record may be smaller than the last one.
    ///
    /// # Errors
    /// The same errors as `record`.
    fn end_run(&mut self) -> Result<(), Self::Error>;
}

/// Order of the records so far: a strip that was filled in order, or in reverse
/// order, need not be sorted.
#[derive(Debug, Clone, Copy)]
struct InputOrder {
    ascending: bool,
    descending: bool,
}

impl InputOrder {
    const UNKNOWN: InputOrder = InputOrder { ascending: true, descending: true };
}

/// Merges sorted sequences in memory.
pub struct MemoryMerge<'a, F: RunFormat> {
    rest: Vec<&'a [u8]>,
    /// `None` if there are no records.
    merger: Option<F::Merger>,
}

impl<'a, F: RunFormat> MemoryMerge<'a, F> {
    /// Makes a merge of these sources, each in order.
    pub fn new(sources: Vec<&'a [u8]>) -> MemoryMerge<'a, F> {
        let mut rest = sources;
        let merger = (!rest.is_empty()).then(|| F::Merger::new(&mut rest));
        MemoryMerge { rest, merger }
    }

    /// Returns the smallest record left; no bytes at the end.
    #[inline]
    pub fn current(&self) -> &[u8] {
        self.merger.as_ref().map_or(&[], Merger::record)
    }

    /// Advances to the next record.
    #[inline]
    pub fn advance(&mut self) {
        if let Some(merger) = &mut self.merger {
            merger.replace(&mut self.rest[merger.source()]);
        }
    }

    /// Returns counts of the matches played; zero for a merger that keeps none.
    pub fn matches(&self) -> Matches {
        self.merger.as_ref().map_or(Matches::default(), Merger::matches)
    }
}

#[cfg(test)]
mod tests;

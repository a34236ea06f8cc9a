//! The sort area: records collected in a fixed amount of memory and sorted there.
//!
//! The area is cut into strips of equal size, each with memory of its own. A strip of
//! words is sorted as soon as it is full; text is sorted in smaller batches, which are
//! appended to a strip. Sorting is so spread over the input. To sort all of a large
//! area at once would stop the scan's reads meanwhile, and afterwards leave the
//! processor idle until the disk has caught up.
//! How records lie in a strip and are sorted depends on their form: [`words`], [`bytes`].
//!
//! When all strips are full one of them becomes a run and is filled again. What
//! is still in memory at the end stays there and is merged with the runs: an
//! input a little larger than the area costs little more than one that fits.
//!
//! How many strips: with ever larger strips the standard library's sort costs 1
//! to 1.5 ns a record more for each doubling (64K numbers of 64 bits 12.6 ns a
//! record, 256K 15.4, 4M 19.7), a level of the merge 2 to 2.5 ns; so strips are
//! large. As a rule there are sixteen: enough to spill in small steps and to keep the
//! disk busy. An area above 64 MB has more, so that none takes long to sort.
//!
//! Distribution sorts were measured at these sizes: by the least significant digits
//! first they lose at every size (13 to 30 ns); one pass by the highest bits, with the
//! standard sort after it, wins 2 ns in strips of 64K to 256K, which does not pay for
//! the second buffer it needs.
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

/// The largest strip of an area that has more than [`STRIPS_MAX`] for it: it is sorted in
/// about 8 ms. The buffers of a table queue last about as long, so scan servers go on.
pub const STRIP_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Fewest strips of an area that can give each [`STRIP_BYTES_MIN`]: with a single one the
/// disk is idle while it is sorted, and the processor while it is written.
pub const STRIPS_MIN: usize = 3;

/// An area has more than [`STRIPS_MIN`] strips only if each has this size: smaller ones
/// raise the fan-in of the merge, and what they save in spilled bytes is little.
pub const STRIP_BYTES_TARGET: usize = 1024 * 1024;

/// The smallest strip of an area that has several: when it is read back as a run, its
/// requests are still large.
pub const STRIP_BYTES_MIN: usize = 512 * 1024;

/// Memory that a record takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordSize {
    /// Bytes of the record, in memory and in a run; the mean where they differ.
    pub bytes: usize,
    /// Bytes of memory beside it while it is sorted: the entry that is sorted in its place.
    pub entry_bytes: usize,
}

impl RecordSize {
    /// The size of records of `bytes` bytes in an area of this kind.
    #[must_use]
    pub fn new<A: SortArea>(bytes: usize) -> RecordSize {
        RecordSize { bytes, entry_bytes: A::ENTRY_BYTES }
    }

    /// Records that fit `bytes` of memory while they are sorted; at least one.
    #[must_use]
    pub fn fitting(self, bytes: usize) -> usize {
        (bytes / (self.bytes + self.entry_bytes)).max(1)
    }
}

/// Memory that an area has mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mapped {
    /// Bytes of it.
    pub bytes: usize,
    /// How long the system took to supply it.
    pub time: Nanos,
}

/// Memory in which records are collected and sorted.
pub trait SortArea: Sized + Send + Debug {
    /// Bytes of memory beside a record while it is sorted.
    const ENTRY_BYTES: usize;

    /// An area of `bytes` bytes, cut into `strips`, for records of this size.
    ///
    /// # Errors
    /// When the kernel has no memory.
    fn new(bytes: usize, strips: usize, record: RecordSize) -> Result<Self, IoError>;

    /// Adds records one after the other from the front of `records`; gives back
    /// how many bytes were taken. Fewer than all means that the area is full.
    ///
    /// # Errors
    /// When the kernel has no memory.
    fn fill(&mut self, records: &[u8]) -> Result<usize, IoError>;

    /// Sorts what has not been sorted yet.
    ///
    /// # Errors
    /// When the kernel has no memory.
    fn close(&mut self) -> Result<(), IoError>;

    /// Makes room: hands the oldest strip to `sink` as a run; gives back how many
    /// runs, 0 when nothing is sorted yet.
    ///
    /// # Errors
    /// When the sink fails.
    fn spill<S: RecordSink>(&mut self, sink: &mut S) -> Result<u64, S::Error>;

    /// Gives the memory that has no records in it, now that no more will come, back to
    /// the system: how many bytes.
    fn release_spare(&mut self) -> usize;

    /// Records in the area, sorted or not.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory that the area has had at most.
    fn mapped(&self) -> Mapped;

    /// What is sorted: the bytes of each sequence in order.
    fn sources(&self) -> Vec<&[u8]>;
}

/// The memory of strips: taken as records come, and used again.
#[derive(Debug)]
struct StripPool<T: Copy> {
    /// Empty, with memory.
    spare: Vec<HugeVec<T>>,
    /// Strips that may still be made.
    unmade: usize,
    /// All strips of the area: spare, unmade or in use.
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

    /// An empty strip; none when all are in use.
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

    /// Bytes of the strips that may still be taken.
    fn room(&self) -> usize {
        (self.spare.len() + self.unmade) * self.strip_bytes
    }

    /// Gives the memory of empty strips back to the system: how many bytes.
    fn release(&mut self) -> usize {
        self.spare.drain(..).count() * self.strip_bytes
    }

    /// Has the system supply memory for what a strip is about to take.
    #[inline]
    fn supply(&mut self, strip: &mut HugeVec<T>, more: usize) {
        self.mapped.time += strip.supply(more);
    }

    /// All that was ever mapped.
    fn mapped(&self) -> Mapped {
        self.mapped
    }
}

/// Takes sorted records.
pub trait RecordSink {
    /// Why it cannot take a record.
    type Error;

    /// Takes the next record.
    ///
    /// # Errors
    /// When the sink cannot keep it; what that means depends on the sink.
    fn record(&mut self, record: &[u8]) -> Result<(), Self::Error>;

    /// The records so far are in order; the next one may be smaller.
    ///
    /// # Errors
    /// As for `record`.
    fn end_run(&mut self) -> Result<(), Self::Error>;
}

/// The order in which records have come so far: a strip that was filled in order, or in
/// reverse order, need not be sorted.
#[derive(Debug, Clone, Copy)]
struct InputOrder {
    ascending: bool,
    descending: bool,
}

impl InputOrder {
    const UNKNOWN: InputOrder = InputOrder { ascending: true, descending: true };
}

/// What is sorted in memory, in one order.
pub struct MemoryMerge<'a, F: RunFormat> {
    rest: Vec<&'a [u8]>,
    /// None when there is nothing.
    merger: Option<F::Merger>,
}

impl<'a, F: RunFormat> MemoryMerge<'a, F> {
    /// The records of these sources, each in order.
    #[must_use]
    pub fn new(sources: Vec<&'a [u8]>) -> MemoryMerge<'a, F> {
        let mut rest = sources;
        let merger = (!rest.is_empty()).then(|| F::Merger::new(&mut rest));
        MemoryMerge { rest, merger }
    }

    /// The smallest record left; no bytes at the end.
    #[inline]
    #[must_use]
    pub fn current(&self) -> &[u8] {
        self.merger.as_ref().map_or(&[], Merger::record)
    }

    /// Goes on to the next record.
    #[inline]
    pub fn advance(&mut self) {
        if let Some(merger) = &mut self.merger {
            merger.replace(&mut self.rest[merger.source()]);
        }
    }

    /// Counts of the matches played; zero for a merger that keeps none.
    #[must_use]
    pub fn matches(&self) -> Matches {
        self.merger.as_ref().map_or(Matches::default(), Merger::matches)
    }
}

#[cfg(test)]
mod tests;

//! The sort area: records collected in a fixed amount of memory and sorted there.
//!
//! The area is cut into strips of equal size, each with memory of its own. A
//! strip is sorted the moment it is full, so sorting is spread over the input;
//! sorting all of a large area at once would leave the scan's reads standing, and
//! the processor idle afterwards until the disk has caught up. How records lie in
//! a strip and are sorted is the business of their form: [`words`], [`bytes`].
//!
//! When all strips are full one of them becomes a run and is filled again. What
//! is still in memory at the end stays there and is merged with the runs: an
//! input a little larger than the area costs little more than one that fits.
//!
//! How many strips: with ever larger strips the standard library's sort costs 1
//! to 1.5 ns a record more for each doubling (64K numbers of 64 bits 12.6 ns a
//! record, 256K 15.4, 4M 19.7), a level of the merge 2 to 2.5 ns; so strips are
//! large, and sixteen of them: enough to spill finely and to leave the disk no
//! long gap. Sorting by distribution before it was measured again with these
//! sizes: least significant digits first loses at every size (13 to 30 ns), one
//! pass by the highest bits wins 2 ns in strips of 64K to 256K, and is not worth
//! the second buffer it needs.

pub mod bytes;
pub mod words;

use super::format::Format;
use super::loser_tree::LoserTree;
use plumb_io::IoError;
use std::collections::VecDeque;
use std::fmt::Debug;

/// Most strips of an area.
pub const STRIPS_MAX: usize = 16;

/// The smallest strip worth having beside others: its requests, when it is read
/// back as a run, are then still large.
pub const STRIP_BYTES_MIN: usize = 512 * 1024;

/// What a record takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordSize {
    /// Bytes of the record, in memory and in a run; the mean where they differ.
    pub bytes: usize,
    /// Bytes of memory beside it: what is sorted in its stead.
    pub entry_bytes: usize,
}

impl RecordSize {
    /// Records that fit so much memory; at least one.
    #[must_use]
    pub fn fitting(self, bytes: usize) -> usize {
        (bytes / (self.bytes + self.entry_bytes)).max(1)
    }
}

/// Records in memory that are sorted together.
pub trait Strip: Sized + Send + Debug {
    /// Bytes of memory beside a record.
    const ENTRY_BYTES: usize;

    /// A strip in `bytes` of memory, for records of this size.
    ///
    /// # Errors
    /// When the kernel has no memory.
    fn new(bytes: usize, record: RecordSize) -> Result<Self, IoError>;

    /// Adds records one after the other from the front of `records`; gives back
    /// how many bytes were taken. Fewer than all means that the strip is full.
    fn fill(&mut self, records: &[u8]) -> usize;

    /// Records in it.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts them in order.
    fn sort(&mut self);

    /// A record by its place in the order; no bytes behind the last one.
    fn record(&self, place: usize) -> &[u8];

    /// Forgets the records; the memory stays.
    fn clear(&mut self);

    /// Bytes of memory mapped.
    fn mapped_bytes(&self) -> usize;
}

/// Takes sorted records.
pub trait RecordSink {
    /// How it fails.
    type Error;

    /// Takes the next record.
    ///
    /// # Errors
    /// Its own.
    fn record(&mut self, record: &[u8]) -> Result<(), Self::Error>;

    /// The records so far are in order; the next one may be smaller.
    ///
    /// # Errors
    /// Its own.
    fn end_run(&mut self) -> Result<(), Self::Error>;
}

/// Whether records came in order so far: a strip filled in order, or in reverse,
/// is not sorted again.
#[derive(Debug, Clone, Copy)]
struct InputOrder {
    ascending: bool,
    descending: bool,
}

impl InputOrder {
    const UNKNOWN: InputOrder = InputOrder { ascending: true, descending: true };
}

/// Memory of a sort, in strips.
#[derive(Debug)]
pub struct SortArea<F: Format> {
    /// Sorted, the oldest first.
    full: VecDeque<F::Strip>,
    filling: Option<F::Strip>,
    /// Empty, with memory.
    spare: Vec<F::Strip>,
    /// Strips that may still be made.
    unmade: usize,
    strip_bytes: usize,
    record: RecordSize,
    mapped_max: usize,
}

impl<F: Format> SortArea<F> {
    /// An area of `bytes` in so many strips, for records of this size. Memory is
    /// taken strip by strip as records come.
    #[must_use]
    pub fn new(bytes: usize, strips: usize, record: RecordSize) -> SortArea<F> {
        assert!(strips > 0);
        SortArea {
            full: VecDeque::new(),
            filling: None,
            spare: Vec::new(),
            unmade: strips,
            strip_bytes: bytes / strips,
            record,
            mapped_max: 0,
        }
    }

    /// Adds records one after the other from the front of `records`; gives back
    /// how many bytes were taken. Fewer than all means that the area is full.
    ///
    /// # Errors
    /// When the kernel has no memory.
    pub fn fill(&mut self, records: &[u8]) -> Result<usize, IoError> {
        let mut taken = 0;
        loop {
            if self.filling.is_none() {
                self.filling = self.empty_strip()?;
            }
            let Some(strip) = &mut self.filling else { return Ok(taken) };
            let fitted = strip.fill(&records[taken..]);
            taken += fitted;
            if taken == records.len() || (fitted == 0 && strip.is_empty()) {
                return Ok(taken);
            }
            self.close_strip();
        }
    }

    fn empty_strip(&mut self) -> Result<Option<F::Strip>, IoError> {
        if let Some(strip) = self.spare.pop() {
            return Ok(Some(strip));
        }
        if self.unmade == 0 {
            return Ok(None);
        }
        let strip = F::Strip::new(self.strip_bytes, self.record)?;
        self.unmade -= 1;
        self.mapped_max += strip.mapped_bytes();
        Ok(Some(strip))
    }

    /// Sorts the strip being filled; what comes next goes into another one.
    pub fn close_strip(&mut self) {
        if let Some(mut strip) = self.filling.take() {
            if strip.is_empty() {
                self.spare.push(strip);
            } else {
                strip.sort();
                self.full.push_back(strip);
            }
        }
    }

    /// Hands the oldest full strip to `sink` as a run; its memory can be filled
    /// again. `false` when there is none.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn spill<S: RecordSink>(&mut self, sink: &mut S) -> Result<bool, S::Error> {
        let Some(mut strip) = self.full.pop_front() else { return Ok(false) };
        for place in 0..strip.len() {
            sink.record(strip.record(place))?;
        }
        sink.end_run()?;
        strip.clear();
        self.spare.push(strip);
        Ok(true)
    }

    /// Gives the memory of empty strips back to the system: how many bytes.
    pub fn release_spare(&mut self) -> usize {
        self.spare.drain(..).count() * self.strip_bytes
    }

    /// Records in the area.
    #[must_use]
    pub fn len(&self) -> usize {
        self.full.iter().chain(&self.filling).map(Strip::len).sum()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Full strips.
    #[must_use]
    pub fn strip_count(&self) -> usize {
        self.full.len()
    }

    /// Bytes of memory that the area has mapped at most.
    #[must_use]
    pub fn mapped_bytes(&self) -> usize {
        self.mapped_max
    }

    /// The full strips, merged.
    #[must_use]
    pub fn merged(&self) -> StripMerge<'_, F> {
        StripMerge::new(&self.full)
    }
}

/// Full strips in one order.
#[derive(Debug)]
pub struct StripMerge<'a, F: Format> {
    strips: Vec<&'a F::Strip>,
    /// The place of each strip's current record.
    places: Vec<usize>,
    /// None when there is no strip.
    tree: Option<LoserTree<F::Head>>,
}

impl<'a, F: Format> StripMerge<'a, F> {
    fn new(strips: &'a VecDeque<F::Strip>) -> StripMerge<'a, F> {
        let strips: Vec<&F::Strip> = strips.iter().collect();
        let places = vec![0; strips.len()];
        let head = |(strip, source): (&&F::Strip, u32)| F::head(strip.record(0), source);
        let heads: Vec<F::Head> = strips.iter().zip(0..).map(head).collect();
        let less =
            |one: &F::Head, two: &F::Head| F::less(one, two, |source| strips[source as usize].record(0));
        let tree = (!heads.is_empty()).then(|| LoserTree::new(&heads, less));
        StripMerge { strips, places, tree }
    }

    /// The smallest record left; no bytes at the end.
    #[inline]
    #[must_use]
    pub fn current(&self) -> &[u8] {
        let Some(tree) = &self.tree else { return &[] };
        let source = F::source(&tree.winner()) as usize;
        self.strips[source].record(self.places[source])
    }

    /// Goes on to the next record.
    #[inline]
    pub fn advance(&mut self) {
        let Some(tree) = &mut self.tree else { return };
        let (strips, places) = (&self.strips, &mut self.places);
        let source = F::source(&tree.winner());
        places[source as usize] += 1;
        let record = |source: u32| strips[source as usize].record(places[source as usize]);
        let next = record(source);
        let head = if next.is_empty() { F::exhausted(source) } else { F::head(next, source) };
        tree.replace(source, head, |one, two| F::less(one, two, record));
    }
}

#[cfg(test)]
mod tests;

//! The area of keys of any length: records in a heap, entries that are sorted.
//!
//! An entry is 16 bytes: a prefix of 8 key bytes and the record's place in the
//! heap. The prefix starts behind what all keys in the strip have in common, so
//! that a shared beginning (`https://www.`) does not use it up.

use super::{Drain, InputOrder, RecordSink, SortArea};
use crate::sort::format::{self, BytesKey, Format, key_of, row_of};
use crate::sort::loser_tree::LoserTree;
use plumb_io::{HugeVec, IoError};

/// Records of a strip.
pub(super) const BYTES_STRIP: usize = 16 * 1024;

/// Area of [`BytesKey`] records.
#[derive(Debug)]
pub struct BytesArea {
    heap: HugeVec<u8>,
    heap_bytes: usize,
    entries: HugeVec<Entry>,
    entry_count_max: usize,
    /// Where the strips end; what follows is the strip being filled.
    strips: Vec<usize>,
    /// Bytes at the beginning that all keys of the strip being filled share.
    common: usize,
    order: InputOrder,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    prefix: u64,
    at: u64,
}

impl SortArea<BytesKey> for BytesArea {
    /// The memory is split between heap and entries by the expected length. A
    /// wrong guess leaves part of one unused; it never takes more.
    fn new(bytes: usize, record_bytes: usize) -> Result<BytesArea, IoError> {
        let entry_count_max = (bytes / (record_bytes + size_of::<Entry>())).max(1);
        let heap_bytes = bytes.saturating_sub(entry_count_max * size_of::<Entry>());
        Ok(BytesArea {
            heap: HugeVec::with_capacity(heap_bytes)?,
            heap_bytes,
            entries: HugeVec::with_capacity(entry_count_max)?,
            entry_count_max,
            strips: Vec::new(),
            common: 0,
            order: InputOrder::UNKNOWN,
        })
    }

    fn fill(&mut self, records: &[u8]) -> usize {
        let mut taken = 0;
        loop {
            let rest = &records[taken..];
            let length = BytesKey::length(rest);
            let full =
                self.entries.len() == self.entry_count_max || self.heap.len() + length > self.heap_bytes;
            if length == 0 || full {
                return taken;
            }
            let record = &rest[..length];
            self.note(record);
            self.entries.push(Entry { prefix: 0, at: self.heap.len() as u64 });
            self.heap.extend_from_slice(record);
            taken += length;
            if self.entries.len() - self.strip_start() == BYTES_STRIP {
                self.sort_strip();
            }
        }
    }

    fn len(&self) -> usize {
        self.entries.len()
    }

    fn strip_len(&self) -> usize {
        self.entry_count_max.min(BYTES_STRIP)
    }

    fn mapped_bytes(&self) -> usize {
        self.entries.mapped_bytes() + self.heap.mapped_bytes()
    }

    fn drain<S: RecordSink>(&mut self, how: Drain, sink: &mut S) -> Result<(), S::Error> {
        self.sort_strip();
        let mut start = 0;
        let strips: Vec<&[Entry]> =
            self.strips.iter().map(|end| &self.entries[std::mem::replace(&mut start, *end)..*end]).collect();
        if how == Drain::Strips || strips.len() <= 1 {
            for strip in strips {
                strip.iter().try_for_each(|entry| sink.record(record_at(&self.heap, entry)))?;
                sink.end_run()?;
            }
        } else {
            merge_bytes(&self.heap, &strips, sink)?;
            sink.end_run()?;
        }
        self.entries.clear();
        self.heap.clear();
        self.strips.clear();
        Ok(())
    }
}

impl BytesArea {
    fn strip_start(&self) -> usize {
        self.strips.last().copied().unwrap_or(0)
    }

    fn note(&mut self, record: &[u8]) {
        let key = key_of(record);
        let Some(last) = self.entries[self.strip_start()..].last() else {
            self.common = key.len();
            return;
        };
        let last = record_at(&self.heap, last);
        // Comparing with the last record is enough: a byte that differs between
        // any two records differs between two neighbours.
        let shared = key.iter().zip(key_of(last)).take(self.common).take_while(|(a, b)| a == b).count();
        self.common = shared;
        let order = BytesKey::compare(last, record);
        self.order.ascending &= order.is_le();
        self.order.descending &= order.is_ge();
    }

    fn sort_strip(&mut self) {
        let start = self.strip_start();
        let strip = &mut self.entries[start..];
        if strip.is_empty() {
            return;
        }
        match self.order {
            InputOrder { ascending: true, .. } => {}
            InputOrder { descending: true, .. } => strip.reverse(),
            _ => sort_entries(&self.heap, strip, self.common),
        }
        self.strips.push(self.entries.len());
        self.order = InputOrder::UNKNOWN;
    }
}

/// Sorts entries whose keys share their first `skip` bytes: by prefix and place
/// first, two words without a look into the heap, then each group of equal
/// prefixes by what the prefix leaves open. Records of one key mostly arrived in
/// the order of their row ids, in long stretches, which the stable sort finds.
fn sort_entries(heap: &[u8], entries: &mut [Entry], skip: usize) {
    for entry in entries.iter_mut() {
        entry.prefix = format::prefix(key_of(record_at(heap, entry)), skip);
    }
    entries.sort_unstable_by_key(|entry| u128::from(entry.prefix) << 64 | u128::from(entry.at));
    let rest = skip + size_of::<u64>();
    let order = |one: &Entry, two: &Entry| {
        let (a, b) = (record_at(heap, one), record_at(heap, two));
        let tail = |record| key_of(record).get(rest..).unwrap_or(&[]);
        // Keys end in no zero byte, so one whose padded prefix equals another's
        // and that has no tail is the same key or the shorter one.
        tail(a).cmp(tail(b)).then_with(|| row_of(a).cmp(&row_of(b)))
    };
    for group in entries.chunk_by_mut(|one, two| one.prefix == two.prefix) {
        if group.len() > 1 {
            group.sort_by(order);
        }
    }
}

fn merge_bytes<S: RecordSink>(heap: &[u8], strips: &[&[Entry]], sink: &mut S) -> Result<(), S::Error> {
    let mut next = vec![0usize; strips.len()];
    let record = |next: &[usize], source: u32| -> &[u8] {
        let entry = strips[source as usize].get(next[source as usize]);
        entry.map_or(&[], |entry| record_at(heap, entry))
    };
    let sources = 0..strips.len() as u32;
    let heads: Vec<_> = sources.map(|source| BytesKey::head(record(&next, source), source)).collect();
    let mut tree =
        LoserTree::new(&heads, |one, two| BytesKey::less(one, two, |source| record(&next, source)));
    loop {
        let source = BytesKey::source(&tree.winner());
        let current = record(&next, source);
        if current.is_empty() {
            return Ok(());
        }
        sink.record(current)?;
        next[source as usize] += 1;
        let following = record(&next, source);
        let head = match following.is_empty() {
            true => BytesKey::exhausted(source),
            false => BytesKey::head(following, source),
        };
        tree.replace(source, head, |one, two| BytesKey::less(one, two, |source| record(&next, source)));
    }
}

#[inline]
fn record_at<'h>(heap: &'h [u8], entry: &Entry) -> &'h [u8] {
    let rest = &heap[entry.at as usize..];
    &rest[..BytesKey::length(rest)]
}

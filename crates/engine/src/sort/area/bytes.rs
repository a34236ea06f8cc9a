//! The area of keys of any length: records in a heap, entries that are sorted.
//!
//! An entry is 16 bytes: a prefix of 8 key bytes and the record's place in the
//! heap. The prefix starts behind what all keys in the strip have in common, so
//! that a shared beginning (`https://www.`) does not use it up.

use super::{InputOrder, RecordSize, Strip};
use crate::sort::format::{self, BytesKey, Format, key_of, row_of};
use plumb_io::{HugeVec, IoError};

/// A strip of [`BytesKey`] records.
#[derive(Debug)]
pub struct BytesStrip {
    heap: HugeVec<u8>,
    entries: HugeVec<Entry>,
    /// Bytes at the beginning that all keys share.
    common: usize,
    order: InputOrder,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    prefix: u64,
    at: u64,
}

impl Strip for BytesStrip {
    const ENTRY_BYTES: usize = size_of::<Entry>();

    /// The memory is split between heap and entries by the expected length. A
    /// wrong guess leaves part of one unused; it never takes more.
    fn new(bytes: usize, record: RecordSize) -> Result<BytesStrip, IoError> {
        let entry_count = record.fitting(bytes);
        let heap_bytes = bytes.saturating_sub(entry_count * size_of::<Entry>());
        Ok(BytesStrip {
            heap: HugeVec::with_capacity(heap_bytes)?,
            entries: HugeVec::with_capacity(entry_count)?,
            common: 0,
            order: InputOrder::UNKNOWN,
        })
    }

    fn fill(&mut self, records: &[u8]) -> usize {
        let mut taken = 0;
        loop {
            let rest = &records[taken..];
            let length = BytesKey::length(rest);
            if length == 0 || self.entries.room() == 0 || self.heap.room() < length {
                return taken;
            }
            let record = &rest[..length];
            self.note(record);
            self.entries.push(Entry { prefix: 0, at: self.heap.len() as u64 });
            self.heap.extend_from_slice(record);
            taken += length;
        }
    }

    fn len(&self) -> usize {
        self.entries.len()
    }

    fn sort(&mut self) {
        match self.order {
            InputOrder { ascending: true, .. } => {}
            InputOrder { descending: true, .. } => self.entries.reverse(),
            _ => sort_entries(&self.heap, &mut self.entries, self.common),
        }
    }

    #[inline]
    fn record(&self, place: usize) -> &[u8] {
        self.entries.get(place).map_or(&[], |entry| record_at(&self.heap, entry))
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.heap.clear();
        self.order = InputOrder::UNKNOWN;
    }

    fn mapped_bytes(&self) -> usize {
        self.entries.mapped_bytes() + self.heap.mapped_bytes()
    }
}

impl BytesStrip {
    fn note(&mut self, record: &[u8]) {
        let key = key_of(record);
        let Some(last) = self.entries.last() else {
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

#[inline]
fn record_at<'h>(heap: &'h [u8], entry: &Entry) -> &'h [u8] {
    let rest = &heap[entry.at as usize..];
    &rest[..BytesKey::length(rest)]
}

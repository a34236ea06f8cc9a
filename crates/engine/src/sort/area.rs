//! The sort area: records collected in a fixed amount of memory and sorted there.
//!
//! The memory is taken once and never grows. When it is full the area is sorted,
//! drained in order, and filled again.
//!
//! [`WordKey`] records are numbers of 128 bits, sorted in place by
//! [`radix`](super::radix). [`BytesKey`] records lie in a heap; what is sorted is
//! an entry of 16 bytes each: a prefix of 8 key bytes and the record's place. The
//! prefix starts behind what all keys in the area have in common, so that a
//! shared beginning (`https://www.`) does not use it up.
//!
//! An area that was filled in order, or in reverse, is not sorted again: each
//! push compares with the record before it.

use super::format::{self, BytesKey, Format, WORD_RECORD, WordKey, key_of, row_of, wide, word_record};
use super::radix;
use plumb_io::huge_vec;

/// Records in memory.
pub trait SortArea<F: Format>: Sized + Send {
    /// An area of `bytes`, for records of about `record_bytes` each.
    fn new(bytes: usize, record_bytes: usize) -> Self;

    /// Adds records one after the other from the front of `records`; gives back
    /// how many bytes were taken. Fewer than all means that the area is full.
    fn fill(&mut self, records: &[u8]) -> usize;

    /// Records in the area.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sorts them and hands them out in order; the area is empty then.
    ///
    /// # Errors
    /// When `take` fails.
    fn drain_sorted<E>(&mut self, take: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E>;
}

/// Whether records came in order so far.
#[derive(Debug, Clone, Copy)]
struct InputOrder {
    ascending: bool,
    descending: bool,
}

impl InputOrder {
    const UNKNOWN: InputOrder = InputOrder { ascending: true, descending: true };
}

/// Area of [`WordKey`] records.
#[derive(Debug)]
pub struct WordArea {
    entries: Vec<u128>,
    capacity: usize,
    order: InputOrder,
}

impl SortArea<WordKey> for WordArea {
    fn new(bytes: usize, _: usize) -> WordArea {
        let capacity = bytes / WORD_RECORD;
        WordArea { entries: huge_vec(capacity), capacity, order: InputOrder::UNKNOWN }
    }

    fn fill(&mut self, records: &[u8]) -> usize {
        let room = (self.capacity - self.entries.len()).min(records.len() / WORD_RECORD);
        let taken = &records[..room * WORD_RECORD];
        let mut last = self.entries.last().copied();
        for record in taken.chunks_exact(WORD_RECORD) {
            let entry = wide(record);
            if let Some(last) = last {
                self.order.ascending &= last <= entry;
                self.order.descending &= last >= entry;
            }
            last = Some(entry);
            self.entries.push(entry);
        }
        taken.len()
    }

    fn len(&self) -> usize {
        self.entries.len()
    }

    fn drain_sorted<E>(&mut self, mut take: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        match self.order {
            InputOrder { ascending: true, .. } => {}
            InputOrder { descending: true, .. } => self.entries.reverse(),
            _ => radix::sort(&mut self.entries),
        }
        debug_assert!(self.entries.is_sorted());
        for entry in &self.entries {
            take(&word_record(*entry))?;
        }
        self.entries.clear();
        self.order = InputOrder::UNKNOWN;
        Ok(())
    }
}

/// Area of [`BytesKey`] records.
#[derive(Debug)]
pub struct BytesArea {
    heap: Vec<u8>,
    heap_bytes: usize,
    entries: Vec<Entry>,
    entry_count_max: usize,
    /// Bytes at the beginning that all keys share.
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
    fn new(bytes: usize, record_bytes: usize) -> BytesArea {
        let entry_count_max = (bytes / (record_bytes + size_of::<Entry>())).max(1);
        let heap_bytes = bytes.saturating_sub(entry_count_max * size_of::<Entry>());
        BytesArea {
            heap: huge_vec(heap_bytes),
            heap_bytes,
            entries: huge_vec(entry_count_max),
            entry_count_max,
            common: 0,
            order: InputOrder::UNKNOWN,
        }
    }

    fn fill(&mut self, records: &[u8]) -> usize {
        let mut taken = 0;
        loop {
            let rest = &records[taken..];
            let length = BytesKey::length(rest);
            let full = self.entries.len() == self.entry_count_max || self.heap.len() + length > self.heap_bytes;
            if length == 0 || full {
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

    fn drain_sorted<E>(&mut self, mut take: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        match self.order {
            InputOrder { ascending: true, .. } => {}
            InputOrder { descending: true, .. } => self.entries.reverse(),
            _ => self.sort(),
        }
        for entry in &self.entries {
            take(record_at(&self.heap, entry))?;
        }
        self.entries.clear();
        self.heap.clear();
        self.order = InputOrder::UNKNOWN;
        Ok(())
    }
}

impl BytesArea {
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

    fn sort(&mut self) {
        let (heap, skip) = (&self.heap, self.common);
        for entry in &mut self.entries {
            entry.prefix = format::prefix(key_of(record_at(heap, entry)), skip);
        }
        let rest = skip + size_of::<u64>();
        self.entries.sort_unstable_by(|one, two| {
            one.prefix.cmp(&two.prefix).then_with(|| {
                let (a, b) = (record_at(heap, one), record_at(heap, two));
                let tail = |record| key_of(record).get(rest..).unwrap_or(&[]);
                // Equal prefixes of unequal length: the padding of the shorter is
                // zeros, so a longer key goes on with bytes after them.
                tail(a).cmp(tail(b)).then_with(|| key_of(a).len().cmp(&key_of(b).len())).then_with(|| row_of(a).cmp(&row_of(b)))
            })
        });
    }
}

#[inline]
fn record_at<'h>(heap: &'h [u8], entry: &Entry) -> &'h [u8] {
    let rest = &heap[entry.at as usize..];
    &rest[..BytesKey::length(rest)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes_record(key: &[u8], row: u64) -> Vec<u8> {
        let mut record = (key.len() as u16).to_le_bytes().to_vec();
        record.extend_from_slice(&row.to_le_bytes());
        record.extend_from_slice(key);
        record
    }

    /// Sorts through an area of `bytes`; checks each drained run and gives back all records.
    fn sort_all<F: Format, A: SortArea<F>>(bytes: usize, records: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut area = A::new(bytes, 20);
        let mut out: Vec<Vec<u8>> = Vec::new();
        let mut input: &[u8] = &records.concat();
        while !input.is_empty() {
            let taken = area.fill(input);
            input = &input[taken..];
            let start = out.len();
            area.drain_sorted(|record| {
                out.push(record.to_vec());
                Ok::<(), ()>(())
            })
            .expect("collected");
            assert!(out.len() > start, "an empty area takes at least one record");
            assert!(out[start..].is_sorted_by(|a, b| F::compare(a, b).is_le()));
        }
        out
    }

    fn check<F: Format, A: SortArea<F>>(bytes: usize, mut records: Vec<Vec<u8>>) {
        let mut sorted = sort_all::<F, A>(bytes, &records);
        sorted.sort_by(|a, b| F::compare(a, b));
        records.sort_by(|a, b| F::compare(a, b));
        assert_eq!(sorted, records);
    }

    proptest! {
        #[test]
        fn words_come_out_in_order_and_complete(
            keys in proptest::collection::vec((0u64..50, 0u64..1000), 0..400), shift in 0u32..58, bytes in 64usize..8192,
        ) {
            let records = keys.iter().map(|(k, r)| word_record(u128::from(k << shift) << 64 | u128::from(*r)).to_vec());
            check::<WordKey, WordArea>(bytes, records.collect());
        }

        #[test]
        fn texts_come_out_in_order_and_complete(
            keys in proptest::collection::vec(("(www[.])?[ab]{0,12}", 0u64..5), 0..300), bytes in 200usize..8192,
        ) {
            let records = keys.iter().map(|(k, r)| bytes_record(k.as_bytes(), *r));
            check::<BytesKey, BytesArea>(bytes, records.collect());
        }
    }

    #[test]
    fn input_in_order_or_reverse_stays_right() {
        let up: Vec<Vec<u8>> = (0..100u8).map(|i| bytes_record(&[b'a', i + 1], 1)).collect();
        let down: Vec<Vec<u8>> = up.iter().rev().cloned().collect();
        assert_eq!(sort_all::<BytesKey, BytesArea>(8192, &up), up);
        assert_eq!(sort_all::<BytesKey, BytesArea>(8192, &down), up);
    }
}

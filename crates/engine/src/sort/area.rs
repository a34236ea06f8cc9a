//! The sort area: records collected in a fixed amount of memory and sorted there.
//!
//! The memory is taken once and never grows. It fills strip by strip; a strip is
//! about as large as the second-level cache takes and is sorted the moment it is
//! full. Sorting is then spread evenly over the input: sorting a full area of 32M
//! at once would leave the scan's reads standing for a tenth of a second each
//! time, and the processor idle afterwards until the disk has caught up. When
//! the area is full its strips become runs each, or are merged into one
//! ([`Drain`]).
//!
//! [`WordKey`] records are numbers of 128 bits, sorted in place by the standard
//! library's unstable sort: 33 to 40 million a second and core. A distribution by
//! the highest differing bits (American flag sort) before it was tried and lost:
//! in a strip that fits the cache its cycles cost what the comparisons it saves
//! do. [`BytesKey`] records lie in a heap; what is sorted is
//! an entry of 16 bytes each: a prefix of 8 key bytes and the record's place. The
//! prefix starts behind what all keys in the strip have in common, so that a
//! shared beginning (`https://www.`) does not use it up.
//!
//! A strip that was filled in order, or in reverse, is not sorted again: each
//! record is compared with the one before it.

use super::format::{self, BytesKey, Format, WORD_RECORD, WordKey, key_of, row_of, wide};
use super::loser_tree::LoserTree;
use plumb_io::{HugeVec, IoError};

/// Records of a [`WordKey`] strip: 1 MiB.
const WORD_STRIP: usize = 64 * 1024;
/// Records of a [`BytesKey`] strip.
const BYTES_STRIP: usize = 16 * 1024;

/// How a full area is emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drain {
    /// Strip after strip, each in order: the runs are many, and merged once less.
    Strips,
    /// All records in one order.
    Merged,
}

/// Records in memory.
pub trait SortArea<F: Format>: Sized + Send {
    /// An area of `bytes`, for records of about `record_bytes` each.
    ///
    /// # Errors
    /// When the kernel has no memory.
    fn new(bytes: usize, record_bytes: usize) -> Result<Self, IoError>;

    /// Adds records one after the other from the front of `records`; gives back
    /// how many bytes were taken. Fewer than all means that the area is full.
    fn fill(&mut self, records: &[u8]) -> usize;

    /// Records in the area.
    fn len(&self) -> usize;

    /// Records in a full strip.
    fn strip_len(&self) -> usize;

    /// Bytes of memory that the area has mapped.
    fn mapped_bytes(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hands the records to `sink` in order; the area is empty then.
    ///
    /// # Errors
    /// When the sink fails.
    fn drain<S: RecordSink>(&mut self, how: Drain, sink: &mut S) -> Result<(), S::Error>;
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
    entries: HugeVec<u128>,
    capacity: usize,
    /// Entries in sorted strips; what follows is the strip being filled.
    sorted: usize,
    order: InputOrder,
}

impl SortArea<WordKey> for WordArea {
    fn new(bytes: usize, _: usize) -> Result<WordArea, IoError> {
        let capacity = bytes / WORD_RECORD;
        Ok(WordArea {
            entries: HugeVec::with_capacity(capacity)?,
            capacity,
            sorted: 0,
            order: InputOrder::UNKNOWN,
        })
    }

    fn fill(&mut self, records: &[u8]) -> usize {
        let mut taken = 0;
        while taken < records.len() {
            let strip_end = (self.sorted + WORD_STRIP).min(self.capacity);
            let room = strip_end - self.entries.len();
            if room == 0 {
                return taken;
            }
            let end = records.len().min(taken + room * WORD_RECORD);
            self.append(&records[taken..end]);
            taken = end;
            if self.entries.len() == strip_end {
                self.sort_strip();
            }
        }
        taken
    }

    fn len(&self) -> usize {
        self.entries.len()
    }

    fn strip_len(&self) -> usize {
        self.capacity.min(WORD_STRIP)
    }

    fn mapped_bytes(&self) -> usize {
        self.entries.mapped_bytes()
    }

    fn drain<S: RecordSink>(&mut self, how: Drain, sink: &mut S) -> Result<(), S::Error> {
        self.sort_strip();
        let strips: Vec<&[u128]> = self.entries.chunks(WORD_STRIP).collect();
        if how == Drain::Strips || strips.len() <= 1 {
            for strip in strips {
                debug_assert!(strip.is_sorted());
                strip.iter().try_for_each(|entry| sink.record(&entry.to_le_bytes()))?;
                sink.end_run()?;
            }
        } else {
            merge_words(&strips, sink)?;
            sink.end_run()?;
        }
        self.entries.clear();
        self.sorted = 0;
        Ok(())
    }
}

impl WordArea {
    fn append(&mut self, records: &[u8]) {
        let mut last = self.entries[self.sorted..].last().copied();
        for record in records.chunks_exact(WORD_RECORD) {
            let entry = wide(record);
            if let Some(last) = last {
                self.order.ascending &= last <= entry;
                self.order.descending &= last >= entry;
            }
            last = Some(entry);
            self.entries.push(entry);
        }
    }

    fn sort_strip(&mut self) {
        let strip = &mut self.entries[self.sorted..];
        match self.order {
            InputOrder { ascending: true, .. } => {}
            InputOrder { descending: true, .. } => strip.reverse(),
            _ => strip.sort_unstable(),
        }
        self.sorted = self.entries.len();
        self.order = InputOrder::UNKNOWN;
    }
}

fn merge_words<S: RecordSink>(strips: &[&[u128]], sink: &mut S) -> Result<(), S::Error> {
    let less = |one: &(u128, u32), two: &(u128, u32)| one.0 < two.0;
    let mut next = vec![0usize; strips.len()];
    let heads: Vec<(u128, u32)> = strips.iter().zip(0..).map(|(strip, source)| (strip[0], source)).collect();
    let mut tree = LoserTree::new(&heads, less);
    loop {
        let (entry, source) = tree.winner();
        if entry == u128::MAX {
            return Ok(());
        }
        sink.record(&entry.to_le_bytes())?;
        let at = &mut next[source as usize];
        *at += 1;
        let entry = strips[source as usize].get(*at).copied().unwrap_or(u128::MAX);
        tree.replace(source, (entry, source), less);
    }
}

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

    /// Collects records and checks that each run is in order.
    struct Collector {
        records: Vec<Vec<u8>>,
        start: usize,
        compare: fn(&[u8], &[u8]) -> std::cmp::Ordering,
    }

    impl RecordSink for Collector {
        type Error = ();

        fn record(&mut self, record: &[u8]) -> Result<(), ()> {
            self.records.push(record.to_vec());
            Ok(())
        }

        fn end_run(&mut self) -> Result<(), ()> {
            assert!(self.records[self.start..].is_sorted_by(|a, b| (self.compare)(a, b).is_le()));
            self.start = self.records.len();
            Ok(())
        }
    }

    /// Sorts through an area of `bytes`; checks each drained run and gives back all records.
    fn sort_all<F: Format>(bytes: usize, how: Drain, records: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut area = F::Area::new(bytes, 20).expect("memory");
        let mut sink = Collector { records: Vec::new(), start: 0, compare: F::compare };
        let mut input: &[u8] = &records.concat();
        while !input.is_empty() {
            let taken = area.fill(input);
            input = &input[taken..];
            let before = sink.records.len();
            area.drain(how, &mut sink).expect("collected");
            assert!(sink.records.len() > before, "an empty area takes at least one record");
        }
        sink.records
    }

    fn check<F: Format>(bytes: usize, mut records: Vec<Vec<u8>>) {
        for how in [Drain::Strips, Drain::Merged] {
            let mut sorted = sort_all::<F>(bytes, how, &records);
            sorted.sort_by(|a, b| F::compare(a, b));
            records.sort_by(|a, b| F::compare(a, b));
            assert_eq!(sorted, records);
        }
    }

    proptest! {
        #[test]
        fn words_come_out_in_order_and_complete(
            keys in proptest::collection::vec((0u64..50, 0u64..1000), 0..400), shift in 0u32..58, bytes in 64usize..8192,
        ) {
            let records = keys.iter().map(|(k, r)| (u128::from(k << shift) << 64 | u128::from(*r)).to_le_bytes().to_vec());
            check::<WordKey>(bytes, records.collect());
        }

        #[test]
        fn texts_come_out_in_order_and_complete(
            keys in proptest::collection::vec(("(www[.])?[ab]{0,12}", 0u64..5), 0..300), bytes in 200usize..8192,
        ) {
            let records = keys.iter().map(|(k, r)| bytes_record(k.as_bytes(), *r));
            check::<BytesKey>(bytes, records.collect());
        }
    }

    #[test]
    fn input_in_order_or_reverse_stays_right() {
        let up: Vec<Vec<u8>> = (0..100u8).map(|i| bytes_record(&[b'a', i + 1], 1)).collect();
        let down: Vec<Vec<u8>> = up.iter().rev().cloned().collect();
        assert_eq!(sort_all::<BytesKey>(8192, Drain::Merged, &up), up);
        assert_eq!(sort_all::<BytesKey>(8192, Drain::Merged, &down), up);
    }

    #[test]
    fn strips_of_a_large_area_merge_into_one_order() {
        let mix = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16;
        let words: Vec<Vec<u8>> = (0..3 * WORD_STRIP as u64 + 17)
            .map(|i| (u128::from(mix(i)) << 64 | u128::from(i)).to_le_bytes().to_vec())
            .collect();
        check::<WordKey>(64 << 20, words);
        let texts = (0..3 * BYTES_STRIP as u64 + 17)
            .map(|i| bytes_record(format!("key{}", mix(i) % 5_000).as_bytes(), i));
        check::<BytesKey>(64 << 20, texts.collect());
    }
}

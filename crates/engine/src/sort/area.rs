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
//! do. `BytesKey` records, of any length, are sorted as [`bytes`] tells.
//!
//! A strip that was filled in order, or in reverse, is not sorted again: each
//! record is compared with the one before it.

pub mod bytes;

use super::format::{Format, WORD_RECORD, WordKey, wide};
use super::loser_tree::LoserTree;
use super::tournament::Matches;
use plumb_io::{HugeVec, IoError};

/// Records of a [`WordKey`] strip: 1 MiB.
const WORD_STRIP: usize = 64 * 1024;

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

    /// How the matches of the merges in it were decided, where somebody counts.
    fn matches(&self) -> Matches {
        Matches::default()
    }
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

#[cfg(test)]
mod tests {
    use super::bytes::STRIP_BYTES;
    use super::*;
    use crate::sort::format::BytesKey;
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
        let texts = (0..3 * STRIP_BYTES as u64 / 34 + 17)
            .map(|i| bytes_record(format!("key{}", mix(i) % 5_000).as_bytes(), i));
        check::<BytesKey>(64 << 20, texts.collect());
    }
}

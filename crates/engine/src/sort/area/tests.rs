//! An area of strips against sorting all records at once.

use super::bytes::BytesArea;
use super::words::WordArea;
use super::*;
use crate::sort::format::BytesKey;
use crate::sort::word::WordKey;
use proptest::prelude::*;
use std::convert::Infallible;

fn bytes_record(key: &[u8], row: u64) -> Vec<u8> {
    let mut record = (key.len() as u16).to_le_bytes().to_vec();
    record.extend_from_slice(&row.to_le_bytes());
    record.extend_from_slice(key);
    record
}

/// Collects records and checks that each run is in order.
struct Collector<F> {
    records: Vec<Vec<u8>>,
    start: usize,
    format: std::marker::PhantomData<F>,
}

impl<F: Format> Collector<F> {
    fn new() -> Collector<F> {
        Collector { records: Vec::new(), start: 0, format: std::marker::PhantomData }
    }
}

impl<F: Format> RecordSink for Collector<F> {
    type Error = Infallible;

    fn record(&mut self, record: &[u8]) -> Result<(), Infallible> {
        self.records.push(record.to_vec());
        Ok(())
    }

    fn end_run(&mut self) -> Result<(), Infallible> {
        let run = &self.records[self.start..];
        assert!(!run.is_empty(), "an empty run");
        assert!(run.is_sorted_by(|a, b| F::compare(a, b).is_le()));
        self.start = self.records.len();
        Ok(())
    }
}

/// Sorts through an area: spills as strips are needed, then merges what is left
/// in memory. Gives back the spilled records and those of the merge.
fn sort_all<F: Format>(bytes: usize, strips: usize, records: &[Vec<u8>]) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut area = F::Area::new(bytes, strips, RecordSize::new::<F::Area>(20)).expect("memory");
    let mut spilled = Collector::<F>::new();
    let mut input: &[u8] = &records.concat();
    loop {
        let taken = area.fill(input).expect("memory");
        input = &input[taken..];
        if input.is_empty() {
            break;
        }
        let Ok(1..) = area.spill(&mut spilled) else { panic!("a full area has a full strip") };
    }
    area.close();
    assert_eq!(area.len() + spilled.records.len(), records.len());
    let mut merged = MemoryMerge::<F>::new(&area);
    let mut kept = Vec::new();
    while let record @ [_, ..] = merged.current() {
        kept.push(record.to_vec());
        merged.advance();
    }
    assert_eq!(kept.len(), area.len());
    assert!(kept.is_sorted_by(|a, b| F::compare(a, b).is_le()));
    assert!(area.mapped_bytes() <= strips * (bytes / strips).next_multiple_of(4096) * 2);
    (spilled.records, kept)
}

fn check<F: Format>(bytes: usize, strips: usize, mut records: Vec<Vec<u8>>) {
    let (spilled, kept) = sort_all::<F>(bytes, strips, &records);
    let mut sorted = [spilled, kept].concat();
    sorted.sort_by(|a, b| F::compare(a, b));
    records.sort_by(|a, b| F::compare(a, b));
    assert_eq!(sorted, records);
}

proptest! {
    #[test]
    fn words_come_out_in_order_and_complete(
        keys in proptest::collection::vec((0u64..50, 0u64..1000), 0..400),
        shift in 10u32..50, bytes in 64usize..8192, strips in 1usize..5,
    ) {
        let word = |(key, row): &(u64, u64)| key << shift | row;
        check::<WordKey<u64>>(bytes, strips, keys.iter().map(|key| word(key).to_le_bytes().to_vec()).collect());
        let wide = |key: &(u64, u64)| u128::from(word(key)) << 60;
        check::<WordKey<u128>>(bytes, strips, keys.iter().map(|key| wide(key).to_le_bytes().to_vec()).collect());
    }

    #[test]
    fn texts_come_out_in_order_and_complete(
        keys in proptest::collection::vec(("(www[.])?[ab]{0,12}", 0u64..5), 0..300),
        bytes in 200usize..8192, strips in 1usize..4,
    ) {
        let records = keys.iter().map(|(key, row)| bytes_record(key.as_bytes(), *row));
        check::<BytesKey>(bytes, strips, records.collect());
    }
}

#[test]
fn input_in_order_or_reverse_stays_right() {
    let up: Vec<Vec<u8>> = (0..100u8).map(|i| bytes_record(&[b'a', i + 1], 1)).collect();
    let down: Vec<Vec<u8>> = up.iter().rev().cloned().collect();
    assert_eq!(sort_all::<BytesKey>(8192, 1, &up).1, up);
    assert_eq!(sort_all::<BytesKey>(8192, 3, &down).1, up);
}

#[test]
fn what_is_a_little_too_much_spills_one_strip() {
    let mix = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 1;
    let records: Vec<Vec<u8>> = (0..16_001).map(|i| mix(i).to_le_bytes().to_vec()).collect();
    let (spilled, kept) = sort_all::<WordKey<u64>>(16_000 * 8, 16, &records);
    assert_eq!((spilled.len(), kept.len()), (1000, 15_001));
}

#[test]
fn memory_is_taken_as_records_come_and_given_back_strip_by_strip() {
    let mut area = WordArea::<u64>::new(16 << 20, 16, RecordSize::new::<WordArea<u64>>(8)).expect("memory");
    assert_eq!(area.mapped_bytes(), 0);
    assert_eq!(area.fill(&vec![1; 3 << 20]).expect("memory"), 3 << 20);
    assert!((3 << 20..=5 << 20).contains(&area.mapped_bytes()), "{}", area.mapped_bytes());
    area.close();
    let Ok(1) = area.spill(&mut Collector::<WordKey<u64>>::new()) else { panic!("a full strip") };
    assert_eq!(area.release_spare(), 1 << 20);
    assert_eq!(area.len(), 2 << 17);
}

#[test]
fn a_record_larger_than_a_strip_is_not_taken() {
    let mut area = BytesArea::new(300, 1, RecordSize::new::<BytesArea>(20)).expect("memory");
    let record = bytes_record(&[b'k'; 2000], 1);
    assert_eq!(area.fill(&record).expect("memory"), 0);
    assert!(area.is_empty());
}

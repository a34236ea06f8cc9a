//! Tests an area of strips against sorting all records at once.

use super::bytes::BytesArea;
use super::words::WordArea;
use super::*;
use crate::sort::format::{BytesKey, Format};
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

/// Sorts through an area: spills strips as needed, then merges the rest in memory. Returns the
/// spilled records and those of the merge.
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
    area.close().expect("memory");
    assert_eq!(area.len() + spilled.records.len(), records.len());
    let mut merged = MemoryMerge::<F>::new(area.sources());
    let mut kept = Vec::new();
    while let record @ [_, ..] = merged.current() {
        kept.push(record.to_vec());
        merged.advance();
    }
    assert_eq!(kept.len(), area.len());
    assert!(kept.is_sorted_by(|a, b| F::compare(a, b).is_le()));
    assert!(area.mapped().bytes <= strips * (bytes / strips).next_multiple_of(4096) * 2);
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
    fn of_small_areas_too(
        keys in proptest::collection::vec(("(www[.])?[ab]{0,12}", 0u64..5), 0..300),
        bytes in 200usize..8192, strips in 1usize..4,
    ) {
        let records = keys.iter().map(|(key, row)| bytes_record(key.as_bytes(), *row));
        check::<BytesKey>(bytes, strips, records.collect());
    }

    #[test]
    fn texts_come_out_in_order_and_complete(
        keys in proptest::collection::vec((prop_oneof![9 => "(www[.])?[ab]{0,12}", 1 => "a{200,600}"], 0u64..5), 0..300),
        bytes in 8192usize..32768, strips in 1usize..5,
    ) {
        let records = keys.iter().map(|(key, row)| bytes_record(key.as_bytes(), *row));
        check::<BytesKey>(bytes, strips, records.collect());
    }

    #[test]
    fn texts_that_end_in_zero_bytes_sort_in_order(
        keys in proptest::collection::vec((r"(www[.])?a{0,9}\x00{0,20}b?", 0u64..5), 0..300),
        bytes in 1024usize..16384, strips in 1usize..5,
    ) {
        let records = keys.iter().map(|(key, row)| bytes_record(key.as_bytes(), *row));
        check::<BytesKey>(bytes, strips, records.collect());
    }

    #[test]
    fn texts_in_order_but_for_a_few(
        mut keys in proptest::collection::vec((prop_oneof![9 => "www[.][a-d]{0,6}", 1 => "a{200,600}"], 0u64..5), 0..900),
        strangers in proptest::collection::vec((any::<prop::sample::Index>(), "[ax]{1,9}"), 0..4),
        reversed: bool, bytes in 8192usize..32768, strips in 1usize..5,
    ) {
        keys.sort();
        if reversed {
            // Rows of one key still come in the order of the table.
            keys.sort_by(|one, two| two.0.cmp(&one.0).then_with(|| one.1.cmp(&two.1)));
        }
        for (place, key) in strangers {
            keys.insert(place.index(keys.len() + 1), (key, 9));
        }
        let records = keys.iter().map(|(key, row)| bytes_record(key.as_bytes(), *row));
        check::<BytesKey>(bytes, strips, records.collect());
    }
}

#[test]
fn the_longest_keys_fit_and_continue_in_another_strip() {
    let longest = usize::from(u16::MAX);
    let key = |i: usize| [vec![b'k'; longest - 1 - i % 300], vec![b'a' + (i * 7 % 26) as u8]].concat();
    let records: Vec<Vec<u8>> = (0..60).map(|i| bytes_record(&key(i), i as u64)).collect();
    for strips in 1..5 {
        check::<BytesKey>(2 << 20, strips, records.clone());
    }
}

#[test]
fn the_smallest_area_holds_the_longest_key_of_a_block() {
    // Four blocks of 16K, short records, and a key of half a block.
    let mut records: Vec<Vec<u8>> = (0..3000).map(|i| bytes_record(b"k", i)).collect();
    records.push(bytes_record(&[b'l'; 8011], 1));
    let mut area = BytesArea::new(64 << 10, 1, RecordSize::new::<BytesArea>(12)).expect("memory");
    let mut rest: &[u8] = &records.concat();
    let mut spilled = Collector::<BytesKey>::new();
    loop {
        rest = &rest[area.fill(rest).expect("memory")..];
        if rest.is_empty() {
            break;
        }
        let Ok(1..) = area.spill(&mut spilled) else { panic!("one record does not fit") };
    }
    assert_eq!(area.len() + spilled.records.len(), records.len());
}

#[test]
fn input_in_order_or_reverse_stays_right() {
    let up: Vec<Vec<u8>> = (0..100u8).map(|i| bytes_record(&[b'a', i + 1], 1)).collect();
    let down: Vec<Vec<u8>> = up.iter().rev().cloned().collect();
    assert_eq!(sort_all::<BytesKey>(8192, 1, &up).1, up);
    assert_eq!(sort_all::<BytesKey>(8192, 3, &down).1, up);
}

#[test]
fn input_in_order_is_one_mini_run_a_strip() {
    let up: Vec<Vec<u8>> = (0..20_000u32).map(|i| bytes_record(format!("{i:06}").as_bytes(), 1)).collect();
    let mut area = BytesArea::new(1 << 20, 4, RecordSize::new::<BytesArea>(16)).expect("memory");
    let input = up.concat();
    assert_eq!(area.fill(&input).expect("memory"), input.len());
    assert!((2..=4).contains(&area.sources().len()), "{} sources", area.sources().len());
}

#[test]
fn what_is_a_little_too_much_spills_one_strip() {
    let mix = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 1;
    let records: Vec<Vec<u8>> = (0..16_001).map(|i| mix(i).to_le_bytes().to_vec()).collect();
    let (spilled, kept) = sort_all::<WordKey<u64>>(16_000 * 8, 16, &records);
    assert_eq!((spilled.len(), kept.len()), (1000, 15_001));
}

#[test]
fn of_texts_too_one_strip_is_spilled() {
    let mix = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    let records: Vec<Vec<u8>> =
        (0..20_000).map(|i| bytes_record(format!("https://www.a.org/{:08}", mix(i)).as_bytes(), i)).collect();
    let (strips, mut fewest) = (8, usize::MAX);
    for bytes in (200_000..600_000).step_by(20_000) {
        let (spilled, kept) = sort_all::<BytesKey>(bytes, strips, &records);
        assert_eq!(spilled.len() + kept.len(), records.len());
        if !spilled.is_empty() {
            fewest = fewest.min(spilled.len());
        }
    }
    assert!(fewest <= records.len() / strips, "{fewest} of {} spilled", records.len());
}

#[test]
fn mini_runs_that_do_not_overlap_are_not_merged() {
    let overlapping = |mini_runs: &[(&[u8], &[u8])]| {
        let mini_run = |(first, last): &(&[u8], &[u8])| bytes::MiniRun {
            place: 0..0,
            first: bytes_record(first, 1),
            last: bytes_record(last, 1),
        };
        bytes::MiniRun::overlapping(&mini_runs.iter().map(mini_run).collect::<Vec<_>>())
    };
    assert_eq!(overlapping(&[]), 0);
    assert_eq!(overlapping(&[(b"a", b"c"), (b"d", b"e")]), 1);
    assert_eq!(overlapping(&[(b"a", b"c"), (b"c", b"e")]), 1);
    assert_eq!(overlapping(&[(b"a", b"z"), (b"b", b"c"), (b"d", b"e")]), 3, "the first one overlaps all");
    assert_eq!(overlapping(&[(b"a", b"c"), (b"b", b"d"), (b"e", b"f")]), 2);
}

#[test]
fn memory_is_mapped_on_demand_and_released_strip_by_strip() {
    let mut area = WordArea::<u64>::new(16 << 20, 16, RecordSize::new::<WordArea<u64>>(8)).expect("memory");
    assert_eq!(area.mapped().bytes, 0);
    assert_eq!(area.fill(&vec![1; 3 << 20]).expect("memory"), 3 << 20);
    assert!((3 << 20..=5 << 20).contains(&area.mapped().bytes), "{}", area.mapped().bytes);
    area.close().expect("memory");
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

#[test]
#[should_panic(expected = "A1: a strip comes back that was not taken")]
fn a_strip_of_another_area_is_not_given_back() {
    let mut pool = StripPool::<u64>::new(4096, 2);
    pool.give_back(HugeVec::with_capacity(256).expect("memory"));
}

#[test]
#[should_panic(expected = "A1: a strip keeps its size")]
fn a_strip_of_another_size_is_not_given_back() {
    let mut pool = StripPool::<u64>::new(4096, 2);
    pool.take().expect("memory");
    pool.give_back(HugeVec::with_capacity(128).expect("memory"));
}

#[test]
#[should_panic(expected = "A2: records of 8 bytes come whole")]
fn a_part_of_a_word_is_not_taken() {
    let mut area = WordArea::<u64>::new(4096, 1, RecordSize { bytes: 8, entry_bytes: 0 }).expect("memory");
    let _ = area.fill(&[0; 12]);
}

//! The sort without I/O: entries a second of run generation, nanoseconds a row of a merge.
//!
//! Peers in the same run: the standard library's unstable sort on the same
//! records, and a binary heap for the merge.

use super::{SplitMix, Spread};
use plumb_engine::sort::area::{Drain, RecordSink, SortArea};
use plumb_engine::sort::format::{Format, WordKey};
use plumb_engine::sort::loser_tree::LoserTree;
use plumb_events::now;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::convert::Infallible;
use std::hint::black_box;

const ROWS: usize = 2_000_000;
const REPEATS: usize = 7;

pub(super) fn run() -> anyhow::Result<()> {
    println!("median [least .. most] of {REPEATS}; {ROWS} records of 16 bytes; one thread");
    println!("run generation, million records a second (goal: 25 random, 150 presorted)");
    for (name, records) in [
        ("random", random(false)),
        ("random, keys like (store, product)", random(true)),
        ("presorted", sorted(random(false), false)),
        ("reversed", sorted(random(false), true)),
    ] {
        let strips = rate(|| fill_and_drain(&records, Drain::Strips));
        let merged = rate(|| fill_and_drain(&records, Drain::Merged));
        let standard = rate(|| standard_sort(&records));
        println!(
            "  {name:36} strips {}  one run {}  standard sort {}",
            strips.show(1),
            merged.show(1),
            standard.show(1)
        );
    }
    println!("merge, nanoseconds a record (goal: 30 at 64-way, 60 at 1024-way)");
    for width in [2, 8, 64, 1024] {
        let sources = split(width);
        let tree = Spread::of(repeat(|| tree_merge(&sources)));
        let heap = Spread::of(repeat(|| heap_merge(&sources)));
        println!("  {width:5}-way   tree of losers {}   binary heap {}", tree.show(1), heap.show(1));
    }
    Ok(())
}

fn repeat(mut work: impl FnMut()) -> Vec<f64> {
    let once = |_| {
        let begin = now();
        work();
        now().saturating_sub(begin).0 as f64 / ROWS as f64
    };
    (0..REPEATS).map(once).collect()
}

/// Million records a second.
fn rate(work: impl FnMut()) -> Spread {
    Spread::of(repeat(work).into_iter().map(|nanos| 1e3 / nanos).collect())
}

fn random(like_numbers: bool) -> Vec<u8> {
    let mut words = SplitMix(42);
    let mut records = Vec::with_capacity(ROWS * 16);
    for row in 0..ROWS as u64 {
        let word = words.next();
        let key = if like_numbers {
            let (store, product) = (word % 2000, word / 2000 % 16700);
            let digit = |value: u64| value % 100 + 1;
            digit(store / 100) << 48
                | digit(store) << 40
                | digit(product / 10_000) << 16
                | digit(product / 100) << 8
                | digit(product)
        } else {
            word
        };
        records.extend_from_slice(&(u128::from(key) << 64 | u128::from(row)).to_le_bytes());
    }
    records
}

fn sorted(records: Vec<u8>, reversed: bool) -> Vec<u8> {
    let mut rows: Vec<&[u8]> = records.chunks_exact(16).collect();
    rows.sort_by(|one, two| WordKey::compare(one, two));
    if reversed {
        rows.reverse();
    }
    rows.concat()
}

/// Takes records and does nothing with them.
struct Sink;

impl RecordSink for Sink {
    type Error = Infallible;

    fn record(&mut self, record: &[u8]) -> Result<(), Infallible> {
        black_box(record);
        Ok(())
    }

    fn end_run(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

fn fill_and_drain(records: &[u8], how: Drain) {
    let mut area = <WordKey as Format>::Area::new(records.len(), 16).expect("memory for the records");
    let taken = area.fill(records);
    assert_eq!(taken, records.len());
    let Ok(()) = area.drain(how, &mut Sink);
}

fn standard_sort(records: &[u8]) {
    let mut entries: Vec<u128> = records
        .chunks_exact(16)
        .map(|record| u128::from_le_bytes(record.try_into().unwrap_or([0; 16])))
        .collect();
    entries.sort_unstable();
    black_box(&entries);
}

/// Sorted sources of random records.
fn split(width: usize) -> Vec<Vec<u128>> {
    let mut words = SplitMix(7);
    let mut sources = vec![Vec::new(); width];
    for row in 0..ROWS {
        sources[row % width].push(u128::from(words.next()) << 64 | row as u128);
    }
    sources.iter_mut().for_each(|source| source.sort_unstable());
    sources
}

fn tree_merge(sources: &[Vec<u128>]) {
    let less = |one: &(u128, u32), two: &(u128, u32)| one.0 < two.0;
    let mut next = vec![1usize; sources.len()];
    let heads: Vec<(u128, u32)> = sources.iter().zip(0..).map(|(source, index)| (source[0], index)).collect();
    let mut tree = LoserTree::new(&heads, less);
    loop {
        let (record, source) = tree.winner();
        if record == u128::MAX {
            break;
        }
        black_box(record);
        let at = &mut next[source as usize];
        let head = sources[source as usize].get(*at).copied().unwrap_or(u128::MAX);
        *at += 1;
        tree.replace(source, (head, source), less);
    }
}

fn heap_merge(sources: &[Vec<u128>]) {
    let mut next = vec![1usize; sources.len()];
    let mut heap: BinaryHeap<Reverse<(u128, usize)>> =
        sources.iter().enumerate().map(|(index, source)| Reverse((source[0], index))).collect();
    while let Some(Reverse((record, source))) = heap.pop() {
        black_box(record);
        if let Some(head) = sources[source].get(next[source]) {
            next[source] += 1;
            heap.push(Reverse((*head, source)));
        }
    }
}

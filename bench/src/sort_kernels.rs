//! Measures the sort without I/O: entries a second of run generation, nanoseconds a row of a merge.
//!
//! Runs both widths of packed records. The peers, in the same run, are the standard library's
//! unstable sort on the same records, and a binary heap for the merge.

use super::figure::Figure;
use plumb_engine::sort::area::words::WordArea;
use plumb_engine::sort::area::{MemoryMerge, RecordSink, RecordSize, STRIPS_MAX, SortArea};
use plumb_engine::sort::loser_tree::LoserTree;
use plumb_engine::sort::word::{Word, WordKey};
use plumb_events::now;
use plumb_proof::random::Generator;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::convert::Infallible;
use std::hint::black_box;

const ROWS: usize = 4_000_000;
const REPEATS: usize = 7;

pub(super) fn run() -> anyhow::Result<()> {
    println!("of {REPEATS} repetitions [95% interval]; {ROWS} records; one thread");
    bench::<u64>();
    bench::<u128>();
    Ok(())
}

fn bench<W: Word>() {
    println!("{} byte records: run generation, million a second (goal: 25 random, 150 presorted)", W::BYTES);
    for (name, words) in [
        ("random", random::<W>(u64::MAX)),
        ("random, keys like (store, product)", random::<W>(2000 * 16_700)),
        ("presorted", sorted(random::<W>(u64::MAX), false)),
        ("reversed", sorted(random::<W>(u64::MAX), true)),
    ] {
        let records = records(&words);
        let strips = rate(|| fill_and_spill::<W>(&records));
        let merged = rate(|| fill_and_merge::<W>(&records));
        let standard = rate(|| standard_sort(&words));
        println!(
            "  {name:36} strips {}  in memory, merged {}  standard sort {}",
            strips.show(1),
            merged.show(1),
            standard.show(1)
        );
    }
    println!("{} byte records: merge, nanoseconds a record (goal: 30 at 64-way, 60 at 1024-way)", W::BYTES);
    for width in [2, 8, 64, 1024] {
        let sources = split::<W>(width);
        let tree = Figure::of(repeat(|| tree_merge(&sources)));
        let heap = Figure::of(repeat(|| heap_merge(&sources)));
        println!("  {width:5}-way   tree of losers {}   binary heap {}", tree.show(1), heap.show(1));
    }
}

fn repeat(mut work: impl FnMut()) -> Vec<f64> {
    let once = |_| {
        let begin = now();
        work();
        now().saturating_sub(begin).0 as f64 / ROWS as f64
    };
    (0..REPEATS).map(once).collect()
}

fn rate(work: impl FnMut()) -> Figure {
    Figure::of(repeat(work).into_iter().map(|nanos| 1e3 / nanos).collect::<Vec<_>>())
}

/// Returns words of a random key below `keys` and a row number.
fn random<W: Word>(keys: u64) -> Vec<W> {
    let mut words = Generator::new(42);
    let bits = (4 * W::BYTES as u32).min(u64::BITS - 1);
    let key = |word: u64| (word % keys) >> if keys == u64::MAX { u64::BITS - bits + 1 } else { 0 };
    (0..ROWS as u64).map(|row| W::ZERO.with(row, 0).with(key(words.bits()), bits)).collect()
}

fn sorted<W: Word>(mut words: Vec<W>, reversed: bool) -> Vec<W> {
    words.sort_unstable();
    if reversed {
        words.reverse();
    }
    words
}

fn records<W: Word>(words: &[W]) -> Vec<u8> {
    let mut records = Vec::with_capacity(words.len() * W::BYTES);
    words.iter().for_each(|word| word.append_to(&mut records));
    records
}

/// Discards records, so that only the sort is timed.
pub(super) struct Sink;

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

fn filled<W: Word>(records: &[u8]) -> WordArea<W> {
    let size = RecordSize::new::<WordArea<W>>(W::BYTES);
    let mut area = WordArea::new(records.len(), STRIPS_MAX, size).expect("an area");
    let taken = area.fill(records).expect("memory for the records");
    assert_eq!(taken, records.len());
    area.close().expect("memory");
    area
}

fn fill_and_spill<W: Word>(records: &[u8]) {
    let mut area = filled::<W>(records);
    while let Ok(1) = area.spill(&mut Sink) {}
}

fn fill_and_merge<W: Word>(records: &[u8]) {
    let area = filled::<W>(records);
    let mut merged = MemoryMerge::<WordKey<W>>::new(area.sources());
    while let record @ [_, ..] = merged.current() {
        black_box(record);
        merged.advance();
    }
}

fn standard_sort<W: Word>(words: &[W]) {
    let mut words = words.to_vec();
    words.sort_unstable();
    black_box(&words);
}

/// Returns `width` sorted sources of random records.
fn split<W: Word>(width: usize) -> Vec<Vec<W>> {
    let mut sources = vec![Vec::new(); width];
    for (row, word) in random::<W>(u64::MAX).into_iter().enumerate() {
        sources[row % width].push(word);
    }
    sources.iter_mut().for_each(|source| source.sort_unstable());
    sources
}

fn tree_merge<W: Word>(sources: &[Vec<W>]) {
    let less = |one: &(W, u32), two: &(W, u32)| one.0 < two.0;
    let mut next = vec![1usize; sources.len()];
    let heads: Vec<(W, u32)> = sources.iter().zip(0..).map(|(source, index)| (source[0], index)).collect();
    let mut tree = LoserTree::new(&heads, less);
    loop {
        let (record, source) = tree.winner();
        if record == W::MAX {
            break;
        }
        black_box(record);
        let at = &mut next[source as usize];
        let head = sources[source as usize].get(*at).copied().unwrap_or(W::MAX);
        *at += 1;
        tree.replace(source, (head, source), less);
    }
}

fn heap_merge<W: Word>(sources: &[Vec<W>]) {
    let mut next = vec![1usize; sources.len()];
    let mut heap: BinaryHeap<Reverse<(W, usize)>> =
        sources.iter().enumerate().map(|(index, source)| Reverse((source[0], index))).collect();
    while let Some(Reverse((record, source))) = heap.pop() {
        black_box(record);
        if let Some(head) = sources[source].get(next[source]) {
            next[source] += 1;
            heap.push(Reverse((*head, source)));
        }
    }
}

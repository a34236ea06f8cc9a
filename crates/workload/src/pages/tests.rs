//! The page views: lengths, frequencies, shared beginnings, determinism.

use super::*;
use plumb_types::column_at;
use std::collections::{HashMap, HashSet};

const ROWS: u64 = 50_000;

fn pages(seed: u64) -> Vec<String> {
    let table = PagesTable::new(PagesSpec { rows: ROWS, seed });
    let mut batch = RowBatch::new();
    let mut pages = Vec::new();
    while table.next_batch(&mut batch).unwrap() {
        let page = |row| column_at(row, 1).unwrap().unwrap();
        pages.extend(batch.iter().map(|row| String::from_utf8(page(row).to_vec()).unwrap()));
    }
    pages
}

#[test]
fn pages_have_5_to_60_characters() {
    let pages = pages(1);
    assert_eq!(pages.len() as u64, ROWS);
    let lengths: Vec<usize> = pages.iter().map(String::len).collect();
    assert!(lengths.iter().all(|length| (5..=PAGE_BYTES_MAX).contains(length)), "{lengths:?}");
    assert!(lengths.iter().any(|length| *length < 12));
    assert!(lengths.iter().any(|length| *length > 52));
    assert!(pages.iter().all(|page| page.is_ascii()));
}

#[test]
fn neighbours_in_order_share_long_beginnings() {
    let mut pages = pages(2);
    pages.sort_unstable();
    let shared = |pair: &[String]| pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count();
    let sum: usize = pages.windows(2).map(shared).sum();
    let mean = sum as f64 / (ROWS - 1) as f64;
    assert!((20.0..40.0).contains(&mean), "{mean}");
}

#[test]
fn few_pages_are_seen_often_and_many_once() {
    let mut views: HashMap<String, u64> = HashMap::new();
    pages(3).into_iter().for_each(|page| *views.entry(page).or_default() += 1);
    assert!(views.len() as u64 > ROWS / 3, "{}", views.len());
    assert!(views.values().any(|count| *count > ROWS / 2000));
    assert!(views.values().filter(|count| **count == 1).count() as u64 > ROWS / 4);
}

#[test]
fn a_seed_gives_its_rows_and_another_seed_others() {
    let (one, two) = (pages(4), pages(5));
    assert_eq!(one, pages(4));
    assert_ne!(one, two);
    // Both seeds have the same sites.
    let hosts = |pages: &[String]| -> HashSet<String> {
        pages.iter().filter_map(|page| page.split('/').nth(2).map(str::to_string)).collect()
    };
    assert!(hosts(&one).intersection(&hosts(&two)).count() > 100);
}

#[test]
fn the_first_rows_are_pinned() {
    assert_eq!(
        pages(1)[..6],
        [
            "https://www.filoveramer.co.uk/media/guide/1",
            "https://mermerveel.co.uk/media/87d4a518",
            "https://www.elrakobuko.net/blog/static/0",
            "https://vepan.org/docs/products/item?id=111002",
            "https://www.ratan.co.uk/27",
            "https://www.bulostara.org/news/reference/10148",
        ]
    );
}

#[test]
fn ranks_reach_from_the_first_to_the_last() {
    assert_eq!(rank(0, 4), 0);
    assert_eq!(rank(u64::MAX, 4), 14);
    let mut seen = [0u32; 15];
    let mut random = Chunks::new(0, 1).generator(1);
    (0..40_000).for_each(|_| seen[rank(random.next_u64(), 4) as usize] += 1);
    assert!((9_000..11_000).contains(&seen[0]), "{seen:?}");
    assert!((1_000..1_600).contains(&seen[7]), "{seen:?}");
}

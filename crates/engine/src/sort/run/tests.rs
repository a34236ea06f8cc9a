//! Breaks each invariant of runs by hand.

use super::*;
use crate::sort::Sorter;
use crate::sort::fixture::{Key, with_server, write_runs};
use crate::sort::format::Unpacked;

#[test]
fn runs_follow_one_another_in_one_segment() {
    with_server(|server| {
        let runs = write_runs(server, &[(0..300).collect(), vec![], vec![1], (0..900).collect()]);
        let places: Vec<_> = runs.iter().map(|run| (run.first, run.blocks, run.rows)).collect();
        assert_eq!(places, [(0, 2, 300), (2, 1, 1), (3, 4, 900)]);
    });
}

#[test]
#[should_panic(expected = "R1: the last run has ended")]
fn a_run_that_has_not_ended_is_not_lost() {
    with_server(|server| {
        let mut writer = RunWriter::<Unpacked>::new(server).expect("a writer");
        writer.record(&[1; 8]).expect("written");
        let _ = writer.finish();
    });
}

#[test]
#[should_panic(expected = "R2: block 1 is behind the segment's last")]
fn a_block_behind_a_segment_is_not_located() {
    with_server(|server| {
        let runs = write_runs(server, &[vec![1]]);
        let _ = runs[0].segment.locate(1);
    });
}

#[test]
#[should_panic(expected = "R3: a block of a run holds a record")]
fn an_empty_block_is_not_sealed() {
    with_server(|server| {
        let _ = RunWriter::<Unpacked>::new(server).expect("a writer").seal();
    });
}

#[test]
fn a_sort_that_gives_out_other_than_it_took_fails() {
    with_server(|server| {
        let mut sorter = Sorter::<Key>::new(server).expect("an area");
        for word in (0..40_000_u64).rev() {
            sorter.fill(&word.to_le_bytes()).expect("filled");
        }
        // S1: simulates a row of a run lost on its way to the disk.
        sorter.writer.as_mut().expect("the area was full").runs[0].2 += 1;
        let error = sorter.finish(|_| Ok(())).expect_err("a row is missing").to_string();
        assert!(error.ends_with(": found 40000, expected 40001"), "{error}");
    });
}

//! Merges a few runs in memory, and breaks each invariant of a merge by hand.

use super::*;
use crate::sort::fixture::{Key, with_server, write_runs};

const SHAPE: MergeShape = MergeShape { fan_in: 2, chunk_blocks: 1, buffer_count: 3 };

fn merged(server: &SortServer<'_>, runs: Vec<Run>) -> Result<Vec<u64>, EngineError> {
    let mut words = Vec::new();
    merge::<Key>(server, runs, SHAPE, Vec::new(), |record| {
        words.push(u64::from_le_bytes(record.try_into().expect("a word")));
        Ok(())
    })?;
    Ok(words)
}

#[test]
fn two_runs_of_many_blocks_become_one_order() {
    with_server(|server| {
        let halves = [0, 1].map(|odd| (0..2_000).map(|word| 2 * word + odd).collect());
        let runs = write_runs(server, &halves);
        assert_eq!(merged(server, runs).expect("merged"), (0..4_000).collect::<Vec<_>>());
    });
}

#[test]
fn a_merge_of_the_wrong_record_count_fails() {
    with_server(|server| {
        let mut runs = write_runs(server, &[vec![1, 2], vec![3]]);
        runs[0].rows += 1;
        let error = merged(server, runs).expect_err("M4").to_string();
        assert_eq!(error, "records merged by session: found 3, expected 4");
    });
}

#[test]
#[should_panic(expected = "L1: the source of leaf 1 is out of order")]
fn a_run_that_is_not_in_order_is_noticed() {
    with_server(|server| {
        let runs = write_runs(server, &[vec![1, 2], vec![7, 3]]);
        let _ = merged(server, runs);
    });
}

#[test]
#[should_panic(expected = "M1: one request a run")]
fn a_run_has_one_request_in_flight() {
    with_server(|server| {
        let runs = write_runs(server, &[(0..2_000).collect()]);
        let mut reader = RunReader::<Key>::new(server, runs, SHAPE).expect("a reader");
        let _ = reader.request(0);
    });
}

#[test]
#[should_panic(expected = "M2: a buffer is free for it")]
fn a_request_without_a_buffer_is_noticed() {
    with_server(|server| {
        let runs = write_runs(server, &[(0..2_000).collect()]);
        let mut reader = RunReader::<Key>::new(server, runs, SHAPE).expect("a reader");
        reader.free.clear();
        reader.next_piece(0, None).expect("the piece in flight");
        let _ = reader.request(0);
    });
}

#[test]
#[should_panic(expected = "M3: a buffer has come back twice")]
fn a_buffer_that_is_not_the_readers_is_noticed() {
    with_server(|server| {
        let runs = write_runs(server, &[(0..2_000).collect()]);
        let mut reader = RunReader::<Key>::new(server, runs, SHAPE).expect("a reader");
        let (_, more) = Arena::buffers(2048, 3).expect("buffers");
        reader.free.extend(more);
        let _ = reader.next_piece(0, None);
    });
}

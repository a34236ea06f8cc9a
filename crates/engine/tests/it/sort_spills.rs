//! How memory decides the number of passes, and how evenly servers share the work.

use crate::support::{Rows, assert_green, assert_no_space_leaks, build, in_memory, load};
use plumb_engine::drop::drop_named;
use plumb_engine::index::build::BuildOutcome;
use plumb_engine::storage::tablespace::Purpose;
use plumb_events::{Period, Statistic};
use plumb_units::SplitMix;

const ROWS: u64 = 300_000;
const SEED: u64 = 1996;

/// An index on 300,000 rows of 8 bytes a record, with what happened meanwhile.
fn check(rows: &Rows, settings: &[(&str, &str)]) -> (BuildOutcome, Period) {
    let instance = in_memory(settings);
    load(&instance, "t", rows).expect("loaded");
    let before = instance.recorder.snapshot();
    let outcome = build(&instance).expect("built");
    let period = instance.recorder.snapshot().since(&before);
    assert_green(&instance, "t");
    assert_no_space_leaks(&instance);
    assert_eq!(outcome.sort.servers.iter().map(|server| server.row_count).sum::<u64>(), ROWS);
    assert_eq!(period.statistic(Statistic::SortRows), ROWS);
    (outcome, period)
}

#[test]
fn a_sort_area_of_64k_merges_several_times() {
    for mode in ["true", "false"] {
        let settings = [("sort_area_size", "64K"), ("sort_direct_writes", mode), ("sort_read_fac", "7")];
        for degree in ["1", "2"] {
            let settings = [&settings[..], &[("parallel_degree", degree)]].concat();
            let (outcome, period) = check(&Rows::uniform(ROWS, SEED), &settings);
            let servers = outcome.sort.servers.len() as u64;
            assert_eq!(period.statistic(Statistic::SortsMultiPass), servers, "{settings:?}");
            assert_eq!(period.statistic(Statistic::SortsOnePass), 0);
            let merges = period.statistic(Statistic::IntermediateMerges);
            assert!(merges > 0);
            assert_eq!(
                merges,
                outcome.sort.servers.iter().map(|server| server.intermediate_merges).sum::<u64>()
            );
            for server in &outcome.sort.servers {
                assert!(server.merge_passes > 1 && !server.optimal, "{server:?}");
                assert!(server.merge_width <= 6, "8 blocks, a quarter of them to read ahead: {server:?}");
            }
            // Every row is in a run once, and again for each intermediate merge.
            assert!(period.statistic(Statistic::SortRunRows) > ROWS);
        }
    }
}

/// One merge takes all: how many rows were written for it.
fn merges_once(area: &str) -> u64 {
    let (outcome, period) =
        check(&Rows::uniform(ROWS, SEED), &[("sort_area_size", area), ("parallel_degree", "1")]);
    assert_eq!(period.statistic(Statistic::SortsOnePass), 1);
    assert_eq!(period.statistic(Statistic::SortsMultiPass), 0);
    assert_eq!(period.statistic(Statistic::IntermediateMerges), 0);
    let server = &outcome.sort.servers[0];
    assert_eq!((server.merge_passes, server.intermediate_merges, server.optimal), (1, 0, false));
    assert!(server.run_count >= 1 && server.merge_width == server.run_count, "{server:?}");
    let written = period.statistic(Statistic::PhysicalWritesDirectTemp) * 8192;
    assert_eq!(written, server.run_bytes);
    let spilled = period.statistic(Statistic::SortRunRows);
    assert_eq!(spilled + server.memory_rows, ROWS);
    spilled
}

#[test]
fn a_sort_area_of_one_strip_spills_all_of_it_and_merges_once() {
    assert_eq!(merges_once("1M"), ROWS);
}

#[test]
fn the_smaller_the_part_that_does_not_fit_the_less_is_spilled() {
    // 2.4 MB of records; a tenth of an area or more is write buffers.
    let spilled: Vec<u64> = ["1M", "1600K", "2M"].iter().map(|area| merges_once(area)).collect();
    assert!(spilled.is_sorted_by(|one, two| one > two), "{spilled:?}");
    assert!(spilled[2] < ROWS * 2 / 3, "{spilled:?}");
}

#[test]
fn a_sort_area_of_64m_writes_no_runs() {
    for degree in ["1", "2"] {
        for mode in ["auto", "true", "false"] {
            let settings =
                [("sort_area_size", "64M"), ("parallel_degree", degree), ("sort_direct_writes", mode)];
            let (outcome, period) = check(&Rows::uniform(ROWS, SEED), &settings);
            assert_eq!(period.statistic(Statistic::PhysicalWritesDirectTemp), 0);
            assert_eq!(period.statistic(Statistic::PhysicalWritesFromCache), 0);
            assert_eq!(period.statistic(Statistic::SortRunRows), 0);
            assert_eq!(period.statistic(Statistic::SortsDisk), 0);
            assert_eq!(period.statistic(Statistic::SortsMemory), outcome.sort.servers.len() as u64);
            assert!(outcome.sort.servers.iter().all(|server| server.optimal && server.run_bytes == 0));
        }
    }
}

#[test]
fn a_given_sort_read_fac_is_used_and_a_measured_one_says_so() {
    let rows = Rows::uniform(ROWS, SEED);
    let (outcome, _) = check(&rows, &[("sort_area_size", "64K"), ("sort_read_fac", "42")]);
    assert_eq!((outcome.sort.sort_read_fac, outcome.sort.sort_read_fac_source.as_str()), (42, "given"));
    let (outcome, _) = check(&rows, &[("sort_area_size", "64K")]);
    assert!(outcome.sort.sort_read_fac >= 1);
    assert!(
        outcome.sort.sort_read_fac_source.starts_with("measured with "),
        "{}",
        outcome.sort.sort_read_fac_source
    );
    let (outcome, _) = check(&rows, &[("sort_area_size", "64M")]);
    assert_eq!(outcome.sort.sort_read_fac, 0);
    assert_eq!(
        outcome.sort.sort_read_fac_source,
        "not needed: one pass takes all runs with requests at the device's full rate"
    );
}

/// The most rows of a server over the average is 1.05 at most.
fn check_balance(rows: &Rows) {
    for (degree, servers) in [("2", 2), ("4", 4)] {
        let (outcome, _) = check(rows, &[("sort_area_size", "1M"), ("parallel_degree", degree)]);
        assert_eq!(outcome.sort.servers.len(), servers);
        let most = outcome.sort.servers.iter().map(|server| server.row_count).max().expect("servers");
        let ratio = most as f64 * servers as f64 / ROWS as f64;
        assert!(ratio <= 1.05, "seed {SEED}, degree {degree}: {ratio:.3}");
    }
}

#[test]
fn servers_are_balanced_where_keys_are_uniform() {
    check_balance(&Rows::uniform(ROWS, SEED));
}

#[test]
fn servers_are_balanced_where_one_key_is_half_of_the_rows() {
    let mut random = SplitMix(SEED);
    let key = |row: u64| if row.is_multiple_of(2) { 500_000 } else { random.below(1_000_000) as i64 };
    check_balance(&Rows::of_keys((0..ROWS).map(key)));
}

#[test]
fn servers_are_balanced_where_all_rows_have_one_key() {
    check_balance(&Rows::of_keys((0..ROWS).map(|_| 7)));
}

#[test]
fn a_second_build_needs_no_more_temporary_space_than_the_first() {
    for mode in ["true", "false"] {
        let settings = [
            ("sort_area_size", "64K"),
            ("sort_direct_writes", mode),
            ("sort_read_fac", "7"),
            ("parallel_degree", "1"),
        ];
        let instance = in_memory(&settings);
        load(&instance, "t", &Rows::uniform(ROWS, SEED)).expect("loaded");
        let grown = || instance.tablespace(Purpose::Temp).size();
        build(&instance).expect("built");
        let after_first = grown();
        for _ in 0..2 {
            drop_named(&instance, "i").expect("dropped");
            build(&instance).expect("built again");
            assert_eq!(grown(), after_first, "sort_direct_writes={mode}");
        }
        assert_green(&instance, "t");
        assert_no_space_leaks(&instance);
    }
}

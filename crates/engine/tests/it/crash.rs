//! The power goes: every acknowledged commit is there, nothing else is, and the indexes agree.

use crate::crash_cycle::{Tally, chain, every_request, new_disk};

/// Chains of cycles that every run of the tests goes through; `cargo xtask bench crash` goes on from there.
const SEEDS: u64 = 100;

#[test]
fn what_was_acknowledged_is_there_wherever_the_power_goes() {
    let base = new_disk(1);
    let mut tally = Tally::default();
    for seed in 0..SEEDS {
        chain(&base, seed, 8, &mut tally);
    }
    assert!(tally.crashes * 2 > tally.cycles, "{tally:?}");
    assert!(tally.recoveries_cut_short > 0, "{tally:?}");
}

#[test]
fn one_seed_is_one_order_of_requests() {
    let hash = |seed: u64| {
        let base = new_disk(1);
        let mut tally = Tally::default();
        chain(&base, seed, 4, &mut tally);
        tally.hash
    };
    assert_eq!(hash(5), hash(5));
    assert_ne!(hash(5), hash(6));
}

#[test]
fn short_runs_survive_a_crash_at_each_of_their_requests() {
    let base = new_disk(1);
    let crashes: u64 = (0..6).map(|seed| every_request(&base, seed, 15)).sum();
    assert!(crashes > 1000, "{crashes}");
}

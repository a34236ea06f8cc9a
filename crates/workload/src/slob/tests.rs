//! Quotas, keys, hot spots and pauses of operations; rows
//! that fill blocks; contradictory parameters.

use super::*;
use crate::specification::Work;

fn spec(given: &[(&str, &str)]) -> SlobSpec {
    let mut work = Work::of(&SLOB);
    given.iter().for_each(|(name, value)| work.set(name, value).expect("in range"));
    SlobSpec::of(&work, BLOCK_BYTES).expect("consistent")
}

fn draw(spec: &SlobSpec, count: usize) -> Vec<Operation> {
    let mut operations = Operations::new(spec, 0);
    (0..count).map(|_| operations.draw()).collect()
}

fn of(kind: Kind, operations: &[Operation]) -> usize {
    operations.iter().filter(|operation| operation.kind == kind).count()
}

#[test]
fn each_hundred_operations_have_their_quota_of_updates_and_scans() {
    for (updates, scans) in [(0, 0), (1, 0), (20, 10), (50, 50), (99, 1), (100, 0)] {
        let spec = spec(&[("update-pct", &updates.to_string()), ("scan-pct", &scans.to_string())]);
        for hundred in draw(&spec, 3000).chunks(100) {
            assert_eq!((of(Kind::Update, hundred), of(Kind::Scan, hundred)), (updates, scans));
        }
    }
}

#[test]
fn updates_come_first_in_bursts_by_parity_and_evenly_by_draws_of_their_own() {
    let by_parity = draw(&spec(&[("update-pct", "20")]), 10_000);
    let early: usize = by_parity.chunks(100).map(|hundred| of(Kind::Update, &hundred[..50])).sum();
    assert!(early > 1900, "{early} of 2000 updates are in the first half of their hundred");
    let alone = draw(&spec(&[("update-pct", "20"), ("mix", "iid")]), 10_000);
    let early: usize = alone.chunks(100).map(|hundred| of(Kind::Update, &hundred[..50])).sum();
    let all = of(Kind::Update, &alone);
    assert!((1800..2200).contains(&all) && early * 5 < all * 3, "{early} of {all}");
}

#[test]
fn keys_are_uniform_and_leave_a_work_unit_on_both_sides() {
    let spec = spec(&[("scale", "1000"), ("work-unit", "64")]);
    let mut tenths = [0; 10];
    for operation in draw(&spec, 20_000) {
        assert!((65..=936).contains(&operation.key));
        tenths[(operation.key - 65) as usize * 10 / 872] += 1;
    }
    assert!(tenths.iter().all(|count| (1800..2200).contains(count)), "{tenths:?}");
}

#[test]
fn hot_spot_and_hot_schema_get_each_so_many_th_operation() {
    let hot = [("scale", "10000"), ("hotspot", "all"), ("hotspot-size", "100"), ("hotspot-offset", "500")];
    let operations = draw(&spec(&[&hot[..], &[("hot-schema-frequency", "4")]].concat()), 3000);
    for (number, operation) in (1..).zip(&operations) {
        assert_eq!(operation.hot, number % 3 == 0);
        assert!(!operation.hot || (501..=600).contains(&operation.key));
    }
    let spec = spec(&[("hot-schema-frequency", "4"), ("threads-per-schema", "2")]);
    let mut operations = Operations::new(&spec, 5);
    for number in 1..100 {
        assert_eq!(operations.draw().schema, if number % 4 == 0 { 0 } else { 2 });
    }
}

#[test]
fn one_operation_in_so_many_follows_a_pause_of_the_range() {
    let spec = spec(&[("think-frequency", "5"), ("think-min", "0.1"), ("think-max", "0.5")]);
    let pauses: Vec<Nanos> = draw(&spec, 10_000).iter().filter_map(|operation| operation.think).collect();
    assert!((1800..2200).contains(&pauses.len()), "{}", pauses.len());
    assert!(pauses.iter().all(|pause| (100_000_000..=500_000_000).contains(&pause.0)));
}

#[test]
fn operations_follow_from_the_seed_and_the_session() {
    let spec = spec(&[]);
    assert_eq!(draw(&spec, 100), draw(&spec, 100));
    assert_ne!(draw(&spec, 100)[0].key, Operations::new(&spec, 1).draw().key);
}

#[test]
fn every_key_has_its_block_and_the_order_is_drawn() {
    let scattered = keys(&spec(&[("scale", "1000")]), 3);
    assert!(scattered.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count() < 10);
    let mut sorted = scattered.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (1..=1000).collect::<Vec<u64>>());
    assert_eq!(keys(&spec(&[("scale", "1000"), ("placement", "ordered")]), 3), sorted);
}

#[test]
fn a_row_fills_what_a_block_takes_and_no_two_fit_one() {
    for block in [2048_usize, 4096, 8192, 16_384, 32_768] {
        let most = block - 36;
        let rows = Rows::new(most);
        let (mut texts, mut batch) = (Texts::new(7), RowBatch::new());
        rows.push(&mut texts, 9_999_999, &mut batch);
        let bytes = batch.row(0).len();
        assert!(bytes <= most && bytes * 2 > block, "{bytes} bytes in a block of {block}");
        assert_eq!(rows.text_bytes() == 128, block > 2048);
    }
}

#[test]
fn what_updates_add_they_take_away() {
    for rows in 1..20 {
        assert_eq!((0..rows).map(|place| balance_change(place, rows)).sum::<i64>(), 0, "{rows} rows");
        assert!(rows == 1 || (0..rows).any(|place| balance_change(place, rows) != 0));
    }
    assert_eq!(balance_text(7).len(), BALANCE_DIGITS);
    assert_eq!(Rows::balance_sum(2), 1_000_000_000_000_000_000);
}

#[test]
fn parameters_that_contradict_each_other_are_refused_with_the_cure() {
    let refused = |given: &[(&str, &str)]| {
        let mut work = Work::of(&SLOB);
        given.iter().for_each(|(name, value)| work.set(name, value).expect("in range"));
        let Conflict { first, second, why } = SlobSpec::of(&work, BLOCK_BYTES).expect_err("refused");
        format!("{first} and {second}: {why}")
    };
    assert_eq!(
        refused(&[("scale", "100"), ("work-unit", "256")]),
        "scale=100 blocks and work-unit=256: a key has a work unit on both sides; give a scale of 513 or more, or a smaller work unit"
    );
    assert_eq!(
        refused(&[("update-pct", "60"), ("scan-pct", "50")]),
        "update-pct=60 and scan-pct=50: together they are more than a hundred in a hundred"
    );
    assert_eq!(
        refused(&[("run-time", "0")]),
        "run-time=0 and work-loop=0: neither ends the run; give one of them"
    );
    assert_eq!(
        refused(&[("scale", "1000"), ("hotspot", "all"), ("hotspot-offset", "16M")]),
        "hotspot-offset=2048 blocks and scale=1000 blocks: the hot spot begins behind the last key; give a smaller offset or a larger scale"
    );
    assert_eq!(
        refused(&[("scale", "1000"), ("hotspot", "all"), ("hotspot-offset", "0"), ("hotspot-size", "64M")]),
        "hotspot-size=8192 blocks and scale=1000 blocks: the hot spot ends behind the last key; give a smaller size or offset, or a larger scale"
    );
}

#[test]
fn arrivals_come_at_their_rate_whatever_is_drawn() {
    assert!(Arrivals::new(&spec(&[]), 0, Nanos(0)).is_none());
    let spec = spec(&[("rate", "1600"), ("sessions", "16")]);
    let mut of_second = Arrivals::new(&spec, 3, Nanos(5_000_000_000)).expect("open");
    let first = of_second.draw();
    assert!(first >= Nanos(5_000_000_000));
    let left = of_second.due_before(Nanos(105_000_000_000));
    assert!((9_600..10_400).contains(&left), "{left} of some 10,000 in 100 s");
}

//! Random trees: the algebra of own times, next to the procedure that subtracts.

use super::*;
use proptest::prelude::*;

/// A span of a test: its parent, its start, its duration, and whether a rule chooses it.
type Row = (Option<usize>, i64, i64, bool);

fn tree(rows: &[Row], starts: Starts) -> Tree {
    let mut tree = Tree::default();
    for (at, (parent, start, duration, removed)) in rows.iter().enumerate() {
        let top = tree.labels.of("top");
        let statement = if at % 3 == 2 { tree.labels.of("select ?") } else { 0 };
        let span = Span {
            start: *start,
            duration: *duration,
            fetches: UNKNOWN,
            parent: NONE,
            top,
            statement,
            executions: u8::from(statement != 0),
            removed: *removed,
        };
        tree.add(span, at as u128 + 1, parent.map_or(0, |parent| parent as u128 + 1));
    }
    tree.link(starts).expect("a tree");
    tree
}

fn pruned(rows: &[Row], starts: Starts) -> Tree {
    let mut tree = tree(rows, starts);
    tree.prune(starts);
    tree
}

fn kept(tree: &Tree) -> impl Iterator<Item = usize> {
    (0..tree.spans.len()).filter(|at| !tree.spans[*at].removed)
}

/// Own time by its definition: the moments of a span in which no child runs.
fn own(spans: &[(Option<usize>, i64, i64)], at: usize) -> i64 {
    let (_, start, duration) = spans[at];
    let children = || spans.iter().filter(|span| span.0 == Some(at));
    let idle = |moment: &i64| !children().any(|child| (child.1..child.1 + child.2).contains(moment));
    (start..start + duration).filter(idle).count() as i64
}

/// The procedure of the source, for a sequential tree. It reads the durations of what it deletes
/// when it begins, takes each off all spans above, and skips one where that would be negative.
fn subtracted(rows: &[Row]) -> Vec<i64> {
    let mut durations: Vec<i64> = rows.iter().map(|row| row.2).collect();
    for (parent, _, duration, _) in rows.iter().rev().filter(|row| row.3) {
        let mut above = *parent;
        while let Some(at) = above {
            if durations[at] >= *duration {
                durations[at] -= duration;
            }
            above = rows[at].0;
        }
    }
    durations
}

/// Trees of up to 40 spans whose children run one after the other within their parent.
fn sequential() -> impl Strategy<Value = Vec<Row>> {
    let span = (any::<prop::sample::Index>(), 0..30_i64, 0..10_i64, prop::bool::weighted(0.3));
    prop::collection::vec(span, 1..40).prop_map(|spans| {
        let mut rows: Vec<Row> = Vec::new();
        for (at, (parent, own, _, chosen)) in spans.iter().enumerate() {
            let parent = (at > 0).then(|| parent.index(at));
            rows.push((parent, 0, *own, *chosen));
        }
        for at in (1..rows.len()).rev() {
            let (parent, _, duration, _) = rows[at];
            rows[parent.expect("all but the first have one")].2 += duration;
        }
        rows
    })
}

/// Trees whose children begin and end anywhere, also outside of their parent.
fn parallel() -> impl Strategy<Value = Vec<Row>> {
    let span = (any::<prop::sample::Index>(), 0..60_i64, 0..40_i64, prop::bool::weighted(0.3));
    prop::collection::vec(span, 1..30).prop_map(|spans| {
        let row =
            |(at, (parent, start, duration, chosen)): (usize, &(prop::sample::Index, i64, i64, bool))| {
                ((at > 0).then(|| parent.index(at)), *start, *duration, *chosen)
            };
        spans.iter().enumerate().map(row).collect()
    })
}

/// Sets each child within its parent.
fn inside(mut rows: Vec<Row>) -> Vec<Row> {
    for at in 1..rows.len() {
        let above = rows[rows[at].0.expect("a parent")];
        rows[at].1 = above.1 + rows[at].1.min(above.2);
        rows[at].2 = rows[at].2.min(above.1 + above.2 - rows[at].1);
    }
    rows
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn s1_own_times_stay_and_sum_to_the_top(rows in sequential()) {
        let tree = pruned(&rows, Starts::OneAfterTheOther);
        let own_before = |at: usize| {
            rows[at].2 - rows.iter().filter(|row| row.0 == Some(at)).map(|row| row.2).sum::<i64>()
        };
        let (mut sum, mut sql) = (0, 0);
        for at in kept(&tree) {
            let children = kept(&tree).filter(|child| rows[*child].0 == Some(at));
            let below: i64 = children.map(|child| tree.times[child].duration).sum();
            prop_assert_eq!(tree.times[at].duration - below, own_before(at), "S1 of {}", at);
            prop_assert_eq!(tree.times[at].own, own_before(at));
            prop_assert!(tree.times[at].duration >= 0);
            sum += tree.times[at].own;
            sql += if tree.spans[at].statement == 0 { 0 } else { tree.times[at].own };
        }
        let top = if tree.spans[0].removed { 0 } else { tree.times[0].duration };
        prop_assert_eq!(sum, top);
        prop_assert!(sql <= top);
        prop_assert_eq!(tree.outside, 0);
    }

    #[test]
    fn s2_and_s3_hold_where_children_run_at_once(rows in parallel().prop_map(inside)) {
        let tree = pruned(&rows, Starts::Known);
        let before: Vec<_> = rows.iter().map(|row| (row.0, row.1, row.2)).collect();
        let mut after = before.clone();
        for (at, span) in after.iter_mut().enumerate() {
            let times = tree.times[at];
            // A removed span is no child.
            let parent = span.0.filter(|_| !tree.spans[at].removed);
            *span = (parent, times.start, times.duration);
        }
        for at in kept(&tree) {
            prop_assert_eq!(own(&before, at), own(&after, at), "S1 of {}", at);
            let (_, start, duration) = after[at];
            prop_assert!((own(&before, at)..=rows[at].2).contains(&duration), "S2 of {}", at);
            if let Some(parent) = rows[at].0 {
                let (_, from, long) = after[parent];
                prop_assert!(start >= from && start + duration <= from + long, "{} is in {}", at, parent);
                for other in kept(&tree).filter(|other| rows[*other].0 == Some(parent)) {
                    let apart = before[at].1 + before[at].2 <= before[other].1;
                    prop_assert!(!apart || start + duration <= after[other].1, "S3 of {} and {}", at, other);
                }
            }
        }
        prop_assert_eq!(tree.outside, 0);
    }

    #[test]
    fn s2_holds_where_children_are_outside(rows in parallel()) {
        let tree = pruned(&rows, Starts::Known);
        for at in kept(&tree) {
            prop_assert!(tree.times[at].own >= 0 && tree.times[at].duration <= rows[at].2, "S2 of {}", at);
        }
        let none: Vec<Row> = rows.iter().map(|row| (row.0, row.1, row.2, false)).collect();
        let same = pruned(&none, Starts::Known);
        for (row, times) in none.iter().zip(&same.times) {
            prop_assert_eq!((row.1, row.2), (times.start, times.duration));
        }
    }
}

/// Fault 1 of the source: its cursor has the old duration of a span whose child is chosen, too.
#[test]
fn a_chosen_span_below_a_chosen_one_is_taken_off_once() {
    let rows = [(None, 0, 100, false), (Some(0), 0, 60, true), (Some(1), 0, 30, true)];
    assert_eq!(pruned(&rows, Starts::OneAfterTheOther).times[0].duration, 40);
    assert_eq!(subtracted(&rows)[0], 10, "30 twice");
}

/// Fault 2: where less is left than is deleted, the source changes nothing and says nothing.
#[test]
fn what_cannot_be_subtracted_is_counted() {
    // Two children at once, of 80 each, within 100: one is removed, and then both.
    let rows = |chosen: [bool; 2]| {
        [(None, 0, 100, false), (Some(0), 0, 80, chosen[0]), (Some(0), 20, 80, chosen[1])]
    };
    let both = rows([true, true]);
    assert_eq!(subtracted(&both)[0], 20, "the second one is skipped");
    assert_eq!(pruned(&both, Starts::Known).times[0].duration, 0);
    assert_eq!(pruned(&rows([true, false]), Starts::Known).times[0].duration, 80);
    let laid = pruned(&both, Starts::OneAfterTheOther);
    assert_eq!((laid.times[0].duration, laid.outside), (0, 1), "and without starts it is counted");
    assert_eq!(pruned(&rows([false, true]), Starts::OneAfterTheOther).times[0].duration, 80);
}

#[test]
fn a_sum_of_sql_below_what_is_removed_is_clamped_and_counted() {
    let rows = [(None, 0, 100, false), (Some(0), 0, 40, false), (Some(0), 0, 60, true)];
    for (sql, expected, clamped) in [(90, 30, 0), (50, 0, 1), (200, 40, 1)] {
        let mut tree = tree(&rows, Starts::OneAfterTheOther);
        let sum = Summary { sql: Some(sql), executions: Some(2), fetches: None };
        tree.summaries.insert(0, sum);
        tree.prune(Starts::OneAfterTheOther);
        let new = tree.summaries[&0];
        assert_eq!((new.sql, new.executions, new.fetches), (Some(expected), Some(1), None));
        assert_eq!((tree.times[0].duration, tree.clamped), (40, clamped));
    }
}

#[test]
fn later_spans_begin_earlier_and_gaps_stay() {
    let rows = [
        (None, 1000, 100, false),
        (Some(0), 1010, 20, true),
        (Some(0), 1035, 15, false),
        (Some(2), 1040, 5, true),
        (Some(0), 1060, 10, false),
    ];
    let tree = pruned(&rows, Starts::Known);
    let times: Vec<_> = kept(&tree).map(|at| (tree.times[at].start, tree.times[at].duration)).collect();
    assert_eq!(times, [(1000, 75), (1015, 10), (1035, 10)]);
}

#[test]
fn circles_and_equal_ids_are_refused() {
    let mut circle = Tree::default();
    for (at, parent) in [(1, 0), (2, 3), (3, 4), (4, 2), (5, 4)] {
        let span = tree(&[(None, 0, 1, false)], Starts::Known).spans[0].clone();
        circle.add(span, at, parent);
    }
    let why = circle.link(Starts::Known).expect_err("a circle");
    assert!(why.starts_with("span ") && why.ends_with("a circle") && !why.contains("span 5"), "{why}");
    let mut twice = Tree::default();
    for id in [7, 8, 7] {
        twice.add(tree(&[(None, 0, 1, false)], Starts::Known).spans[0].clone(), id, 0);
    }
    let why = twice.link(Starts::Known).expect_err("equal ids");
    assert_eq!(why, "spans 1 and 3 have one id, expected an id of its own for each");
}

#[test]
fn a_deep_tree_and_long_times_have_room() {
    let deep: Vec<Row> =
        (0..100_000_usize).map(|at| (at.checked_sub(1), 0, 100_000 - at as i64, at == 50_000)).collect();
    assert_eq!(pruned(&deep, Starts::OneAfterTheOther).times[0].duration, 50_000);
    let long: Vec<Row> =
        (0..50_usize).map(|at| (at.checked_sub(1), 0, TIME_MOST * (at as i64 % 2), false)).collect();
    pruned(&long, Starts::OneAfterTheOther);
}

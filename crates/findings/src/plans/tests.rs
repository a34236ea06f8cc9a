//! Plans in a short form: depth by blanks, then the operator, its object after `@`, and figures.

use super::*;
use plumb_record::plan::{PlanFigure, PlanTree};

/// Reads lines such as `  Seq Scan @t1 E=10 S=1 A=1000`; conditions are `access=` and `filter=`.
fn plan(source: PlanSource, text: &str) -> ExecutionPlan {
    let lines = text.lines().filter(|line| !line.trim().is_empty()).zip(1..);
    let operation = |(line, id): (&str, u32)| {
        let mut operation = PlanOperation { id, ..PlanOperation::default() };
        operation.depth = line.len() - line.trim_start().len();
        let mut words = Vec::new();
        for word in line.split_whitespace() {
            let figure = |text: &str| {
                let value: f64 = text.parse().expect("a number");
                Some(PlanFigure::exactly(value, text.to_string()))
            };
            match word.split_once('=').unwrap_or((word, "")) {
                ("E", value) => operation.expected_rows = figure(value),
                ("S", value) => operation.starts = figure(value),
                ("A", value) => operation.rows = figure(value),
                ("T", value) => operation.time = figure(value),
                ("SPILLED", _) => operation.spilled = true,
                ("access", value) => operation.access.push(value.to_string()),
                ("filter", value) => operation.filter.push(value.to_string()),
                (word, _) => match word.strip_prefix('@') {
                    Some(object) => object.clone_into(&mut operation.object),
                    None => words.push(word.to_string()),
                },
            }
        }
        operation.operation = words.join(" ");
        operation.name.clone_from(&operation.object);
        operation
    };
    let (name, facts, tree) = (String::new(), Vec::new(), PlanTree::Printed);
    ExecutionPlan { source, name, facts, tree, operations: lines.map(operation).collect() }
}

fn found(source: PlanSource, text: &str) -> Vec<String> {
    let found = of_plan(&plan(source, text));
    found.iter().map(|finding| format!("{} {}: {}", finding.rule, finding.what, finding.evidence)).collect()
}

const FIRST_ROWS: &str = "
SELECT STATEMENT S=1 A=11
 HASH JOIN E=1 S=1 A=11
  VIEW @V E=22 S=1 A=380000
   UNION-ALL S=1 A=380000
    TABLE ACCESS FULL @ORDERS E=11 S=1 A=190000
    TABLE ACCESS FULL @ORDERS E=11 S=1 A=190000
  TABLE ACCESS BY INDEX ROWID @ITEMS E=90 S=1 A=26
   INDEX RANGE SCAN @IT_SKU E=90 S=1 A=26";

const ALL_ROWS: &str = "
SELECT STATEMENT S=1 A=11
 NESTED LOOPS E=38 S=1 A=11
  TABLE ACCESS BY INDEX ROWID @ITEMS E=90 S=1 A=26
   INDEX RANGE SCAN @IT_SKU E=90 S=1 A=26
  VIEW @V E=1 S=26 A=11
   UNION ALL PUSHED PREDICATE S=26 A=11
    TABLE ACCESS BY INDEX ROWID @ORDERS E=198000 S=26 A=7
     INDEX RANGE SCAN @ORD_ID E=1 S=26 A=7
    TABLE ACCESS BY INDEX ROWID @ORDERS E=199000 S=26 A=4
     INDEX RANGE SCAN @ORD_ID E=1 S=26 A=4";

#[test]
fn a_table_built_for_few_rows_of_which_many_came_is_one_finding() {
    insta::assert_snapshot!(found(PlanSource::Oracle, FIRST_ROWS).join("\n"));
}

#[test]
fn rows_of_a_pushed_predicate_are_no_misestimate() {
    assert_eq!(found(PlanSource::Oracle, ALL_ROWS), Vec::<String>::new());
}

#[test]
fn fewer_rows_are_found_unless_something_stopped() {
    let scan = "Seq Scan @t E=10000 S=1 A=10";
    let of = |text: &str| found(PlanSource::Postgres, &text.replace("SCAN", scan)).len();
    assert_eq!(of("Sort S=1 A=10 E=10000\n SCAN"), 1);
    // A LIMIT stops the scan, but not below a sort, nor the table of a hash join.
    assert_eq!(
        of("Limit E=10 S=1 A=10\n Nested Loop E=10000 S=1 A=10\n  SCAN\n  Index Scan @u E=1 S=10 A=10"),
        0
    );
    assert_eq!(of("Limit E=10 S=1 A=10\n Sort E=10000 S=1 A=10\n  SCAN"), 1);
    assert_eq!(
        of(
            "Limit E=10 S=1 A=10\n Hash Join E=10000 S=1 A=10\n  Seq Scan @u E=10 S=1 A=10\n  Hash E=10000 S=1 A=10\n   SCAN"
        ),
        1
    );
    assert_eq!(of("Merge Join E=10 S=1 A=10\n SCAN\n Index Scan @u E=10 S=1 A=10"), 0);
    assert_eq!(of("Hash Join E=10 S=1 A=0\n SCAN\n Hash E=1 S=1 A=0"), 0);
    // No optimizer expects less than a row.
    assert_eq!(of("Nested Loop E=10 S=1 A=10\n Seq Scan @u E=9 S=1 A=9\n Index Scan @t E=1 S=1000 A=3"), 0);
    // No operator was chosen by these rows.
    assert_eq!(of("Gather E=10000 S=1 A=10\n SCAN"), 0);
}

#[test]
fn zeros_of_parallel_servers_are_no_misestimate() {
    let servers = "
PX COORDINATOR S=1 A=32
 PX SEND QC S=STARTS A=0 E=9000
  HASH UNIQUE S=STARTS A=0 E=9000
   TABLE ACCESS FULL @T S=STARTS A=ROWS E=9000";
    let of = |starts: &str, rows: &str| {
        found(PlanSource::Oracle, &servers.replace("STARTS", starts).replace("ROWS", rows)).len()
    };
    assert_eq!((of("0", "0"), of("1", "0"), of("1", "100")), (0, 0, 1));
}

#[test]
fn what_follows_from_a_finding_is_none_of_its_own() {
    let deep = "
Sort E=10 S=1 A=90000
 Hash Join E=10 S=1 A=90000
  Seq Scan @t E=10 S=1 A=90000
  Hash E=10 S=1 A=10
   Seq Scan @u E=10 S=1 A=10";
    assert_eq!(found(PlanSource::Postgres, deep).len(), 1);
}

#[test]
fn a_load_above_the_coordinator_and_a_spill_are_found() {
    let text = "
INSERT STATEMENT S=1 A=0
 LOAD AS SELECT S=1 A=0 T=190.02
  PX COORDINATOR S=1 A=61 T=70.92
   TABLE ACCESS FULL @T S=0 A=0 E=61";
    insta::assert_snapshot!(found(PlanSource::Oracle, text).join("\n"));
    let below = "PX COORDINATOR S=1 A=61 T=70.92\n LOAD AS SELECT S=0 A=0\n  HASH JOIN SPILLED S=0 A=0";
    let found = found(PlanSource::Oracle, below);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("P3 A work area went to disk: HASH JOIN (3)"), "{found:?}");
}

/// A line a row: the operators of each plan, and the differences.
fn matches(first: &str, second: &str) -> Vec<String> {
    let plans = [plan(PlanSource::Oracle, first), plan(PlanSource::Oracle, second)];
    let rows = matched(&plans);
    for (arm, plan) in plans.iter().enumerate() {
        let mut places: Vec<usize> = rows.iter().filter_map(|row| row.places[arm]).collect();
        places.sort_unstable();
        assert_eq!(places, (0..plan.operations.len()).collect::<Vec<_>>(), "each operator once");
    }
    let named = |(arm, place): (usize, &Option<usize>)| {
        place.map_or_else(|| "-".to_string(), |place| called(&plans[arm].operations[place]))
    };
    let line = |row: &MatchedRow| {
        let names: Vec<String> = row.places.iter().enumerate().map(named).collect();
        let words: Vec<&str> = row.differences.iter().map(|difference| difference.word()).collect();
        format!("{:<40}{:<40}{}", names[0], names[1], words.join(", ")).trim_end().to_string()
    };
    rows.iter().map(line).collect()
}

#[test]
fn a_plan_matches_itself() {
    for row in matches(FIRST_ROWS, FIRST_ROWS) {
        let (first, second) = row.split_at(40);
        assert_eq!(first.trim(), second.trim());
    }
}

#[test]
fn inputs_that_changed_places_are_matched() {
    insta::assert_snapshot!(matches(FIRST_ROWS, ALL_ROWS).join("\n"));
}

#[test]
fn predicates_differ_by_columns_and_not_by_literals() {
    let text = "VIEW @V filter=N1>=101\n INDEX RANGE SCAN @I access=\"T1\".\"ID\"=:1";
    let literals = "VIEW @V filter=N1>=3.5\n INDEX RANGE SCAN @I access=\"T1\".\"ID\"=:1";
    let rows = matches(text, literals);
    assert!(rows.iter().all(|row| row.ends_with(')')), "no differences: {rows:?}");
    let pushed = "VIEW @V\n INDEX FULL SCAN @I";
    insta::assert_snapshot!(matches(text, pushed).join("\n"));
}

#[test]
fn an_operator_in_between_leaves_what_is_below_it_matched() {
    let first = "Gather\n Sort\n  Seq Scan @t\n  Seq Scan @u";
    let second = "Gather\n Memoize\n  Sort\n   Seq Scan @t\n   Seq Scan @u";
    let rows = matches(first, second);
    assert_eq!(rows.iter().filter(|row| row.contains("not in all")).count(), 1, "{rows:?}");
    assert_eq!(matches("Sort\n Seq Scan @t", "Result").len(), 3);
}

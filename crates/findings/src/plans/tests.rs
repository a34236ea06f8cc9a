//! Plans in a short form: depth by blanks, then the operator, its object after `@`, and figures.

use super::*;
use plumb_record::plan::{PlanDetail, PlanFigure, PlanTree};

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
                ("B", value) => operation.buffers = figure(value),
                ("R", value) => operation.reads = figure(value),
                ("RT", value) => operation.read_time = figure(value),
                ("C", value) => operation.cost = figure(value),
                (name @ ("planned" | "launched" | "removed"), value) => {
                    let name = match name {
                        "removed" => "rows removed by filter".to_string(),
                        name => format!("workers {name}"),
                    };
                    let value = value.parse().expect("a number");
                    operation.details.push(PlanDetail { name, value, text: String::new() });
                }
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
    ExecutionPlan::of(source, PlanTree::Printed, lines.map(operation).collect())
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
    let rows = matched(&plans.each_ref());
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

/// Numbers that follow from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A join of two trees with its number, or a table.
enum Joined {
    Table(u64),
    Join(u64, Box<Joined>, Box<Joined>),
}

fn joined(random: &mut Random, numbers: &mut std::ops::RangeFrom<u64>, levels: u64) -> Joined {
    let number = numbers.next().expect("a number");
    if levels == 0 || random.below(4) == 0 {
        return Joined::Table(number);
    }
    let mut input = || Box::new(joined(random, numbers, levels - 1));
    Joined::Join(number, input(), input())
}

impl Joined {
    /// Prints the tree; the sides of a join in `exchanged` are exchanged, and so is its equality.
    fn print(&self, source: PlanSource, depth: usize, exchanged: &[u64], text: &mut String) {
        let (number, first, second) = match self {
            Joined::Table(number) => {
                text.push_str(&format!("{:depth$}Seq Scan @t{number} filter=n{number}>5\n", ""));
                return;
            }
            Joined::Join(number, first, second) => (number, first, second),
        };
        let condition = [format!("(a{number}.id=b{number}.id)"), format!("(c{number}.x=d{number}.x)")];
        let turned = [format!("(d{number}.x=c{number}.x)"), format!("(b{number}.id=a{number}.id)")];
        let (condition, sides) = match exchanged.contains(number) {
            true => (turned, [second, first]),
            false => (condition, [first, second]),
        };
        let kinds = [
            (PlanSource::Postgres, "Hash Join", "Hash"),
            (PlanSource::Postgres, "Nested Loop", "Materialize"),
            (PlanSource::Postgres, "Merge Join", ""),
            (PlanSource::Oracle, "HASH JOIN", ""),
            (PlanSource::Oracle, "HASH JOIN BUFFERED", "PX RECEIVE"),
            (PlanSource::Oracle, "MERGE JOIN", "BUFFER SORT"),
        ];
        let kinds: Vec<_> = kinds.into_iter().filter(|(of, ..)| *of == source).collect();
        let (_, join, feed) = kinds[usize::try_from(*number).expect("small") % kinds.len()];
        text.push_str(&format!("{:depth$}{join} access=({})\n", "", condition.join("&")));
        sides[0].print(source, depth + 1, exchanged, text);
        let below = usize::from(!feed.is_empty());
        if below > 0 {
            text.push_str(&format!("{:depth$} {feed}\n", ""));
        }
        sides[1].print(source, depth + 1 + below, exchanged, text);
    }

    fn joins(&self) -> Vec<u64> {
        match self {
            Joined::Table(_) => Vec::new(),
            Joined::Join(number, first, second) => {
                std::iter::once(*number).chain(first.joins()).chain(second.joins()).collect()
            }
        }
    }
}

#[test]
fn a_tree_whose_joins_exchange_their_sides_differs_by_nothing_else() {
    for seed in 0..400 {
        let mut random = Random(seed);
        let tree = joined(&mut random, &mut (1..), 4);
        let exchanged: Vec<u64> = tree.joins().into_iter().filter(|_| random.below(2) == 0).collect();
        let source = if random.below(2) == 0 { PlanSource::Postgres } else { PlanSource::Oracle };
        let printed = [&[][..], &exchanged].map(|exchanged| {
            let mut text = String::new();
            tree.print(source, 0, exchanged, &mut text);
            // The short form divides at blanks.
            let mut plan = plan(source, &text);
            let conditions = plan.operations.iter_mut().flat_map(|operation| &mut operation.access);
            conditions.for_each(|condition| *condition = condition.replace('&', " AND "));
            plan
        });
        let mut found = 0;
        for MatchedRow { places, differences } in matched(&printed.each_ref()) {
            let [Some(one), Some(another)] = places[..] else { panic!("seed {seed}: an operator alone") };
            let (one, another) = (&printed[0].operations[one], &printed[1].operations[another]);
            assert_eq!(one.object, another.object, "seed {seed}");
            let is_order = differences == [PlanDifference::Inputs];
            assert!(is_order || differences.is_empty(), "seed {seed}: {differences:?} of {one:?}");
            found += usize::from(is_order);
        }
        assert_eq!(found, exchanged.len(), "seed {seed}");
    }
}

#[test]
fn a_hash_join_with_its_sides_exchanged_keeps_its_tables() {
    let first = "Hash Join access=(a.id=b.id)\n Seq Scan @a\n Hash\n  Seq Scan @b";
    let second = "Hash Join access=(b.id=a.id)\n Seq Scan @b\n Hash\n  Seq Scan @a";
    insta::assert_snapshot!(matches(first, second).join("\n"));
    let cut = matches("Hash Join\n Seq Scan @a\n Hash", "Hash Join\n Seq Scan @a\n Hash\n  Seq Scan @b");
    assert_eq!(cut.iter().filter(|row| row.contains("not in all")).count(), 1, "{cut:?}");
    // A table with itself: only the conditions tell the inputs apart.
    let own = "Hash Join\n Seq Scan @a filter=x>5\n Hash\n  Seq Scan @a filter=y>5";
    let exchanged = "Hash Join\n Seq Scan @a filter=y>5\n Hash\n  Seq Scan @a filter=x>5";
    insta::assert_snapshot!(matches(own, exchanged).join("\n"));
    let parallel = "HASH JOIN\n JOIN FILTER CREATE @:BF0000\n  PX RECEIVE\n   PX SEND BROADCAST\n    TABLE ACCESS FULL @A\n JOIN FILTER USE @:BF0000\n  TABLE ACCESS FULL @B";
    let turned = parallel.replace("@A", "@C").replace("@B", "@A").replace("@C", "@B");
    insta::assert_snapshot!(matches(parallel, &turned.replace("BROADCAST", "HASH")).join("\n"));
    insta::assert_snapshot!(
        matches(
            "Nested Loop\n Seq Scan @a\n Memoize\n  Index Scan @b",
            "Nested Loop\n Seq Scan @a\n Index Scan @b"
        )
        .join("\n")
    );
}

#[test]
fn an_equality_with_its_sides_exchanged_is_the_same_condition() {
    use matching::ordered;
    let same = [
        ("(a.id = b.id)", "(b.id = a.id)"),
        ("((a.id = b.id) AND (a.x = b.y))", "((b.y = a.x) AND (b.id = a.id))"),
        ("\"A\".\"ID\"=\"B\".\"ID\" AND \"A\".\"X\">5", "\"A\".\"X\">7 AND \"B\".\"ID\"=\"A\".\"ID\""),
        ("\"A=\".\"(\"=\"B\".\"ID\"", "\"B\".\"ID\"=\"A=\".\"(\""),
        ("(upper(a.x) = (b.y)::text)", "((b.y)::text = upper(a.x))"),
    ];
    for (one, another) in same {
        assert_eq!(ordered(one), ordered(another));
    }
    let others = [
        ("(a.id = b.id)", "(a.id = c.id)"),
        ("(a.id <= b.id)", "(b.id <= a.id)"),
        ("(a.id >= b.id)", "(b.id >= a.id)"),
        ("(a.id <> b.id)", "(a.id = b.id)"),
        ("((a = b) OR (c = d))", "((a = b) AND (c = d))"),
        ("a = b OR c = d AND e = f", "e = f AND a = b OR c = d"),
    ];
    for (one, another) in others {
        assert_ne!(ordered(one), ordered(another), "{one}");
    }
    for hostile in ["", "=", "((((", "))((", "(\"", " AND  AND ", "(=)", "é=(ü AND ß"] {
        ordered(hostile);
        ordered(&hostile.repeat(1000));
    }
}

#[test]
fn an_oracle_index_is_advised_by_its_predicates() {
    let text = "
NESTED LOOPS E=10 S=1 A=90000
 INDEX RANGE SCAN @ORD_ST_IX E=10 S=1 A=90000 access=\"STATUS\"='N'
 INDEX RANGE SCAN @I E=1 S=90000 A=90000";
    let advice = |source: PlanSource, text: &str| of_plan(&plan(source, text))[0].advice.clone();
    let access = "access=\"STATUS\"='N'";
    let cases = [
        advice(PlanSource::Oracle, text),
        advice(PlanSource::Oracle, &text.replace(access, "")),
        advice(PlanSource::Oracle, &text.replace(access, &format!("access={}", "x".repeat(500)))),
        advice(PlanSource::Postgres, text),
    ];
    insta::assert_snapshot!(cases.join("\n"));
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

fn answered(source: PlanSource, first: &str, second: &str) -> String {
    let found = answers(&[plan(source, first), plan(source, second)]);
    assert_eq!(found.len(), 1);
    found.into_iter().next().expect("a sentence")
}

#[test]
fn the_answer_names_what_changed_or_what_differs_beside() {
    let postgres = |first: &str, second: &str| answered(PlanSource::Postgres, first, second);
    let scan = "Seq Scan @t T=0.02 A=9 S=1 B=4000 R=0";
    let cold = "Seq Scan @t T=0.09 A=9 S=1 B=4000 R=3900";
    let gather = "Gather T=1 planned=2 launched=LAUNCHED\n Parallel Seq Scan @t T=1 A=900 S=3";
    let not_pushed = [
        "SELECT C=123\n NESTED LOOPS C=123\n  TABLE ACCESS FULL @T1 C=23\n  VIEW @V1 C=1\n   INDEX UNIQUE SCAN @T2_PK C=1 E=1 access=T2.ID=T1.N1",
        "SELECT C=296000\n NESTED LOOPS C=296000\n  TABLE ACCESS FULL @T1 C=23\n  VIEW @V1 C=2966 filter=V1.ID=T1.N1\n   INDEX FULL SCAN @T2_PK C=21 E=10000",
    ];
    let cases = [
        // An index was dropped.
        postgres(
            "Index Scan @t_pkey T=0.004 A=1 S=1 B=12 R=0 access=a=5",
            "Gather T=0.4 A=1 S=1 B=32900 R=31000 planned=2 launched=2\n Parallel Seq Scan @t T=0.4 A=1 S=3 B=32900 R=31000 removed=999999 filter=a=5",
        ),
        postgres(&format!("{cold} RT=0.07"), scan),
        postgres(scan, cold),
        postgres(&gather.replace("LAUNCHED", "2"), &gather.replace("LAUNCHED", "0")),
        postgres("Sort T=1\n Seq Scan @t T=0.5 A=10", "Sort SPILLED T=9\n Seq Scan @t T=5 A=1000"),
        postgres(scan, scan),
        answered(PlanSource::Oracle, not_pushed[0], not_pushed[1]),
        answered(PlanSource::Oracle, FIRST_ROWS, ALL_ROWS),
        answers(&[plan(PlanSource::Postgres, &format!("{cold} RT=0.07"))]).join(""),
        // Some operators of parallel servers have no cost, and reads may be of temporary segments.
        answers(&[plan(
            PlanSource::Oracle,
            "SELECT C=90 B=5 R=8\n PX COORDINATOR\n  TABLE ACCESS FULL @T C=80",
        )])
        .join(""),
    ];
    insta::assert_snapshot!(cases.join("\n"));
    let found = |first: &str, second: &str| {
        let plans = [first, second].map(|text| plan(PlanSource::Oracle, text));
        of_pair(&plans[0], &plans[1], 2).iter().map(|found| found.rule.clone()).collect::<Vec<_>>()
    };
    assert_eq!(found(not_pushed[0], not_pushed[1]), ["P5", "P6"]);
    assert_eq!(found(not_pushed[1], not_pushed[0]), Vec::<String>::new());
}

#[test]
fn workers_that_were_not_launched_are_found_and_no_misestimate() {
    let of = |launched: usize, rows: usize| {
        let text = format!(
            "Gather E=9 S=1 A={rows} planned=4 launched={launched}\n Hash Join E=9 S={starts} A={rows}\n  Parallel Seq Scan @t E=250 S={starts} A={rows}\n  Hash E=9 S=1 A=9",
            starts = launched + 1
        );
        found(PlanSource::Postgres, &text).iter().map(|line| line[..2].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(of(4, 1000), Vec::<String>::new());
    // The leader alone has the rows that four were planned for.
    assert_eq!(of(0, 5000), ["P4"]);
    assert_eq!(of(0, 50_000), ["P1", "P4"]);
}

#[test]
fn reads_that_dominate_are_found() {
    let of = |text: &str| found(PlanSource::Postgres, text).len();
    assert_eq!(of("Seq Scan @t T=1 B=1000 R=1000 RT=0.6"), 1);
    assert_eq!(of("Seq Scan @t T=1 B=1000 R=1000 RT=0.4"), 0);
    assert_eq!(of("Seq Scan @t T=1 B=1000 R=950"), 1);
    assert_eq!(of("Seq Scan @t T=1 B=1000 R=500"), 0);
    assert_eq!(of("Seq Scan @t T=1 B=9 R=9"), 0);
}

#[test]
fn queries_of_a_log_have_their_change_of_plan() {
    let logged = |query: &str, text: &str, seconds: f64| LoggedPlan {
        query: query.to_string(),
        seconds,
        ..LoggedPlan::of(&plan(PlanSource::Postgres, text))
    };
    let (index, table) = ("Index Scan @t_pkey", "Seq Scan @t");
    let plans = [
        logged("select * from t where a = 1", index, 0.1),
        logged("select 1 from u where a in (1, 2)", table, 1.0),
        logged("select *  from t where a = 22", index, 0.1),
        logged("select 1 from u where a in (3, 4, 5)", table, 2.0),
        logged("SELECT * FROM t WHERE a = 3", table, 4.0),
        logged("", index, 0.01),
    ];
    let queries = by_query(&plans);
    let lines: Vec<String> = queries
        .iter()
        .map(|query| {
            let change = query.change.as_ref();
            let change = change.map(|it| (it.before, it.after, it.times_slower.round()));
            format!(
                "{} {:?} {} {change:?} {:?}",
                query.query,
                query.places,
                query.hashes.len(),
                query.pair(&plans)
            )
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

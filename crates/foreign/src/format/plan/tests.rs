//! Plans in the shapes in which people have them.

use super::read;
use crate::source::Source;
use plumb_record::plan::{ExecutionPlan, PlanTree};
use std::path::Path;

const FIRST_ROWS: &str = include_str!("fixtures/first_rows.txt");
const WRAPPED: &str = include_str!("fixtures/wrapped.txt");
const ROLLUP: &str = include_str!("fixtures/rollup.txt");
const COPIED: &str = include_str!("fixtures/copied.txt");
const TEXT: &str = include_str!("fixtures/explain.txt");
const JSON: &str = include_str!("fixtures/explain.json");
const TRIGGERS: &str = include_str!("fixtures/triggers.txt");
const TRIGGERS_JSON: &str = include_str!("fixtures/triggers.json");

fn plans(text: &str) -> Vec<ExecutionPlan> {
    read(&Source::of(Path::new("a.txt"), text.as_bytes())).expect("plans")
}

fn refused(text: &str) -> String {
    let error = read(&Source::of(Path::new("a.txt"), text.as_bytes())).expect_err("refused").to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

/// A line an operator, with all that is read of it.
fn lines(plan: &ExecutionPlan) -> String {
    let line = |operation: &plumb_record::plan::PlanOperation| {
        let figures = [
            ("S", &operation.starts),
            ("E", &operation.expected_rows),
            ("A", &operation.rows),
            ("T", &operation.time),
            ("B", &operation.buffers),
            ("M", &operation.used_memory),
        ];
        let figures =
            figures.iter().filter_map(|(name, figure)| Some(format!(" {name}={}", figure.as_ref()?.text)));
        let conditions = [("access", &operation.access), ("filter", &operation.filter)];
        let conditions = conditions.iter().filter(|(_, all)| !all.is_empty());
        let conditions = conditions.map(|(name, all)| format!(" {name}{all:?}"));
        let spilled = if operation.spilled { " SPILLED" } else { "" };
        format!(
            "{:>3} {:indent$}{} [{}]{}{spilled}{}",
            operation.id,
            "",
            operation.titled(),
            operation.name,
            figures.collect::<String>(),
            conditions.collect::<String>(),
            indent = 2 * operation.depth
        )
    };
    let operations: Vec<String> = plan.operations.iter().map(line).collect();
    format!("{} {:?} {:?}\n{}", plan.name, plan.tree, plan.facts, operations.join("\n"))
}

fn all(text: &str) -> String {
    plans(text).iter().map(lines).collect::<Vec<_>>().join("\n\n")
}

#[test]
fn both_plans_of_a_page_keep_their_names_predicates_and_figures() {
    insta::assert_snapshot!(all(FIRST_ROWS));
}

#[test]
fn a_table_that_a_client_wrapped_is_the_same_plan() {
    let (whole, wrapped) = (&plans(FIRST_ROWS)[0], &plans(WRAPPED)[0]);
    assert_eq!(wrapped.hash(), whole.hash());
    let operations =
        |plan: &ExecutionPlan| lines(plan).split_once('\n').map(|(_, operations)| operations.to_string());
    let spaced = operations(whole).expect("operators");
    assert_eq!(operations(wrapped), Some(spaced));
    assert_eq!(wrapped.facts[1], ("Plan hash value".to_string(), "2959412835".to_string()));
}

#[test]
fn a_slide_without_indentation_gets_its_tree_from_the_operators() {
    insta::assert_snapshot!(all(ROLLUP));
    insta::assert_snapshot!(all(COPIED));
}

#[test]
fn operators_without_a_fixed_number_of_inputs_leave_the_tree_unknown() {
    let plan = &plans(&ROLLUP.replace("HASH UNIQUE", "UNION-ALL"))[0];
    assert_eq!(plan.tree, PlanTree::Unknown);
    assert!(plan.operations.iter().all(|operation| operation.depth == 0));
}

#[test]
fn text_and_json_of_an_explain_are_one_plan() {
    insta::assert_snapshot!(all(TEXT));
    let (text, json) = (plans(TEXT), plans(JSON));
    assert_eq!(text.len(), json.len());
    for (text, json) in text.iter().zip(&json) {
        assert_eq!(lines(json).split_once('\n'), lines(text).split_once('\n'));
        assert_eq!(json.hash(), text.hash());
    }
}

#[test]
fn output_of_clients_is_the_same_plan() {
    let plain = plans(JSON)[0].hash();
    let psql: String = JSON.lines().map(|line| format!(" {line:<70}+\n")).collect();
    assert_eq!(plans(&format!("  QUERY PLAN\n-----\n{psql}(1 row)\n"))[0].hash(), plain);
    let logged: String = TEXT.lines().map(|line| format!("\t{line}\n")).collect();
    let logged = format!("2026-01-01 LOG:  duration: 1.2 ms  plan:\n\tQuery Text: select 1\n{logged}");
    assert_eq!(plans(&logged)[0].hash(), plain);
}

/// The triggers of a plan with its facts.
fn remarks(text: &str) -> String {
    let plan = &plans(text)[0];
    let fired = plan.triggers.iter().map(|fired| {
        let time = fired.time.as_ref().map_or("no time", |time| &time.text);
        format!("{}: {time}, {} calls", fired.name, fired.calls.text)
    });
    let facts = plan.facts.iter().map(|(name, value)| format!("{name}: {value}"));
    facts.chain(fired).collect::<Vec<_>>().join("\n")
}

#[test]
fn triggers_and_compilation_explain_the_execution_time() {
    insta::assert_snapshot!(remarks(TRIGGERS));
    assert_eq!(remarks(TRIGGERS_JSON), remarks(TRIGGERS));
    assert_eq!(plans(TRIGGERS_JSON)[0].hash(), plans(TRIGGERS)[0].hash());
    // With TIMING OFF, of two tables.
    let untimed = TRIGGERS.replace("tr: time=2.049", "tr on b");
    let untimed = untimed.replace("Trigger tr on b ", "Trigger tr on b: ");
    assert!(remarks(&untimed).contains("tr on b: no time, 50 calls"), "{untimed}");
    let of_two = TRIGGERS_JSON.replacen("\"Relation\": \"b\"", "\"Relation\": \"c\"", 1);
    assert!(remarks(&of_two).contains("for constraint fk_x on c: "), "{of_two}");
    let wrong = TRIGGERS.replace("calls=50", "calls=many").replace("Total 45", "Total x");
    assert_eq!(remarks(&wrong).lines().count(), 2);
}

#[test]
fn triggers_are_bounded() {
    insta::assert_snapshot!(refused(&format!("{TRIGGERS}{}", "Trigger tr: calls=1\n".repeat(10_000))));
}

#[test]
fn a_text_without_its_end_may_be_cut_off() {
    let cut = |text: &str| plans(text).last().expect("a plan").may_be_cut;
    assert_eq!(cut(TEXT), None);
    let whole: Vec<&str> = TRIGGERS.lines().collect();
    for count in 1..whole.len() {
        assert_eq!(cut(&whole[..count].join("\n")), Some("it has no Execution Time"), "{count} lines");
    }
    let half = whole[..2].join("\n");
    assert_eq!(cut(&format!("{half}\nTotal runtime: 1.2 ms\n")), None);
    assert_eq!(cut(&format!("{half}\n(2 rows)\n")), None);
    for log in ["2026-01-01 LOG:  duration: 1.2 ms  plan:", "Query Text: select 1"] {
        assert_eq!(cut(&format!("{log}\n{half}\n")), None, "{log}");
    }
    // The second of two is of a client and not of the log.
    assert!(cut(&format!("Query Text: select 1\n{half}\n\n{half}\n")).is_some());
    let planned = "Seq Scan on t  (cost=0.00..4.57 rows=1 width=4)\n  Filter: ";
    assert_eq!(cut(&format!("{planned}(a = '('::text)\n")), None);
    for filter in ["(a = ", "((a = 1) AND (b", "(a = 'x"] {
        let found = cut(&format!("{planned}{filter}"));
        assert_eq!(found, Some("its last line has an open bracket"), "{filter}");
    }
}

#[test]
fn quotes_of_pgadmin_around_each_line_are_left_out() {
    let quoted = |text: &str| -> String {
        text.lines().map(|line| format!("\"{}\"\n", line.replace('"', "\"\""))).collect()
    };
    // Its head and its foot are not of the plan.
    let first = TEXT.split("\n\n").next().expect("a plan");
    for text in [first, FIRST_ROWS] {
        let copied = format!("select 1\n{}", quoted(text));
        assert_eq!(all(&copied), all(&format!("select 1\n{text}")));
    }
    let half: String = first.lines().map(|line| format!("\"{line}\n")).collect();
    let _ = read(&Source::of(Path::new("a.txt"), half.as_bytes()));
}

#[test]
fn notes_of_dbms_xplan_are_kept() {
    let notes = "
Note
-----
   - dynamic statistics used: dynamic sampling (level=2)
   - this is an adaptive plan (rows marked '-' are inactive)
   - Warning: basic plan statistics not available. These are only collected when:
       * hint 'gather_plan_statistics' is used for the statement or
       * parameter 'statistics_level' is set to 'ALL', at session or system level

Elapsed: 00:00:01.00
";
    insta::assert_snapshot!(plans(&format!("{FIRST_ROWS}{notes}"))[1].notes.join("\n"));
    assert_eq!(plans(WRAPPED)[0].notes, ["this is an adaptive plan"]);
    assert_eq!(plans(&format!("{notes}{FIRST_ROWS}"))[0].notes, Vec::<String>::new());
    let many = format!("{FIRST_ROWS}\nNote\n-----\n{}", "   - a note\n".repeat(1001));
    insta::assert_snapshot!(refused(&many));
}

#[test]
fn costs_rows_and_literals_are_no_part_of_the_hash() {
    let hash = |text: &str| plans(text)[0].hash();
    let same = FIRST_ROWS.replace("380K", " 12K").replace(">=101", ">=999").replace(" BATCHED|", "        |");
    assert_eq!(hash(&same), hash(FIRST_ROWS));
    for (from, to) in [("HASH JOIN  ", "MERGE JOIN "), ("IT_SKU", "IT_SKV"), (" RANGE SCAN", " FULL SCAN ")] {
        assert_ne!(hash(&FIRST_ROWS.replacen(from, to, 1)), hash(FIRST_ROWS), "{from}");
    }
}

#[test]
fn what_is_cut_off_or_no_plan_is_one_line() {
    let half = |text: &str| text[..text.len() / 2].to_string();
    let cases = [
        refused("Dear colleague,\nthe query is slow.\n"),
        refused(&half(JSON)),
        refused(&FIRST_ROWS[..1500]),
        refused(&FIRST_ROWS.replacen("|      1 |    88   (0)|", "|      1 |", 1)),
        refused("Limit  (cost=0.43..1.02 rows=10 wid"),
        refused("[{\"Plan\": {\"Node Type\": }}]"),
        refused("| Id | Operation |\n"),
        refused(&WRAPPED[..1000]),
    ];
    insta::assert_snapshot!(cases.join("\n"));
}

#[test]
fn depth_and_size_are_bounded() {
    let deep = "{\"Node Type\": \"Result\", \"Plans\": [".repeat(200);
    insta::assert_snapshot!(refused(&format!("[{{\"Plan\": {deep}")));
    let deep: String = (0..600)
        .map(|depth| format!("{:depth$}->  Result  (cost=0.00..0.01 rows=1 width=0)\n", ""))
        .collect();
    insta::assert_snapshot!(refused(&format!("Result  (cost=0.00..0.01 rows=1 width=0)\n{deep}")));
    let rows: String = (0..=10_001).map(|id| format!("|{id}| VIEW|\n")).collect();
    insta::assert_snapshot!(refused(&format!("| Id | Operation |\n{rows}")));
}

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

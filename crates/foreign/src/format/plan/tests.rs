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

const READS: &str = "\
Sort  (cost=100.00..110.00 rows=9000 width=8) (actual time=90.000..95.000 rows=9000 loops=1)
  Sort Key: a
  Sort Method: external merge  Disk: 17696kB
  Buffers: shared hit=2 read=4000 dirtied=3, temp read=2707 written=2724
  I/O Timings: shared read=75.500
  ->  Seq Scan on orders o  (cost=0.00..50.00 rows=9000 width=8) (actual time=0.100..80.000 rows=4500 loops=2)
        Filter: (state > 5)
        Rows Removed by Filter: 500
        Buffers: shared hit=2 read=4000
        Worker 0:  actual time=0.1..70.0 rows=100 loops=1
          Buffers: shared hit=1 read=10
Planning:
  Buffers: shared hit=90
Execution Time: 96.000 ms
";

fn operations(text: &str) -> String {
    let all = all(text);
    all.split_once('\n').map(|(_, operations)| operations.to_string()).expect("operators")
}

#[test]
fn what_was_read_and_dropped_is_kept() {
    let plan = &plans(READS)[0];
    let details = |at: usize| {
        let details = plan.operations[at].details.iter();
        details.map(|detail| format!("{} {}", detail.name, detail.text)).collect::<Vec<_>>().join(", ")
    };
    let reads = |at: usize| plan.operations[at].reads.as_ref().map(|reads| reads.value);
    assert_eq!((reads(0), reads(1)), (Some(4000.0), Some(4000.0)));
    assert_eq!(plan.operations[0].read_time.as_ref().map(|time| time.text.as_str()), Some("75.5 ms"));
    assert_eq!(plan.time().map(|time| time.value), Some(0.096));
    insta::assert_snapshot!(format!("{}\n{}", details(0), details(1)));
}

/// The lines of a text, each within these.
fn each(text: &str, begin: &str, end: &str) -> String {
    text.lines().map(|line| format!("{begin}{line}{end}\n")).collect()
}

/// A text as psql prints it with `\pset format html`.
fn of_html(text: &str) -> String {
    let letters = [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&quot;"), ("  ", "&nbsp; ")];
    let text = letters.into_iter().fold(text.to_string(), |text, (from, to)| text.replace(from, to));
    let rows = each(&text, "  <tr valign=\"top\">\n    <td align=\"left\">", "</td>\n  </tr>");
    format!(
        "<table border=\"1\">\n  <tr>\n    <th align=\"center\">QUERY PLAN</th>\n  </tr>\n{rows}</table>\n"
    )
}

/// A text as psql prints it with `\pset format wrapped`.
fn wrapped_by_psql(text: &str) -> String {
    let wrapped = |line: &str| match line.len() > 80 {
        true => format!(" {}.\n.{}\n", &line[..80], &line[80..]),
        false => format!(" {line}\n"),
    };
    text.lines().map(wrapped).collect()
}

#[test]
fn what_clients_put_around_a_plan_is_left_out() {
    let plain = operations(READS);
    let framed: String = READS.lines().map(|line| format!("| {line:<110} |\n")).collect();
    let records: String = READS
        .lines()
        .zip(1..)
        .map(|(line, at)| format!("-[ RECORD {at} ]-----\nQUERY PLAN | {line}\n"))
        .collect();
    let wrapped: String = READS
        .lines()
        .flat_map(|line| match line.len() > 80 {
            true => vec![line[..80].to_string(), line[80..].to_string()],
            false => vec![line.to_string()],
        })
        .map(|line| line + "\n")
        .collect();
    let forms = [
        ("one blank", READS.replace("  (", " (").replace("->  ", "-> ")),
        ("single quotes", each(READS, "'", "'")),
        ("strings", each(READS, "  \"", "\\n\" +")),
        ("mail", each(READS, "> ", "")),
        ("comments", each(READS, "-- ", "")),
        ("notices", each(READS, "NOTICE:  ", "")),
        ("fence", format!("# slow\n```text\n{READS}```\n")),
        ("frame", format!("+----+\n| QUERY PLAN |\n+----+\n{framed}+----+\n(14 rows)\n")),
        ("unicode", framed.replace('|', "│")),
        ("records", records.clone()),
        ("records of unicode", records.replace('|', "│").replace("-[", "─[")),
        ("dbeaver", format!("QUERY PLAN |\n-----+\n{}", each(READS, "", "|"))),
        ("entities", READS.replace("->", "-&gt;").replace("  ", "&nbsp;&nbsp;")),
        ("no-break spaces", READS.replace("  ", "\u{a0} ")),
        ("terminal", wrapped),
        ("psql, wrapped", wrapped_by_psql(READS)),
        ("psql, HTML", of_html(READS)),
        ("word processor", READS.replace("..", "…")),
    ];
    for (name, text) in forms {
        assert_eq!(operations(&text), plain, "{name}");
    }
}

#[test]
fn json_yaml_and_xml_are_one_plan() {
    let json = r#"[{"Plan": {"Node Type": "Nested Loop", "Join Type": "Left", "Startup Cost": 1.00, "Total Cost": 2.50,
        "Plan Rows": 3, "Shared Hit Blocks": 7, "Shared Read Blocks": 1, "Plans": [
        {"Node Type": "Seq Scan", "Relation Name": "a", "Filter": "(x < 5)", "Startup Cost": 0.00, "Total Cost": 1.00,
        "Plan Rows": 3}]}, "Execution Time": 1.5}]"#;
    let yaml = "- Plan: \n    Node Type: \"Nested Loop\"\n    Join Type: \"Left\"\n    Startup Cost: 1.00\n    Total Cost: 2.50\n    \
        Plan Rows: 3\n    Shared Hit Blocks: 7\n    Shared Read Blocks: 1\n    Plans: \n      - Node Type: \"Seq Scan\"\n        \
        Relation Name: \"a\"\n        Filter: \"(x < 5)\"\n        Startup Cost: 0.00\n        Total Cost: 1.00\n        Plan Rows: 3\n  \
        Execution Time: 1.5\n";
    let xml = "<explain xmlns=\"http://www.postgresql.org/2009/explain\"><Query>\n<Plan><Node-Type>Nested Loop</Node-Type>\n\
        <Join-Type>Left</Join-Type><Startup-Cost>1.00</Startup-Cost><Total-Cost>2.50</Total-Cost>\
        <Plan-Rows>3</Plan-Rows>\n\
        <Shared-Hit-Blocks>7</Shared-Hit-Blocks><Shared-Read-Blocks>1</Shared-Read-Blocks><Plans><Plan>\n\
        <Node-Type>Seq Scan</Node-Type><Relation-Name>a</Relation-Name><Filter>(x &lt; 5)</Filter>\n\
        <Startup-Cost>0.00</Startup-Cost><Total-Cost>1.00</Total-Cost><Plan-Rows>3</Plan-Rows>\
        </Plan></Plans></Plan>\n\
        <Execution-Time>1.5</Execution-Time></Query></explain>\n";
    let doubled = format!("\"QUERY PLAN\"\n\"{}\"\n", json.replace('"', "\"\""));
    let plain = all(json);
    let quoted = xml.replace('&', "&amp;").replace('<', "&lt;");
    let marked = |text: &str| [each(text, "> ", ""), each(text, "-- ", "")];
    let forms = [yaml.to_string(), each(yaml, " ", "+"), xml.to_string(), doubled, each(json, "| ", " +|")];
    let broken = xml.replace("<Relation-Name>", "<Relation-\nName>");
    let forms = forms.into_iter().chain(marked(json)).chain(marked(yaml)).chain([broken, quoted]);
    for text in forms {
        assert_eq!(all(&text), plain, "{text}");
    }
    insta::assert_snapshot!([refused(&xml[..300]), refused(&xml.replace("</Plans>", "</Plan>"))].join("\n"));
}

#[test]
fn a_plan_without_costs_is_a_plan() {
    let text = "Bitmap Heap Scan on a\n  Recheck Cond: (id = 42)\n  ->  BitmapOr\n        ->  Bitmap Index Scan on a_pkey\n";
    let plan = &plans(text)[0];
    let depths: Vec<usize> = plan.operations.iter().map(|operation| operation.depth).collect();
    assert_eq!((depths, plan.tree), (vec![0, 1, 2], PlanTree::Printed));
    assert!(plan.operations.iter().all(|operation| operation.expected_rows.is_none()));
    refused("Result\nof the vote\n");
}

#[test]
fn a_tree_whose_blanks_were_lost_is_not_guessed() {
    let text = "Hash Join (cost=1..2 rows=9 width=8)\n Hash Cond: (o.c = c.id)\n -> Seq Scan on o (cost=0..1 rows=9 width=8)\n \
        -> Hash (cost=9..9 rows=1 width=4)\n -> Seq Scan on c (cost=0..9 rows=1 width=4)\n";
    assert_eq!(plans(text)[0].tree, PlanTree::Unknown);
    assert_eq!(plans(&text.replace("\n ", "\n"))[0].tree, PlanTree::Unknown);
    assert_eq!(plans(&text.replace("-> Seq Scan on c", "      -> Seq Scan on c"))[0].tree, PlanTree::Printed);
}

#[test]
fn other_programs_are_named() {
    let cases = [
        refused("-> Nested loop inner join  (cost=4.95 rows=9) (actual time=0.153..0.200 rows=9 loops=1)\n"),
        refused("YB Seq Scan on t  (cost=0.00..1.00 rows=1 width=4)\n"),
        refused("[{\"Plan\": {\"Node Type\": \"Clustered Scan\"}}]"),
        refused("Rows     Row Source Operation\n-------  ---\n      1  SORT AGGREGATE (cr=1 pr=0)\n"),
        refused("| id | select_type | table | possible_keys |\n"),
        refused("  |--Clustered Index Scan(OBJECT:([d].[dbo].[t].[pk]))\n"),
        refused("QUERY PLAN\n`--SCAN t\n"),
        refused("QUERY PLAN\n`--SEARCH t USING INDEX i (a=?)\n"),
        refused("-> Limit: 200 row(s)  (actual time=4.2..4.3 rows=200 loops=1)\n    -> Table scan on t\n"),
        refused(
            "XN Hash Join  (cost=1..3 rows=1 width=8)\n  ->  XN Seq Scan on t  (cost=0..1 rows=1 width=8)\n",
        ),
        refused(
            "Gather Motion 3:1  (slice1; segments: 3)  (cost=0..1 rows=1 width=4)\n  ->  Seq Scan on t\n",
        ),
        refused("YB Sort  (cost=0..1 rows=1 width=4)\n  ->  YB Seq Scan on t  (cost=0..1 rows=1 width=4)\n"),
        refused("  |--Compute Scalar(DEFINE:([Expr1003]=[a]))\n       |--Constant Scan\n"),
        refused("Rows     Execution Plan\n-------  ----\n      0  SELECT STATEMENT   MODE: ALL_ROWS\n"),
        refused("Execution Plan\n----\n   0      SELECT STATEMENT Optimizer=CHOOSE (Cost=2 Card=14)\n"),
        refused("TKPROF: Release 19.0.0.0.0 - Development on Mon May 6 10:00:00 2024\n\nTrace file: a.trc\n"),
        refused(
            "{\n  \"query_block\": {\n    \"select_id\": 1,\n    \"table\": {\"table_name\": \"t\"}\n  }\n}\n",
        ),
        refused(
            "{\n  \"query\": \"/* select#1 */ select 1\",\n  \"query_plan\": {\n    \"access_type\": \"table\",\n    \
             \"operation\": \"Table scan on t\"\n  }\n}\n",
        ),
        refused("0|0|0|SCAN TABLE t\n0|1|1|SEARCH TABLE u USING INDEX i (a=?)\n"),
        refused(
            "Access Plan:\n-----------\n\tTotal Cost: \t\t13.58\n\tQuery Degree:\t\t1\n\n     Rows\n    RETURN\n    (   1)\n     \
             Cost\n",
        ),
        refused(
            "{ \"queryPlanner\": { \"winningPlan\": { \"stage\": \"COLLSCAN\", \"direction\": \"forward\" } } }\n",
        ),
        refused("== Physical Plan ==\n*(1) Filter (id#0L > 5)\n+- *(1) Range (0, 10, step=1, splits=2)\n"),
        refused("Fragment 0 [SINGLE]\n    Output layout: [count]\n    Aggregate[type = FINAL]\n"),
        refused("distribution: local\nvectorized: true\n\n• scan\n  table: t@t_pkey\n  spans: FULL SCAN\n"),
        refused("┌───────────┐\n│  SEQ_SCAN │\n│     t     │\n└───────────┘\n"),
        refused("<ShowPlanXML xmlns=\"x\" Version=\"1.5\"><BatchSequence/></ShowPlanXML>\n"),
        refused("<report db_version=\"19.0\"><sql_monitor_report version=\"4.0\"/></report>\n"),
    ];
    for (form, _) in super::OTHER_FORMS {
        assert!(cases.iter().any(|case| case.contains(form)), "no case is {form}");
    }
    insta::assert_snapshot!(cases.join("\n"));
}

#[test]
fn a_log_has_time_duration_and_statement_in_each_of_its_forms() {
    let plan = "Query Text: select *\n  from t where a = 'x, \"y\"'\nSeq Scan on t  (cost=0.00..8.00 rows=1 width=4)\n  Filter: (a = 1)";
    let stderr = |at: &str| {
        format!("2024-05-03 10:00:0{at} UTC [1] LOG:  duration: 1.500 ms  plan:\n{}", each(plan, "\t", ""))
    };
    let syslog: String = stderr("1")
        .lines()
        .zip(1..)
        .map(|(line, at)| format!("May  3 10:00:01 h postgres[1]: [5-{at}] {}\n", line.replace('\t', "#011")))
        .collect();
    let message = format!("duration: 1.500 ms  plan:\n{plan}");
    let csv = format!(
        "2024-05-03 10:00:01 UTC,\"u\",\"d\",1,\"[local]\",x.1,3,\"SELECT\",2024-05-03 09:00:00 UTC,3/1,0,LOG,00000,\"{}\",,,,,,,,,\"psql\"\n",
        message.replace('"', "\"\"")
    );
    let json = serde_json::json!({"timestamp": "2024-05-03 10:00:01 UTC", "message": message}).to_string();
    for log in [stderr("1"), syslog, csv, json] {
        let plan = &plans(&format!("{log}\n"))[0];
        let time = plan.time().map(|time| time.text.as_str());
        assert_eq!((plan.at.as_str(), time), ("2024-05-03 10:00:01", Some("1.50 ms")), "{log}");
        assert_eq!(plan.query, "select * from t where a = 'x, \"y\"'", "{log}");
        assert_eq!(plan.operations[0].filter, ["(a = 1)"], "{log}");
    }
    let two = plans(&format!("{}{}", stderr("1"), stderr("2")));
    assert_eq!((two.len(), two[1].at.as_str()), (2, "2024-05-03 10:00:02"));
}

#[test]
fn depths_are_of_the_rows_that_an_adaptive_plan_used() {
    let rows = "Plan hash value: 7\n\n--------\n|   Id  | Operation               | Name |\n--------\n\
        |     0 | SELECT STATEMENT        |      |\n\
        |  *  1 |  HASH JOIN              |      |\n\
        |-    2 |   NESTED LOOPS          |      |\n\
        |-    3 |    STATISTICS COLLECTOR |      |\n\
        |  *  4 |     TABLE ACCESS FULL   | A    |\n\
        |- *  5 |    INDEX UNIQUE SCAN    | B_PK |\n\
        |     6 |   TABLE ACCESS FULL     | B    |\n--------\n";
    let depths: Vec<(u32, usize)> =
        plans(rows)[0].operations.iter().map(|operation| (operation.id, operation.depth)).collect();
    assert_eq!(depths, [(0, 0), (1, 1), (4, 2), (6, 2)]);
}

#[test]
fn sql_monitor_has_a_heading_of_two_lines() {
    let text = "SQL Plan Monitoring Details (Plan Hash Value=7)\n=====\n\
        | Id   | Operation           | Name  |  Rows   | Cost | Execs |   Rows   | Read | Mem   |\n\
        |      |                     |       | (Estim) |      |       | (Actual) | Reqs | (Max) |\n=====\n\
        | -> 0 | SELECT STATEMENT    |       |         |      |     1 |        1 |      |       |\n\
        |    1 |  TABLE ACCESS FULL  | SALES |     57M | 110K |     1 |      57M | 6532 |    1M |\n=====\n";
    let plan = &plans(text)[0];
    assert_eq!(plan.fact("Plan hash value"), Some("7"));
    let scan = &plan.operations[1];
    let values = [&scan.starts, &scan.expected_rows, &scan.rows, &scan.reads, &scan.cost];
    let values = values.map(|figure| figure.as_ref().map(|figure| figure.value));
    assert_eq!(values, [1.0, 57e6, 57e6, 6532.0, 110e3].map(Some));
    let timed = &plans(&format!("Global Information\n-----\n Duration    :  12s\n\n{text}"))[0];
    assert_eq!(timed.time().map(|time| time.value), Some(12.0));
    // Further lines have more of an operator's activity.
    let more = "        |      |                     |       |         |      |       |          |      | Cpu (2) |\n=====\n";
    let two = text.trim_end().trim_end_matches('=').to_string() + more.trim_start();
    assert_eq!(plans(&two)[0].operations.len(), 2);
}

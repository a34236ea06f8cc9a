//! Traces without what a warm system would not do, and traces compared.

use crate::program::{fine, names, plumb, refused};
use std::fs;

/// Returns a trace of OpenTelemetry, as the collector's file exporter writes it.
pub fn trace() -> String {
    let span = |id: u32, parent: &str, begin: u64, end: u64, name: &str, sql: &str| {
        let sql = match sql {
            "" => String::new(),
            sql => format!(r#","attributes":[{{"key":"db.query.text","value":{{"stringValue":"{sql}"}}}}]"#),
        };
        format!(
            r#"{{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"{id:016x}","parentSpanId":"{parent}","name":"{name}","kind":3,"startTimeUnixNano":"{begin}000000","endTimeUnixNano":"{end}000000"{sql}}}"#
        )
    };
    let line = |spans: &[String]| {
        format!("{{\"resourceSpans\":[{{\"scopeSpans\":[{{\"spans\":[{}]}}]}}]}}\n", spans.join(","))
    };
    let parent = "0000000000000001";
    line(&[
        span(2, parent, 1010, 1040, "catalog", "SELECT pg_catalog.version()"),
        span(3, parent, 1050, 1060, "order", "SELECT * FROM orders WHERE id = 7"),
    ]) + &line(&[
        span(1, "", 1000, 1100, "GET /orders", ""),
        span(4, parent, 1060, 1070, "order", "SELECT * FROM orders WHERE id = 8"),
    ])
}

const RULE: &str = "sql like \"SELECT pg_catalog%\"";

#[test]
fn a_trace_is_pruned_and_compared() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fs::write(here.join("trace.json"), trace()).expect("a trace");
    insta::assert_snapshot!(
        "pruned",
        fine(here, ["prune", "trace.json", "--drop", RULE, "--drop", "type=425", "--out", "warm.json"])
    );
    insta::assert_snapshot!("traces_compared", fine(here, ["compare", "trace.json", "warm.json"]));
    assert_eq!(fs::read_to_string(here.join("trace.json")).expect("a trace"), trace());
    let json = fine(here, ["prune", "trace.json", "--drop", RULE, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["all"]["after"]["duration_ns"], 70_000_000);
    assert_eq!(json["all"]["after"]["fetches"], serde_json::Value::Null);
    let compared = fine(here, ["compare", "trace.json", "warm.json", "--json"]);
    let compared: serde_json::Value = serde_json::from_str(&compared).expect("JSON");
    assert_eq!(compared["statements"], json["statements"]);
    let warm = fs::read_to_string(here.join("warm.json")).expect("a copy");
    assert!(!warm.contains("pg_catalog") && !warm.contains("0af7651916cd43dd8448eb211c80319c"));
    assert_eq!(names(here), ["trace.json", "warm.json"]);
}

#[test]
fn what_cannot_be_pruned_is_one_line_and_leaves_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fs::write(here.join("trace.json"), trace()).expect("a trace");
    fs::write(here.join("cut.json"), &trace()[..400]).expect("a trace");
    fs::write(here.join("spans.csv"), "id,up,ms\n1,0,5\n").expect("a table");
    let before = names(here);
    let cases: [(&[&str], i32); 9] = [
        (&["missing.json"], 1),
        (&["."], 1),
        (&["cut.json", "--out", "new"], 1),
        (&["trace.json", "--drop", "sqk=1", "--out", "new"], 2),
        (&["trace.json", "--drop", "425", "--out", "new"], 2),
        (&["spans.csv"], 1),
        (&["spans.csv", "--map", "id=id"], 2),
        (&["spans.csv", "--map", "id=id,parent=upper,duration_ms=ms"], 1),
        (&["trace.json", "--out", "trace.json"], 1),
    ];
    let mut lines = Vec::new();
    for (words, code) in cases {
        let (found, line) = refused(here, [&["prune"], words].concat());
        assert_eq!(found, code, "{line}");
        lines.push(line);
    }
    insta::assert_snapshot!("not_pruned", lines.join("\n"));
    assert_eq!(names(here), before);
    assert_eq!(plumb(here, ["compare", "trace.json", "trace.json", "--html", "x"]).code, Some(2));
}

//! Tests of copies: what is no figure and no listed word is replaced, and a copy says the same.

use super::*;
use crate::{READERS, import};
use std::path::Path;

/// Returns what is said of a file: its reports, tables, checks and findings.
fn said(text: &str) -> Vec<String> {
    let source = Source::of(Path::new("x"), text.as_bytes());
    let mut said = Vec::new();
    for import in import(&source, READERS, "0").expect("reports") {
        let report = &import.report;
        said.push(report.kind.clone());
        for sheet in &report.sheets {
            said.push(format!(
                "{} of {} columns, {} rows",
                sheet.section,
                sheet.columns.len(),
                sheet.rows.len()
            ));
        }
        said.extend(report.checks.iter().map(|check| format!("{} {:?}", check.name, check.outcome)));
        let findings = import.record.iter().flat_map(|record| &record.findings);
        said.extend(findings.map(|finding| format!("{} {:?}", finding.rule, finding.saves_ns)));
    }
    // Keys of a copied document are sorted, and with them its tables.
    said.sort();
    said
}

fn files(directory: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
        if let Ok(bytes) = std::fs::read(entry.path()) {
            let source = Source::of(&entry.path(), &bytes);
            found.push((entry.path().display().to_string(), source.part(0, source.len()).text.to_string()));
        }
    }
    found.sort();
    found
}

#[test]
fn figures_stay_behind_labels_of_figures() {
    let mut tokens = Tokens::new([]);
    for (text, copy) in [
        ("slat (nsec): min=1100, max=812k, avg=4211.20, stdev=800.10", ""),
        ("bw (  KiB/s): min=90000, max=100000, per=100.00%, avg=97700.10, samples=80", ""),
        ("fio-3.36", ""),
        ("Starting 4 processes", ""),
        ("Maximum Large MBPS=1500.25 @ Small=0 and Large=64", ""),
        (
            "SGA Target Advisory        DB/Inst: ORCL/orcl  Snaps: 95-96",
            "SGA Target Advisory        DB/Inst: x000/x001  Snaps: 95-96",
        ),
        ("host=db17 user=42 rows=5", "host=x002 user=x0 rows=5"),
        ("Progress: 1.0 s, 1918.9 tps, lat 1.022 ms stddev 1.943, 0 failed", ""),
    ] {
        let expected = if copy.is_empty() { text } else { copy };
        assert_eq!(line::rest(&mut tokens, text), expected);
    }
}

#[test]
fn the_copy_of_each_report_says_the_same() {
    let mut less = Vec::new();
    for (name, text) in files(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fixtures")) {
        let source = Source::of(Path::new("x"), text.as_bytes());
        if import(&source, READERS, "0").is_err() {
            continue;
        }
        let copy = copy(&source, READERS, &mut Tokens::new([])).expect("understood");
        let again = Source::of(Path::new("x"), copy.as_bytes());
        assert!(import(&again, READERS, "0").is_ok(), "{name}: no report");
        if said(&text) != said(&copy) {
            less.push(name.rsplit('/').next().unwrap_or_default().to_string());
        }
    }
    less.sort();
    assert_eq!(less, Vec::<String>::new());
}

#[test]
fn a_plan_in_each_form_is_copied_as_a_plan_without_its_names() {
    const WORDS: [(&str, &str); 4] = [
        ("Node Type", "Seq Scan"),
        ("Relation Name", "payroll"),
        ("Alias", "payroll"),
        ("Filter", "(ssn = '078-05-1120'::text)"),
    ];
    let lines = |of: fn(&str, &str) -> String| WORDS.map(|(key, text)| of(key, text)).concat();
    let own = lines(|key, text| format!("\"{key}\": \"{text}\", "));
    let json = format!("[{{\"Plan\": {{{own}\"Actual Rows\": 20, \"Actual Loops\": 1}}}}]");
    let own = lines(|key, text| format!("    {key}: \"{text}\"\n"));
    let yaml = format!("- Plan: \n{own}    Actual Rows: 20\n    Actual Loops: 1\n");
    let own = lines(|key, text| {
        let tag = key.replace(' ', "-");
        format!("      <{tag}>{text}</{tag}>\n")
    });
    let own = format!("{own}      <Actual-Rows>20</Actual-Rows>\n      <Actual-Loops>1</Actual-Loops>\n");
    let xml = format!("<explain>\n  <Query>\n    <Plan>\n{own}    </Plan>\n  </Query>\n</explain>\n");
    let quoted = format!("QUERY PLAN\n\"{}\"\n", json.replace('"', "\"\""));
    for text in [&json, &yaml, &xml, &quoted] {
        let source = Source::of(Path::new("x"), text.as_bytes());
        let copy = copy(&source, READERS, &mut Tokens::new([])).expect(text);
        let again = crate::plan::read(&Source::of(Path::new("x"), copy.as_bytes())).expect(&copy);
        let own = &again[0].operations[0];
        assert_eq!((own.operation.as_str(), own.object.len()), ("Seq Scan", "payroll".len()), "{copy}");
        assert!(!["payroll", "ssn", "078", "1120"].iter().any(|name| copy.contains(name)), "{copy}");
    }
}

#[test]
fn an_operator_of_an_extension_is_copied_without_its_name() {
    let figures = "(cost=0.00..1.00 rows=4 width=4) (actual time=0.010..0.020 rows=4 loops=1)";
    let plan = format!(
        " Custom Scan (PayScan) on payroll  {figures}\n   ->  Seq Scan on service s  {figures}\n         \
         Filter: (name = 'secret'::text)\n"
    );
    let copy =
        copy(&Source::of(Path::new("x"), plan.as_bytes()), READERS, &mut Tokens::new([])).expect("a plan");
    assert!(copy.contains("Custom Scan (") && copy.contains("Seq Scan on "), "{copy}");
    assert!(!["PayScan", "payroll", "service", "secret"].iter().any(|name| copy.contains(name)), "{copy}");
}

#[test]
fn the_value_of_a_setting_is_judged_by_its_name() {
    let mut document = serde_json::json!([
        { "name": "system_identifier", "reset_val": "7519699158791311394" },
        { "name": "shared_buffers", "reset_val": "16384", "unit": "8kB" },
    ]);
    json(&mut Tokens::new([]), Label::Words, &mut document);
    assert_ne!(document[0]["reset_val"], "7519699158791311394");
    assert_eq!(document[1]["reset_val"], "16384");
}

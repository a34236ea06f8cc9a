//! Copies of whole files: readers find the same in them, and no name is left.

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
    let mut failed = Vec::new();
    let directories = std::env::var("TRIALS").unwrap_or_default();
    for directory in [concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fixtures")]
        .into_iter()
        .chain(directories.split_whitespace())
    {
        for (name, text) in files(directory) {
            let source = Source::of(Path::new("x"), text.as_bytes());
            if import(&source, READERS, "0").is_err() {
                continue;
            }
            let mut tokens = Tokens::new([]);
            let copy = copy(&source, READERS, &mut tokens).expect("understood");
            if let Ok(out) = std::env::var("TRIAL_OUT") {
                std::fs::write(format!("{out}/{}", Path::new(&name).file_name().unwrap().display()), &copy)
                    .unwrap();
            }
            let again = Source::of(Path::new("x"), copy.as_bytes());
            if import(&again, READERS, "0").is_err() {
                failed.push(format!("{name}: no report"));
                continue;
            }
            let (one, two) = (said(&text), said(&copy));
            let at = one.iter().zip(&two).position(|(one, two)| one != two);
            if one != two {
                let at = at.unwrap_or(one.len().min(two.len()));
                failed.push(format!("{name} ({} of {}): {:?} {:?}", at, one.len(), one.get(at), two.get(at)));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

//! Signals of an AWR or Statspack report that a record has no place for.

use crate::report::Report;
use crate::sheet::{Sheet, SheetRow};
use crate::stamp;
use plumb_findings::{Advisory, Signals};
use plumb_record::Finding;

/// The study that shows a rule's effect on an engine, because the reported server cannot be
/// asked: rule, name of a study that comes with the program.
pub const STUDIES: [(&str, &str); 14] = [
    ("R1", "storage-slob"),
    ("R2", "storage-slob"),
    ("R6", "redo-sync-method"),
    ("R7", "redo-direct"),
    ("R8", "storage-commits"),
    ("R9", "log-file-size"),
    ("R10", "log-file-size"),
    ("R11", "archiving"),
    ("R12", "log-file-size"),
    ("R13", "asynch-files"),
    ("R14", "asynch-files"),
    ("R17", "sort-area"),
    ("R18", "storage-slob"),
    ("R30", "large-sort"),
];

/// Adds what the report says besides its record.
pub fn add(report: &Report, signals: &mut Signals) {
    signals.server.restarted = is_restarted(report);
    signals.server.top_sql_reads = top_sql_reads(report);
    signals.server.work_area_passes = passes(report);
    signals.server.asm = rows(report, "files").any(|(sheet, row)| sheet.text(row, "file").starts_with('+'))
        || signals.waits.iter().any(|wait| wait.event.starts_with("cell "));
    let switches = rows(report, "thread_activity")
        .find(|(sheet, row)| sheet.text(row, "name").starts_with("log switches"))
        .and_then(|(sheet, row)| sheet.figure(row, "total"));
    signals.log.switches = switches.map(|total| total.value as u64).or(signals.log.switches);
    let advisory = |(sheet, row): (&Sheet, &SheetRow)| {
        let factor = |key: &str| sheet.figure(row, key).map(|figure| figure.value);
        let (size_factor, read_factor) = (factor("size_factor")?, factor("read_factor")?);
        // The pool of the default block size alone.
        let is_default = matches!(sheet.text(row, "pool"), "" | "D");
        is_default.then_some(Advisory { size_factor, read_factor })
    };
    signals.cache.advisory = rows(report, "buffer_advisory").filter_map(advisory).collect();
}

/// Names the study of each finding that has none.
pub fn with_studies(mut findings: Vec<Finding>) -> Vec<Finding> {
    for finding in findings.iter_mut().filter(|finding| finding.study.is_empty()) {
        let study = STUDIES.iter().find(|(rule, _)| *rule == finding.rule);
        finding.study = study.map_or(String::new(), |(_, name)| format!("plumb study {name}"));
    }
    findings
}

fn rows<'a>(report: &'a Report, section: &'static str) -> impl Iterator<Item = (&'a Sheet, &'a SheetRow)> {
    report.sheets_of(section).flat_map(|sheet| sheet.rows.iter().map(move |row| (sheet, row)))
}

/// True if the instance was started within the interval. A page of 11.2 prints the month as the
/// minute of the startup, which matters in the hour of the begin alone.
fn is_restarted(report: &Report) -> bool {
    let startup = report.facts.iter().find(|fact| fact.name.starts_with("Startup"));
    let [begin, end] = [&report.run.begin, &report.run.end].map(|text| stamp::second(text));
    let startup = startup.and_then(|fact| stamp::second(&fact.text));
    begin.zip(startup).zip(end).is_some_and(|((begin, startup), end)| begin < startup && startup <= end)
}

/// The share of reads by the five statements that read most, of those without others in them.
fn top_sql_reads(report: &Report) -> Option<f64> {
    let shares: Vec<f64> = rows(report, "sql_by_reads")
        .filter_map(|(sheet, row)| Some(sheet.figure(row, "share")?.value))
        .take(5)
        .collect();
    // A block of PL/SQL has the reads of its statements too: more than all is no share.
    let sum = shares.iter().sum::<f64>() / 100.0;
    (!shares.is_empty()).then_some(sum.min(1.0))
}

fn passes(report: &Report) -> Option<[u64; 2]> {
    report.sheet("pga_histogram")?;
    Some(["one_pass", "multi_pass"].map(|key| {
        let counts = rows(report, "pga_histogram").filter_map(|(sheet, row)| sheet.figure(row, key));
        counts.map(|count| count.value as u64).sum()
    }))
}

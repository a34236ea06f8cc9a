//! Signals of an AWR or Statspack report that a record has no place for.

use super::derived::{behind, block_assumed};
use super::events;
use crate::figure::rounding::nanoseconds;
use crate::figure::sheet::{Sheet, SheetRow};
use crate::figure::stamp;
use crate::report::Report;
use plumb_findings::{Advisory, Signals};
use plumb_record::Finding;
use plumb_units::ValueRange;

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
    signals.is_top_list = report.sheet("foreground_events").is_none();
    signals.class_ns = report
        .rows("foreground_classes")
        .filter_map(|(sheet, row)| {
            let class = events::full_class(sheet.text(row, "class"))?;
            Some((class.to_string(), nanoseconds(sheet.figure(row, "time")?.value)))
        })
        .collect();
    signals.server.top_sql_reads = top_sql_reads(report);
    signals.server.work_area_passes = passes(report);
    signals.server.asm = report.rows("files").any(|(sheet, row)| sheet.text(row, "file").starts_with('+'))
        || signals.waits.iter().any(|wait| wait.event.starts_with("cell "));
    let switches = report
        .rows("thread_activity")
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
    signals.cache.advisory = report.rows("buffer_advisory").filter_map(advisory).collect();
    for of in &mut signals.tablespaces {
        of.printed_read = printed_read(report, &of.name);
    }
}

/// Returns the bytes and seconds that a read of a tablespace can have: of all its rows together.
fn printed_read(report: &Report, tablespace: &str) -> Option<[ValueRange; 2]> {
    let (block, _) = block_assumed(report);
    let section = if report.sheet("tablespaces").is_some() { "tablespaces" } else { "files" };
    let own = report.rows(section).filter(|(sheet, row)| sheet.text(row, "tablespace") == tablespace);
    let reads = own.filter_map(|(sheet, row)| {
        let bytes = sheet.figure(row, "blocks_per_read")?.range.times(ValueRange::exactly(block));
        Some([bytes, sheet.figure(row, "read_time")?.range])
    });
    let hull = |one: ValueRange, two: ValueRange| ValueRange {
        low: one.low.min(two.low),
        high: one.high.max(two.high),
    };
    reads.reduce(|all, one| [hull(all[0], one[0]), hull(all[1], one[1])])
}

/// Names the study of each finding that has none.
pub fn with_studies(mut findings: Vec<Finding>) -> Vec<Finding> {
    for finding in findings.iter_mut().filter(|finding| finding.study.is_empty()) {
        let study = STUDIES.iter().find(|(rule, _)| *rule == finding.rule);
        finding.study = study.map_or(String::new(), |(_, name)| format!("plumb study {name}"));
    }
    findings
}

/// True if the instance was started within the interval. A page of 11.2 prints the month as the
/// minute of the startup, which matters in the hour of the begin alone.
fn is_restarted(report: &Report) -> bool {
    let startup = report.facts.iter().find(|fact| fact.name.starts_with("Startup"));
    let [begin, end] = [&report.run.begin, &report.run.end].map(|text| stamp::second(text));
    let startup = startup.and_then(|fact| stamp::second(&fact.text));
    begin.zip(startup).zip(end).is_some_and(|((begin, startup), end)| begin < startup && startup <= end)
}

/// Returns the share of reads by the statement that reads most, and the most that five can have:
/// a block of PL/SQL has the reads of its statements, too, so that rows overlap.
fn top_sql_reads(report: &Report) -> Option<[f64; 2]> {
    let shares: Vec<f64> = report
        .rows("sql_by_reads")
        .filter_map(|(sheet, row)| Some(sheet.figure(row, "share")?.value))
        .take(5)
        .collect();
    let notes = report.sheets_of("sql_by_reads").flat_map(|sheet| &sheet.notes);
    let captured = notes
        .filter(|note| note.text.contains("Captured SQL account"))
        .find_map(|note| Some(behind(note, "for").first()?.range.high));
    let largest = shares.iter().copied().fold(0.0, f64::max);
    let most = shares.iter().sum::<f64>().min(captured.unwrap_or(100.0)).max(largest);
    (!shares.is_empty()).then_some([largest / 100.0, most / 100.0])
}

fn passes(report: &Report) -> Option<[u64; 2]> {
    report.sheet("pga_histogram")?;
    Some(["one_pass", "multi_pass"].map(|key| {
        let counts = report.rows("pga_histogram").filter_map(|(sheet, row)| sheet.figure(row, key));
        counts.map(|count| count.value as u64).sum()
    }))
}

//! Turns a report into the record of a run, and keeps the imported figures next to it.

use crate::figure::rounding::nanoseconds;
use crate::figure::sheet::{Cell, Sheet};
use crate::figure::shown::scaled;
use crate::format::awr::signals;
use crate::format::fio;
use crate::format::tool::device;
use crate::reader::{self, Reader, ReportPeriod};
use crate::report::{ImportedRun, Report, value};
use crate::source::{ForeignError, Source};
use plumb_findings::{Signals, findings};
use plumb_record::{
    Consistency, ConsistencyTally, Consistent, Header, Host, Imported, ImportedAnswer, ImportedFigure,
    ImportedSection, Record, SCHEMA_VERSION,
};
use plumb_units::path_text;
use serde::Serialize;

/// Rows of a table whose figures are kept in a record, at most.
const ROWS_MOST: usize = 1000;
/// Errors of a run that a record keeps.
const FAILED_MOST: usize = 20;
/// Most failed checks kept in a record; the tallies count all.
const CHECKS_MOST: usize = 500;

/// A report with its record.
#[derive(Debug, Serialize)]
pub struct Import {
    /// The report with all of its tables.
    pub report: Report,
    /// The origin, and the checks of its arithmetic.
    pub imported: Imported,
    /// The record; `None` if the report does not state the length of its interval, because a run
    /// without it has no rates.
    pub record: Option<Record>,
    /// The record of the second of two periods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second: Option<Record>,
    /// The record of a report without an interval, whose elapsed time is zero: its shares, averages
    /// and sizes are judged all the same.
    #[serde(skip)]
    pub undated: Option<Record>,
}

impl Import {
    /// Returns the record with the findings, whether its interval is known or not.
    #[must_use]
    pub fn judged(&self) -> Option<&Record> {
        self.record.as_ref().or(self.undated.as_ref())
    }
}

const BUNDLE: &str = "give its bundle, the directory that it is in, to `plumb report` or `plumb compare`";

/// Titles of this program's documents, each with its kind and the command that takes it. They
/// are refused, because their tables look like pasted ones with another arithmetic.
const OTHERS: [(&str, &str, &str); 7] = [
    ("PLUMB REPORT", "a report of a run", BUNDLE),
    ("PLUMB STUDY REPORT", "a report of a study", BUNDLE),
    ("PLUMB CALIBRATION", "a calibration", BUNDLE),
    ("PLUMB COMPARE PERIOD REPORT", "a comparison", "import the two reports that it compares"),
    ("PLUMB AUDIT", "an audit", "give the file of its claim to `plumb audit`"),
    ("PLUMB SNOOP", "a trace", BUNDLE),
    ("DIAGNOSIS  ", "a diagnosis", "import the report that it diagnoses"),
];

/// Imports all reports of a file. Fails if the file has none or more than is kept, or is another
/// document of this program, such as a calibration.
pub fn import(source: &Source, readers: &[Reader], plumb_version: &str) -> Result<Vec<Import>, ForeignError> {
    if let Some((_, what, cure)) = OTHERS.iter().find(|(title, ..)| title_of(source).starts_with(title)) {
        return Err(ForeignError::Own { path: source.path.clone(), what, cure });
    }
    let reports = reader::reports(source, readers)?;
    Ok(reports.into_iter().map(|(reader, report)| of(source, reader, report, plumb_version)).collect())
}

/// Returns the first line of a text, or the title of a page.
fn title_of(source: &Source) -> &str {
    let whole = source.part(0, source.len()).text;
    let text = whole.trim_start();
    match text.starts_with("<!DOCTYPE html>") {
        true => text.split_once("<title>").map_or("", |(_, title)| title),
        false => text.trim_start_matches("# "),
    }
}

fn of(source: &Source, reader: &Reader, report: Report, plumb_version: &str) -> Import {
    let is_kept = |check: &&Consistency| !matches!(check.outcome, Consistent::Holds | Consistent::NotAsked);
    let mut kept: Vec<&Consistency> = report.checks.iter().filter(is_kept).collect();
    // What nothing explains must not be left out for what a habit explains.
    kept.sort_by_key(|check| std::cmp::Reverse(check.outcome));
    let derived = (reader.derive)(&report);
    let imported = Imported {
        file: path_text(&source.path).to_string(),
        sha256: source.sha256.clone(),
        line: report.line,
        kind: report.kind.clone(),
        facts: report.facts.clone(),
        failed: report.failed.iter().take(FAILED_MOST).map(|error| error.text.clone()).collect(),
        answers: answers(&report, &derived),
        derived: derived.len() as u64,
        figures: derived.iter().cloned().chain(figures(&report)).collect(),
        tallies: ConsistencyTally::of(&report.checks),
        checks: kept.into_iter().take(CHECKS_MOST).cloned().collect(),
        sections: report.sheets.iter().map(section).collect(),
        unread: report.unread.len() as u64,
        cut_after: report.cut.as_ref().map(|cut| cut.line),
    };
    let filled = |run: &ImportedRun, period: ReportPeriod| {
        let mut record = Record::of(header(run, plumb_version, &imported));
        reader.fill.apply(&report, &derived, &mut record, period);
        record.imported = Some(imported.clone());
        record
    };
    let second = report.second.as_ref().map(|run| filled(run, ReportPeriod::Second));
    let mut record = filled(&report.run, ReportPeriod::First);
    // Without DB time nothing is a share of it; reads of tablespaces are judged by their size.
    if record.header.db_time_ns.is_some() || !record.io_files.is_empty() {
        let mut signals = Signals::of(&record);
        signals::add(&report, &mut signals);
        if let Some(second) = &second {
            signals.second = Some(Box::new(Signals::of(second)));
        }
        record.findings = signals::with_studies(findings(&signals));
    } else {
        let (devices, jobs) = (device::signals(&report), fio::signals(&report));
        let elapsed_ns = record.header.elapsed_ns;
        record.findings = findings(&Signals { elapsed_ns, devices, jobs, ..Signals::default() });
    }
    let (record, undated) =
        if record.header.elapsed_ns > 0 { (Some(record), None) } else { (None, Some(record)) };
    Import { report, imported, record, second, undated }
}

/// Returns the first lines of the page: those of the reader, otherwise its first derived figures.
fn answers(report: &Report, derived: &[ImportedFigure]) -> Vec<ImportedAnswer> {
    const MOST: usize = 4;
    let of = |figure: &ImportedFigure| ImportedAnswer {
        name: figure.name.clone(),
        value: scaled(figure.value, &figure.unit),
        aside: String::new(),
    };
    match report.answers.is_empty() {
        true => derived.iter().take(MOST).map(of).collect(),
        false => report.answers.clone(),
    }
}

fn section(sheet: &Sheet) -> ImportedSection {
    ImportedSection {
        heading: sheet.heading.clone(),
        line: sheet.line,
        rows: sheet.rows.len() as u64,
        known: !sheet.section.is_empty(),
    }
}

/// Returns the figures with keys, which records and checks use.
fn figures(report: &Report) -> Vec<ImportedFigure> {
    let mut figures = Vec::new();
    for sheet in report.sheets.iter().filter(|sheet| !sheet.section.is_empty()) {
        // Samples and requests by the thousand are in the tables, and their sums are derived.
        for row in sheet.rows.iter().filter(|_| sheet.rows.len() <= ROWS_MOST) {
            let keyed = sheet.columns.iter().filter(|column| !column.key.is_empty());
            let figure = |column: &crate::figure::sheet::Column| sheet.figure(row, column.key);
            figures.extend(keyed.filter_map(figure).map(|figure| ImportedFigure::from(&figure)));
        }
    }
    figures
}

/// Returns the head of a record; its elapsed time is zero without an interval.
fn header(run: &ImportedRun, plumb_version: &str, imported: &Imported) -> Header {
    let ns = |cell: &Option<Cell>| value(cell.as_ref()).map(nanoseconds);
    Header {
        title: run.title.clone(),
        workload: run.workload.clone(),
        plumb_version: plumb_version.to_string(),
        git_revision: None,
        profile: None,
        host: Host {
            name: run.host.clone(),
            cpus: run.cpus,
            cpu_quota: None,
            cpu_model: String::new(),
            memory_bytes: run.memory_bytes,
            kernel: run.platform.clone(),
        },
        begin_time: run.begin.clone(),
        end_time: run.end.clone(),
        elapsed_ns: ns(&run.elapsed).unwrap_or(0),
        db_time_ns: ns(&run.db_time),
        db_cpu_ns: ns(&run.db_cpu),
        command_line: format!("plumb import {}", imported.file),
        seed: None,
        settings_hash: imported.sha256.chars().take(8).collect(),
        clock_source: None,
        clock_precision_ns: None,
    }
}

const _: () = assert!(SCHEMA_VERSION == 2, "an imported record is of the version that this crate fills");

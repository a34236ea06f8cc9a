//! An imported report: facts of its head, tables, and lines that were not understood.

use crate::figure::sheet::{Cell, Printed, Remark, Sheet, SheetRow};
use crate::form::json::Json;
use crate::source::SourcePart;
use plumb_figures::{CellReading, is_figure};
use plumb_record::{Consistency, Consistent, ImportedAnswer, ImportedFact};
use serde::Serialize;

/// Most bytes kept of a line that no table takes.
const LINE_SHOWN_MOST: usize = 200;

#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// The kind of report, such as `AWR report`.
    pub kind: String,
    /// The line of the file in which it begins.
    pub line: u32,
    /// The facts of its head in the order of the report.
    pub facts: Vec<ImportedFact>,
    /// The run that it describes; of two periods, the first.
    #[serde(skip)]
    pub run: ImportedRun,
    /// The second of two periods.
    #[serde(skip)]
    pub second: Option<ImportedRun>,
    /// The figures that answer first what such a report is read for: rates of fio, DB time of AWR.
    pub answers: Vec<ImportedAnswer>,
    /// The tables that were read.
    pub sheets: Vec<Sheet>,
    /// Lines that no reader understands.
    pub unread: Vec<Remark>,
    /// Lines between tables that have no figures of a table, such as advice in words.
    pub prose: Vec<Remark>,
    /// Lines of statements, which no table keeps.
    #[serde(skip)]
    pub skipped: Vec<u32>,
    /// Sections that the report says are empty, with their lines.
    pub empty: Vec<Remark>,
    /// The results of the report's own arithmetic.
    pub checks: Vec<Consistency>,
    /// The end of a report that was cut short.
    pub cut: Option<CutShort>,
    /// Errors of the run that it describes, whose figures are those of a failed run.
    pub failed: Vec<Remark>,
}

/// The end of a report that was cut short.
#[derive(Debug, Clone, Serialize)]
pub struct CutShort {
    /// The last line of the report, counted from 1 in its file.
    pub line: u32,
    /// The first line with figures that may lack a part.
    pub doubtful: u32,
    /// The text that ends a whole report, such as `End of Report`.
    pub missing: &'static str,
}

/// The run described by the head of a report. A fact that the head lacks stays empty.
#[derive(Debug, Clone, Default)]
pub struct ImportedRun {
    /// The first line of a report, such as `AWR REPORT  Database: ORCL`.
    pub title: String,
    /// The workload, database or job.
    pub workload: String,
    /// The begin of the interval, as printed.
    pub begin: String,
    /// The end of the interval, as printed.
    pub end: String,
    /// The length of the interval, seconds.
    pub elapsed: Option<Cell>,
    /// DB time of all sessions, seconds.
    pub db_time: Option<Cell>,
    /// The CPU time within it, seconds.
    pub db_cpu: Option<Cell>,
    /// The host's name as printed, which may be cut off.
    pub host: String,
    /// The platform or kernel of the host.
    pub platform: String,
    /// CPUs of the host, a count.
    pub cpus: Option<u32>,
    /// Memory of the host, bytes.
    pub memory_bytes: Option<u64>,
}

impl Report {
    /// Returns the tables of a section in the order of the report.
    pub fn sheets_of(&self, section: &'static str) -> impl Iterator<Item = &Sheet> {
        self.sheets.iter().filter(move |sheet| sheet.section == section)
    }

    /// Returns the rows of all tables of a section, each with its table.
    pub fn rows<'a>(&'a self, section: &'static str) -> impl Iterator<Item = (&'a Sheet, &'a SheetRow)> {
        self.sheets_of(section).flat_map(|sheet| sheet.rows.iter().map(move |row| (sheet, row)))
    }

    /// Returns the first table of a section.
    #[must_use]
    pub fn sheet(&self, section: &'static str) -> Option<&Sheet> {
        self.sheets_of(section).next()
    }

    /// Adds a fact of the head, unless it is empty.
    pub fn fact(&mut self, name: &str, cell: &Cell) {
        if !cell.raw.is_empty() {
            let (name, text) = (name.to_string(), cell.raw.clone());
            self.facts.push(ImportedFact { name, text, line: cell.line });
        }
    }

    /// Adds a figure that a reader looks for first; a blank value is left out.
    pub fn answer(&mut self, name: &str, value: impl Into<String>, aside: impl Into<String>) {
        let (name, value, aside) = (name.to_string(), value.into(), aside.into());
        if !value.is_empty() {
            self.answers.push(ImportedAnswer { name, value, aside });
        }
    }

    /// Keeps a line that no table takes: as prose, or as a line that is not understood if half of
    /// its words are figures, because then it may be the row of a table.
    pub fn leave(&mut self, line: u32, text: &str) {
        let text = plumb_units::cut(text.trim(), LINE_SHOWN_MOST).into_owned();
        let is_figure = |word: &&str| {
            let value = word.rsplit('=').next().unwrap_or(word);
            is_figure(value.trim_end_matches([':', ';', ')']))
        };
        let words = text.split([' ', '\t', '|', ',']).filter(|word| !word.is_empty());
        let (figures, others): (Vec<&str>, Vec<&str>) = words.partition(is_figure);
        let is_row = figures.len() >= 2 && figures.len() >= others.len();
        let kept = if is_row { &mut self.unread } else { &mut self.prose };
        kept.push(Remark { line, text });
    }

    /// Notes that a report without any of these texts was cut short within its last line.
    pub fn require_end(&mut self, part: &SourcePart<'_>, marks: &[&'static str]) {
        if !marks.iter().any(|mark| part.text.contains(mark)) {
            let line = last_line(part);
            self.cut = Some(CutShort { line, doubtful: line, missing: marks[0] });
        }
    }

    /// Notes that a document without its last bracket was cut short. A list or an object that the
    /// cut left may lack members, so that all of its figures are doubtful.
    pub fn require_bracket(&mut self, part: &SourcePart<'_>, json: &Json) {
        let line = last_line(part);
        self.cut = (!json.is_closed).then_some(CutShort { line, doubtful: 0, missing: "}" });
    }

    /// Counts a check of a report that was cut short as one that lacks a figure, if it failed
    /// and has a doubtful figure.
    pub(crate) fn excuse(&mut self) {
        let Some(cut) = &self.cut else { return };
        for check in self.checks.iter_mut().filter(|check| check.outcome == Consistent::Fails) {
            if check.figures.iter().any(|figure| figure.line >= cut.doubtful) {
                check.outcome = Consistent::NotAsked;
                check.note = format!("the report is cut short after line {}", cut.line);
            }
        }
    }

    /// Notes the error of a job, unless it is 0 or empty.
    pub fn fail(&mut self, job: &str, error: &Printed) {
        if !error.raw.is_empty() && error.raw != "0" {
            let text = format!("{job}: error {}", error.raw).trim_start_matches(": ").to_string();
            self.failed.push(Remark { line: error.line, text });
        }
    }

    /// Returns the number of cells in its tables.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.sheets.iter().map(Sheet::cells).sum()
    }
}

/// Returns the number of the last line with a text.
fn last_line(part: &SourcePart<'_>) -> u32 {
    let written = part.lines().filter(|(_, text)| !text.is_empty());
    written.last().map_or(part.first_line(), |(line, _)| line)
}

/// Returns the value of a cell in the base unit of its column.
#[must_use]
pub fn value(cell: Option<&Cell>) -> Option<f64> {
    cell.and_then(|cell| CellReading::value(cell.reading))
}

//! Splits a file into reports and chooses the reader of each.
//!
//! ```text
//! file ──[begins: which line begins which kind]──> parts ──[read]──> reports ──[check]──> imports
//! ```
//!
//! A report is recognised by its content, never by the file's name. A file may have several
//! reports: each line that begins a report begins a part, which ends before the next such line.
//! HTML is cut only at `<html`. Lines before the first report are ignored. A file without any such
//! line goes to the readers of fragments.
//!
//! Memory is bounded by the size of the file ([`crate::source::BYTES_MOST`]) and by [`CELLS_MOST`].

use crate::figure::sheet::{SHEETS_MOST, Sheet};
use crate::kinds;
use crate::report::Report;
use crate::source::{ForeignError, Source, SourcePart};
use plumb_record::{Consistency, ImportedFigure, MeasuredFigure, Record};
use std::ops::Range;
use std::path::Path;

pub use crate::figure::sheet::CELLS_MOST;

/// Most lines of a file with reports: each of about twenty readers looks at each line. A table of
/// four columns with as many rows has [`CELLS_MOST`] cells.
pub const REPORT_LINES_MOST: usize = 1_000_000;

/// A reader of one kind of report.
#[derive(Debug, Clone, Copy)]
pub struct Reader {
    /// The kind, such as `AWR report`.
    pub kind: &'static str,
    /// Recognises the start of a report.
    pub begins: Begins,
    /// Reads a part. It never fails: lines that are not understood are listed.
    pub read: fn(&SourcePart<'_>) -> Report,
    /// Checks the report by its own arithmetic.
    pub check: fn(&Report) -> Vec<Consistency>,
    /// Returns the derived figures that readers ask for first.
    pub derive: fn(&Report) -> Vec<ImportedFigure>,
    /// Fills a record with everything except its head.
    pub fill: Fill,
}

impl Reader {
    /// Returns a reader that checks nothing and derives nothing.
    #[must_use]
    pub const fn new(kind: &'static str, begins: Begins, read: fn(&SourcePart<'_>) -> Report) -> Reader {
        Reader { kind, begins, read, check: |_| Vec::new(), derive: |_| Vec::new(), fill: Fill::Nothing }
    }

    /// Adds the checks of a report.
    #[must_use]
    pub const fn checked(self, check: fn(&Report) -> Vec<Consistency>) -> Reader {
        Reader { check, ..self }
    }

    /// Adds derived figures, and how a record is filled.
    #[must_use]
    pub const fn filling(self, derive: fn(&Report) -> Vec<ImportedFigure>, fill: Fill) -> Reader {
        Reader { derive, fill, ..self }
    }
}

/// Source of a record's figures.
#[derive(Debug, Clone, Copy)]
pub enum Fill {
    /// No figure of the report is one of a run.
    Nothing,
    /// The derived figures: such a tool has neither events nor statistics of a database.
    Derived,
    With(fn(&Report, &mut Record)),
    /// As [`Fill::With`], for a report that may have two periods.
    OfPeriod(fn(&Report, &mut Record, ReportPeriod)),
}

/// One of the periods of a report; most have the first alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportPeriod {
    First,
    Second,
}

impl Fill {
    /// Fills a record from a report and its derived figures.
    pub(crate) fn apply(
        self,
        report: &Report,
        derived: &[ImportedFigure],
        record: &mut Record,
        period: ReportPeriod,
    ) {
        match self {
            Fill::Nothing => {}
            Fill::Derived => measures(derived, record),
            Fill::With(fill) => fill(report, record),
            Fill::OfPeriod(fill) => fill(report, record, period),
        }
    }
}

/// Adds figures to the measures of a record.
pub(crate) fn measures(figures: &[ImportedFigure], record: &mut Record) {
    let measure = |figure: &ImportedFigure| MeasuredFigure {
        name: figure.name.clone(),
        value: figure.value,
        unit: figure.unit.clone(),
    };
    record.measures.extend(figures.iter().map(measure));
}

/// Returns the readers of several families, of which there must be `COUNT`.
#[must_use]
pub const fn joined<const COUNT: usize>(families: &[&[Reader]]) -> [Reader; COUNT] {
    let mut all = [families[0][0]; COUNT];
    let (mut at, mut family) = (0, 0);
    while family < families.len() {
        let mut own = 0;
        while own < families[family].len() {
            all[at] = families[family][own];
            (at, own) = (at + 1, own + 1);
        }
        family += 1;
    }
    assert!(at == COUNT, "the number of all readers");
    all
}

/// Test that recognises a kind of report.
#[derive(Debug, Clone, Copy)]
pub enum Begins {
    /// By a line of text.
    Line(fn(&str) -> bool),
    /// By the first [`HEAD_BYTES`] of a page of HTML, in lower case.
    Page(fn(&str) -> bool),
    /// By a line of a file without other reports: a table without a head.
    Fragment(fn(&str) -> bool),
    /// By the whole of a page of HTML, in lower case, whose head no other reader knows.
    Script(fn(&str) -> bool),
    /// By all lines at once: the ranges of lines, counted from 0, that each are a report.
    Ranges(fn(&SourcePart<'_>) -> Vec<Range<usize>>),
    /// As [`Begins::Fragment`], for all lines at once: returns those that begin a report, from 0.
    Fragments(fn(&SourcePart<'_>) -> Vec<usize>),
}

/// The kind of tables without a head. Text that merely has none is no such report.
pub const PASTED: &str = "pasted tables";

/// Reports of a file at most: their ranges are compared with each other.
const PARTS_MOST: usize = 1000;

/// Bytes of a page that decide its reader.
const HEAD_BYTES: usize = 64 << 10;

/// Reads all reports of a file, each with its reader. Fails if no part of the file is a report, or
/// its tables have more than [`CELLS_MOST`] cells.
pub fn reports<'r>(
    source: &Source,
    readers: &'r [Reader],
) -> Result<Vec<(&'r Reader, Report)>, ForeignError> {
    require_lines(source)?;
    let mut found = Vec::new();
    let parts = parts(source, readers);
    let mut bounds = Bounds::of(source, parts.len())?;
    if let Some(error) = kinds::titled(source)
        && parts.iter().all(|(reader, _)| reader.kind == PASTED)
    {
        return Err(error);
    }
    let is_range = |reader: &Reader| matches!(reader.begins, Begins::Ranges(_));
    let ranges: Vec<(u32, u32)> = parts
        .iter()
        .filter(|(reader, _)| is_range(reader))
        .map(|(_, part)| (part.first_line(), part.first_line() + part.text.lines().count() as u32))
        .collect();
    for (reader, part) in parts {
        let mut report = (reader.read)(&part);
        // A table that another reader knows is read once.
        let is_other = |sheet: &Sheet| {
            let line =
                sheet.rows.first().and_then(|row| row.cells.first()).map_or(sheet.line, |cell| cell.line);
            ranges.iter().any(|(first, end)| (*first..*end).contains(&line))
        };
        report.sheets.retain(|sheet| is_range(reader) || !sheet.section.is_empty() || !is_other(sheet));
        if report.kind.is_empty() {
            report.kind = reader.kind.to_string();
        }
        report.line = part.first_line();
        bounds.add(&report)?;
        report.checks = (reader.check)(&report);
        report.excuse();
        found.push((reader, report));
    }
    // A line may look like the start of a report that has no content.
    let first = found.first().map(|(reader, _): &(&Reader, Report)| reader.kind);
    found.retain(|(_, report)| !report.sheets.is_empty() || !report.facts.is_empty());
    let is_read = |(_, report): &(&Reader, Report)| report.sheets.iter().any(|sheet| !sheet.rows.is_empty());
    let nothing = |kind: &str| ForeignError::Nothing { path: source.path.clone(), kind: kind.to_string() };
    match first {
        _ if found.iter().any(is_read) => Ok(found),
        _ if !found.is_empty() => Err(nothing(&found[0].1.kind)),
        Some(kind) if kind != PASTED => Err(nothing(kind)),
        _ => Err(kinds::unknown(source)),
    }
}

/// The bounds of what is kept of a file.
pub(crate) struct Bounds<'s> {
    path: &'s Path,
    cells: usize,
    sheets: usize,
}

impl<'s> Bounds<'s> {
    /// Fails if a file has too many reports.
    pub(crate) fn of(source: &'s Source, parts: usize) -> Result<Bounds<'s>, ForeignError> {
        let bounds = Bounds { path: &source.path, cells: 0, sheets: 0 };
        if parts > PARTS_MOST { Err(bounds.error(PARTS_MOST, "reports")) } else { Ok(bounds) }
    }

    /// Counts the tables of a report. Fails if there are too many, or if a bound cut one off.
    pub(crate) fn add(&mut self, report: &Report) -> Result<(), ForeignError> {
        self.cells += report.cells();
        self.sheets += report.sheets.len();
        match report.sheets.iter().any(|sheet| sheet.is_full) {
            _ if self.sheets > SHEETS_MOST => Err(self.error(SHEETS_MOST, "tables")),
            is_full if is_full || self.cells > CELLS_MOST => {
                Err(self.error(CELLS_MOST, "cells in its tables"))
            }
            _ => Ok(()),
        }
    }

    fn error(&self, most: usize, what: &'static str) -> ForeignError {
        ForeignError::TooLarge { path: self.path.to_path_buf(), most, what }
    }
}

/// Fails if a file has more lines than a file with reports may have.
pub(crate) fn require_lines(source: &Source) -> Result<(), ForeignError> {
    let most = REPORT_LINES_MOST;
    let is_fine = source.len() <= most;
    is_fine.then_some(()).ok_or_else(|| ForeignError::TooManyLines { path: source.path.clone(), most })
}

/// Returns the parts of a file that are reports, with their readers, in the order of their lines.
pub(crate) fn parts<'s, 'r>(source: &'s Source, readers: &'r [Reader]) -> Vec<(&'r Reader, SourcePart<'s>)> {
    let whole = source.part(0, source.len());
    let pages = pages(&whole, readers);
    // Pages follow each other.
    let is_in_page = |line: &usize| {
        let behind = pages.partition_point(|(lines, _)| lines.end <= *line);
        pages.get(behind).is_some_and(|(lines, _)| lines.contains(line))
    };
    let has_text = !(0..source.len()).all(|line| is_in_page(&line));
    let mut begins = if has_text { texts(&whole, readers, false) } else { Vec::new() };
    begins.retain(|(line, _)| !is_in_page(line));
    begins.extend(pages.iter().map(|(lines, reader)| (lines.start, *reader)));
    begins.sort_by_key(|(line, _)| *line);
    let has_known = !begins.is_empty();
    let mut ranges = if has_text { ranges(&whole, readers) } else { Vec::new() };
    ranges.retain(|(range, _)| !is_in_page(&range.start));
    let mut begins = if has_known { begins } else { texts(&whole, readers, true) };
    if !has_known {
        begins.retain(|(line, _)| !ranges.iter().any(|(range, _)| range.contains(line)));
    }
    // A range ends a report that began with a line. Tables without a head go on behind it.
    let cut = |line: usize| {
        let first =
            ranges.iter().map(|(range, _)| range.start).filter(|start| has_known && *start > line).min();
        first.unwrap_or(source.len())
    };
    let end_of_page = |line: usize| {
        let page = pages.iter().find(|(lines, _)| lines.start == line);
        page.map_or(source.len(), |(lines, _)| lines.end)
    };
    let ends = begins.iter().skip(1).map(|(line, _)| *line).chain([source.len()]);
    let begun = begins.iter().zip(ends).map(|((line, reader), end)| {
        (*reader, source.part(*line, end.min(cut(*line)).min(end_of_page(*line))))
    });
    let own = ranges.iter().map(|(range, reader)| (*reader, source.part(range.start, range.end)));
    let mut parts: Vec<(&Reader, SourcePart<'_>)> = begun.chain(own).collect();
    parts.sort_by_key(|(_, part)| part.first_line());
    parts
}

/// The ranges of lines that readers know, each with its reader. Of two that overlap, the one whose
/// reader is asked first counts.
fn ranges<'r>(whole: &SourcePart<'_>, readers: &'r [Reader]) -> Vec<(Range<usize>, &'r Reader)> {
    let mut found: Vec<(Range<usize>, &Reader)> = Vec::new();
    for reader in readers {
        let Begins::Ranges(ranges) = reader.begins else { continue };
        for range in ranges(whole) {
            let overlaps = |other: &Range<usize>| range.start < other.end && other.start < range.end;
            if found.len() <= PARTS_MOST && !found.iter().any(|(other, _)| overlaps(other)) {
                found.push((range, reader));
            }
        }
    }
    found
}

/// A line that begins a part, counted from 0, and its reader.
type Begin<'r> = (usize, &'r Reader);
/// The lines of a page, counted from 0, and its reader.
type Page<'r> = (Range<usize>, &'r Reader);

/// Returns the lines of text that begin a report, counted from 0.
fn texts<'r>(whole: &SourcePart<'_>, readers: &'r [Reader], fragments: bool) -> Vec<Begin<'r>> {
    let begun = |line: &str| {
        readers.iter().find(|reader| match reader.begins {
            Begins::Line(begins) => !fragments && begins(line),
            Begins::Fragment(begins) => fragments && begins(line),
            _ => false,
        })
    };
    let mut found: Vec<(usize, &Reader)> = Vec::new();
    for (at, (_, line)) in whole.lines().enumerate() {
        match begun(line) {
            // All fragments of a file form one report.
            Some(reader) if fragments && found.iter().any(|(_, known)| std::ptr::eq(*known, reader)) => {}
            Some(reader) if found.len() <= PARTS_MOST => found.push((at, reader)),
            _ => {}
        }
    }
    for reader in readers.iter().filter(|_| fragments) {
        if let Begins::Fragments(begins) = reader.begins {
            found.extend(begins(whole).into_iter().take(PARTS_MOST + 1).map(|line| (line, reader)));
        }
    }
    found.sort_by_key(|(line, _)| *line);
    found
}

/// Returns the pages of HTML that readers know.
fn pages<'r>(whole: &SourcePart<'_>, readers: &'r [Reader]) -> Vec<Page<'r>> {
    let lower = whole.text.to_ascii_lowercase();
    let mut begins: Vec<usize> =
        lower.match_indices("<html").map(|(at, _)| at).take(PARTS_MOST + 1).collect();
    let is_page = contains_tag(head(&lower)) && !has_line(whole, readers, head(&lower).len());
    if is_page && begins.first().is_none_or(|first| *first > HEAD_BYTES) {
        begins.insert(0, 0);
    }
    let ends = begins.iter().skip(1).copied().chain([lower.len()]);
    let mut found: Vec<Page<'_>> = begins
        .iter()
        .zip(ends)
        .filter_map(|(at, end)| {
            let reader = reader_of_page(&lower[*at..end], readers)?;
            let line = |at: usize| (whole.line_of(at) - whole.first_line()) as usize;
            let closed = lower[*at..end].find("</html").map(|close| line(at + close) + 1);
            let last = if end == lower.len() { whole.lines().count() } else { line(end) };
            let end = closed.unwrap_or_else(|| next_text(whole, readers, line(*at)..last));
            Some((line(*at)..end, reader))
        })
        .collect();
    found.dedup_by_key(|(lines, _)| lines.start);
    found
}

fn reader_of_page<'r>(page: &str, readers: &'r [Reader]) -> Option<&'r Reader> {
    let by_head = readers.iter().find(|reader| match reader.begins {
        Begins::Page(begins) => begins(head(page)),
        _ => false,
    });
    let by_script = || {
        readers.iter().find(|reader| match reader.begins {
            Begins::Script(begins) => begins(page),
            _ => false,
        })
    };
    by_head.or_else(by_script)
}

/// True if a line within the first bytes of a text begins a report in text.
fn has_line(whole: &SourcePart<'_>, readers: &[Reader], bytes: usize) -> bool {
    let mut before_tags = whole.text[..bytes].lines().take_while(|line| !contains_tag(line));
    before_tags.any(|line| begins_text(line, readers))
}

fn begins_text(line: &str, readers: &[Reader]) -> bool {
    readers.iter().any(|reader| matches!(reader.begins, Begins::Line(begins) if begins(line)))
}

/// Returns the first of these lines of a page that begins a report in text; otherwise the end. The
/// title above the first table of a page reads as such a line.
fn next_text(whole: &SourcePart<'_>, readers: &[Reader], lines: Range<usize>) -> usize {
    let own = whole.lines().map(|(_, line)| line).enumerate().take(lines.end).skip(lines.start);
    let behind_head = own.skip_while(|(_, line)| !line.to_ascii_lowercase().contains("<table"));
    let mut begun = behind_head.filter(|(_, line)| !line.contains('<') && begins_text(line, readers));
    begun.next().map_or(lines.end, |(line, _)| line)
}

/// True if a text has a tag of tables in HTML, which reports in text never have.
fn contains_tag(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["<html", "<table", "<body", "<td"].iter().any(|tag| text.contains(tag))
}

/// Returns the first [`HEAD_BYTES`] of a text.
fn head(text: &str) -> &str {
    let mut end = HEAD_BYTES.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::sheet::Remark;
    use plumb_record::ImportedFact;
    use std::path::Path;

    fn read(part: &SourcePart<'_>) -> Report {
        let (line, text) = part.lines().next().unwrap_or_default();
        let facts = vec![ImportedFact { name: "first".into(), text: text.into(), line }];
        let unread = part.lines().skip(1).map(|(line, text)| Remark { line, text: text.into() }).collect();
        let mut sheet = Sheet::default();
        sheet.push(line, Vec::new());
        let sheets = vec![sheet];
        Report { facts, unread, sheets, ..Report::default() }
    }

    const fn reader(kind: &'static str, begins: Begins) -> Reader {
        Reader::new(kind, begins, read)
    }

    fn found(text: &str) -> Vec<(String, u32, String, usize)> {
        let readers = [
            reader("report", Begins::Line(|line| line.starts_with("REPORT"))),
            reader("page", Begins::Page(|head| head.contains("report"))),
            reader("fragment", Begins::Fragment(|line| line.contains("Waits"))),
        ];
        let source = Source::of(Path::new("x"), text.as_bytes());
        let reports = reports(&source, &readers).unwrap_or_default();
        let shown = |report: &Report| {
            (report.kind.clone(), report.line, report.facts[0].text.clone(), report.unread.len())
        };
        reports.iter().map(|(_, report)| shown(report)).collect()
    }

    #[test]
    fn a_file_is_cut_where_reports_begin() {
        let row = |kind: &str, line, text: &str, lines| (kind.to_string(), line, text.to_string(), lines);
        assert_eq!(
            found("SQL> @awr\nREPORT a\n1\n2\n  REPORT no\nREPORT b"),
            [row("report", 2, "REPORT a", 3), row("report", 6, "REPORT b", 0)]
        );
        assert_eq!(
            found("<HTML>report\n<HTML>else\n<html>report"),
            [row("page", 1, "<HTML>report", 0), row("page", 3, "<html>report", 0)]
        );
        assert_eq!(
            found("REPORT a\n1\n<html>report\n2</html>\nREPORT b\n<HTML>report<table>\nREPORT c\n3"),
            [
                row("report", 1, "REPORT a", 1),
                row("page", 3, "<html>report", 1),
                row("report", 5, "REPORT b", 0),
                row("page", 6, "<HTML>report<table>", 0),
                row("report", 7, "REPORT c", 1)
            ]
        );
        assert_eq!(found("prose\nEvent Waits\n1\nWaits"), [row("fragment", 2, "Event Waits", 2)]);
        assert!(found("prose").is_empty() && found("").is_empty());
    }
}

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

use crate::report::Report;
use crate::source::{ForeignError, Source, SourcePart};
use plumb_record::{Consistency, ImportedFigure, Record};

/// Most cells in all tables of a file.
pub const CELLS_MOST: usize = 4_000_000;

/// A reader of one kind of report.
#[derive(Debug)]
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
    pub fill: fn(&Report, &mut Record),
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
    /// As [`Begins::Fragment`], for all lines at once: returns those that begin a report, from 0.
    Fragments(fn(&SourcePart<'_>) -> Vec<usize>),
}

/// Bytes of a page that decide its reader.
const HEAD_BYTES: usize = 64 << 10;

/// Reads all reports of a file, each with its reader. Fails if no part of the file is a report, or
/// its tables have more than [`CELLS_MOST`] cells.
pub fn reports<'r>(
    source: &Source,
    readers: &'r [Reader],
) -> Result<Vec<(&'r Reader, Report)>, ForeignError> {
    let mut found = Vec::new();
    let mut cells = 0;
    for (reader, part) in parts(source, readers) {
        let mut report = (reader.read)(&part);
        report.kind = reader.kind.to_string();
        report.line = part.first_line();
        cells += report.cells();
        if cells > CELLS_MOST {
            return Err(ForeignError::TooLarge { path: source.path.clone(), most: CELLS_MOST });
        }
        report.checks = (reader.check)(&report);
        found.push((reader, report));
    }
    // A line may look like the start of a report that has no content.
    found.retain(|(_, report): &(&Reader, Report)| !report.sheets.is_empty() || !report.facts.is_empty());
    match found.is_empty() {
        true => Err(ForeignError::Unknown { path: source.path.clone(), lines: source.len() }),
        false => Ok(found),
    }
}

/// Returns the parts of a file that begin with a known line, with their readers.
fn parts<'s, 'r>(source: &'s Source, readers: &'r [Reader]) -> Vec<(&'r Reader, SourcePart<'s>)> {
    let whole = source.part(0, source.len());
    let is_html = contains_tag(head(whole.text));
    let begins = if is_html { pages(&whole, readers) } else { texts(&whole, readers, false) };
    let has_known = begins.iter().any(|(_, reader)| reader.is_some());
    let begins = if has_known { begins } else { texts(&whole, readers, true) };
    let ends = begins.iter().skip(1).map(|(line, _)| *line).chain([source.len()]);
    let part = |((line, reader), end): (&Begin<'r>, usize)| Some(((*reader)?, source.part(*line, end)));
    begins.iter().zip(ends).filter_map(part).collect()
}

/// A line that begins a part, counted from 0, and its reader.
type Begin<'r> = (usize, Option<&'r Reader>);

/// Returns the lines of text that begin a report, counted from 0.
fn texts<'r>(whole: &SourcePart<'_>, readers: &'r [Reader], fragments: bool) -> Vec<Begin<'r>> {
    let begun = |line: &str| {
        readers.iter().find(|reader| match reader.begins {
            Begins::Line(begins) => !fragments && begins(line),
            Begins::Fragment(begins) => fragments && begins(line),
            Begins::Page(_) | Begins::Fragments(_) => false,
        })
    };
    let mut found: Vec<(usize, &Reader)> = Vec::new();
    for (at, (_, line)) in whole.lines().enumerate() {
        match begun(line) {
            // All fragments of a file form one report.
            Some(reader) if fragments && found.iter().any(|(_, known)| std::ptr::eq(*known, reader)) => {}
            Some(reader) => found.push((at, reader)),
            None => {}
        }
    }
    for reader in readers.iter().filter(|_| fragments) {
        if let Begins::Fragments(begins) = reader.begins {
            found.extend(begins(whole).into_iter().map(|line| (line, reader)));
        }
    }
    found.sort_by_key(|(line, _)| *line);
    found.into_iter().map(|(line, reader)| (line, Some(reader))).collect()
}

/// Returns the lines that begin a page of HTML.
fn pages<'r>(whole: &SourcePart<'_>, readers: &'r [Reader]) -> Vec<Begin<'r>> {
    let lower = whole.text.to_ascii_lowercase();
    let mut begins: Vec<usize> = lower.match_indices("<html").map(|(at, _)| at).collect();
    if begins.first().is_none_or(|first| *first > HEAD_BYTES) {
        begins.insert(0, 0);
    }
    let ends = begins.iter().skip(1).copied().chain([lower.len()]);
    let page = |(at, end): (&usize, usize)| {
        let head = head(&lower[*at..end]);
        let reader = readers.iter().find(|reader| match reader.begins {
            Begins::Page(begins) => begins(head),
            _ => false,
        });
        let line = whole.line_of(*at) - whole.first_line();
        (line as usize, reader)
    };
    let mut found: Vec<Begin<'_>> = begins.iter().zip(ends).map(page).collect();
    found.dedup_by_key(|(line, _)| *line);
    found
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
    use crate::sheet::Remark;
    use plumb_record::ImportedFact;
    use std::path::Path;

    fn read(part: &SourcePart<'_>) -> Report {
        let (line, text) = part.lines().next().unwrap_or_default();
        let facts = vec![ImportedFact { name: "first".into(), text: text.into(), line }];
        let unread = part.lines().skip(1).map(|(line, text)| Remark { line, text: text.into() }).collect();
        Report { facts, unread, ..Report::default() }
    }

    const fn reader(kind: &'static str, begins: Begins) -> Reader {
        Reader { kind, begins, read, check: |_| Vec::new(), derive: |_| Vec::new(), fill: |_, _| {} }
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
        assert_eq!(found("prose\nEvent Waits\n1\nWaits"), [row("fragment", 2, "Event Waits", 2)]);
        assert!(found("prose").is_empty() && found("").is_empty());
    }
}

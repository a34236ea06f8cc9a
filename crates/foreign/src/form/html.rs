//! Reads the tables of an HTML page.
//!
//! The tokenizer is html5gum, which follows the standard. Browsers save tags in upper case,
//! attributes without quotes, and a raw `>` within quotes, so regular expressions fail. html5gum
//! has no dependencies and no `unsafe`, and builds in seconds. Rejected: `scraper`, which builds a
//! tree of the whole page; `tl`, which has had no release for years.
//!
//! A table belongs to the last heading (`h1` to `h4`) and to the text right above it. Headings of
//! columns may have two lines, with spanners in the upper one. Scripts and styles are skipped;
//! nothing is executed or fetched.

use crate::figure::sheet::{CELLS_MOST, COLUMNS_MOST, Printed, Remark, SHEETS_MOST};
use crate::source::SourcePart;
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};
use std::convert::Infallible;

#[derive(Debug, Default)]
pub struct PageTable {
    /// The line of its start.
    pub line: u32,
    /// The nearest heading above it.
    pub heading: Printed,
    /// The text right above it, such as `Load Profile`.
    pub before: String,
    /// The value of its attribute `summary`.
    pub summary: String,
    /// The remarks of a list above it.
    pub notes: Vec<Remark>,
    /// The headings of its columns.
    pub names: Vec<String>,
    /// The rows, each with its line.
    pub rows: Vec<(u32, Vec<Printed>)>,
}

/// Reads all tables of a page.
#[must_use]
pub fn tables(part: &SourcePart<'_>) -> Vec<PageTable> {
    let mut page = Page::default();
    {
        let page = &mut page;
        // The reader refuses a page with more, so that the rest is not read.
        let read = |event: CallbackEvent<'_>, span: Span<usize>| -> Option<()> {
            page.event(&event, part, span.start);
            (page.cells > CELLS_MOST || page.tables.len() > SHEETS_MOST).then_some(())
        };
        let mut emitter = CallbackEmitter::new(read);
        emitter.naively_switch_states(true);
        let _ = Tokenizer::new_with_emitter(part.text, emitter).next();
    }
    page.end_table();
    page.tables
}

/// Returns the text of a part of a page, without its tags.
#[must_use]
pub fn text(part: &str) -> String {
    let mut found = String::new();
    {
        let found = &mut found;
        let read = |event: CallbackEvent<'_>, _: Span<usize>| -> Option<Infallible> {
            if let CallbackEvent::String { value } = event {
                found.push_str(&String::from_utf8_lossy(value));
            }
            None
        };
        Tokenizer::new_with_emitter(part, CallbackEmitter::new(read)).for_each(drop);
    }
    spaced(&found)
}

/// Bytes of a heading at most, about.
const HEADING_MOST: usize = 2000;
/// Lines of headings of a table at most; further ones are its rows.
const HEADING_ROWS_MOST: usize = 8;

/// A cell of the current row.
#[derive(Debug, Default)]
struct Raw {
    text: String,
    line: u32,
    columns: usize,
    is_heading: bool,
}

#[derive(Debug, Default)]
struct Page {
    tables: Vec<PageTable>,
    heading: Printed,
    before: String,
    notes: Vec<Remark>,
    table: Option<PageTable>,
    /// Lines of headings of the table.
    headings: Vec<Vec<Raw>>,
    row: Vec<Raw>,
    cell: Option<Raw>,
    tag: String,
    attribute: String,
    /// The element that receives text.
    inside: Inside,
    /// Cells of all rows that are kept.
    cells: usize,
}

#[derive(Debug, Default, PartialEq)]
enum Inside {
    #[default]
    Nothing,
    Heading,
    Remark,
    /// Skipped text: a script, a style, a title.
    Hidden,
}

/// Returns a text with single blanks between its words.
fn spaced(text: &str) -> String {
    text.split(|letter: char| letter.is_whitespace() || letter == '\u{a0}')
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

impl Page {
    fn event(&mut self, event: &CallbackEvent<'_>, part: &SourcePart<'_>, at: usize) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag = text(name);
                self.open(part.line_of(at));
            }
            CallbackEvent::AttributeName { name } => self.attribute = text(name),
            CallbackEvent::AttributeValue { value } => self.value(&text(value)),
            CallbackEvent::EndTag { name } => self.close(&text(name)),
            CallbackEvent::String { value } => self.text(&String::from_utf8_lossy(value)),
            _ => {}
        }
    }

    fn open(&mut self, line: u32) {
        match self.tag.as_str() {
            "table" if self.table.is_none() => {
                let before = spaced(&std::mem::take(&mut self.before));
                let notes = std::mem::take(&mut self.notes);
                self.table = Some(PageTable {
                    line,
                    heading: self.heading.clone(),
                    before,
                    notes,
                    ..PageTable::default()
                });
            }
            "tr" => self.end_row(),
            "td" | "th" if self.table.is_some() => {
                self.end_cell();
                self.cell = Some(Raw { line, columns: 1, is_heading: self.tag == "th", ..Raw::default() });
            }
            "br" => self.text("\n"),
            "h1" | "h2" | "h3" | "h4" if self.table.is_none() => {
                self.heading = Printed { raw: String::new(), line };
                self.before.clear();
                self.notes.clear();
                self.inside = Inside::Heading;
            }
            "li" if self.table.is_none() => {
                self.notes.push(Remark { line, text: String::new() });
                self.inside = Inside::Remark;
            }
            "a" if self.inside == Inside::Nothing => self.before.clear(),
            "hr" if self.table.is_none() => self.before.clear(),
            "script" | "style" | "title" => self.inside = Inside::Hidden,
            _ => {}
        }
    }

    fn value(&mut self, value: &str) {
        match (self.tag.as_str(), self.attribute.as_str()) {
            ("table", "summary") => {
                if let Some(table) = &mut self.table {
                    table.summary = spaced(value);
                }
            }
            ("td" | "th", "colspan") => {
                if let Some(cell) = &mut self.cell {
                    cell.columns = value.trim().parse().unwrap_or(1).clamp(1, COLUMNS_MOST);
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, tag: &str) {
        match tag {
            "td" | "th" => self.end_cell(),
            "tr" => self.end_row(),
            "table" => self.end_table(),
            "h1" | "h2" | "h3" | "h4" | "li" | "script" | "style" | "title" => {
                if self.inside == Inside::Heading {
                    self.heading.raw = spaced(&self.heading.raw);
                }
                self.inside = Inside::Nothing;
            }
            // A link of navigation is no heading of a table.
            "a" if self.table.is_none() && self.inside == Inside::Nothing => self.before.clear(),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        match (&mut self.cell, &self.inside) {
            (_, Inside::Hidden) => {}
            (Some(cell), _) => cell.text.push_str(text),
            // Each table below has a copy of it.
            (None, Inside::Heading) if self.heading.raw.len() < HEADING_MOST => {
                self.heading.raw.push_str(plumb_units::cut(text, HEADING_MOST).as_ref());
            }
            (None, Inside::Heading) => {}
            (None, Inside::Remark) => {
                if let Some(note) = self.notes.last_mut() {
                    note.text.push_str(text);
                }
            }
            (None, Inside::Nothing) if self.table.is_none() => self.before.push_str(text),
            (None, Inside::Nothing) => {}
        }
    }

    fn end_cell(&mut self) {
        if let Some(cell) = self.cell.take()
            && self.row.iter().map(|cell| cell.columns).sum::<usize>() < COLUMNS_MOST
        {
            self.row.push(Raw { text: spaced(&cell.text), ..cell });
        }
    }

    fn end_row(&mut self) {
        self.end_cell();
        let row = std::mem::take(&mut self.row);
        let Some(table) = &mut self.table else { return };
        let is_heading = |cell: &Raw| cell.is_heading || cell.text.is_empty();
        if row.is_empty() {
            return;
        }
        let may_be_heading = table.rows.is_empty() && self.headings.len() < HEADING_ROWS_MOST;
        if may_be_heading && row.iter().any(|cell| cell.is_heading) && row.iter().all(is_heading) {
            self.headings.push(row);
            return;
        }
        let line = row[0].line;
        let cells = row.into_iter().flat_map(|cell| {
            let own = Printed { raw: cell.text, line: cell.line };
            std::iter::once(own)
                .chain((1..cell.columns).map(move |_| Printed { raw: String::new(), line: cell.line }))
        });
        // What is beyond the most is counted and not kept; the reader refuses the file.
        if self.cells <= CELLS_MOST {
            let cells: Vec<Printed> = cells.collect();
            self.cells += cells.len();
            table.rows.push((line, cells));
        }
    }

    fn end_table(&mut self) {
        self.end_row();
        let headings = std::mem::take(&mut self.headings);
        let Some(mut table) = self.table.take() else { return };
        if table.rows.is_empty() && headings.is_empty() {
            return;
        }
        table.notes.iter_mut().for_each(|note| note.text = spaced(&note.text));
        let wide = |row: &[Raw]| -> Vec<String> {
            let repeated = row.iter().flat_map(|cell| std::iter::repeat_n(cell.text.clone(), cell.columns));
            repeated.take(COLUMNS_MOST).collect()
        };
        for row in &headings {
            let titles = wide(row);
            table.names.resize(table.names.len().max(titles.len()), String::new());
            for (name, title) in table.names.iter_mut().zip(titles) {
                *name = format!("{name} {title}").trim().to_string();
            }
        }
        let columns = table.rows.iter().map(|(_, cells)| cells.len()).max().unwrap_or(0);
        table.names.resize(table.names.len().max(columns), String::new());
        // What is beyond the most is not kept; the reader refuses the file.
        if self.tables.len() <= SHEETS_MOST {
            self.tables.push(table);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;
    use std::path::Path;

    #[test]
    fn a_page_that_a_browser_saved_is_read() {
        let text = "<HTML><TITLE>no</TITLE><STYLE>td {}</STYLE><BODY>\n<H3 class=awr><A name=1></A>Top &amp; Events</H3><UL><LI> by <b>time</b></UL>\n\
            <TABLE summary=\"x > y\"><TBODY><TR><TD>&nbsp;</TD><TH colSpan=2 id=\">=512us\">Wait</TH></TR>\n\
            <TR><TH>I#</TH><TH>Class</TH><TH>Event\n</TH></TR>\n\
            <TR>\n<TD>1<TD>a&#160;b<TD><SCRIPT>x<y</SCRIPT>c &lt; d</TR><TR><TD colspan=3>only</TABLE>\n<A href=#top>Back</A>Load Profile<P>\n<TABLE><TR><TD>cut";
        let source = Source::of(Path::new("x"), text.as_bytes());
        let tables = tables(&source.part(0, source.len()));
        let [one, two] = tables.as_slice() else { panic!("{tables:?}") };
        assert_eq!(
            (one.heading.raw.as_str(), one.heading.line, one.summary.as_str()),
            ("Top & Events", 2, "x > y")
        );
        assert_eq!(one.notes.iter().map(|note| note.text.as_str()).collect::<Vec<_>>(), ["by time"]);
        assert_eq!(one.names, ["I#", "Wait Class", "Wait Event"]);
        let rows: Vec<(u32, Vec<&str>)> = one
            .rows
            .iter()
            .map(|(line, cells)| (*line, cells.iter().map(|cell| cell.raw.as_str()).collect()))
            .collect();
        assert_eq!(rows, [(7, vec!["1", "a b", "c < d"]), (7, vec!["only", "", ""])]);
        assert_eq!(
            (two.before.as_str(), two.rows[0].1[0].raw.as_str(), two.line),
            ("Load Profile", "cut", 9)
        );
    }
}

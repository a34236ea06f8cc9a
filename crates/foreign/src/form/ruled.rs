//! Reads tables of text whose columns are marked by a ruler of hyphens.
//!
//! ```text
//! Heading                           DB/Inst: X/y  Snaps: 1-2     or a line underlined by tildes
//! -> a remark
//!                          CR                 Current            spanners: each over columns of
//!                  ------------------- ------------------       the ruler below, edge on edge
//! Name              Blocks          %   Blocks         %
//! ---------------- -------- --------- -------- ---------        the ruler: edges of columns
//! undo header           212      99.5        1     100.0
//!           -------------------------------------------         the end
//! ```
//!
//! The edges of columns come from the ruler, never from blanks, because cells may be blank. A
//! record may have several lines, each with a ruler of its own; the rulers follow each other, with
//! their headings between them. An indented ruler has a column of names before it, without a
//! heading. A ruler that begins with tildes has the section's heading above them.
//!
//! An advisor's report inside the text (`ADDM Report for Task`) is a table of one column, with each
//! of its lines as it stands.
//!
//! A table continues after a page break, which repeats its heading, remarks and ruler. Each line is
//! read a bounded number of times, so the work is linear in the text.

use crate::figure::sheet::{CELLS_MOST, COLUMNS_MOST, Printed, Remark, SHEETS_MOST};
use plumb_figures::is_number;
use std::ops::Range;

/// A table of a text.
#[derive(Debug, Default)]
pub struct Ruled {
    /// The heading; empty if there is none.
    pub heading: Printed,
    /// The remarks above the table.
    pub notes: Vec<Remark>,
    /// The headings of the columns.
    pub names: Vec<String>,
    /// The rows, each with its line.
    pub rows: Vec<(u32, Vec<Printed>)>,
}

/// All tables of a text, and the lines that belong to none.
#[derive(Debug, Default)]
pub struct Tables {
    /// The tables in their order.
    pub tables: Vec<Ruled>,
    /// Headings of sections without data.
    pub empty: Vec<Remark>,
    /// Lines in a table that do not fit its columns.
    pub unread: Vec<Remark>,
    pub prose: Vec<Remark>,
    /// Lines of statements below the name of one.
    pub statements: Vec<u32>,
}

/// Most lines of headings above a ruler.
const HEADING_LINES_MOST: usize = 5;
/// Most letters kept of a line that is not understood.
const SHOWN_MOST: usize = 200;
/// Most bytes of a table's line. The widest report has lines of 320 letters.
const LINE_MOST: usize = 8192;
/// Columns of a statement, whose text stands in lines below its row. Pages have these columns.
pub(crate) const STATEMENT: [&str; 2] = ["SQL Module", "SQL Text"];
/// Texts that mark a section's heading.
const TAGS: [&str; 4] = ["DB/Inst:", " for DB:", "  Run: ", "  Study: "];

/// First words of an advisor's report, which ends at the next heading or at [`END`].
const ADVISOR: &str = "ADDM Report for Task";
const END: &str = "End of Report";

/// The kind of a line, judged without its neighbours.
#[derive(Debug, Clone, PartialEq)]
enum Line {
    Blank,
    Ruler(Vec<Range<usize>>),
    /// Tildes, and the text after them.
    Underline,
    /// Several groups of tildes: the ruler above a last line of differences.
    Last(Vec<Range<usize>>),
    Heading,
    Note,
    Text,
}

/// Returns the text of a line in a range of columns, without blanks around it.
fn cut<'a>(line: &'a str, columns: &Range<usize>) -> &'a str {
    if line.is_ascii() {
        return line.get(columns.start..columns.end.min(line.len())).unwrap_or("").trim();
    }
    let at = |column: usize| line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    line[at(columns.start)..at(columns.end)].trim()
}

/// Returns the words of a line, with their columns.
fn words(line: &str) -> Vec<(Range<usize>, &str)> {
    let mut words = Vec::new();
    let (mut begin, mut begin_at) = (0, 0);
    for (column, (at, letter)) in line.char_indices().chain([(line.len(), ' ')]).enumerate() {
        if letter.is_whitespace() {
            if begin < column {
                words.push((begin..column, &line[begin_at..at]));
            }
            (begin, begin_at) = (column + 1, at + letter.len_utf8());
        }
    }
    words
}

fn kind(line: &str) -> Line {
    let text = line.trim_start();
    if text.is_empty() {
        return Line::Blank;
    }
    if text.starts_with("->") {
        return Line::Note;
    }
    let of_rule = |word: &str| word.bytes().all(|byte| byte == b'-') || word.bytes().all(|byte| byte == b'~');
    if text.starts_with(['-', '~']) && line.len() <= LINE_MOST {
        let words = words(line);
        if words.len() > COLUMNS_MOST {
            return Line::Text;
        }
        let is_rule = words.iter().all(|(_, word)| of_rule(word));
        let longest = words.iter().map(|(columns, _)| columns.len()).max().unwrap_or(0);
        if is_rule && longest >= 3 && words.iter().any(|(_, word)| word.starts_with('-')) {
            return Line::Ruler(words.into_iter().map(|(columns, _)| columns).collect());
        }
        if text.starts_with("~~") {
            return if is_rule && words.len() > 1 {
                Line::Last(words.into_iter().map(|(columns, _)| columns).collect())
            } else {
                Line::Underline
            };
        }
    }
    if line.len() <= LINE_MOST && TAGS.iter().any(|tag| line.contains(tag)) {
        Line::Heading
    } else {
        Line::Text
    }
}

/// The rule by which a line must fit the columns of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fit {
    /// No text may lie between columns.
    Columns,
    /// A figure may be wider than its column.
    Words,
}

/// True if a ruler is the one above a table's sum: its groups are a subset of the table's,
/// without the column of names.
fn is_sum(above: &Line, groups: &[Range<usize>]) -> bool {
    matches!(above, Line::Ruler(above) if groups.iter().all(|group| above.contains(group)) && groups.first() != above.first())
}

/// The rulers of a table, with its headings.
struct Layout {
    /// Columns of each line of a record.
    lines: Vec<Vec<Range<usize>>>,
    names: Vec<String>,
    /// True if the heading is above tildes; the table then ends with the first blank line.
    is_short: bool,
    /// True if the last column has statements: a name in one line, then lines of text.
    has_text: bool,
}

/// Reads all tables of a text.
#[must_use]
pub fn tables(lines: &[(u32, &str)]) -> Tables {
    let kinds: Vec<Line> = lines.iter().map(|(_, line)| kind(line)).collect();
    let mut reader = Walk {
        lines,
        kinds,
        tables: Tables::default(),
        open: None,
        heading: Printed::default(),
        notes: Vec::new(),
        is_short: true,
        cells: 0,
    };
    let mut at = 0;
    while at < lines.len() && reader.held() <= CELLS_MOST && reader.tables.tables.len() <= SHEETS_MOST {
        at = reader.step(at);
    }
    reader.close();
    reader.tables
}

struct Walk<'a> {
    lines: &'a [(u32, &'a str)],
    kinds: Vec<Line>,
    tables: Tables,
    open: Option<Open>,
    heading: Printed,
    notes: Vec<Remark>,
    /// True if the heading is above tildes, or missing.
    is_short: bool,
    /// Cells of the closed tables.
    cells: usize,
}

struct Open {
    layout: Layout,
    /// The groups of its last ruler, as they stand.
    ruler: Vec<Range<usize>>,
    table: Ruled,
    /// Lines of SQL between the rows, which are no rows.
    statements: Vec<u32>,
    /// Letters of each cell in the line read last.
    lengths: Vec<usize>,
    /// The lines read of the current record.
    record: Vec<Vec<Printed>>,
    record_line: u32,
}

impl Walk<'_> {
    /// Returns the cells of the tables so far, the open one included.
    fn held(&self) -> usize {
        let open = self.open.as_ref().map_or(0, |open| open.table.rows.len() * open.table.names.len());
        self.cells + open
    }

    /// Reads a line, or the rulers that begin there; returns the next line.
    fn step(&mut self, at: usize) -> usize {
        let (number, line) = self.lines[at];
        match &self.kinds[at] {
            Line::Blank => {
                if self.open.as_ref().is_some_and(|open| open.layout.is_short) {
                    self.close();
                }
            }
            Line::Last(groups) => {
                let groups = groups.clone();
                return self.last(at, &groups);
            }
            Line::Heading => {
                self.close();
                let end = TAGS.iter().filter_map(|tag| line.find(tag)).min().unwrap_or(line.len());
                let raw = line[..end].trim().to_string();
                self.begin(Printed { raw, line: number }, false);
                // Reports of two periods print their lengths here.
                if line.contains("time:") {
                    self.notes.push(Remark { line: number, text: line[end..].to_string() });
                }
            }
            Line::Note => {
                self.close();
                self.notes.push(Remark { line: number, text: line.trim().to_string() });
            }
            Line::Underline => {
                self.close();
                let is_note = |above: &usize| self.kinds[*above] == Line::Note;
                let above = (0..at).rev().find(|above| !is_note(above));
                // Two lines of tildes separate parts.
                let above =
                    above.filter(|above| !matches!(self.kinds[*above], Line::Blank | Line::Underline));
                let (above_line, above) = above.map_or((number, ""), |above| self.lines[above]);
                // Behind the tildes a heading of a column may follow in the same line.
                let above = above.trim();
                let raw = above.split_once("     ").map_or(above, |(title, _)| title).to_string();
                self.begin(Printed { raw, line: above_line }, true);
            }
            Line::Ruler(groups) => {
                let groups = groups.clone();
                let is_of = |open: &Open| open.layout.lines.len() == 1 && !open.table.rows.is_empty();
                let above = self.open.as_ref().filter(|open| is_of(open)).map(|open| &open.layout.lines[0]);
                if self.is_end(at, &groups) {
                    self.close();
                } else if self.is_above_sum(at, &groups) {
                    // The rows of the table go on.
                } else if !above.is_some_and(|above| is_sum(&Line::Ruler(above.clone()), &groups)) {
                    return self.ruler(at, groups);
                }
            }
            Line::Text if line.trim_start().starts_with(ADVISOR) => return self.advice(at),
            Line::Text => self.text(at, number, line),
        }
        at + 1
    }

    /// Reads an advisor's report as the lines of one column; returns the next line.
    fn advice(&mut self, at: usize) -> usize {
        self.close();
        let (line, heading) = self.lines[at];
        let is_end = |at: &usize| self.kinds[*at] == Line::Heading || self.lines[*at].1.starts_with(END);
        let end = (at + 1..self.lines.len()).find(is_end).unwrap_or(self.lines.len());
        let has_text = |at: &usize| matches!(self.kinds[*at], Line::Text | Line::Note);
        let row = |at: usize| {
            let (line, text) = self.lines[at];
            (line, vec![Printed { raw: plumb_units::cut(text.trim_end(), LINE_MOST).to_string(), line }])
        };
        let room = CELLS_MOST.saturating_sub(self.cells);
        let rows: Vec<_> = (at + 1..end).filter(has_text).take(room).map(row).collect();
        self.cells += rows.len();
        let heading = Printed { raw: heading.trim().to_string(), line };
        self.tables.tables.push(Ruled { heading, notes: Vec::new(), names: vec![String::new()], rows });
        self.begin(Printed::default(), true);
        end
    }

    /// Reads the line `%Diff: 0.2% 0.5%` below a ruler of tildes as a table of its own, because its
    /// figures are shares and those above it are none. Returns the next line.
    fn last(&mut self, at: usize, groups: &[Range<usize>]) -> usize {
        let names = self.open.as_ref().filter(|open| open.layout.lines.len() == 1).map(|open| {
            let columns = || open.layout.lines[0].iter().zip(&open.layout.names);
            // The ruler is a letter off in some releases.
            let over = |group: &Range<usize>| {
                columns().find(|(column, _)| column.start <= group.start + 2 && group.end <= column.end + 2)
            };
            groups.iter().skip(1).filter_map(|group| Some(over(group)?.1.clone())).collect::<Vec<_>>()
        });
        self.close();
        let (Some(names), Some((number, line))) = (names, self.lines.get(at + 1)) else { return at + 1 };
        let label = groups.first().map_or("", |group| cut(line, group)).trim_end_matches(':');
        if label != "%Diff" || names.len() + 1 != groups.len() || line.len() > LINE_MOST {
            return at + 1;
        }
        let of = |raw: &str| Printed { raw: raw.to_string(), line: *number };
        let cells = groups.iter().map(|group| of(cut(line, group).trim_end_matches(':'))).collect();
        let names = std::iter::once(String::new()).chain(names.iter().map(|name| format!("{label} {name}")));
        let (heading, names) = (of(label), names.collect());
        self.tables.tables.push(Ruled { heading, notes: Vec::new(), names, rows: vec![(*number, cells)] });
        at + 2
    }

    fn begin(&mut self, heading: Printed, is_short: bool) {
        (self.heading, self.is_short) = (heading, is_short);
        self.notes.clear();
    }

    /// True if an indented ruler of one group ends a table: no headings follow it.
    fn is_end(&self, at: usize, groups: &[Range<usize>]) -> bool {
        let [group] = groups else { return false };
        let is_last = !matches!(self.kinds.get(at + 1), Some(Line::Text));
        group.start >= 8
            && group.len() >= 40
            && (is_last || matches!((group.start, group.len()), (10, 61) | (26, 54)))
    }

    /// True if a ruler repeats that of the open table right below its rows: their sum follows.
    fn is_above_sum(&self, at: usize, groups: &[Range<usize>]) -> bool {
        let is_row = at > 0 && self.kinds[at - 1] == Line::Text;
        let is_of = |open: &Open| open.ruler == groups && !open.table.rows.is_empty();
        is_row && self.open.as_ref().is_some_and(is_of)
    }

    /// Returns the next ruler within [`HEADING_LINES_MOST`] lines.
    fn next_ruler(&self, at: usize) -> Option<(usize, &Vec<Range<usize>>)> {
        let end = (at + 2 + HEADING_LINES_MOST).min(self.lines.len());
        for below in at + 1..end {
            match &self.kinds[below] {
                Line::Ruler(groups) if below > at + 1 => {
                    // The same ruler again stands above the sum of a short table.
                    let is_same = self.kinds[below] == self.kinds[at];
                    let is_other = is_same
                        || self.lines[below].1.starts_with('~')
                        || self.is_end(below, groups)
                        || is_sum(&self.kinds[at], groups);
                    return (!is_other).then_some((below, groups));
                }
                Line::Text => {}
                _ => return None,
            }
        }
        None
    }

    /// Returns the lines of headings above a ruler: adjacent lines, and the words after tildes.
    fn headings_above(&self, at: usize, first: usize) -> Vec<String> {
        let mut headings = Vec::new();
        for above in (first..at).rev().take(HEADING_LINES_MOST) {
            let line = self.lines[above].1;
            if line.len() > LINE_MOST {
                break;
            }
            match self.kinds[above] {
                Line::Text => headings.push(line.to_string()),
                Line::Underline => {
                    let tildes = |letter: char| if letter == '~' { ' ' } else { letter };
                    headings.push(line.chars().map(tildes).collect());
                    break;
                }
                _ => break,
            }
        }
        headings.reverse();
        headings
    }

    /// Reads the rulers of a table that begin at a line; returns the line of its first row.
    fn ruler(&mut self, at: usize, groups: Vec<Range<usize>>) -> usize {
        self.close();
        let is_tilde = self.lines[at].1.starts_with('~');
        let mut first = at.saturating_sub(HEADING_LINES_MOST);
        let mut stack: Vec<(Vec<Range<usize>>, Vec<String>)> = Vec::new();
        let mut headings = if is_tilde { Vec::new() } else { self.headings_above(at, first) };
        if is_tilde && at > 0 {
            let (line, above) = self.lines[at - 1];
            let names_end = groups.get(1).map_or(usize::MAX, |next| next.start);
            self.begin(Printed { raw: cut(above, &(0..names_end)).to_string(), line }, true);
            let blank: String = " ".repeat(names_end.min(above.len()));
            headings = vec![blank + above.get(names_end.min(above.len())..).unwrap_or("")];
        }
        let (mut here, mut groups) = (at, groups);
        let mut spans: Option<(Vec<Range<usize>>, Vec<String>)> = None;
        while let Some((below, next)) = self.next_ruler(here).map(|(below, next)| (below, next.clone())) {
            if are_spans(&groups, &next) {
                spans = Some((groups, headings));
            } else {
                stack.push((groups, headings));
            }
            first = here + 1;
            (here, groups, headings) = (below, next, self.headings_above(below, first));
        }
        let ruler = groups.clone();
        let groups = if is_tilde && stack.is_empty() { with_wide_names(groups) } else { groups };
        stack.push((groups, headings));
        self.is_short |= self.heading.raw.is_empty();
        let layout = Layout::of(stack, spans, self.is_short);
        let table = Ruled {
            heading: self.heading.clone(),
            notes: std::mem::take(&mut self.notes),
            names: layout.names.clone(),
            rows: Vec::new(),
        };
        let (statements, lengths, record) = (Vec::new(), Vec::new(), Vec::new());
        self.open = Some(Open { layout, ruler, table, statements, lengths, record, record_line: 0 });
        here + 1
    }

    /// True if a line is a heading of the ruler below it.
    fn is_heading(&self, at: usize) -> bool {
        for below in at + 1..(at + 1 + HEADING_LINES_MOST).min(self.lines.len()) {
            match &self.kinds[below] {
                Line::Ruler(groups) => {
                    let is_tilde = self.lines[below].1.starts_with('~');
                    // Rows that follow each other are no headings of the ruler above their sum.
                    let is_row = self.kinds[at - usize::from(at > 0)] != Line::Blank
                        && self.open.as_ref().is_some_and(|open| open.ruler == *groups);
                    return !is_row && !self.is_end(below, groups) && (!is_tilde || below == at + 1);
                }
                Line::Underline => return below == at + 1,
                Line::Text => {}
                _ => return false,
            }
        }
        false
    }

    fn text(&mut self, at: usize, number: u32, line: &str) {
        // The author cut the table here.
        if line.trim() == "..." {
            return self.close();
        }
        let is_heading = self.is_heading(at);
        if is_heading {
            // A heading ends a table only after a blank line, unless the table is short.
            if self
                .open
                .as_ref()
                .is_some_and(|open| open.layout.is_short || self.kinds[at - 1] == Line::Blank)
            {
                self.close();
            }
            if self.open.is_none() {
                return;
            }
        }
        if line.trim_start().starts_with("No data exists for this section") {
            self.close();
            self.tables.empty.push(Remark { line: self.heading.line, text: self.heading.raw.clone() });
            return;
        }
        // After a blank line a table continues only if the line fits its columns.
        let is_behind_blank = self.kinds[at - usize::from(at > 0)] == Line::Blank;
        let fit = if is_behind_blank { Fit::Columns } else { Fit::Words };
        match self.open.as_mut().map(|open| open.read(number, line, fit)) {
            Some(true) => {}
            Some(false) if is_behind_blank => {
                self.close();
                self.outside(at, number, line);
            }
            Some(false) => {
                let text = plumb_units::cut(line, SHOWN_MOST).into_owned();
                self.tables.unread.push(Remark { line: number, text });
            }
            None => self.outside(at, number, line),
        }
    }

    /// Reads a line outside tables: pairs of a name and a value under a heading, the rest
    /// of a remark, or prose.
    fn outside(&mut self, at: usize, number: u32, line: &str) {
        let is_of_note = at > 0 && self.kinds[at - 1] == Line::Note && line.starts_with("   ");
        if is_of_note {
            self.kinds[at] = Line::Note;
            self.notes.push(Remark { line: number, text: line.trim().to_string() });
            return;
        }
        let pairs = pairs(number, line);
        if self.is_short
            && !pairs.is_empty()
            && !self.heading.raw.is_empty()
            && number <= self.heading.line + 60
        {
            let last = self
                .tables
                .tables
                .last_mut()
                .filter(|last| last.heading.line == self.heading.line && last.names.len() == 2);
            match last {
                Some(last) => last.rows.extend(pairs),
                None => {
                    let names = vec!["Name".to_string(), "Value".to_string()];
                    let heading = self.heading.clone();
                    self.tables.tables.push(Ruled { heading, notes: Vec::new(), names, rows: pairs });
                }
            }
            return;
        }
        self.tables.prose.push(Remark { line: number, text: line.trim().to_string() });
    }

    fn close(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        open.end_record();
        self.tables.statements.append(&mut open.statements);
        self.cells += open.table.rows.len() * open.table.names.len();
        let goes_on = |last: &&mut Ruled| {
            last.heading.raw == open.table.heading.raw
                && last.names == open.table.names
                && !open.layout.is_short
        };
        match self.tables.tables.last_mut().filter(goes_on) {
            Some(last) => last.rows.extend(open.table.rows),
            None => self.tables.tables.push(open.table),
        }
    }
}

impl Open {
    /// Reads a line of a row; false if it does not fit.
    fn read(&mut self, number: u32, line: &str, fit: Fit) -> bool {
        if line.len() > LINE_MOST {
            return false;
        }
        if self.layout.lines.len() > 1 {
            return self.read_of_record(number, line);
        }
        let columns = &self.layout.lines[0];
        let cells: Vec<Printed> = columns
            .iter()
            .map(|column| Printed { raw: cut(line, column).to_string(), line: number })
            .collect();
        let is_of_statement = self.layout.has_text
            && !(cells.last().is_some_and(|id| is_statement(&id.raw))
                && cells.iter().any(|cell| is_number(&cell.raw)));
        if is_of_statement {
            self.statement(number, line);
            return true;
        }
        if !fits(line, columns) {
            let by_words = (fit == Fit::Words).then(|| by_words(number, line, columns)).flatten();
            let is_row = by_words.is_some();
            by_words.into_iter().for_each(|cells| self.push(number, cells));
            return is_row;
        }
        let letters = |cell: &Printed| cell.raw.chars().count();
        let lengths = cells.iter().map(letters).collect();
        let before = std::mem::replace(&mut self.lengths, lengths);
        // A long value continues in the next line.
        if cells[0].raw.is_empty()
            && cells.iter().all(|cell| cell.raw.is_empty() || !is_number(&cell.raw))
            && let Some((_, last)) = self.table.rows.last_mut()
            && cells.iter().zip(last.iter()).all(|(cell, above)| cell.raw.is_empty() || !above.raw.is_empty())
        {
            for (at, (above, cell)) in last.iter_mut().zip(cells).enumerate() {
                // A word that is too long for its column fills it, and AWR breaks lists at commas;
                // other lines end at a blank.
                let is_cut = before.get(at).is_none_or(|length| *length >= columns[at].len())
                    || above.raw.ends_with(',');
                if !cell.raw.is_empty() && !is_cut {
                    above.raw.push(' ');
                }
                above.raw.push_str(&cell.raw);
            }
            return true;
        }
        self.push(number, cells);
        let columns = &self.layout.lines[0];
        let rest = columns.last().map_or(0, |last| last.end);
        let more = pairs(number, cut(line, &(rest..usize::MAX)));
        self.table.rows.extend(more);
        true
    }

    /// Adds a row, whose columns of a statement are filled by the lines below it.
    fn push(&mut self, number: u32, mut cells: Vec<Printed>) {
        let blank = Printed { raw: String::new(), line: number };
        cells.resize(self.table.names.len().max(cells.len()), blank);
        self.table.rows.push((number, cells));
    }

    /// Reads a line of a statement: `Module: SQL*Plus`, or its text, which is cut at a width.
    fn statement(&mut self, number: u32, line: &str) {
        self.statements.push(number);
        let Some([.., module, text]) = self.table.rows.last_mut().map(|(_, cells)| cells.as_mut_slice())
        else {
            return;
        };
        let (cell, own) = match line.trim_start().strip_prefix("Module:") {
            Some(own) if text.raw.is_empty() => (module, own.trim()),
            _ => (text, line.trim_end()),
        };
        let own = if cell.raw.is_empty() { own.trim_start() } else { own };
        cell.line = if cell.raw.is_empty() { number } else { cell.line };
        cell.raw.push_str(own);
    }

    /// Reads one of several lines of a record.
    fn read_of_record(&mut self, number: u32, line: &str) -> bool {
        let expected = self.record.len().clamp(1, self.layout.lines.len() - 1);
        let columns = &self.layout.lines[expected];
        let cells_of = |columns: &[Range<usize>]| -> Vec<Printed> {
            columns
                .iter()
                .map(|column| Printed { raw: cut(line, column).to_string(), line: number })
                .collect()
        };
        let cells = cells_of(columns);
        let is_figure = |cell: &Printed| {
            cell.raw.is_empty() || is_number(&cell.raw) || cell.raw == "N/A" || cell.raw.starts_with('#')
        };
        // Of segments a line of figures has the object before them: `T1  TABLE  18  18  40  2.5`.
        let figures = cells.iter().filter(|cell| is_number(&cell.raw)).count();
        let is_of_object =
            !self.record.is_empty() && figures >= 2 && cells.last().is_some_and(|last| is_number(&last.raw));
        if fits(line, columns) && (is_of_object || cells.iter().all(is_figure)) {
            if self.record.is_empty() {
                return false;
            }
            self.record.push(cells);
            if self.record.len() == self.layout.lines.len() {
                self.end_record();
            }
            return true;
        }
        let names = cells_of(&self.layout.lines[0]);
        match self.record.as_mut_slice() {
            // A long name continues in the next line.
            [only] if names.iter().filter(|name| !name.raw.is_empty()).count() == 1 && only.len() > 1 => {
                for (name, more) in only.iter_mut().zip(names) {
                    name.raw.push_str(&more.raw);
                }
            }
            _ => {
                self.end_record();
                self.record_line = number;
                self.record.push(names);
            }
        }
        true
    }

    fn end_record(&mut self) {
        if self.record.is_empty() {
            return;
        }
        let mut cells = Vec::new();
        let read = std::mem::take(&mut self.record);
        for (columns, line) in
            self.layout.lines.iter().zip(read.into_iter().map(Some).chain(std::iter::repeat(None)))
        {
            let blank = || vec![Printed { raw: String::new(), line: self.record_line }; columns.len()];
            cells.extend(line.unwrap_or_else(blank));
        }
        self.table.rows.push((self.record_line, cells));
    }
}

impl Layout {
    fn of(
        mut stack: Vec<(Vec<Range<usize>>, Vec<String>)>,
        spans: Option<(Vec<Range<usize>>, Vec<String>)>,
        is_short: bool,
    ) -> Layout {
        // An indented ruler has names before it: in the same line if they fit, otherwise in a line
        // of their own.
        if let [(groups, _)] = stack.as_mut_slice()
            && let Some(first) = groups.first().map(|first| first.start)
        {
            match first {
                0 => {}
                1 => {
                    let names: Range<usize> = 0..usize::MAX;
                    stack.insert(0, (vec![names], vec![String::new()]));
                }
                _ => groups.insert(0, 0..first),
            }
        }
        let mut names = Vec::new();
        for (groups, headings) in &stack {
            let mut own = named(groups, headings);
            if let Some((spanning, titles)) = &spans {
                let titles = named(spanning, titles);
                for (name, group) in own.iter_mut().zip(groups) {
                    let over =
                        spanning.iter().position(|span| span.start <= group.start && group.end <= span.end);
                    let title = over.map_or("", |over| titles[over].as_str());
                    *name = format!("{title} {name}").trim().to_string();
                }
            }
            names.extend(own);
        }
        let has_text = stack.len() == 1
            && names
                .last()
                .is_some_and(|name| ["SQL Id", "Hash Value", "Old Hash Value"].contains(&name.as_str()));
        if has_text {
            names.extend(STATEMENT.map(String::from));
        }
        Layout { lines: stack.into_iter().map(|(groups, _)| groups).collect(), names, is_short, has_text }
    }
}

/// True if a text is the id of a statement, or its hash value.
fn is_statement(text: &str) -> bool {
    (8..=13).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Extends the first column to the second one, because names may be longer than the tildes.
fn with_wide_names(mut groups: Vec<Range<usize>>) -> Vec<Range<usize>> {
    if let [names, next, ..] = groups.as_mut_slice() {
        names.end = next.start;
    }
    groups
}

/// True if each group of a ruler spans columns of the one below it, with equal edges.
fn are_spans(above: &[Range<usize>], below: &[Range<usize>]) -> bool {
    above.iter().all(|span| {
        let has = |edge: fn(&Range<usize>) -> usize, at: usize| below.iter().any(|group| edge(group) == at);
        let over = below.iter().filter(|group| span.start <= group.start && group.end <= span.end).count();
        over > 1 && has(|group| group.start, span.start) && has(|group| group.end, span.end)
    })
}

/// Returns the headings of columns: each word goes to the column that it overlaps
/// most, or the nearest one.
fn named(groups: &[Range<usize>], headings: &[String]) -> Vec<String> {
    let mut names = vec![String::new(); groups.len()];
    for heading in headings {
        for (columns, word) in words(heading) {
            let overlap = |group: &Range<usize>| {
                let both = columns.end.min(group.end) as i64 - columns.start.max(group.start) as i64;
                both.min(columns.len() as i64)
            };
            let best = (0..groups.len()).max_by_key(|at| (overlap(&groups[*at]), std::cmp::Reverse(*at)));
            let Some(name) = best.map(|best| &mut names[best]) else { continue };
            if !name.is_empty() {
                name.push(' ');
            }
            name.push_str(word);
        }
    }
    names
}

/// True if no text of a line lies between columns. Text after the last column is allowed.
fn fits(line: &str, columns: &[Range<usize>]) -> bool {
    let mut edges = columns.iter();
    let mut current = edges.next();
    for (at, letter) in line.chars().enumerate() {
        while current.is_some_and(|column| column.end <= at) {
            current = edges.next();
        }
        match current {
            None => return true,
            Some(column) if at < column.start && letter != ' ' => return false,
            Some(_) => {}
        }
    }
    true
}

/// Returns the cells of a line whose figures are wider than their columns: each word goes to the
/// column in or before which it ends. `None` if two figures would share a column.
fn by_words(number: u32, line: &str, columns: &[Range<usize>]) -> Option<Vec<Printed>> {
    let words = words(line);
    if words.iter().filter(|(_, word)| is_number(word)).count() < 2 {
        return None;
    }
    let mut cells = vec![Printed { raw: String::new(), line: number }; columns.len()];
    let first_number = words.iter().position(|(_, word)| is_number(word))?;
    for (at, (place, word)) in words.iter().enumerate() {
        let is_name = at < first_number;
        let under = columns.iter().position(|column| place.end <= column.end).unwrap_or(columns.len() - 1);
        let cell = &mut cells[if is_name { 0 } else { under }];
        if !cell.raw.is_empty() && (is_number(word) && is_number(&cell.raw)) {
            return None;
        }
        if !cell.raw.is_empty() {
            cell.raw.push(' ');
        }
        cell.raw.push_str(word);
    }
    Some(cells)
}

/// Returns the pairs of a line such as `Redo NoWait %:  100.00    Latch Hit %:  99.9` as rows.
fn pairs(number: u32, line: &str) -> Vec<(u32, Vec<Printed>)> {
    let mut pairs = Vec::new();
    let mut rest = line;
    while let Some((name, behind)) = rest.split_once(": ") {
        let value = behind.trim_start();
        let end = value.find(' ').unwrap_or(value.len());
        let unit = value[end..].trim_start();
        let unit_end = if unit.starts_with('(') { unit.find(')').map_or(0, |end| end + 1) } else { 0 };
        let end = if unit_end == 0 { end } else { value.len() - unit.len() + unit_end };
        let of = |raw: &str| Printed { raw: raw.trim().to_string(), line: number };
        pairs.push((number, vec![of(name), of(&value[..end])]));
        rest = &value[end..];
    }
    pairs
}

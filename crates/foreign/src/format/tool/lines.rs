//! Formats of lines: a head names the columns and each line below it is a row, or each line is a
//! name and a value.
//!
//! ```text
//! 12:00:01  DEV   tps  rkB/s        head: all of `needs` are among its cells
//! 12:10:01  sda  3.20  25.60        row: a cell for each column, and each figure is one
//! Average:  sda  3.20  25.60
//!
//! latency average = 0.998 ms        pair: the name is a heading of `pairs`
//! ```
//!
//! A format is a row of data ([`LineFormat`]); iostat, sar, collectl, biosnoop, iosnoop,
//! pgbench, ORION and calibrations differ in nothing else. A head that is repeated goes on with its
//! table. A stamp of time, in a line of its own or before the row, becomes the first column.
//!
//! Such a table has no mark of its end. A format's lines are a range that ends where
//! [`FOREIGN_MOST`] lines follow that it does not know.

use crate::figure::sheet::{
    COLUMNS_MOST, Cell, Column, Heading, Known, Printed, Section, Sheet, SheetHead, plain,
};
use crate::format::sections::keyed;
use crate::reader::CELLS_MOST;
use crate::report::Report;
use crate::source::SourcePart;
use plumb_figures::numeral::Comma;
use plumb_figures::{self as figure, Absence, CellReading, Quantity, is_number};
use std::ops::Range;

/// Lines within a range that the format does not know, at most.
const FOREIGN_MOST: usize = 6;
/// Bytes of a line that is taken apart at most.
const LINE_MOST: usize = 8192;

/// A format of lines, as data.
#[derive(Debug)]
pub struct LineFormat {
    /// The tables by their heads.
    pub tables: &'static [LineTable],
    /// The key of the section whose headings are names of pairs, of which the first begins another
    /// row; empty if the format has no pairs.
    pub pairs: &'static str,
    /// Reads a line that is neither a row nor a pair; false if it knows it not.
    pub aside: fn(u32, &str, &mut Report) -> bool,
    /// True if a stamp of time stands before a row or above a table.
    pub stamped: bool,
}

/// A table of a format, as data.
#[derive(Debug)]
pub struct LineTable {
    /// The key of the section that gives keys and units to its columns.
    pub section: &'static str,
    /// The letters between two cells.
    pub between: Between,
    /// The headings that a head has at least.
    pub needs: &'static [&'static str],
    /// The column that takes the words beyond the number of columns; empty where none does.
    pub loose: &'static str,
}

/// The letters between two cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Between {
    /// Any number of blanks; no cell is empty.
    Blanks,
    /// A tab, so that a cell may be empty.
    Tabs,
    /// A comma, also behind the last cell.
    Commas,
    Semicolons,
}

impl Between {
    fn cells(self, line: &str) -> Vec<&str> {
        match self {
            Between::Blanks => line.split_whitespace().take(2 * COLUMNS_MOST).collect(),
            Between::Tabs => split(line, '\t'),
            Between::Commas => split(line.trim_end().trim_end_matches(','), ','),
            Between::Semicolons => split(line, ';'),
        }
    }
}

fn split(line: &str, letter: char) -> Vec<&str> {
    line.split(letter).take(COLUMNS_MOST).map(str::trim).collect()
}

/// Reads lines of a format as a report; lines that do not match are its unread ones.
pub fn read(part: &SourcePart<'_>, format: &'static LineFormat) -> Report {
    let mut walk = Walk::new(format);
    for (line, text) in part.lines() {
        if !walk.line(line, text) {
            walk.report.leave(line, text);
        }
    }
    walk.end()
}

/// Returns the ranges of lines, counted from 0, that a format has.
pub fn ranges(part: &SourcePart<'_>, format: &'static LineFormat) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    // Most files have no head of most formats: one search of the text is cheaper than its lines.
    let has_head = format.tables.iter().any(|table| table.needs.iter().all(|name| part.text.contains(name)));
    if !has_head && format.pairs.is_empty() {
        return found;
    }
    let mut walk = Walk::new(format);
    walk.is_kept = false;
    // Stamps and asides right above a head belong to it.
    let (mut above, mut foreign) = (None, 0);
    for (at, (line, text)) in part.lines().enumerate() {
        let was_open = walk.is_open();
        let is_own = walk.line(line, text);
        let is_blank = is_blank(text);
        match (walk.is_open(), was_open) {
            (true, false) => {
                found.push(above.unwrap_or(at)..at + 1);
                foreign = 0;
            }
            (true, true) if is_own && !is_blank => {
                foreign = 0;
                if let Some(last) = found.last_mut() {
                    last.end = at + 1;
                }
            }
            (true, true) if !is_own => {
                foreign += 1;
                if foreign > FOREIGN_MOST {
                    walk = Walk { is_kept: false, ..Walk::new(format) };
                    above = None;
                }
            }
            (false, _) if is_own => above = above.or(Some(at).filter(|_| !is_blank)),
            (false, _) => above = None,
            _ => {}
        }
    }
    found
}

/// True if a line has no text but a fence of code.
fn is_blank(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'`' || byte.is_ascii_whitespace())
}

/// A format while its lines are read.
struct Walk {
    format: &'static LineFormat,
    /// The section of its pairs.
    section: Option<&'static Section>,
    report: Report,
    /// The table that rows go to: its place in the format and among the sheets.
    open: Option<(usize, usize)>,
    /// Columns of that table, without that of the stamp.
    columns: Vec<Column>,
    /// The pairs of a row, a cell for each column of the section.
    pairs: Vec<Option<Printed>>,
    has_pairs: bool,
    stamp: Printed,
    /// A name on a line of its own, whose figures follow.
    alone: Printed,
    cells: usize,
    is_kept: bool,
}

impl Walk {
    fn new(format: &'static LineFormat) -> Walk {
        Walk {
            format,
            section: (!format.pairs.is_empty()).then(|| keyed(format.pairs)),
            report: Report::default(),
            open: None,
            columns: Vec::new(),
            pairs: Vec::new(),
            has_pairs: false,
            stamp: Printed::default(),
            alone: Printed::default(),
            cells: 0,
            is_kept: true,
        }
    }

    fn is_open(&self) -> bool {
        self.open.is_some() || self.has_pairs
    }

    /// Reads a line; false if it is none of the format's.
    fn line(&mut self, line: u32, text: &str) -> bool {
        // Fences of code in a page of Markdown.
        if is_blank(text) {
            return true;
        }
        if text.len() > LINE_MOST || self.cells > CELLS_MOST {
            return false;
        }
        let (stamp, rest) = if self.format.stamped { stamped(text) } else { (None, text) };
        if let Some(stamp) = stamp {
            self.stamp = Printed { raw: stamp.to_string(), line };
        }
        if rest.trim().is_empty() {
            return true;
        }
        self.head(line, rest)
            || self.row(line, rest)
            || self.pair(line, text)
            || (self.format.aside)(line, text, &mut self.report)
    }

    fn head(&mut self, line: u32, text: &str) -> bool {
        let found = self.format.tables.iter().position(|table| {
            table.needs.iter().all(|needed| text.contains(needed)) && {
                let cells = table.between.cells(text);
                table.needs.iter().all(|needed| cells.iter().any(|cell| named(cell) == *needed))
            }
        });
        let Some(at) = found else { return false };
        let table = &self.format.tables[at];
        let names: Vec<String> =
            table.between.cells(text).into_iter().map(|name| named(name).to_string()).collect();
        let stamp = self.format.stamped.then(|| "time".to_string());
        let section = keyed(table.section);
        let heading = Printed { raw: section.headings[0].printed.to_string(), line };
        let sheet = Sheet::new(Some(section), heading, stamp.into_iter().chain(names).collect());
        self.columns = sheet.columns[usize::from(self.format.stamped)..].to_vec();
        if self.report.run.begin.is_empty() {
            self.report.run.begin.clone_from(&self.stamp.raw);
        }
        let same = |known: &Sheet| {
            known.section == sheet.section
                && known
                    .columns
                    .iter()
                    .map(|column| &column.name)
                    .eq(sheet.columns.iter().map(|own| &own.name))
        };
        let known = self.report.sheets.iter().position(same).unwrap_or_else(|| {
            self.report.sheets.push(sheet);
            self.report.sheets.len() - 1
        });
        let sheet = &mut self.report.sheets[known];
        sheet.heads.push(SheetHead { rows: sheet.rows.len(), stamp: self.stamp.raw.clone(), seconds: None });
        self.open = Some((at, known));
        self.alone = Printed::default();
        true
    }

    fn row(&mut self, line: u32, text: &str) -> bool {
        let Some((table, sheet)) = self.open else { return false };
        let table = &self.format.tables[table];
        let mut cells = table.between.cells(text);
        // A name that is wider than its column has a line of its own.
        if let ([alone], Between::Blanks, true) = (&cells[..], table.between, self.format.stamped)
            && self.columns.len() > 1
            && self.columns[0].unit.quantity == Quantity::Text
            && !is_number(alone)
        {
            self.alone = Printed { raw: (*alone).to_string(), line };
            return true;
        }
        let alone = std::mem::take(&mut self.alone).raw;
        if !alone.is_empty() && cells.len() + 1 == self.columns.len() {
            cells.insert(0, &alone);
        }
        // Tools part no thousands, so that a comma within a figure is a decimal one.
        let is_comma = |cell: &&str| cell.contains(',') && !cell.contains('.') && is_digits(cell);
        let has_decimals = self.format.stamped && cells.iter().any(is_comma);
        let comma = if has_decimals { Comma::Decimals } else { Comma::Groups };
        let Some(cells) = fitted(cells, &self.columns, table, comma) else { return false };
        self.cells += self.columns.len();
        if self.is_kept {
            let own = cells.into_iter().map(|raw| Printed { raw, line });
            let stamp = self.format.stamped.then(|| self.stamp.clone());
            self.report.sheets[sheet].comma = comma;
            self.report.sheets[sheet].push(line, stamp.into_iter().chain(own).collect());
        }
        true
    }

    fn pair(&mut self, line: u32, text: &str) -> bool {
        let Some(section) = self.section.filter(|_| text.contains(['=', ':'])) else { return false };
        // Before the first pair few lines are one: their first letter says so.
        let letter = text.trim_start().bytes().next().map(|byte| byte.to_ascii_lowercase());
        let is_first = |own: &Heading| own.plain.bytes().next() == letter;
        if !self.has_pairs && !section.first.iter().any(is_first) {
            return false;
        }
        let pairs = pairs(text, section.columns);
        let begins = |column: usize| {
            let mut own = section.columns[column].headings.iter();
            own.any(|own| section.first.iter().any(|first| first.plain == own.plain))
        };
        for (column, raw) in &pairs {
            let is_filled = self.pairs.get(*column).is_some_and(Option::is_some);
            if !self.has_pairs && !begins(*column) {
                return false;
            }
            if is_filled {
                self.end_pairs();
            }
            self.pairs.resize(section.columns.len(), None);
            (self.pairs[*column], self.has_pairs) = (Some(Printed { raw: raw.clone(), line }), true);
        }
        !pairs.is_empty()
    }

    /// Ends a row of pairs: its columns are those that it has.
    fn end_pairs(&mut self) {
        let Some(section) = self.section else { return };
        let pairs: Vec<Option<Printed>> = std::mem::take(&mut self.pairs);
        let found = pairs.into_iter().enumerate().filter_map(|(at, pair)| Some((at, pair?)));
        let (names, cells): (Vec<String>, Vec<Printed>) =
            found.map(|(at, pair)| (section.columns[at].headings[0].printed.to_string(), pair)).unzip();
        let Some(line) = cells.iter().map(|cell| cell.line).min() else { return };
        let heading = Printed { raw: section.headings[0].printed.to_string(), line };
        let mut sheet = Sheet::new(Some(section), heading, names);
        sheet.push(line, cells);
        self.report.sheets.push(sheet);
    }

    fn end(mut self) -> Report {
        self.end_pairs();
        self.report.sheets.retain(|sheet| !sheet.rows.is_empty());
        self.report
    }
}

/// True if a figure begins and its comma has digits on both sides.
fn is_digits(cell: &str) -> bool {
    let (whole, fraction) = cell.split_once(',').unwrap_or((cell, ""));
    let digits = |text: &str| text.starts_with(|letter: char| letter.is_ascii_digit());
    digits(whole) && digits(fraction)
}

/// A heading without what frames it: `#Name`, `Device:`.
fn named(cell: &str) -> &str {
    cell.trim_start_matches(['#', ' ']).trim_end_matches(':')
}

/// The cells of a row, one a column; none if a figure is missing or is none.
fn fitted(mut cells: Vec<&str>, columns: &[Column], table: &LineTable, comma: Comma) -> Option<Vec<String>> {
    let mut own: Vec<String> = Vec::with_capacity(columns.len());
    let loose = columns.iter().position(|column| column.name == table.loose);
    let beyond = cells.len().saturating_sub(columns.len());
    if let (Some(loose), true) = (loose, beyond > 0) {
        let joined = cells[loose..=loose + beyond].join(" ");
        let behind = cells.split_off(loose + beyond + 1);
        own.extend(cells[..loose].iter().map(ToString::to_string).chain([joined]));
        own.extend(behind.into_iter().map(str::to_string));
    } else {
        own.extend(cells.into_iter().map(str::to_string));
    }
    let is_fit = match table.between {
        Between::Blanks => own.len() == columns.len(),
        _ => (2..=columns.len()).contains(&own.len()),
    };
    let is_figure = |column: &Column| column.unit.quantity != Quantity::Text;
    let mut has_figure = false;
    for (raw, column) in own.iter().zip(columns).filter(|(_, column)| is_figure(column)) {
        match figure::printed::read_with(raw, column.unit, comma) {
            CellReading::Absent(Absence::Unreadable) if !column.key.is_empty() => return None,
            CellReading::Value { .. } => has_figure = true,
            _ => {}
        }
    }
    (is_fit && has_figure).then_some(own)
}

/// A stamp of time at the start of a line, with a date or without one, and the rest of the line:
/// `12:00:01 AM  sda`, `09/04/24 12:07:20`, `2024-09-04T12:07:20+0200`, `Average:`.
fn stamped(line: &str) -> (Option<&str>, &str) {
    // Most lines begin with none of these.
    if !line.trim_start().starts_with(|first: char| first.is_ascii_digit() || "AT".contains(first)) {
        return (None, line);
    }
    let mut end = 0;
    let mut is_stamp = false;
    for (number, word) in line.split_whitespace().enumerate().take(3) {
        let at = word.as_ptr() as usize - line.as_ptr() as usize;
        let is_part = match number {
            _ if seconds_of(word).is_some() => true,
            0 => word == "Average:" || is_date(word) || word == "Time:",
            _ => matches!(word, "AM" | "PM"),
        };
        if !is_part {
            break;
        }
        is_stamp |= seconds_of(word).is_some() || word == "Average:";
        end = at + word.len();
    }
    if is_stamp { (Some(line[..end].trim()), &line[end..]) } else { (None, line) }
}

fn is_date(word: &str) -> bool {
    (8..=10).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'/' | b'-' | b'.'))
        && word.bytes().filter(|byte| !byte.is_ascii_digit()).count() == 2
}

/// The second of the day of a word such as `12:07:20`, `2024-09-04T12:07:20+0200`, `12:07:20.5`.
fn seconds_of(word: &str) -> Option<f64> {
    let clock = word.split_once('T').map_or(word, |(_, clock)| clock);
    let mut parts = clock.splitn(3, ':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    let of = |text: &str| (text.len() == 2).then(|| text.parse::<u8>().ok())?;
    let end = seconds.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(seconds.len());
    let seconds: f64 = seconds[..end].parse().ok()?;
    Some(f64::from(of(hours)?) * 3600.0 + f64::from(of(minutes)?) * 60.0 + seconds)
}

/// The second of the day of a stamp, of which 12 is the first of twelve hours.
pub fn second_of_day(stamp: &str) -> Option<f64> {
    let seconds = stamp.split_whitespace().find_map(seconds_of)?;
    Some(match stamp.rsplit(' ').next() {
        Some("PM") if seconds < 43_200.0 => seconds + 43_200.0,
        Some("AM") if seconds >= 43_200.0 => seconds - 43_200.0,
        _ => seconds,
    })
}

/// Seconds from a second of the day to a later one, which may be of the next day.
pub fn seconds_after(first: f64, second: f64) -> f64 {
    (second - first + 86_400.0) % 86_400.0
}

/// Seconds from the first stamp to the last one; none of fewer than two. A day is crossed where a
/// stamp is earlier than the one before.
pub fn seconds_between<'s>(stamps: impl Iterator<Item = &'s str>) -> Option<f64> {
    let (mut all, mut last, mut stamps_seen) = (0.0, None, 0);
    for stamp in stamps.filter_map(second_of_day) {
        if let Some(last) = last
            && last != stamp
        {
            all += seconds_after(last, stamp);
            stamps_seen += 1;
        }
        last = Some(stamp);
    }
    (stamps_seen > 0).then_some(all)
}

/// Seconds as a cell that no report prints.
pub fn seconds_cell(seconds: f64, half: f64, line: u32) -> Cell {
    let range = plumb_units::ValueRange { low: (seconds - half).max(0.0), high: seconds + half };
    Cell { raw: format!("{seconds} s, derived"), line, reading: CellReading::Value { value: seconds, range } }
}

/// The pairs of a line whose names are headings, each with its column: `NAME = VALUE`,
/// `NAME: VALUE`, `NAME=VALUE @ NAME=VALUE and NAME=VALUE`.
fn pairs(text: &str, columns: &[Known]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (first, places) = text.split_once(" @ ").unwrap_or((text, ""));
    let Some((name, value)) = split_pair(first) else { return found };
    let column = |name: &str| {
        let sought = plain(name);
        columns.iter().position(|column| column.headings.iter().any(|own| own.plain == sought))
    };
    let (bare, note) = value.split_once(" (").map_or((value, ""), |(bare, note)| (bare, note));
    let noted = format!("{name} ({note}");
    let Some(at) = column(&noted).or_else(|| column(name)) else { return found };
    let is_text = columns[at].unit.quantity == Quantity::Text;
    found.push((at, if is_text { value } else { without_whole(bare) }.trim().to_string()));
    // sysbench prints a rate behind its total: `10000 (1000.00 per sec.)`.
    if let Some(rate) = note.strip_suffix(" per sec.)")
        && let Some(at) = column(&format!("{name} per second"))
    {
        found.push((at, rate.to_string()));
    }
    for place in places.split(" and ").filter(|place| !place.is_empty()) {
        let Some((of, value)) = place.split_once('=') else { continue };
        if let Some(at) = column(&format!("{name} @ {}", of.trim())) {
            found.push((at, value.trim().to_string()));
        }
    }
    found
}

fn split_pair(text: &str) -> Option<(&str, &str)> {
    let at = text.find(['=', ':'])?;
    let (name, value) = (text[..at].trim(), text[at + 1..].trim());
    (!name.is_empty() && name.len() <= 80).then_some((name, value))
}

/// `10000/10000` transactions are 10000 of as many.
fn without_whole(value: &str) -> &str {
    value.split_once('/').map_or(value, |(part, _)| part)
}

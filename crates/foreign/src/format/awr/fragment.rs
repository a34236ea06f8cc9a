//! Reads pasted tables of a report: without its head, without rulers, with tabs between cells, or
//! all on one line.
//!
//! - Tabs: the first lines of a block of tabs, without figures, are headings. Of two such lines the
//!   upper one has spanners and the lower one names.
//! - Single blanks: a line, or its start, is one of [`HEADINGS`]. A row is a name, a figure for
//!   each column, and what follows.
//! - Words: a line of as many words as each line below it has figures behind a name.
//! - Paragraphs: `Statistic value` begins pairs of a name and a figure in lines of their own.
//!
//! A table begins another report if its section already occurred, or if the table above it is more
//! than [`FAR`] lines away. Otherwise figures of two intervals could be mixed.
//!
//! An unknown table is read as it is headed. A blank cell in its first column, below words, has the
//! text above it, because authors merge such cells.

use super::{head, page, text};
use crate::figure::sheet::{CELLS_MOST, COLUMNS_MOST, SHEETS_MOST};
use crate::figure::sheet::{Printed, Sheet, plain};
use crate::form::ruled;
use crate::format::sections::{keyed, section_of};
use crate::report::Report;
use crate::source::SourcePart;
use plumb_figures::{FigureUnit, is_figure, is_number, unit_of};
use std::ops::Range;

/// Most lines between tables of one report.
const FAR: u32 = 25;
/// Most lines from the title of a table under rulers to its first row.
const RULED_LINES: usize = 14;
/// Most lines between a heading and its table.
const HEADING_LINES: usize = 8;

/// Headings of tables whose cells are separated by single blanks: section, then columns. The
/// first column is a name, the last may be words; all others are figures.
const HEADINGS: [(&str, &[&str]); 6] = [
    ("activity", &["Statistic", "Total", "per Second", "per Trans"]),
    ("top_events", &["Event", "Waits", "Time(s)", "Avg wait (ms)", "% DB time", "Wait Class"]),
    ("top_events", &["Event", "Waits", "Time (s)", "Avg wait (ms)", "%Total Call Time", "Wait Class"]),
    (
        "tablespaces",
        &[
            "Tablespace",
            "Reads",
            "Av Reads/s",
            "Av Rd(ms)",
            "Av Blks/Rd",
            "Writes",
            "Av Writes/s",
            "Buffer Waits",
            "Av Buf Wt(ms)",
        ],
    ),
    (
        "io_filetypes",
        &[
            "Filetype Name",
            "Reads: Data",
            "Reqs per sec",
            "Data per sec",
            "Writes: Data",
            "Reqs per sec",
            "Data per sec",
            "Small Read",
            "Large Read",
        ],
    ),
    (
        "io_functions",
        &[
            "Function Name",
            "Reads: Data",
            "Reqs per sec",
            "Data per sec",
            "Writes: Data",
            "Reqs per sec",
            "Data per sec",
            "Waits: Count",
            "Avg Tm(ms)",
        ],
    ),
];

/// Returns the lines, counted from 0, that begin a report.
pub fn begins(part: &SourcePart<'_>) -> Vec<usize> {
    let mut begins: Vec<usize> = Vec::new();
    let (mut sections, mut last, mut last_known) = (Vec::new(), 0, None);
    for sheet in sheets(part).into_iter().filter(|sheet| !sheet.section.is_empty() || is_table(sheet)) {
        let end = sheet.rows.last().and_then(|row| row.cells.first()).map_or(sheet.line, |cell| cell.line);
        let is_known = !sheet.section.is_empty();
        let is_again = is_known && sections.contains(&sheet.section);
        // An author's own table between two known ones does not make them those of one interval.
        let above = if is_known { last_known.unwrap_or(last) } else { last };
        if begins.is_empty() || is_again || sheet.line > above + FAR {
            begins.push((sheet.line - part.first_line()) as usize);
            sections.clear();
        }
        if is_known {
            sections.push(sheet.section);
        }
        (last, last_known) = (end, if is_known { Some(end) } else { last_known });
    }
    begins.dedup();
    begins
}

/// True if an unknown table has columns and rows enough to be one, and figures in them.
fn is_table(sheet: &Sheet) -> bool {
    let figures = sheet.rows.iter().flat_map(|row| &row.cells).filter(|cell| is_figure(&cell.raw)).count();
    sheet.columns.len() >= 3 && sheet.rows.len() >= 2 && figures >= 2
}

/// Reads the tables of a part.
pub fn read(part: &SourcePart<'_>) -> Report {
    settled(Report { sheets: sheets(part), ..Report::default() })
}

/// Reads the tables of a page that were cut out of a report, such as those of a mail. A page
/// without a known table is no report.
pub fn read_page(part: &SourcePart<'_>) -> Report {
    let report = page::tables(part);
    let is_known = report.sheets.iter().any(|sheet| !sheet.section.is_empty());
    if is_known { settled(report) } else { Report::default() }
}

fn settled(mut report: Report) -> Report {
    head::fill(&mut report);
    report.run.title = "IMPORTED FRAGMENT".to_string();
    if report.run.workload.is_empty() {
        report.run.workload = "fragment".to_string();
    }
    report
}

fn sheets(part: &SourcePart<'_>) -> Vec<Sheet> {
    let lines: Vec<(u32, &str)> = part.lines().collect();
    let mut sheets = ruled(&lines, part);
    let mut taken: Vec<Range<u32>> = sheets.iter().map(extent).collect();
    taken.sort_by_key(|taken| taken.start);
    let mut taken = taken.into_iter().peekable();
    let (mut at, mut cells) = (0, sheets.iter().map(Sheet::cells).sum::<usize>());
    let readers = readers_of(part.text);
    while at < lines.len() && cells <= CELLS_MOST && sheets.len() <= SHEETS_MOST {
        while taken.next_if(|taken| taken.end <= lines[at].0).is_some() {}
        if taken.peek().is_some_and(|taken| taken.contains(&lines[at].0)) {
            at += 1;
            continue;
        }
        match readers.iter().find_map(|read| read(&lines, at)) {
            Some((sheet, next)) => {
                cells += sheet.cells();
                sheets.push(sheet);
                at = next.max(at + 1);
            }
            None => at += 1,
        }
    }
    sheets.sort_by_key(|sheet| sheet.line);
    sheets
}

/// Reads the table that begins at a line.
type ReadTable = fn(&[(u32, &str)], usize) -> Found;

/// Returns the readers of the forms that a text may have: one search in the whole text spares one
/// a line.
fn readers_of(text: &str) -> Vec<ReadTable> {
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let forms: [(bool, ReadTable); 4] = [
        (has(&["\t"]), tabbed),
        (HEADINGS.iter().any(|(_, names)| has(&names[1..2])), spaced),
        (true, worded),
        (has(&["tatistic", "TATISTIC"]), paragraphs),
    ];
    forms.into_iter().filter(|(is_there, _)| *is_there).map(|(_, read)| read).collect()
}

/// Returns the lines of a table with its heading.
fn extent(sheet: &Sheet) -> Range<u32> {
    let last = sheet.rows.last().and_then(|row| row.cells.last()).map_or(sheet.line, |cell| cell.line);
    sheet.line..last + 1
}

/// Reads the tables under rulers that are of known sections: cut out of a report with their
/// headings of two or three lines, as the report prints them.
fn ruled(lines: &[(u32, &str)], part: &SourcePart<'_>) -> Vec<Sheet> {
    // Without any ruler there is none.
    if !lines.iter().any(|(_, line)| line.contains("----") || line.contains("~~~~")) {
        return Vec::new();
    }
    let comma = text::comma_of(part.text);
    let tables = ruled::tables(lines).tables.into_iter().filter(|table| !table.rows.is_empty());
    let sheets = tables.map(|mut table| {
        let first = table.rows.first().map_or(0, |(line, _)| *line);
        let place = lines.partition_point(|(line, _)| *line < first);
        let above = lines[place.saturating_sub(RULED_LINES)..place].iter().rev();
        let adjacent = above.clone().take_while(|(_, line)| !line.trim().is_empty());
        let top = adjacent.clone().last().map_or(first, |(line, _)| *line);
        if table.heading.raw.is_empty() {
            let is_title = |line: &&&(u32, &str)| section_of(line.1.trim(), &[]).is_some();
            let title = above.clone().find(|line| is_title(&line)).map(|(line, title)| (*line, title.trim()));
            let (line, raw) = title.map_or((top, String::new()), |(line, title)| {
                let own = title.split_once("     ").map_or(title, |(own, _)| own);
                (line, own.to_string())
            });
            table.heading = Printed { raw, line };
        }
        let mut sheet = text::sheet(table, comma);
        sheet.line = if sheet.line == 0 || sheet.line > top { top } else { sheet.line };
        sheet
    });
    sheets.filter(|sheet| !sheet.section.is_empty()).collect()
}

/// A table, and the first line after it.
type Found = Option<(Sheet, usize)>;

/// Returns the nearest line above that can be a table's heading and is no row of another table.
fn heading(lines: &[(u32, &str)], at: usize) -> Printed {
    let above = lines[at.saturating_sub(HEADING_LINES)..at].iter().rev();
    let mut above = above.take_while(|(_, text)| !text.contains('\t'));
    let is_heading = |text: &str| {
        !text.is_empty() && text.len() <= 80 && !text.starts_with(['-', '*', '(', '`', '\u{2022}'])
    };
    let found = above.find(|(_, text)| is_heading(text.trim()));
    let (line, raw) = found.map_or((lines[at].0, ""), |(line, text)| (*line, text.trim()));
    Printed { raw: raw.to_string(), line }
}

/// Returns the cells of a line with tabs.
fn cells<'l>(lines: &[(u32, &'l str)], at: usize) -> Option<Vec<&'l str>> {
    let line = lines.get(at)?.1;
    let tabs = line.bytes().filter(|byte| *byte == b'\t').count();
    (1..COLUMNS_MOST).contains(&tabs).then(|| line.split('\t').map(str::trim).collect())
}

/// Reads a block of lines with tabs.
fn tabbed(lines: &[(u32, &str)], at: usize) -> Found {
    let first = cells(lines, at)?;
    let (names, mut here) = titles(lines, at)?;
    let mut rows = Vec::new();
    let mut held = 0;
    while let Some(row) = cells(lines, here).filter(|_| held <= CELLS_MOST) {
        held += row.len();
        let line = lines[here].0;
        let own = row.iter().map(|cell| Printed { raw: (*cell).to_string(), line });
        rows.push((line, own.collect::<Vec<_>>()));
        here += 1;
    }
    // A single line with a tab is prose.
    (rows.len() > 1 || first.len() > 2).then_some(())?;
    let section = section_of("", &names);
    // A caption is more specific than the text above a table.
    let heading = caption(lines, here)
        .map_or_else(|| heading(lines, at), |raw| Printed { raw: raw.to_string(), line: lines[at].0 });
    let sheet = with_rows(Sheet::new(section, heading, names), rows);
    (!sheet.rows.is_empty()).then_some((sheet, here))
}

/// Returns the names of the columns of a block with tabs, and its first line of figures.
fn titles(lines: &[(u32, &str)], at: usize) -> Option<(Vec<String>, usize)> {
    let has_figure = |cells: &[&str]| cells.iter().skip(1).any(|cell| is_figure(cell));
    let spans = cells(lines, at).filter(|first| !has_figure(first))?;
    // The first of two lines has spanners: each title extends over the blank cells after it.
    let is_spanner = spans.iter().skip(1).any(|cell| cell.is_empty());
    // Figures below a blank first cell are names: sizes, or numbers of processes.
    let is_second = |next: &Vec<&str>| {
        // Blank cells at the end of a line are cut off.
        let is_wider = is_spanner || next.len() > spans.len();
        is_spanner && next.len() >= spans.len() && !has_figure(next) || is_wider && next.first() == Some(&"")
    };
    let Some(names) = cells(lines, at + 1).filter(is_second) else {
        return Some((spans.iter().map(ToString::to_string).collect(), at + 1));
    };
    let mut over = "";
    let joined = names.iter().enumerate().map(|(column, name)| {
        over = spans.get(column).filter(|span| !span.is_empty()).copied().unwrap_or(over);
        let own = if column == 0 || name.is_empty() { spans.get(column).copied() } else { Some(over) };
        format!("{} {name}", own.unwrap_or("")).trim().to_string()
    });
    Some((joined.collect(), at + 2))
}

/// Returns the text `Table 3: ...` below a table.
fn caption<'l>(lines: &[(u32, &'l str)], behind: usize) -> Option<&'l str> {
    let mut below = lines.get(behind..)?.iter().take(2).map(|(_, text)| text.trim());
    let text = below.find(|text| !text.is_empty())?;
    let number = text.strip_prefix("Table ")?;
    (number.starts_with(|digit: char| digit.is_ascii_digit()) && text.len() <= 120).then_some(text)
}

/// Adds rows to a table. Columns of an unknown table without a unit have that of their texts.
fn with_rows(mut sheet: Sheet, rows: Vec<(u32, Vec<Printed>)>) -> Sheet {
    let is_unknown = sheet.section.is_empty();
    for (at, column) in sheet.columns.iter_mut().enumerate().filter(|_| is_unknown) {
        let texts: Vec<&str> = rows.iter().filter_map(|(_, row)| Some(row.get(at)?.raw.as_str())).collect();
        let own = unit_of(&column.name, &texts).filter(|_| column.unit == FigureUnit::NUMBER);
        column.unit = own.unwrap_or(column.unit);
    }
    let mut above: Option<Printed> = None;
    for (line, mut row) in rows {
        if let Some(first) = row.first_mut().filter(|_| is_unknown) {
            match &above {
                Some(above) if first.raw.is_empty() => *first = above.clone(),
                _ => above = Some(first.clone()).filter(|first| !is_figure(&first.raw)),
            }
        }
        sheet.push(line, row);
    }
    sheet
}

/// Reads a table whose headings are in one line with blanks between them.
fn spaced(lines: &[(u32, &str)], at: usize) -> Found {
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let (line, text) = *lines.get(at)?;
    // A cheap test first, because most lines are prose.
    HEADINGS.iter().any(|(_, names)| text.contains(names[1])).then_some(())?;
    let text = squeezed(text);
    let headed = |(key, names): &(&'static str, &'static [&'static str])| {
        let title = names.join(" ");
        let found = text.find(&title).filter(|found| *found <= 40)?;
        Some((*key, names.to_vec(), text[found + title.len()..].to_string()))
    };
    let (key, names, rest) = HEADINGS.iter().find_map(headed)?;
    let section = Some(keyed(key));
    let mut sheet = Sheet::new(section, heading(lines, at), names.iter().map(ToString::to_string).collect());
    let words_behind = names.last() == Some(&"Wait Class");
    let figures = names.len() - 1 - usize::from(words_behind);
    let mut here = at;
    let mut next = Some((line, rest));
    while let Some((line, text)) = next {
        if !text.trim().is_empty() && !push_rows(&mut sheet, line, &text, Shape { figures, words_behind }) {
            break;
        }
        here += 1;
        next = lines.get(here).map(|(line, text)| (*line, squeezed(text)));
        if here > at + 1 && next.as_ref().is_some_and(|(_, text)| text.is_empty()) {
            break;
        }
    }
    (!sheet.rows.is_empty()).then_some((sheet, here))
}

/// The cells of a row after its name.
#[derive(Debug, Clone, Copy)]
struct Shape {
    figures: usize,
    /// True if the last column has words.
    words_behind: bool,
}

/// Adds the rows of a line: names, figures, and words after them if the table has such a column.
/// False if the line has no row.
fn push_rows(sheet: &mut Sheet, line: u32, text: &str, shape: Shape) -> bool {
    let Shape { figures, words_behind } = shape;
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    let is_absent = |word: &str| word == "N/A" || word.starts_with('#');
    let is_figure = |word: &str| is_number(word) || is_absent(word);
    let (mut at, mut pushed) = (0, false);
    while at < words.len() {
        let Some(first) = words[at..].iter().position(|word| is_number(word)).map(|first| at + first) else {
            break;
        };
        let run = words[first..].iter().take_while(|word| is_figure(word)).count().min(figures);
        let name = words[at..first].join(" ");
        let of = |raw: &str| Printed { raw: raw.to_string(), line };
        let mut cells = vec![of(&name)];
        // CPU has no waits, and single blanks do not show which cells are empty.
        if ["DB CPU", "CPU time"].contains(&name.as_str()) && run == 2 && figures == 4 {
            cells.extend([of(""), of(words[first]), of(""), of(words[first + 1])]);
        } else if run == figures && !name.is_empty() {
            cells.extend(words[first..first + run].iter().map(|word| of(word)));
        } else {
            break;
        }
        at = first + run;
        if words_behind {
            let end = words[at..].iter().position(|word| is_number(word)).map_or(words.len(), |_| at);
            cells.push(of(&words[at..end].join(" ")));
            at = end;
        }
        sheet.push(line, cells);
        pushed = true;
    }
    pushed
}

/// Most figures in a row of a table of words.
const WORDS_MOST: usize = 8;

/// Reads a table whose headings are single words, one or two lines of them, such as `2k 16k`. Each
/// row is a name and a figure, with its unit, for each word. Blank lines may lie between.
fn worded(lines: &[(u32, &str)], at: usize) -> Found {
    let text = |at: usize| lines.get(at).map(|(_, line)| line.trim());
    let heads = |at: usize| -> Option<Vec<&str>> {
        let words: Vec<&str> = text(at)?.split_whitespace().take(WORDS_MOST + 1).collect();
        let is_head = |word: &&str| {
            // `2k` heads the column of a size.
            let is_name = || word.ends_with('k') || !is_figure(word);
            word.len() <= 12 && word.contains(char::is_alphanumeric) && is_name()
        };
        ((2..=WORDS_MOST).contains(&words.len()) && words.iter().all(is_head)).then_some(words)
    };
    let next = |at: usize| (at + 1..at + 3).find(|at| text(*at).is_some_and(|line| !line.is_empty()));
    let first = heads(at)?;
    let row = |at: usize| counted(text(at)?, first.len());
    let mut here = next(at)?;
    let mut names: Vec<String> = first.iter().map(ToString::to_string).collect();
    if let Some(second) = heads(here).filter(|second| second.len() == names.len() && row(here).is_none()) {
        names.iter_mut().zip(second).for_each(|(name, word)| *name = format!("{name} {word}"));
        here = next(here)?;
    }
    names.insert(0, String::new());
    let (mut rows, mut behind) = (Vec::new(), here);
    let mut place = Some(here);
    while let Some((at, cells)) = place.and_then(|at| Some((at, row(at)?))) {
        let line = lines[at].0;
        rows.push((line, cells.into_iter().map(|raw| Printed { raw, line }).collect()));
        (behind, place) = (at + 1, next(at));
    }
    (rows.len() > 1).then_some(())?;
    let sheet = with_rows(Sheet::new(None, heading(lines, at), names), rows);
    Some((sheet, behind))
}

/// Returns the name and the figures of a row such as `80k table size 8.74 secs 8.31 secs`; `None`
/// unless exactly `count` figures stand behind a short name.
fn counted(text: &str, count: usize) -> Option<Vec<String>> {
    const NAME_MOST: usize = 6;
    let most = NAME_MOST + 2 * count;
    let words: Vec<&str> = text.split_whitespace().take(most + 1).collect();
    (words.len() <= most).then_some(())?;
    let mut figures = Vec::with_capacity(count);
    let mut end = words.len();
    while end > 0 && figures.len() <= count {
        let one = words[end - 1];
        let with_unit = end.checked_sub(2).map(|number| format!("{} {one}", words[number]));
        if is_figure(one) {
            figures.push(one.to_string());
            end -= 1;
        } else if let Some(both) = with_unit.filter(|both| is_figure(both)) {
            figures.push(both);
            end -= 2;
        } else {
            break;
        }
    }
    (figures.len() == count && (1..=NAME_MOST).contains(&end)).then_some(())?;
    let name = words[..end].join(" ");
    Some(std::iter::once(name).chain(figures.into_iter().rev()).collect())
}

/// Reads pairs of a name and a figure in separate lines, after a line `Statistic value`.
fn paragraphs(lines: &[(u32, &str)], at: usize) -> Found {
    const UNITS: [&str; 5] = ["seconds", "bytes", "secs", "ms", "blocks"];
    let is_head = |line: &str| plain(line) == "statisticvalue";
    is_head(lines.get(at)?.1).then_some(())?;
    let text = |line: &str| {
        line.trim_matches(|letter: char| letter.is_whitespace() || letter == '\u{a0}').to_string()
    };
    let mut filled = (at + 1..lines.len())
        .map(|at| (at, text(lines[at].1)))
        .filter(|(_, text)| !text.is_empty())
        .peekable();
    let is_value = |text: &str| {
        let (figure, unit) = text.split_once(' ').unwrap_or((text, ""));
        is_number(figure) && (unit.is_empty() || UNITS.contains(&unit))
    };
    let names = ["Statistic", "Value"].map(String::from).to_vec();
    let section = Some(keyed("statement"));
    // The table's heading is above the headings of both columns.
    let is_head_of_names = |above: &usize| plain(lines[*above].1) == "statisticdescription";
    let above = (at.saturating_sub(4)..at).find(is_head_of_names).unwrap_or(at);
    let mut sheet = Sheet::new(section, heading(lines, above), names);
    let mut last = at;
    while let Some((here, name)) = filled.next() {
        let Some((below, value)) = filled.peek().cloned() else { break };
        let of = |at: usize, raw: String| Printed { raw, line: lines[at].0 };
        if is_value(&value) && !is_value(&name) && name.len() <= 60 {
            filled.next();
            sheet.push(lines[here].0, vec![of(here, name), of(below, value)]);
            last = below;
        } else if is_head(&value) || name.len() > 40 {
            break;
        } else {
            // A line of its own heads the pairs that follow.
            sheet.push(lines[here].0, vec![of(here, name)]);
            last = here;
        }
    }
    (!sheet.rows.is_empty()).then_some((sheet, last + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_heading_of_a_fragment_is_known_to_its_section() {
        for (key, names) in HEADINGS {
            let sheet = Sheet::new(
                Some(keyed(key)),
                Printed::default(),
                names.iter().map(ToString::to_string).collect(),
            );
            assert!(sheet.columns.iter().all(|column| !column.key.is_empty()), "{key}: {:?}", sheet.columns);
        }
    }
}

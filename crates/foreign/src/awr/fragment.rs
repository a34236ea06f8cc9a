//! Reads pasted tables of a report: without its head, without rulers, with tabs between cells, or
//! all on one line.
//!
//! - Tabs: the first lines of a block of tabs, without figures, are headings. Of two such lines the
//!   upper one has spanners and the lower one names.
//! - Single blanks: a line, or its start, is one of [`HEADINGS`]. A row is a name, a figure for
//!   each column, and what follows.
//! - Paragraphs: `Statistic value` begins pairs of a name and a figure in lines of their own.
//!
//! A table begins another report if its section already occurred, or if the last known table is
//! more than [`FAR`] lines above. Otherwise figures of two intervals could be mixed.

use super::{derived, sections::SECTIONS, sections::section_of};
use crate::figure::is_number;
use crate::report::Report;
use crate::sheet::COLUMNS_MOST;
use crate::sheet::{Printed, Sheet, plain};
use crate::source::SourcePart;

/// Most lines between tables of one report.
const FAR: u32 = 25;
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
    let (mut sections, mut last) = (Vec::new(), 0);
    let mut found = sheets(part);
    // Without any table that is known, others are read as they are headed.
    let is_known = found.iter().any(|sheet| !sheet.section.is_empty());
    found.retain(|sheet| if is_known { !sheet.section.is_empty() } else { is_table(sheet) });
    for sheet in found {
        let end = sheet.rows.last().and_then(|row| row.cells.first()).map_or(sheet.line, |cell| cell.line);
        let is_again = is_known && sections.contains(&sheet.section);
        if begins.is_empty() || is_again || sheet.line > last + FAR {
            begins.push((sheet.line - part.first_line()) as usize);
            sections.clear();
        }
        sections.push(sheet.section);
        last = end;
    }
    begins.dedup();
    begins
}

/// True if an unknown table has columns and rows enough to be one, and figures in them.
fn is_table(sheet: &Sheet) -> bool {
    let figures = sheet.rows.iter().flat_map(|row| &row.cells).filter(|cell| is_number(&cell.raw)).count();
    sheet.columns.len() >= 3 && sheet.rows.len() >= 2 && figures >= 2
}

/// Reads the tables of a part.
pub fn read(part: &SourcePart<'_>) -> Report {
    let mut report = Report { sheets: sheets(part), ..Report::default() };
    report.run.title = "IMPORTED FRAGMENT".to_string();
    report.run.workload = "fragment".to_string();
    derived::fill(&mut report);
    report
}

fn sheets(part: &SourcePart<'_>) -> Vec<Sheet> {
    let lines: Vec<(u32, &str)> = part.lines().collect();
    let mut sheets = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let found = tabbed(&lines, at).or_else(|| spaced(&lines, at)).or_else(|| paragraphs(&lines, at));
        match found {
            Some((sheet, next)) => {
                sheets.push(sheet);
                at = next.max(at + 1);
            }
            None => at += 1,
        }
    }
    sheets
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

/// Reads a block of lines with tabs.
fn tabbed(lines: &[(u32, &str)], at: usize) -> Found {
    let cells = |at: usize| -> Option<Vec<&str>> {
        let line = lines.get(at)?.1;
        let tabs = line.bytes().filter(|byte| *byte == b'\t').count();
        (1..COLUMNS_MOST).contains(&tabs).then(|| line.split('\t').map(str::trim).collect())
    };
    let has_figure = |cells: &[&str]| cells.iter().skip(1).any(|cell| is_number(cell));
    let first = cells(at)?;
    let mut titles: Vec<Vec<&str>> = Vec::new();
    let mut here = at;
    while let Some(row) = cells(here).filter(|row| !has_figure(row) && titles.len() < 2) {
        // The first of two lines has spanners: each title extends over the blank cells after it.
        let is_spanner = row.iter().skip(1).any(|cell| cell.is_empty());
        titles.push(row);
        here += 1;
        if !is_spanner || cells(here).is_none_or(|next| next.len() < first.len() || has_figure(&next)) {
            break;
        }
    }
    let names = match titles.as_slice() {
        [] => return None,
        [names] => names.iter().map(ToString::to_string).collect(),
        [spans, names, ..] => {
            let mut over = "";
            let joined = names.iter().enumerate().map(|(column, name)| {
                over = spans.get(column).filter(|span| !span.is_empty()).copied().unwrap_or(over);
                let over = if column == 0 || name.is_empty() {
                    spans.get(column).copied().unwrap_or("")
                } else {
                    over
                };
                format!("{over} {name}").trim().to_string()
            });
            joined.collect::<Vec<String>>()
        }
    };
    let mut rows = Vec::new();
    while let Some(row) = cells(here) {
        let line = lines[here].0;
        rows.push((
            line,
            row.iter().map(|cell| Printed { raw: (*cell).to_string(), line }).collect::<Vec<_>>(),
        ));
        here += 1;
    }
    // A single line with a tab is prose.
    (rows.len() > 1 || first.len() > 2).then_some(())?;
    let mut sheet = Sheet::new(section_of("", &names), heading(lines, at), names);
    rows.into_iter().for_each(|(line, cells)| sheet.push(line, cells));
    (!sheet.rows.is_empty()).then_some((sheet, here))
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
    let section = SECTIONS.iter().find(|section| section.key == key);
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
    let section = SECTIONS.iter().find(|section| section.key == "statement");
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
                SECTIONS.iter().find(|section| section.key == key),
                Printed::default(),
                names.iter().map(ToString::to_string).collect(),
            );
            assert!(sheet.columns.iter().all(|column| !column.key.is_empty()), "{key}: {:?}", sheet.columns);
        }
    }
}

//! Output to the terminal: text from outside (names in files, paths, errors about them) passes
//! here, and its control characters are replaced.

use crate::failure::Failure;
use plumb_report::{Document, summary, text};
use plumb_units::{COLUMN_MOST, RowCount, visible, visible_lines};
use std::io::{self, ErrorKind, IsTerminal, Write};

/// Prints to stdout. A reader that has gone away (`plumb list | head`) is no error.
pub fn print(text: &str) -> Result<(), Failure> {
    let shown = visible_lines(text);
    let shown = if has_colour() { coloured(&shown) } else { shown.to_string() };
    let mut stdout = io::stdout().lock();
    match stdout.write_all(shown.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::run(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a value for programs.
///
/// # Errors
/// The errors that [`print`] returns.
pub fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    print(&format!("{value:#}\n"))
}

/// Prints one line on stderr.
pub fn complain(message: &str) {
    let line = message.lines().collect::<Vec<_>>().join(" ");
    // A closed stderr leaves no place to report that.
    let _ = writeln!(io::stderr(), "plumb: {}", visible(&line));
}

/// Prints lines that are neither result nor error, such as an announcement.
pub fn remark(text: &str) {
    let _ = write!(io::stderr(), "{}", visible_lines(text));
}

/// True if there is a terminal at which a user can answer.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question; true if the answer is yes, none without a terminal.
pub fn agreed(question: &str) -> Result<Option<bool>, Failure> {
    if !can_ask() {
        return Ok(None);
    }
    remark(question);
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(|error| Failure::run(format!("no answer: {error}")))?;
    Ok(Some(matches!(answer.trim(), "y" | "Y" | "yes")))
}

/// Returns the columns of a page: those of COLUMNS, also for a pipe, or of the terminal. None for a
/// file or a pipe, whose lines are not cut.
fn terminal_width() -> Option<usize> {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    if let Some(columns) = asked.filter(|columns| *columns > 0) {
        return Some(columns);
    }
    let terminal = console::Term::stdout();
    let (_, columns) = terminal.features().is_attended().then(|| terminal.size_checked())??;
    Some(usize::from(columns))
}

/// True on a terminal, unless <https://no-color.org> or the terminal says otherwise.
fn has_colour() -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb") && io::stdout().is_terminal()
}

const GREEN: &str = "\u{1b}[32m";
const YELLOW: &str = "\u{1b}[33m";
const RED: &str = "\u{1b}[31m";
/// Verdicts with their colours, a longer one before one that it contains.
const VERDICTS: [(&str, &str); 15] = [
    ("NOT PROVED", YELLOW),
    ("NOT HELD", YELLOW),
    ("PROVED EQUAL", GREEN),
    ("PROVED", GREEN),
    ("INVALID", RED),
    ("VALID", GREEN),
    ("IMPOSSIBLE", RED),
    ("REFUTED", RED),
    ("DAMAGED", RED),
    ("UNSTABLE", YELLOW),
    ("UNVERIFIED", YELLOW),
    ("DISTURBED", YELLOW),
    ("NOT THE DEVICE", YELLOW),
    ("IN DOUBT", YELLOW),
    ("MIXED", YELLOW),
];

/// A text with its verdicts in colour; JSON is for programs and stays as it is.
fn coloured(text: &str) -> String {
    if text.starts_with(['{', '[']) {
        return text.to_string();
    }
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    let (mut shown, mut left, mut before) = (String::with_capacity(text.len()), text, ' ');
    while let Some(first) = left.chars().next() {
        let verdict = VERDICTS.iter().find(|(word, _)| {
            let behind = left.strip_prefix(word);
            !is_letter(before) && behind.is_some_and(|behind| !behind.starts_with(is_letter))
        });
        let taken = match verdict {
            Some((word, colour)) => {
                shown.push_str(&format!("{colour}{word}\u{1b}[0m"));
                word
            }
            None => {
                shown.push(first);
                &left[..first.len_utf8()]
            }
        };
        before = taken.chars().last().unwrap_or(' ');
        left = &left[taken.len()..];
    }
    shown
}

/// Wraps lines of the help that are wider than the page under their text.
pub fn wrapped_help(help: &str) -> String {
    terminal_width().map_or_else(|| help.to_string(), |width| wrapped_lines(help, width.max(text::WIDTH_MIN)))
}

/// Columns of a description next to its option; with less room it is written below.
const DESCRIPTION_MIN: usize = 20;

/// Wraps options and commands where their text begins, other lines at their indent.
fn wrapped_lines(text: &str, width: usize) -> String {
    let mut wrapped = String::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        // At least two blanks follow the name of an option or a command.
        let gap = line[indent..].find("  ").map(|gap| indent + gap);
        let begin = gap.map(|gap| gap + line[gap..].len() - line[gap..].trim_start().len());
        let begin =
            begin.filter(|begin| *begin < line.len() && begin + DESCRIPTION_MIN <= width).unwrap_or(indent);
        if line.chars().count() <= width {
            wrapped.push_str(line);
        } else {
            let lines = text::wrap(&line[begin..], width.saturating_sub(begin).max(1));
            for (number, part) in lines.iter().enumerate() {
                let head = if number == 0 { line[..begin].to_string() } else { format!("\n{:begin$}", "") };
                wrapped.push_str(&(head + part));
            }
        }
        wrapped.push('\n');
    }
    wrapped
}

/// A number of things: `1 row`, `2,000 rows`.
pub fn counted(count: u64, thing: &str) -> String {
    format!("{} {thing}{}", RowCount(count), if count == 1 { "" } else { "s" })
}

/// Formats a whole report, as wide as the terminal or the paper.
pub fn report(document: &Document) -> String {
    text::render_in(document, terminal_width().unwrap_or(document.width))
}

/// Formats the summary of a report for a terminal.
pub fn summary(document: &Document) -> String {
    summary::render_in(document, terminal_width().map_or(usize::MAX, |width| width.max(text::WIDTH_MIN)))
}

/// Formats the answer of a report for a terminal.
pub fn answer(document: &Document) -> String {
    let width = terminal_width().map_or(usize::MAX, |width| width.max(text::WIDTH_MIN));
    summary::answer(&document.answer, width).iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Formats rows in aligned columns, two blanks apart; the last column is not padded. On a terminal
/// wide cells are wrapped within their column.
pub fn aligned(rows: &[Vec<String>]) -> String {
    match terminal_width() {
        Some(width) => wrapped(rows, width.max(text::WIDTH_MIN)).unwrap_or_else(|wider| wider),
        None => in_columns(rows),
    }
}

/// Formats rows whose first one names the columns. Where a terminal is too narrow for all columns,
/// each row becomes a list of its cells.
pub fn aligned_under_head(rows: &[Vec<String>]) -> String {
    under_head(rows, terminal_width())
}

/// Columns of a list of sentences in a file or a pipe.
const SENTENCES_WIDTH: usize = 100;

/// Formats rows of several sentences as [`aligned_under_head`], and in a file or a pipe as on a
/// terminal of 100 columns: side by side, their sentences would make lines of several hundred.
pub fn sentences_under_head(rows: &[Vec<String>]) -> String {
    under_head(rows, Some(terminal_width().unwrap_or(SENTENCES_WIDTH)))
}

fn under_head(rows: &[Vec<String>], width: Option<usize>) -> String {
    match width {
        Some(width) => {
            let width = width.max(text::WIDTH_MIN);
            wrapped(rows, width).unwrap_or_else(|_| one_below_the_other(rows, width))
        }
        None => in_columns(rows),
    }
}

/// Least width of a column of words, unless the words are shorter.
const WORDS_MIN: usize = 8;

/// Wraps cells that are wider than the page; returns lines that are still too wide as an error.
fn wrapped(rows: &[Vec<String>], page_width: usize) -> Result<String, String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let longest = |column: usize| cells(column).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let width = |column: usize| longest(column).min(COLUMN_MOST);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    // Names are copied from here, so they stay whole; long words elsewhere are cut.
    let word = |cell: &String| cell.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0);
    let least = |column: usize| match column {
        0 => widths[0],
        _ => cells(column).map(word).max().unwrap_or(0).clamp(1, 24).max(WORDS_MIN).min(widths[column]),
    };
    let least: Vec<usize> = (0..columns).map(least).collect();
    // Two blanks separate columns, where a table of a report has one.
    let fitted = text::fitted(&widths, &least, page_width.saturating_sub(columns.saturating_sub(1)));
    let fits = fitted.iter().sum::<usize>() + 2 * columns.saturating_sub(1) <= page_width;
    let mut lines = Vec::new();
    for row in rows {
        let cells: Vec<Vec<String>> =
            row.iter().zip(&fitted).map(|(cell, width)| text::wrap(cell, (*width).max(1))).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            let of_line = |cell: &Vec<String>| cell.get(line).cloned().unwrap_or_default();
            lines.push(cells.iter().map(of_line).collect::<Vec<_>>());
        }
    }
    let text = in_columns(&lines);
    if fits { Ok(text) } else { Err(text) }
}

/// Formats rows that do not fit side by side: the first cell of each, and the others below it with
/// the names from the first row.
fn one_below_the_other(rows: &[Vec<String>], page_width: usize) -> String {
    let Some((head, rows)) = rows.split_first() else { return String::new() };
    let names = head.iter().skip(1).map(|name| name.chars().count()).max().unwrap_or(0).min(COLUMN_MOST);
    let mut text = String::new();
    for row in rows {
        let Some((first, others)) = row.split_first() else { continue };
        text.push_str(&format!("{}\n", visible(first)));
        for (name, cell) in head.iter().skip(1).zip(others).filter(|(_, cell)| !cell.is_empty()) {
            // A page may be narrower than the names: at least one letter a line remains.
            let width = page_width.saturating_sub(names + 4).max(1);
            for (line, words) in text::wrap(&visible(cell), width).iter().enumerate() {
                let name = if line == 0 { name.to_lowercase() } else { String::new() };
                text.push_str(&format!("  {name:<names$}  {words}\n"));
            }
        }
    }
    text
}

fn in_columns(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<_>> = rows.iter().map(|row| row.iter().map(|cell| visible(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0).min(COLUMN_MOST)).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_side_by_side_stands_one_below_the_other() {
        let rows = [
            ["SETTING", "GROUP", "TAKES", "HELP"],
            [
                "log_checkpoint_interval",
                "log",
                "a size from 0 to 1T",
                "Most bytes of log that a recovery shall do again.",
            ],
            ["log_file_io", "log", "", "How the log files are reached."],
        ];
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.map(String::from).to_vec()).collect();
        assert!(wrapped(&rows, 40).is_err());
        assert_eq!(
            one_below_the_other(&rows, 40),
            "log_checkpoint_interval\n  group  log\n  takes  a size from 0 to 1T\n  help   Most bytes of log that a\n         recovery shall do again.\n\
             log_file_io\n  group  log\n  help   How the log files are reached.\n"
        );
    }

    /// The width of a format ends at 65,535: a column of a table may have had any name.
    #[test]
    fn a_name_of_any_length_is_listed() {
        let long = "n".repeat(70_000);
        let rows = [["NAME", &long, "x"], [&long, "TYPE", "y"]];
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.map(str::to_string).to_vec()).collect();
        for text in [in_columns(&rows), one_below_the_other(&rows, 100)] {
            assert!(text.contains(&long), "nothing is left out");
        }
        let wide = wrapped(&rows, 100).unwrap_or_else(|wider| wider);
        assert_eq!(wide.matches('n').count(), 2 * long.len());
    }

    #[test]
    fn verdicts_are_coloured_as_words() {
        assert_eq!(
            coloured("run: VALID (IN DOUBT)"),
            "run: \u{1b}[32mVALID\u{1b}[0m (\u{1b}[33mIN DOUBT\u{1b}[0m)"
        );
        assert_eq!(coloured("NOT PROVED"), "\u{1b}[33mNOT PROVED\u{1b}[0m");
        for text in ["INVALIDATED", "UNPROVED", "proved", "X_VALID", "{\"says\": \"VALID\"}"] {
            assert_eq!(coloured(text), text);
        }
    }

    #[test]
    fn help_is_wrapped_under_its_text() {
        let help = "About it, which is a rather long line\n\n  -x, --long <N>  Words that go on and on\n      --rather-long-name-of-an-option  More words";
        assert_eq!(
            wrapped_lines(help, 40),
            "About it, which is a rather long line\n\n  -x, --long <N>  Words that go on and\n                  on\n      --rather-long-name-of-an-option\n      More words\n"
        );
    }

    #[test]
    fn a_list_is_wrapped_within_its_columns() {
        let rows = [
            ["NAME", "TAKES", "HELP"],
            [
                "sort_area_size",
                "64K to 1T",
                "Memory of each sort server, first for the area and then for the merge",
            ],
            ["asynch", "true, false", "Short"],
        ];
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.map(str::to_string).to_vec()).collect();
        let text = wrapped(&rows, 60).expect("it fits");
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        insta::assert_snapshot!(text);
        assert_eq!(wrapped(&rows, 200), Ok(in_columns(&rows)));
    }
}

//! What goes to the terminal: text from outside (names in files, paths, errors about them)
//! passes here, and no control character of it gets through.

use crate::failure::Failure;
use plumb_units::{visible, visible_lines};
use std::io::{self, ErrorKind, Write};

/// Prints to stdout. A reader that has gone away (`plumb list | head`) is no error.
///
/// # Errors
/// When stdout cannot be written for another reason.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(visible_lines(text).as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::run(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// One line on stderr.
pub fn complain(message: &str) {
    let line = message.lines().collect::<Vec<_>>().join(" ");
    // If stderr is closed there is no place to say so.
    let _ = writeln!(io::stderr(), "plumb: {}", visible(&line));
}

/// Lines that are neither result nor error: what is about to happen.
pub fn remark(text: &str) {
    let _ = write!(io::stderr(), "{}", visible_lines(text));
}

/// Rows in aligned columns with two blanks between them; the last column is not padded.
#[must_use]
pub fn aligned(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<_>> = rows.iter().map(|row| row.iter().map(|cell| visible(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

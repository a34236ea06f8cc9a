//! A table under a dashed ruler, its columns as wide as what stands in them.

use super::drawing;
use super::wrap::wrap;
use crate::document::NO_DATA;
use crate::table::{Alignment, Column, Row, RowKind, Table};
use plumb_units::visible;

/// The table's lines; its caption in lines of at most so many characters.
pub(super) fn lines(table: &Table, page_width: usize) -> Vec<String> {
    let caption = table.caption.as_deref().map(|caption| wrap(caption, page_width));
    let mut lines = caption.unwrap_or_default();
    if table.rows.is_empty() {
        lines.push(NO_DATA.to_string());
        return lines;
    }
    let rows = table.rows.iter().map(|row| broken(row, &table.columns)).collect::<Vec<_>>();
    let widths = widths(&table.columns, &rows);
    lines.extend(header(&table.columns, &widths));
    let ruler = widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>().join(" ");
    lines.push(ruler.clone());
    for (row, cells) in table.rows.iter().zip(&rows) {
        if row.kind == RowKind::Total {
            lines.push(ruler.clone());
        }
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let line = |index: usize| {
            let texts = cells.iter().map(|cell| cell.get(index).map_or("", String::as_str));
            set(texts, &table.columns, &widths)
        };
        lines.extend((0..height).map(line));
    }
    lines
}

/// The row's cells, each as its lines.
fn broken(row: &Row, columns: &[Column]) -> Vec<Vec<String>> {
    let cells = row.cells.iter().zip(columns);
    let broken = cells.map(|(cell, column)| match column.alignment {
        Alignment::Wrapped(width) => wrap(&visible(&cell.text), width),
        Alignment::Text | Alignment::Number => vec![visible(&cell.text).into_owned()],
        Alignment::Drawn(width) => vec![drawing::drawing(cell.drawing, column.axis.as_ref(), width)],
    });
    broken.collect()
}

fn widths(columns: &[Column], rows: &[Vec<Vec<String>>]) -> Vec<usize> {
    let width = |(index, column): (usize, &Column)| {
        let cells = rows.iter().filter_map(|row| row.get(index)).flatten();
        let cells = cells.map(|line| line.chars().count());
        let titles = titles(column).into_iter().map(|line| line.chars().count());
        cells.chain(titles).max().unwrap_or(0)
    };
    columns.iter().enumerate().map(width).collect()
}

/// The titles' lines, the last ones next to the ruler.
fn header(columns: &[Column], widths: &[usize]) -> Vec<String> {
    let titles = columns.iter().map(titles).collect::<Vec<_>>();
    let height = titles.iter().map(Vec::len).max().unwrap_or(0);
    let line = |index: usize| {
        let texts = titles.iter().map(|lines| {
            let skipped = height - lines.len();
            index.checked_sub(skipped).and_then(|at| lines.get(at)).map_or("", String::as_str)
        });
        set(texts, columns, widths)
    };
    (0..height).map(line).collect()
}

/// A title's lines; those of an axis end with its ticks.
fn titles(column: &Column) -> Vec<String> {
    let mut lines = column.title.lines().map(str::to_string).collect::<Vec<_>>();
    if let (Some(axis), Alignment::Drawn(width)) = (&column.axis, column.alignment) {
        lines.push(drawing::ticks(axis, width));
    }
    lines
}

fn set<'a>(texts: impl Iterator<Item = &'a str>, columns: &[Column], widths: &[usize]) -> String {
    let cells = texts.zip(columns).zip(widths).map(|((text, column), width)| match column.alignment {
        Alignment::Number => format!("{text:>width$}"),
        Alignment::Text | Alignment::Wrapped(_) | Alignment::Drawn(_) => format!("{text:<width$}"),
    });
    cells.collect::<Vec<_>>().join(" ")
}

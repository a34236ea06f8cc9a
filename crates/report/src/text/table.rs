//! A table under a dashed ruler, with columns as wide as their content.

use super::drawing;
use super::wrap::wrap;
use crate::document::NO_DATA;
use crate::table::{Alignment, Column, Row, RowKind, Table};
use plumb_units::{COLUMN_MOST, visible};

/// Least width of a column of words, unless its content is narrower.
const WORDS_MIN: usize = 10;

/// Renders the table within this width. If it is wider, columns of words are wrapped. If that is
/// not enough, columns are in groups below each other, each after the first column.
pub(super) fn lines(table: &Table, page_width: usize) -> Vec<String> {
    let caption = table.caption.as_deref().map(|caption| wrap(caption, page_width));
    let mut lines = caption.unwrap_or_default();
    if table.rows.is_empty() {
        lines.push(NO_DATA.to_string());
        return lines;
    }
    let free = vec![usize::MAX; table.columns.len()];
    let widths = widths(&table.columns, &rows(table, &free));
    let least: Vec<usize> =
        table.columns.iter().zip(&widths).map(|(column, width)| least(column, *width)).collect();
    let widths = match total(&least) <= page_width {
        true => fitted(&widths, &least, page_width),
        // If the columns do not fit side by side, sentences take half a page, and names leave room
        // for any other column.
        false => {
            let others = least.iter().skip(1).max().map_or(0, |widest| widest + 1);
            let names = page_width.saturating_sub(others).min(page_width / 2);
            let most = std::iter::once(names).chain(std::iter::repeat(page_width / 2));
            let limits = least.iter().zip(most).map(|(least, most)| most.max(*least));
            widths.iter().zip(limits).map(|(width, limit)| (*width).min(limit)).collect()
        }
    };
    let broken = rows(table, &widths);
    for (index, group) in groups(&widths, page_width).into_iter().enumerate() {
        if index > 0 {
            lines.push(String::new());
        }
        lines.extend(group_lines(table, &broken, &widths, &group));
    }
    lines
}

/// Returns widths of columns that fit a page with a blank between two. Columns above their least
/// width are made narrower, the widest first.
pub fn fitted(widths: &[usize], least: &[usize], page_width: usize) -> Vec<usize> {
    let mut fitted = widths.to_vec();
    while total(&fitted) > page_width {
        let can_give = (0..fitted.len()).filter(|index| fitted[*index] > least[*index]);
        let Some(widest) = can_give.max_by_key(|index| fitted[*index]) else { return fitted };
        fitted[widest] -= 1;
    }
    fitted
}

/// Returns the width of columns with the blanks between them.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + widths.len().saturating_sub(1)
}

/// Returns the least width of a column; figures and drawings keep theirs.
fn least(column: &Column, width: usize) -> usize {
    let title = titles(column).into_iter().map(|line| line.chars().count()).max().unwrap_or(0);
    match column.alignment {
        Alignment::Wrapped(_) | Alignment::Text => title.max(WORDS_MIN).min(width),
        Alignment::Number | Alignment::Drawn(_) => width,
    }
}

/// Groups columns that fit side by side; each group starts with the first column.
fn groups(widths: &[usize], page_width: usize) -> Vec<Vec<usize>> {
    let mut groups = Vec::new();
    let mut group: Vec<usize> = Vec::new();
    let mut used = 0;
    for (column, width) in widths.iter().enumerate() {
        let is_more_than_names = group.len() > 1;
        if is_more_than_names && used + 1 + width > page_width {
            groups.push(std::mem::replace(&mut group, vec![0]));
            used = widths[0];
        }
        used += width + usize::from(!group.is_empty());
        group.push(column);
    }
    groups.push(group);
    groups
}

/// Renders some columns of a table.
fn group_lines(table: &Table, broken: &[Vec<Vec<String>>], widths: &[usize], group: &[usize]) -> Vec<String> {
    let columns: Vec<Column> = group.iter().map(|column| table.columns[*column].clone()).collect();
    let widths: Vec<usize> = group.iter().map(|column| widths[*column]).collect();
    let mut lines = header(&columns, &widths);
    let ruler = widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>().join(" ");
    lines.push(ruler.clone());
    for (row, cells) in table.rows.iter().zip(broken) {
        if row.kind == RowKind::Total {
            lines.push(ruler.clone());
        }
        let cells: Vec<&Vec<String>> = group.iter().filter_map(|column| cells.get(*column)).collect();
        let height = cells.iter().map(|cell| cell.len()).max().unwrap_or(0);
        let line = |index: usize| {
            let texts = cells.iter().map(|cell| cell.get(index).map_or("", String::as_str));
            set(texts, &columns, &widths)
        };
        lines.extend((0..height).map(line));
    }
    lines
}

/// Returns the rows' cells, each as its lines within these widths.
fn rows(table: &Table, widths: &[usize]) -> Vec<Vec<Vec<String>>> {
    table.rows.iter().map(|row| broken(row, &table.columns, widths)).collect()
}

/// Returns a row's cells, each as its lines.
fn broken(row: &Row, columns: &[Column], widths: &[usize]) -> Vec<Vec<String>> {
    let cells = row.cells.iter().zip(columns).zip(widths);
    let broken = cells.map(|((cell, column), most)| match column.alignment {
        Alignment::Wrapped(width) => wrap(&visible(&cell.text), width.min(*most)),
        Alignment::Text if *most < cell.text.chars().count() => wrap(&visible(&cell.text), *most),
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
        cells.chain(titles).max().unwrap_or(0).min(COLUMN_MOST)
    };
    columns.iter().enumerate().map(width).collect()
}

/// Renders the lines of the titles, the last ones next to the ruler.
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

/// Returns the lines of a title; an axis adds its ticks.
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

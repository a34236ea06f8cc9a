//! The published table and ours, in the published layout.
//!
//! Times of different machines are not comparable, but their ratios are. So each time has its share
//! of the table's first, in theirs and in ours.

use super::with_unit;
use plumb_report::Section;
use plumb_report::format::{Figure, MinutesSeconds, Percent, Reading};
use plumb_report::table::{Cell, Column, Table};
use plumb_study::analysis::result::Analysis;
use plumb_study::definition::{Published, PublishedRow, minutes};

/// Shows the published table with ours; `None` for a study without one.
pub(super) fn table(analysis: &Analysis) -> Option<Section> {
    let study = &analysis.study;
    let published = study.published.as_ref()?;
    let column = &study.factors[published.column];
    let mut columns: Vec<Column> =
        published.row_factors.iter().map(|factor| Column::text(&study.factors[*factor].name)).collect();
    // Values other than times are printed as published.
    let is_time = study.measure.figure == plumb_study::vocabulary::Figure::Elapsed;
    let their_unit = if is_time { "m:ss" } else { study.measure.unit() };
    for (side, unit) in [("theirs", their_unit), ("ours", study.measure.unit())] {
        for figure in [unit, "%"] {
            let title = |label: &str| with_unit(&format!("{}\n{}\n{side}\n", column.name, label), figure);
            columns.extend(column.levels.iter().map(|level| Column::number(title(&level.label))));
        }
    }
    let mut table = Table::new(columns);
    let figures = |row: &PublishedRow| {
        let theirs: Vec<Option<f64>> = row.times.iter().map(|time| minutes(time)).collect();
        let ours: Vec<Option<f64>> =
            (0..column.levels.len()).map(|level| ours(analysis, published, row, level)).collect();
        (theirs, ours)
    };
    let (theirs, ours) = published.rows.first().map(figures).unwrap_or_default();
    let bases = [theirs, ours].map(|values| values.first().copied().flatten());
    for row in &published.rows {
        let labels = published.row_factors.iter().zip(&row.levels);
        let mut cells: Vec<Cell> =
            labels.map(|(factor, level)| Cell::from(&study.factors[*factor].levels[*level].label)).collect();
        let (theirs, ours) = figures(row);
        cells.extend(theirs.iter().map(|value| match is_time {
            true => Cell::of(value.map(MinutesSeconds)),
            false => Cell::of(value.map(Reading)),
        }));
        cells.extend(theirs.iter().map(|value| Cell::from(share(*value, bases[0]))));
        cells.extend(ours.iter().map(|value| Cell::of(value.map(Reading))));
        cells.extend(ours.iter().map(|value| Cell::from(share(*value, bases[1]))));
        table.row(cells);
    }
    Some(
        Section::front("published", published.title.clone())
            .note(format!("theirs: {}", published.source))
            .note(format!("ours: medians of {} over counted runs", study.measure.title()))
            .note("%: of the first value of the table, theirs of theirs and ours of ours; ratios compare, times of two machines do not")
            .table(table),
    )
}

/// Returns the median of a cell's arm; factors outside the table are at their reference.
fn ours(analysis: &Analysis, published: &Published, row: &PublishedRow, column_level: usize) -> Option<f64> {
    let mut wanted = vec![0; analysis.study.factors.len()];
    published.row_factors.iter().zip(&row.levels).for_each(|(factor, level)| wanted[*factor] = *level);
    wanted[published.column] = column_level;
    analysis.arms.iter().find(|arm| arm.levels == wanted)?.median
}

fn share(value: Option<f64>, base: Option<f64>) -> String {
    value.zip(base).map(|(part, whole)| Percent { part, whole }.figure()).unwrap_or_default()
}

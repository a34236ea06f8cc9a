//! The published table and ours, in the published layout.
//!
//! Times of another machine compare with nothing; their ratios do. So beside each time stands what
//! share it is of the table's first, theirs and ours.

use crate::analysis::result::{Analysis, PublishedRow, PublishedTable};
use plumb_report::Section;
use plumb_report::format::{Figure, MinutesSeconds, Percent, Reading};
use plumb_report::table::{Cell, Column, Table};

/// Both tables side by side; none when the study answers to no table.
pub(super) fn table(study: &Analysis) -> Option<Section> {
    let published = study.published.as_ref()?;
    let mut columns = published.row_labels.iter().map(Column::text).collect::<Vec<_>>();
    for (side, unit) in [("theirs", "m:ss"), ("ours", study.header.measure.unit.as_str())] {
        for figure in [unit, "%"] {
            // A narrow column: its title is set a word a line.
            let title = |title: &String| format!("{}\n{side}\n({figure})", title.replace(' ', "\n"));
            columns.extend(published.columns.iter().map(title).map(Column::number));
        }
    }
    let mut table = Table::new(columns);
    let first = published.rows.first();
    let theirs_base = first.and_then(|row| row.published_s.first().copied().flatten());
    let ours_base = first.and_then(|row| ours(study, row).first().copied().flatten());
    for row in &published.rows {
        let mut cells = row.labels.iter().map(Cell::from).collect::<Vec<_>>();
        let ours = ours(study, row);
        let theirs = (0..published.columns.len()).map(|at| row.published_s.get(at).copied().flatten());
        let theirs = theirs.collect::<Vec<_>>();
        cells.extend(theirs.iter().map(|value| Cell::of(value.map(MinutesSeconds))));
        cells.extend(theirs.iter().map(|value| Cell::from(share(*value, theirs_base))));
        cells.extend(padded(&ours, published).map(|value| Cell::of(value.map(Reading))));
        cells.extend(padded(&ours, published).map(|value| Cell::from(share(value, ours_base))));
        table.row(cells);
    }
    Some(
        Section::front("published", published.title.clone())
            .note(format!("theirs: {}", published.source))
            .note(format!("ours: medians of {} over counted runs", study.header.measure.name))
            .note("%: of the first value of the table, theirs of theirs and ours of ours; ratios compare, times of two machines do not")
            .table(table),
    )
}

/// The medians of a row's arms.
fn ours(study: &Analysis, row: &PublishedRow) -> Vec<Option<f64>> {
    row.arms.iter().map(|arm| arm.and_then(|arm| study.arms.get(arm)).and_then(|arm| arm.median)).collect()
}

fn padded<'a>(
    values: &'a [Option<f64>],
    table: &'a PublishedTable,
) -> impl Iterator<Item = Option<f64>> + 'a {
    (0..table.columns.len()).map(|at| values.get(at).copied().flatten())
}

fn share(value: Option<f64>, base: Option<f64>) -> String {
    value.zip(base).map(|(part, whole)| Percent { part, whole }.figure()).unwrap_or_default()
}

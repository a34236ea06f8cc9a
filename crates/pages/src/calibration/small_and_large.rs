//! Concurrent small and large requests, as heat tables.

use super::median;
use plumb_calibrate::{Calibration, Estimate, Matrix, MatrixCell};
use plumb_report::Section;
use plumb_report::format::{Count, Figure};
use plumb_report::table::{Cell, Column, Table};

/// A figure of a cell.
type Of = fn(&MatrixCell) -> Option<&Estimate>;

/// Returns the matrix; `None` if no point combines small and large requests.
pub(super) fn matrix(calibration: &Calibration) -> Option<Section> {
    let matrix = calibration.matrix();
    if !matrix.cells.iter().any(|cell| cell.large > 0 && cell.small > 0) {
        return None;
    }
    let figures: [(&str, Of); 3] = [
        ("Small requests a second", |cell| cell.iops.as_ref()),
        ("Mean latency of small requests, ms", |cell| cell.latency_ms.as_ref()),
        ("MB/s of large requests", |cell| cell.mb_per_second.as_ref()),
    ];
    let section = Section::front("matrix", "Small and Large Requests Together")
        .note("a column for each number of small requests outstanding, a row for each number of large ones")
        .note("the shade is the figure's share of the largest in its table; the same as ORION's CSV files");
    Some(
        figures.into_iter().fold(section, |section, (caption, of)| section.table(heat(&matrix, caption, of))),
    )
}

fn heat(matrix: &Matrix, caption: &str, of: Of) -> Table {
    let (small, large) = matrix.filled(|cell| of(cell).is_some());
    let count = |count: &usize| Count(*count as u64).figure();
    let numbers = small.iter().map(|small| Column::number(count(small)));
    let columns = std::iter::once(Column::number("large / small")).chain(numbers).collect();
    let mut table = Table::new(columns).with_caption(caption);
    let largest = matrix.cells.iter().filter_map(of).map(|estimate| estimate.median);
    let largest = largest.fold(f64::MIN_POSITIVE, f64::max);
    for large in &large {
        let cell = |small: &usize| {
            let Some(estimate) = matrix.cell(*large, *small).and_then(of) else { return Cell::default() };
            median(estimate).with_share(Some(estimate.median / largest))
        };
        let cells = small.iter().map(cell);
        table.row(std::iter::once(Cell::from(count(large))).chain(cells).collect());
    }
    table
}

//! Small and large requests at the same time, as tables of heat.

use super::median;
use crate::document::calibration::context::{CalibrationContext, Estimate, LoadMatrix, MatrixCell};
use plumb_report::Section;
use plumb_report::format::{Count, Figure};
use plumb_report::table::{Cell, Column, Table};

/// A figure of a cell.
type Of = fn(&MatrixCell) -> Option<&Estimate>;

/// None where no small request ever met a large one.
pub(super) fn matrix(context: &CalibrationContext) -> Option<Section> {
    let matrix = context.matrix.as_ref()?;
    if !matrix.cells.iter().any(|cell| cell.large > 0 && cell.small > 0) {
        return None;
    }
    let figures: [(&str, Of); 3] = [
        ("Small requests a second", |cell| cell.iops.as_ref()),
        ("Mean latency of small requests, ms", |cell| cell.latency_ms.as_ref()),
        ("MB/s of large requests", |cell| cell.mb_per_s.as_ref()),
    ];
    let section = Section::front("matrix", "Small and Large Requests Together")
        .note("a column for each number of small requests outstanding, a row for each number of large ones")
        .note("the shade is the figure's share of the largest in its table; the same as ORION's CSV files");
    Some(figures.into_iter().fold(section, |section, (caption, of)| section.table(heat(matrix, caption, of))))
}

fn heat(matrix: &LoadMatrix, caption: &str, of: Of) -> Table {
    // A row or a column without any figure is none: not every mode measures the whole matrix.
    let filled = |which: &dyn Fn(&MatrixCell) -> bool| {
        matrix.cells.iter().any(|cell| which(cell) && of(cell).is_some())
    };
    let small = matrix.small.iter().filter(|small| filled(&|cell| cell.small == **small));
    let small: Vec<u64> = small.copied().collect();
    let large = matrix.large.iter().filter(|large| filled(&|cell| cell.large == **large));
    let numbers = small.iter().map(|small| Column::number(Count(*small).figure()));
    let columns = std::iter::once(Column::number("large / small")).chain(numbers).collect();
    let mut table = Table::new(columns).with_caption(caption);
    let largest = matrix.cells.iter().filter_map(of).map(|estimate| estimate.median);
    let largest = largest.fold(f64::MIN_POSITIVE, f64::max);
    for large in large {
        let cell = |small: &u64| {
            let found = matrix.cells.iter().find(|cell| cell.large == *large && cell.small == *small);
            let Some(estimate) = found.and_then(of) else { return Cell::default() };
            median(estimate).with_share(Some(estimate.median / largest))
        };
        let cells = small.iter().map(cell);
        table.row(std::iter::once(Cell::from(Count(*large).figure())).chain(cells).collect());
    }
    table
}

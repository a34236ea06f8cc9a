//! The matrix of small and large requests in ORION's layout. Each number of large requests
//! outstanding has a row, each number of small ones a column.

use crate::plan::{MatrixKind, cell};
use crate::{Estimate, Load, Point, TaskResult};
use plumb_units::Bytes;

#[derive(Debug, Clone, PartialEq)]
pub struct MatrixCell {
    /// Large requests outstanding: the row.
    pub large: usize,
    /// Small requests outstanding: the column.
    pub small: usize,
    /// Small requests per second; `None` in column 0.
    pub iops: Option<Estimate>,
    /// Mean latency of small requests, milliseconds.
    pub latency_ms: Option<Estimate>,
    /// MB per second of large requests; `None` in row 0.
    pub mb_per_second: Option<Estimate>,
}

/// The matrix of small and large requests.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Matrix {
    /// Numbers of small requests, ascending.
    pub small: Vec<usize>,
    /// Numbers of large requests, ascending.
    pub large: Vec<usize>,
    /// The cells that were measured.
    pub cells: Vec<MatrixCell>,
}

/// Properties that all cells of a matrix share.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Method, buffers and rings of all cells.
    pub like: Point,
    /// Bytes of a small and of a large request.
    pub sizes: (Bytes, Bytes),
    /// Mix and order of the requests.
    pub kind: MatrixKind,
}

impl Layout {
    /// Returns the numbers of large and small requests of a task's cell, if it is one.
    pub(crate) fn place(&self, result: &TaskResult) -> Option<(usize, usize)> {
        let point = result.point()?;
        let count = |size: Bytes| {
            let load = point.loads.iter().find(|load: &&Load| load.request_bytes == size.0);
            load.map_or(0, |load| load.outstanding)
        };
        let (small, large) = (count(self.sizes.0), count(self.sizes.1));
        let loads = cell(self.sizes, self.kind, small, large);
        (*point == self.like.with(loads, 1)).then_some((large, small))
    }
}

impl Matrix {
    /// Extracts the cells from results.
    pub(crate) fn of(results: &[TaskResult], layout: &Layout) -> Matrix {
        let mut matrix = Matrix::default();
        for result in results.iter().filter(|result| !result.repeats.is_empty()) {
            if let Some((large, small)) = layout.place(result) {
                matrix.cells.push(measured(result, small, large));
            }
        }
        matrix.cells.sort_by_key(|cell| (cell.large, cell.small));
        matrix.small = numbers(&matrix.cells, |cell| cell.small);
        matrix.large = numbers(&matrix.cells, |cell| cell.large);
        matrix
    }

    /// Returns the numbers of small and of large requests that have a cell with some figure. Only
    /// some modes measure the whole matrix.
    pub fn filled(&self, has: impl Fn(&MatrixCell) -> bool) -> (Vec<usize>, Vec<usize>) {
        let cells: Vec<&MatrixCell> = self.cells.iter().filter(|cell| has(cell)).collect();
        let keep = |numbers: &[usize], of: fn(&MatrixCell) -> usize| {
            let filled = |number: &usize| cells.iter().any(|cell| of(cell) == *number);
            numbers.iter().copied().filter(filled).collect()
        };
        (keep(&self.small, |cell| cell.small), keep(&self.large, |cell| cell.large))
    }

    /// Returns a cell, if it was measured.
    pub fn cell(&self, large: usize, small: usize) -> Option<&MatrixCell> {
        self.cells.iter().find(|cell| cell.large == large && cell.small == small)
    }
}

fn measured(result: &TaskResult, small: usize, large: usize) -> MatrixCell {
    let large_load = usize::from(small > 0);
    let latency = |measurement: &crate::Measurement| Some(measurement.loads.first()?.latency.mean().millis());
    MatrixCell {
        large,
        small,
        iops: result.iops(0).filter(|_| small > 0),
        latency_ms: result.estimate(latency).filter(|_| small > 0),
        mb_per_second: result.mb_per_second(large_load).filter(|_| large > 0),
    }
}

fn numbers(cells: &[MatrixCell], of: fn(&MatrixCell) -> usize) -> Vec<usize> {
    let mut numbers: Vec<usize> = cells.iter().map(of).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

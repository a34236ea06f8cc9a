//! A map of counts over time and a second quantity, of fixed size.
//!
//! The grid grows by doubling the width of its columns or the height of its rows, with neighbours
//! added up. So it needs no limit of time or size before the trace, and no request is kept.

pub const COLUMNS: usize = 96;
/// Rows of the second quantity.
pub const ROWS: usize = 32;
/// First width of a column, nanoseconds.
const COLUMN_NS: u64 = 10_000_000;

/// Equal steps that double when a value lies outside.
#[derive(Debug, Clone)]
struct Steps {
    from: u64,
    step: u64,
    count: usize,
}

/// Change of a grid that makes room for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Growth {
    /// Steps are merged in pairs into the lower half, so that greater values fit above.
    Up,
    /// Steps are merged in pairs into the upper half, so that smaller values fit below.
    Down,
}

impl Steps {
    fn growth(&self, value: u64) -> Option<Growth> {
        match value.checked_sub(self.from) {
            None => Some(Growth::Down),
            Some(above) => (above / self.step >= self.count as u64).then_some(Growth::Up),
        }
    }

    fn grow(&mut self, growth: Growth) {
        if growth == Growth::Down {
            self.from = self.from.saturating_sub(self.step * self.count as u64);
        }
        self.step *= 2;
    }

    fn index(&self, value: u64) -> usize {
        ((value.saturating_sub(self.from) / self.step) as usize).min(self.count - 1)
    }
}

/// Counts over time and a quantity.
#[derive(Debug, Clone)]
pub(crate) struct Map {
    times: Steps,
    rows: Option<Steps>,
    /// Counts by column, then by row.
    cells: Vec<[u64; ROWS]>,
}

impl Map {
    /// Creates a map whose rows are powers of two of the quantity.
    pub fn by_powers() -> Map {
        let times = Steps { from: 0, step: COLUMN_NS, count: COLUMNS };
        Map { times, rows: None, cells: vec![[0; ROWS]; COLUMNS] }
    }

    /// Creates a map whose rows are equal steps, which begin near the first value.
    pub fn by_steps(first: u64, step: u64) -> Map {
        let from = first - first % (step * ROWS as u64);
        Map { rows: Some(Steps { from, step, count: ROWS }), ..Map::by_powers() }
    }

    /// Counts a value at a time.
    pub fn add(&mut self, time: u64, value: u64) {
        while let Some(growth) = self.times.growth(time) {
            self.times.grow(growth);
            for column in 0..COLUMNS / 2 {
                let pair = [self.cells[2 * column], self.cells[2 * column + 1]];
                self.cells[column] = std::array::from_fn(|row| pair[0][row] + pair[1][row]);
            }
            self.cells[COLUMNS / 2..].fill([0; ROWS]);
        }
        if let Some(rows) = &mut self.rows {
            while let Some(growth) = rows.growth(value) {
                rows.grow(growth);
                self.cells.iter_mut().for_each(|column| fold(column, growth));
            }
        }
        let row = match &self.rows {
            Some(rows) => rows.index(value),
            None => (u64::BITS - value.leading_zeros()).min(ROWS as u32 - 1) as usize,
        };
        self.cells[self.times.index(time)][row] += 1;
    }

    /// Returns the width of a column, nanoseconds.
    pub fn time_step(&self) -> u64 {
        self.times.step
    }

    /// Returns start and height of the rows; 0 for powers of two.
    pub fn row_steps(&self) -> [u64; 2] {
        self.rows.as_ref().map_or([0, 0], |rows| [rows.from, rows.step])
    }

    /// Returns the counts by column, up to the last used one.
    pub fn cells(&self) -> Vec<Vec<u64>> {
        let used = self.cells.iter().rposition(|column| column.iter().any(|count| *count > 0));
        self.cells[..used.map_or(0, |last| last + 1)].iter().map(|column| column.to_vec()).collect()
    }
}

fn fold(column: &mut [u64; ROWS], growth: Growth) {
    let halves: [u64; ROWS / 2] = std::array::from_fn(|row| column[2 * row] + column[2 * row + 1]);
    *column = [0; ROWS];
    let at = if growth == Growth::Up { 0 } else { ROWS / 2 };
    column[at..at + ROWS / 2].copy_from_slice(&halves);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(map: &Map) -> u64 {
        map.cells().iter().flatten().sum()
    }

    #[test]
    fn a_map_grows_in_both_directions_and_loses_nothing() {
        let mut map = Map::by_steps(1 << 30, 4096);
        let mut count = 0;
        for time in [0, 1_000_000_000, 7, 3_600_000_000_000] {
            for value in [1 << 30, (1 << 30) - 1, 0, 1 << 40, 5] {
                map.add(time, value);
                count += 1;
                assert_eq!(total(&map), count);
            }
        }
        let [from, step] = map.row_steps();
        assert_eq!(from, 0);
        assert!(step * ROWS as u64 > 1 << 40);
        assert!(map.time_step() * COLUMNS as u64 > 3_600_000_000_000);
    }

    #[test]
    fn rows_of_powers_hold_values_below_them() {
        let mut map = Map::by_powers();
        for value in [0, 1, 2, 1023, 1024] {
            map.add(0, value);
        }
        let column = &map.cells()[0];
        assert_eq!((column[0], column[1], column[2], column[10], column[11]), (1, 1, 1, 1, 1));
    }

    #[test]
    fn values_that_were_counted_stay_at_their_place() {
        let mut map = Map::by_steps(0, 1);
        map.add(0, 31);
        map.add(0, 63);
        let column = &map.cells()[0];
        assert_eq!((column[15], column[31], map.row_steps()), (1, 1, [0, 2]));
    }
}

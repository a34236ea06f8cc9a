//! A full scan: the number of a table's rows, exact sums of columns, and a checksum.
//!
//! Servers take granules of the table. Each tests a row ([`Predicate`]), and adds the values of the
//! columns that are summed. A row that fails the test is not looked at any further. Columns that
//! are not needed are passed over by their lengths. Nothing is decoded: a sum adds encoded numbers
//! ([`NumberSum`]).
//!
//! The checksum adds the hashes of the rows ([`row_hash`]), so it is the same for the same rows in
//! any order. It reads every byte of a row, and is taken only if it is asked for.

use crate::EngineError;
use crate::parallel::servers;
use crate::transaction::check::row_hash;
use crate::view::predicate::Predicate;
use crate::view::{ExtentShare, TableView};
use plumb_events::{Role, Session};
use plumb_types::{ColumnType, ColumnWalk, NumberSum};
use plumb_units::RowId;

/// Choice of a checksum of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// Every byte of the rows that satisfy the predicate is hashed.
    Taken,
    /// No hash; the sum stays 0.
    Skipped,
}

/// Columns, condition and part of a scan.
#[derive(Debug, Clone, Copy)]
pub struct TotalsSpec<'s> {
    /// Positions of the NUMBER columns to add.
    pub columns: &'s [usize],
    /// Condition on the rows; `None` for all rows.
    pub predicate: Option<&'s Predicate>,
    /// Choice of a checksum.
    pub checksum: Checksum,
    /// Part of the table.
    pub share: ExtentShare,
}

/// Result of a scan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Rows that were tested.
    pub scanned: u64,
    /// Rows that satisfy the predicate.
    pub row_count: u64,
    /// Sum of their hashes, modulo 2^64.
    pub row_sum: u64,
    /// Sum of each column, without NULLs.
    pub sums: Vec<NumberSum>,
}

impl Totals {
    /// Makes totals of no rows for this number of columns.
    pub fn of_none(columns: usize) -> Totals {
        Totals { scanned: 0, row_count: 0, row_sum: 0, sums: vec![NumberSum::default(); columns] }
    }

    /// Adds the totals of other rows.
    ///
    /// # Errors
    /// If a sum leaves its range.
    pub fn merge(&mut self, other: &Totals) -> Result<(), EngineError> {
        self.scanned += other.scanned;
        self.row_count += other.row_count;
        self.row_sum = self.row_sum.wrapping_add(other.row_sum);
        let sums = self.sums.iter_mut().zip(&other.sums);
        sums.into_iter().try_for_each(|(mine, theirs)| mine.merge(theirs)).map_err(|error| {
            EngineError::Verification {
                what: "sum of a column".to_string(),
                found: error.to_string(),
                expected: "at most 38 digits".to_string(),
            }
        })
    }
}

/// Rejects columns that cannot be added.
///
/// # Errors
/// If a column is no NUMBER.
pub fn require_numbers(view: &TableView<'_>, columns: &[usize]) -> Result<(), EngineError> {
    let all = &view.schema().columns;
    let other = columns.iter().map(|place| &all[*place]);
    let other = other.into_iter().find(|column| !matches!(column.column_type, ColumnType::Number { .. }));
    let Some(column) = other else { return Ok(()) };
    let numbers = all.iter().filter(|column| matches!(column.column_type, ColumnType::Number { .. }));
    let names: Vec<&str> = numbers.map(|column| column.name.as_str()).collect();
    Err(EngineError::Contradiction {
        first: format!("a sum of column {}", column.name),
        second: column.column_type.to_string(),
        why: format!("numbers are added; name some of {}", names.join(", ")),
    })
}

/// Scans a table with as many servers as a parallel operation has.
///
/// # Errors
/// If a column is no NUMBER, a block is corrupt, a read fails, or the table was changed or dropped
/// meanwhile.
pub fn totals(
    coordinator: &Session,
    view: &TableView<'_>,
    spec: TotalsSpec<'_>,
) -> Result<Totals, EngineError> {
    require_numbers(view, spec.columns)?;
    let instance = view.instance;
    let degree = instance.parallel_degree();
    let granules = view.granules(spec.share).shared_by(degree);
    let order = Order::of(spec.columns);
    let parts = servers::run_set(
        instance.operation(),
        coordinator,
        (Role::ScanServer, degree),
        |session, operation, _| {
            let mut part = Totals::of_none(spec.columns.len());
            let add = |row: &[u8], id: RowId| part.add(row, &spec, &order).map_err(|why| bad(id, why));
            view.scan(session, operation, &granules, add)?;
            Ok(part)
        },
    );
    // Blocks of a dropped table may be those of another one now.
    let parts = view.require_unchanged().and(parts)?;
    let mut all = Totals::of_none(spec.columns.len());
    parts.iter().try_for_each(|part| all.merge(part))?;
    Ok(all)
}

#[cold]
fn bad(row: RowId, why: String) -> EngineError {
    EngineError::bad_row(row, why)
}

/// The columns to add in the order in which a row has them, each with its place among the sums.
struct Order(Vec<(usize, usize)>);

impl Order {
    fn of(columns: &[usize]) -> Order {
        let mut order: Vec<(usize, usize)> = columns.iter().copied().zip(0..).collect();
        order.sort_unstable();
        Order(order)
    }
}

impl Totals {
    /// Adds a row, if the predicate holds.
    #[inline]
    fn add(&mut self, row: &[u8], spec: &TotalsSpec<'_>, order: &Order) -> Result<(), String> {
        self.scanned += 1;
        if let Some(predicate) = spec.predicate
            && !predicate.holds(row).map_err(|error| error.to_string())?
        {
            return Ok(());
        }
        self.row_count += 1;
        if spec.checksum == Checksum::Taken {
            self.row_sum = self.row_sum.wrapping_add(row_hash(row));
        }
        if order.0.is_empty() {
            return Ok(());
        }
        let mut walk = ColumnWalk::new(row).map_err(|error| error.to_string())?;
        for (column, place) in &order.0 {
            if let Some(value) = walk.value(*column).map_err(|error| error.to_string())? {
                self.sums[*place].add(value).map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }
}

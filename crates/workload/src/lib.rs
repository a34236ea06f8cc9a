//! What a database is asked to do, and the rows to do it with.
//!
//! Two sources of rows: [`SalesTable`] makes the sales of a chain of stores
//! from a seed, [`CsvFile`] reads the user's own. Neither knows where its rows
//! will be kept.

mod csv_file;
mod sales;

pub use csv_file::{
    ColumnBasis, ColumnFinding, CsvError, CsvFile, CsvOptions, Delimiter, TextCause, TextReason,
};
pub use sales::{SALES_ROWS_OF_SOURCE, SalesSpec, SalesTable};

//! Workloads ([`specification`]), and the rows for them.
//!
//! Sources of rows: [`SalesTable`] makes the sales of a chain of stores, [`WideTable`] the
//! same with notes, [`PagesTable`] views of web pages and [`TextsTable`] texts of two shapes, each
//! from a seed.
//! [`CsvFile`] reads the user's own rows. None of them knows where its rows will be
//! stored. [`gensort`] makes the records of the sort benchmarks, [`slob`] the rows and
//! operations of SLOB, and [`slob_conf`] reads SLOB's configuration.

#![warn(missing_docs)]

mod chunks;
mod csv_file;
pub mod csv_writer;
pub mod gensort;
mod pages;
mod sales;
pub mod slob;
pub mod slob_conf;
pub mod specification;
mod texts;
pub mod users;
mod wide;

pub use csv_file::{
    ColumnBasis, ColumnFinding, CsvError, CsvFile, CsvOptions, DateForm, DateStyle, DecimalMark, Delimiter,
    Header, Quote, SeveralLines, TextCause, TextReason, zone_name,
};
pub use pages::{PAGE_BYTES_MAX, PagesSpec, PagesTable};
pub use sales::{SALES_ROWS_OF_SOURCE, SalesSpec, SalesTable};
pub use specification::{Decides, Parameter, Shown, WORKLOADS, Work, Workload};
pub use texts::{TextShape, TextsSpec, TextsTable};
pub use wide::WideTable;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

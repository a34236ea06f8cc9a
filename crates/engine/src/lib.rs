//! The database I/O path: storage, cache, tables, sorts and indexes, redo and transactions.
//!
//! An [`Instance`] is an open database: its settings, its tablespaces, its access to the files and
//! its recorder. Work on it is a function of a subsystem:
//!
//! | to | call |
//! |---|---|
//! | make, open | [`Instance::create`], [`Instance::open`], [`Instance::open_to_read`] |
//! | load a table by direct path, which is read-only afterwards | [`table::load::load`] |
//! | build an index on it by a parallel disk sort | [`index::build::create_index`] |
//! | read it | [`view::TableView`], [`index::btree::BTree`], [`table::fetch::RowFetcher`] |
//! | count and add rows, copy rows into another table | [`view::totals`], [`view::copy`] |
//! | check it against its indexes | [`check::check_table`] |
//! | insert, update, delete, read in transactions | [`transaction::Transactions`] |
//! | copy a database while it changes, and restore the copy | [`backup`] |
//! | sort a file of records or lines | [`file_sort`], [`line_sort`] |
//!
//! README.md has short examples. Two more are programs: `load_and_index` loads a table, indexes,
//! checks and reads it; `transaction` changes rows from two threads and opens the database again.
//!
//! The engine never prints, and reads the clock only through `plumb-events`.
//! Every wait names an event.

#![warn(missing_docs)]

/// Opt-level that this crate was compiled at, as rustc takes it: `3` in a release.
pub const OPT_LEVEL: &str = env!("PLUMB_OPT_LEVEL");

pub mod access;
pub mod check;
mod database_id;
pub mod drop;
mod error;
pub mod instance;
pub mod probe;
pub mod read_cost;
pub mod settings;
pub mod storage;

pub mod cache;
pub mod file_sort;
pub mod index;
pub mod line_sort;
pub mod parallel;
pub mod redo;
pub mod sort;
pub mod table;
pub mod transaction;
pub mod view;

pub mod backup;

pub use error::{EngineError, LineCure};
pub use instance::{Instance, Layout};
pub use settings::{Setting, Settings};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

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
//! ```
//! use plumb_engine::instance::InitialSizes;
//! use plumb_events::Cancel;
//! use plumb_engine::transaction::{IndexDefinition, Transactions};
//! use plumb_engine::{Instance, Layout, Settings};
//! use plumb_events::Role;
//! use plumb_types::{Column, ColumnType, Number, Schema, Value};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let directory = tempfile::tempdir()?;
//!     let layout = Layout::in_one(directory.path().join("db"));
//!     let mut settings = Settings::default();
//!     settings.set("log_file_size", "16M", "this example")?;
//!     let instance = Instance::create(&layout, settings, InitialSizes::NONE, Cancel::default())?;
//!
//!     let session = instance.recorder.session(Role::User);
//!     let transactions = Transactions::open(&instance, &session)?;
//!     let columns = vec![
//!         Column::required("ID", ColumnType::NUMBER),
//!         Column::nullable("WHAT", ColumnType::Text { max_bytes: 100 }),
//!     ];
//!     let key = vec![("ID".into(), false)];
//!     let by_id = IndexDefinition { name: "BY_ID".into(), columns: key, unique: true };
//!     transactions.create_table(&session, "ORDERS", &Schema::new(columns)?, &[by_id])?;
//!
//!     let seven = Value::Number(Number::new(7, 0)?);
//!     let mut connection = transactions.connect(&session);
//!     let mut transaction = connection.begin();
//!     transaction.insert("ORDERS", &[seven.clone(), Value::Text("a plumb".into())])?;
//!     transaction.commit()?;
//!
//!     let mut transaction = connection.begin();
//!     let rows = transaction.lookup("BY_ID", &[seven])?;
//!     assert_eq!(rows[0].values[1], Value::Text("a plumb".into()));
//!     transaction.rollback()?;
//!     drop(connection);
//!     transactions.close(&session)?;
//!     Ok(())
//! }
//! ```
//!
//! The examples of this crate are programs: `load_and_index` loads a table, indexes, checks and
//! reads it; `transaction` changes rows from two threads and opens the database again.
//!
//! The engine never prints, and reads the clock only through `plumb-events`.
//! Every wait names an event.

#![warn(missing_docs)]

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

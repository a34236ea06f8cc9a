//! The database I/O path: storage, cache, tables, sorts and indexes.
//!
//! An [`Instance`] is an open database: its settings, its tablespaces, its way
//! to the files and its recorder. Work on it is a function of a subsystem:
//! [`load::load`] a table by direct path, [`build::create_index`] by a parallel
//! disk sort, [`check`] what stands against itself.
//!
//! The engine never prints, and reads the clock only through `plumb-events`.
//! Nothing waits without naming an event.

pub mod access;
mod cancel;
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

pub mod backup;

pub use error::EngineError;
pub use instance::{Instance, Layout};
pub use settings::{Setting, Settings};

//! Tables: rows in blocks, loads and scans.
//!
//! What it does: [`load`] fills blocks with rows by direct path, [`scan`] visits every row,
//! [`fetch`] those of given ids, and [`heap`] says how rows lie in a block, [`chain`] how those lie
//! that are longer. Which blocks are a table's is in the control file.
//!
//! Why no free lists: a table is written once, by its load, and each load server fills its own
//! blocks.
//!
//! Limits: no update, no delete, no insert after the load. Rows of one server lie in input order,
//! rows of two servers in no order.

pub mod chain;
pub mod fetch;
pub mod heap;
pub mod load;
pub mod scan;

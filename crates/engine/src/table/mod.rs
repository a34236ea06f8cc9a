//! Tables: rows in blocks, loads and scans.
//!
//! [`load`] fills blocks with rows by direct path. [`scan`] visits every row, and [`fetch`] the
//! rows of given ids. [`heap`] has the layout of rows in a block, and [`chain`] that of longer
//! rows. The control file lists the blocks of a table.
//!
//! Free lists are not needed, because a table is written once, by its load, and each load server
//! fills its own blocks.
//!
//! Limits: no update, no delete; rows are added only by another load. Rows of one server are in
//! input order, rows of two servers in no order.

pub mod chain;
pub mod fetch;
pub mod heap;
pub mod load;
pub mod scan;

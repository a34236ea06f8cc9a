//! Tables: rows in blocks, loads and scans.

pub mod heap;
pub mod load;
pub mod scan;

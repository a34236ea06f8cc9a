//! The commands for one's own data.

pub mod check;
pub mod drop;
pub mod index;
pub mod list;
pub mod load;
pub mod report;

//! Whose a call or a request is: threads, files, extents on disks, and the join of both views.

pub mod descriptor;
pub mod extents;
pub mod join;
pub mod names;
pub mod process;

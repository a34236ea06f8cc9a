//! The kernel's side: tracefs, its ring pages, and the events in them.

pub mod event;
pub mod format;
pub mod page;
pub mod syscalls;
pub mod tracefs;

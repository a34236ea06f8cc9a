//! Indexes: B-trees written bottom-up from sorted entries, and looked up.

pub mod block;
pub mod btree;
pub mod build;
mod levels;

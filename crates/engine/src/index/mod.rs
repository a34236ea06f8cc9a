//! Indexes: B-trees written bottom-up from sorted entries, and looked up.
//!
//! What it does: [`build::create_index`] makes an index of a table by a parallel disk
//! sort, [`btree`] searches in one.
//!
//! How: `build` scans, sorts ([`sort`](crate::sort)) and hands each key range in order to
//! `levels`, which fills leaves and, along with them, the branches above. [`block`] says how
//! entries lie in both. Each block is written once, full, and in order.
//!
//! Why not inserts from the root down: a block would be read and written again for nearly
//! every row, left half empty by splits, and be anywhere on disk.
//!
//! Limits: an index does not change once it is built. It stands above the sort, which knows
//! records and keys but no index.

pub mod block;
pub mod btree;
pub mod build;
mod levels;

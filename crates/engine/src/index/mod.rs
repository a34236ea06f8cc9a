//! Indexes: B-trees written bottom-up from sorted entries, and looked up.
//!
//! [`build::create_index`] builds an index of a table by a parallel disk sort; [`btree`] searches
//! in it. `build` scans, sorts ([`sort`](crate::sort)) and passes each key range in order to
//! `levels`, which fills leaves and the branches above them. [`block`] describes the layout of
//! both. Each block is written once, full, and in order.
//!
//! Rejected: inserts from the root down. Nearly every row would read and rewrite a block, splits
//! would leave blocks half empty, and neighbours would be scattered on disk.
//!
//! Limits: an index does not change once it is built. It depends on the sort, which knows records
//! and keys but no index.

pub mod block;
pub mod btree;
pub mod build;
mod levels;

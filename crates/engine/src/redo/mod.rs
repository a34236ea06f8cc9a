//! The redo log: what is in it is durable, whatever becomes of the blocks.
//!
//! What it does: a change of blocks becomes a [`record`], made by an [`edit::Edit`] while the
//! blocks are changed. [`Log`] takes records into a buffer in memory ([`log_buffer`]) and writes
//! them ([`log_writer`]) to files that are made in advance and used in turn ([`log_file`]). A
//! checkpoint ([`checkpoint`]) notes from where on the log is needed. After a crash [`recovery`]
//! does the records again.
//!
//! ```text
//! LSN      100        180     240        ..            a byte of records, without headers and rests of blocks
//! records  [r1        |r2     |r3        |..
//! file     |header 4K |[batch: header 32, r1, r2, rest of block]|[batch: header, r3, rest]|
//! ```
//!
//! How much (`cargo xtask bench redo`): a row of 42 bytes inserted alone is a record of 144 bytes,
//! in an array 60 bytes a row. A commit is 32 bytes, and a log write of its own when nobody else
//! commits: 512 bytes. A record of 104 bytes takes one thread 31 to 39 ns, from its admission to
//! the null device (2.6 to 3.3 GB/s), while another processor writes. Two threads and LGWR on two
//! processors manage 2.3 to 2.7 GB/s, whether `log_buffer` is 8M or 64M, because LGWR is put before
//! them (`high_priority_processes`): they fill the four megabytes that may be on their way in 2 ms,
//! and a slice of the scheduler is 3. With its turn among the others it is 1.2 to 1.4 GB/s with 8M;
//! a shorter slice for LGWR alone changed nothing. What is left are the cache lines that two
//! threads hand to each other for each record: that of the records' places, and those that hold the
//! end of one record and the beginning of the next. Room for each thread apart was tried: two
//! threads were as slow, and one was a tenth slower. So was that a session writes what has gathered
//! when LGWR has been rung and has had no processor: 1.3 to 1.6 GB/s with 8M, and 1.6 to 1.7 with
//! 64M. The gate is in shards.
//!
//! Log files may lie outside of the database's directory, where a copy of it reaches them too. One
//! copy goes on with them ([`epoch`], [`claim`]).
//!
//! Why LSNs that count bytes of records, and not bytes of the file: a session then knows its LSN by
//! adding its length to one counter, before anybody knows which write its record will be in. The
//! price is a list of batches that says where in the files an LSN is.
//!
//! Invariants:
//! - L1 A log block is written once until its file is used again: a batch begins at a block, and
//!   the rest of its last one stays empty.
//! - L2 One batch is in flight at a time; it begins where everything before is durable.
//! - L3 A file is used again only when the control block, durably, does not need it, and its copy
//!   is durable where copies are made.
//! - L4 A failed write or sync of the log is its last: every later call fails with it.
//! - L5 A session waits for room in the files before it takes a block, never after: else the
//!   checkpoint that makes room could wait for it.
//! - L6 A recovery syncs the files that it relies on before it reads them: a killed process may
//!   have written and not synced.
//! - L7 The control file has at least the number of changes that the control block notes, because
//!   it is replaced first.
//!
//! Limits: sizes, groups and members are fixed when the log is made. Damage in the middle of a
//! second member is found only when it is needed.

mod admission;
mod archiver;
mod batches;
mod bell;
pub mod checkpoint;
mod claim;
mod control_block;
mod copier;
mod creation;
pub mod edit;
mod epoch;
mod gate;
mod group_commit;
mod lgwr;
mod log;
pub(crate) mod log_access;
mod log_buffer;
mod log_file;
pub(crate) mod log_home;
mod log_reader;
mod log_writer;
mod opening;
mod pace;
mod read_back;
pub mod record;
pub mod recovery;
mod replay;
mod sync_method;

// As the files name them that a model checker takes with its own: see there.
use plumb_events::sharing;
use std::sync::{self, atomic};
use std::thread;

pub use admission::Admission;
pub(crate) use bell::Bell;
pub(crate) use claim::Claim;
pub use gate::Gate;
pub use log::{Log, LogOptions};
pub use log_file::FILE_HEADER as FIRST_BATCH;
pub use log_home::{LiveExtent, LogHome, control_block, files};
pub use sync_method::{SyncChoice, SyncMethod};

#[cfg(test)]
mod tests;

//! The redo log: its records are durable, even if the blocks they changed are lost.
//!
//! A change of blocks becomes a [`record`], built by an [`edit::Edit`] while the blocks change.
//! [`Log`] takes records into a buffer in memory ([`log_buffer`]) and writes them ([`log_writer`])
//! to files created in advance and used in turn ([`log_file`]). A checkpoint ([`checkpoint`])
//! records where the needed log begins. After a crash [`recovery`] applies the records again.
//!
//! ```text
//!  LSN      100        180     240        ..            counts bytes of records alone
//! records  [r1        |r2     |r3        |..
//! file     |header 4K |[batch: header 32, r1, r2, rest of block]|[batch: header, r3, rest]|
//! ```
//!
//! Costs, measured at revision fe5f87db: a row of 42 bytes inserted alone is a record of 144 bytes,
//! in an array 60 bytes a row. A commit is 32 bytes, and a log write of 512 bytes if no other
//! session commits. A record of 104 bytes takes one thread 31 to 39 ns, from admission to the null
//! device.
//!
//! Two threads and LGWR on two processors write 2.3 to 2.7 GB/s with either 8M or 64M of
//! `log_buffer`, because LGWR has priority (`high_priority_processes`). Without priority it is 1.2
//! to 1.4 GB/s with 8M: the threads fill the four megabytes in flight in 2 ms, and a slice of the
//! scheduler takes 3. The limit is cache lines that two threads pass to each other for each record.
//! One is the counter of places; others hold the end of one record and the start of the next.
//! - Rejected: a shorter scheduler slice for LGWR alone, which changed nothing.
//! - Rejected: room for each thread apart. Two threads were as slow, and one was a tenth slower.
//! - Rejected: a session writes when LGWR was rung and got no processor, 1.3 to 1.6 GB/s.
//! - Adopted: the gate is sharded.
//!
//! Log files may lie outside of the database's directory, where a copy of the database reaches them
//! too. Only one copy continues them ([`epoch`], [`claim`]).
//!
//! LSNs count bytes of records rather than bytes of files. So a session gets its LSN by adding its
//! length to one counter, before it is known which write will take its record. The price is a list
//! of batches that maps LSNs to places in the files.
//!
//! Invariants:
//! - L1 A log block is written once until its file is reused: a batch begins at a block, and the
//!   rest of its last block stays empty.
//! - L2 One batch is in flight at a time; all batches before it are durable.
//! - L3 A file is reused only when the durable control block does not need it, and its copy is
//!   durable if copies are made.
//! - L4 A failed write or sync of the log is its last: every later call fails with it.
//! - L5 A session waits for room in the files before it takes a block, never after. Otherwise the
//!   checkpoint that makes room could wait for the session.
//! - L6 Recovery syncs the files that it relies on before it reads them: a killed process may have
//!   written without a sync.
//! - L7 The control file has at least the number of changes that the control block notes, because
//!   it is replaced first.
//!
//! Limits: sizes, groups and members are fixed when the log is created. Damage in the middle of a
//! second member is found only when the member is needed.

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

// Files import these names from here, because a model checker compiles them with its own.
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

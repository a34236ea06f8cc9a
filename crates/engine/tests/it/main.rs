//! What the engine does as a whole, from loads to look-ups.
//!
//! Each module tests one behaviour, most of its tests through one `check`:
//! - `sort_model`: an index has the order of a plain sorted Vec, whatever the
//!   data, the memory, the degree, the block size and the way to the files.
//! - `sort_spills`: how much memory makes how many passes; balance; temp space.
//! - `conventional`: sorts and scans that go through the buffer cache.
//! - `faults`: files in memory that fail on purpose, at every place in turn.
//! - `block_sizes`: tablespaces of several block sizes, their caches, and loads with redo.
//! - `backup`: copies made while sessions commit, restored and recovered; damaged ones.
//! - `chained`: rows longer than a block, in pieces.
//! - `row_pieces`: the same in tables that transactions change.
//! - `file_sort`: files of records, their sorts and their judgement.
//! - `line_sort`: files of lines, their sorts and their judgement.
//! - `corruption`: closed databases whose bytes were changed on disk.
//! - `copies`: copied and moved databases, files of others, several who read.
//! - `outside`: directories from elsewhere, moved ones, and links: nothing around them changes.
//! - `lost_writes`: whole blocks of earlier operations where later ones belong.
//! - `redo`: how the log is written, mirrored, archived and kept short.
//! - `crash`: power losses at any request, recovered and held against a model.
//! - `log_damage`: logs whose bytes were changed, or whose files are gone.
//! - `log_places`: log files on other disks, and copies of databases that have them.
//! - `creation`: what is durable when, and creations that are killed.
//! - `catalog`: what is there, what is refused, what is left behind.
//! - `errors_text`: the exact words of errors that users meet.
//! - `transactions`: several sessions: what each sees, locks, limits, failures; tables and indexes that come and go.
//! - `isolation`: which anomalies are prevented, and which can occur, each by its name.
//! - `model`: the log buffer and group commit under a model checker.
//! - `cache_model`: the latches of the buffer cache under it.
//! - `slob`: ranges of an index that are read and updated, through crashes and where something runs out.
//! - `shared_servers`: sessions that share threads, and what they wait for.
//! - `full_disk`: what can still be done on a file system without room.
//! - `cancel`: stopping what is under way.
//!
//! `support` has the databases, row sources and readers that they share. What
//! looks at one function belongs beside that function instead. All data comes
//! from a seed, which a failing test prints; a found case is kept as a test
//! with its seed.

mod backup;
mod block_sizes;
mod bounds;
mod cache_model;
mod cancel;
mod catalog;
mod chained;
mod conventional;
mod copies;
mod corruption;
mod crash;
mod creation;
mod errors_text;
mod faults;
mod file_sort;
mod full_disk;
mod isolation;
mod line_sort;
mod log_damage;
mod log_places;
mod lost_writes;
mod model;
mod outside;
mod redo;
mod row_pieces;
mod shared_servers;
mod slob;
mod sort_model;
mod sort_spills;
mod stopped;
mod support;
mod transactions;

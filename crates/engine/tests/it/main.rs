//! Tests of the engine as a whole, from loads to lookups.
//!
//! Each module tests one behaviour, most of its tests through one `check`:
//! - `sort_model`: an index has the order of a plain sorted Vec, for any data, memory, degree,
//!   block size and access to the files.
//! - `sort_spills`: memory against passes; balance of servers; temp space.
//! - `conventional`: sorts and scans that go through the buffer cache.
//! - `faults`: files in memory that fail on purpose, at every place in turn.
//! - `block_sizes`: tablespaces of several block sizes, their caches, and loads with redo.
//! - `backup`: copies made while sessions commit, restored and recovered; damaged copies.
//! - `chained`: rows longer than a block, in pieces.
//! - `row_pieces`: rows in pieces in tables that transactions change.
//! - `file_sort`: files of records, their sorts and their validation.
//! - `line_sort`: files of lines, their sorts and their validation.
//! - `corruption`: closed databases whose bytes were changed on disk.
//! - `copies`: copied and moved databases, files of other databases, several readers.
//! - `outside`: foreign directories, moved ones, and links: nothing around them changes.
//! - `lost_writes`: whole blocks of earlier operations where later ones belong.
//! - `redo`: how the log is written, mirrored, archived and kept short.
//! - `crash`: power losses at any request, recovered and compared with a model.
//! - `log_damage`: logs whose bytes were changed, or whose files are missing.
//! - `log_places`: log files on other disks, and copies of databases that have them.
//! - `creation`: the order in which a creation becomes durable, and creations that are killed.
//! - `catalog`: objects that exist, names that are rejected, files that are left behind.
//! - `errors_text`: the exact words of errors that users meet.
//! - `transactions`: visibility between sessions, locks, limits, failures; tables and
//!   indexes made and dropped meanwhile.
//! - `isolation`: one test for each anomaly, prevented or possible.
//! - `model`: the log buffer and group commit under a model checker.
//! - `cache_model`: the latches of the buffer cache under the model checker.
//! - `slob`: ranges of an index that are read and updated, through crashes and shortages.
//! - `shared_servers`: sessions that share threads, and their waits.
//! - `views`: whole tables that are scanned, added and copied, whichever way they were filled.
//! - `full_disk`: operations that still work on a full file system.
//! - `cancel`: stopping operations in progress.
//!
//! `support` has the databases, row sources and readers that they share. A test of a single
//! function belongs next to that function instead. All data comes from a seed, which a failing test
//! prints; a case that has failed is kept as a test with its seed. with its seed.

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
mod views;

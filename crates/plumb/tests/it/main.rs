//! Runs the built program as its users do, on small data in a directory of its own.
//!
//! - `large_sort`: the workload under many settings: verified, receipts held.
//! - `record_sort`: files of records, the same.
//! - `sort`: files of lines and records, compared with sort(1).
//! - `own_data`: load, index, check, drop of CSV files.
//! - `export`: what was loaded comes out again; pipes, other delimiters and dates, hints.
//! - `redo`: the import workload, alone and in a study.
//! - `periods`: snapshots within a run, samples during it, and a line a run.
//! - `places`: where the files of a study's runs lie.
//! - `scans`: whole tables, read by streams and instances, and copied, also by killed copies.
//! - `slob`: random reads and updates, by arguments, by a slob.conf and in a study.
//! - `conventional`: loads by transactions, also killed ones.
//! - `calibrate`: short calibrations, what they leave behind and what they refuse.
//! - `study`: studies, their bundles, their end by force, treatments that do nothing.
//! - `factors`: studies of a workload that are stated on the command line; options without a part.
//! - `pages`: every command of README.md and docs.
//! - `tour`: docs/tour.md from its first command to its last.
//! - `commands`: commands as targets: figures, receipts, files put back, nothing left running.
//! - `compare`: two runs, two arms of a study, and what does not compare.
//! - `import`: reports of other programs, kept as bundles.
//! - `audit`: published claims, and bundles that prove them.
//! - `bundles`: nothing is overwritten, and unused reservations are removed.
//! - `share`: copies without names.
//! - `orphans`: what killed processes left, and the ways to end one.
//! - `foreign_text`: names a terminal would obey, paths that are no text.
//! - `trace`: every request of a run, printed from its bundle.
//! - `backup`: backups there and back.
//! - `faults`: bad input, damage, two processes, no room, Ctrl-C.
//! - `full_disk`: commands on a file system without room.
//! - `memory_files`: overlayfs and tmpfs, whose page cache says nothing of a device.
//! - `limits`: fewer threads, rings and less memory than asked for.
//! - `texts`: help, lists and every error message, as snapshots.

mod audit;
mod backup;
mod bounds;
mod bundles;
mod calibrate;
mod commands;
mod compare;
mod conventional;
mod export;
mod factors;
mod faults;
mod foreign_text;
mod full_disk;
mod import;
mod large_sort;
mod limits;
mod memory_files;
mod orphans;
mod own_data;
mod pages;
mod periods;
mod places;
mod program;
mod record_sort;
mod redo;
mod scans;
mod share;
mod slob;
mod sort;
mod study;
mod texts;
mod tour;
mod trace;

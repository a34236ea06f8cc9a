//! Runs the built program as its users do, on small data in a directory of its own.
//!
//! - `large_sort`: the workload under many settings: verified, receipts held.
//! - `record_sort`: files of records, the same.
//! - `sort`: files of lines and records, compared with sort(1).
//! - `own_data`: load, index, check, drop of CSV files.
//! - `export`: loaded rows are exported unchanged; pipes, other delimiters and dates, hints.
//! - `redo`: the import workload, alone and in a study.
//! - `periods`: snapshots within a run, samples during it, and a line a run.
//! - `places`: the directories of the files of a study's runs.
//! - `scans`: whole tables, read by streams and instances, and copied, also by killed copies.
//! - `slob`: random reads and updates, by arguments, by a slob.conf and in a study.
//! - `conventional`: loads by transactions, also killed ones.
//! - `calibrate`: short calibrations: output, files and errors.
//! - `study`: studies, their bundles, killed studies, treatments without an effect.
//! - `study_file`: the text of a study with one factor, for all of these.
//! - `factors`: studies of a workload given on the command line; unused options.
//! - `pages`: every command of README.md and docs.
//! - `tour`: docs/tour.md from its first command to its last.
//! - `commands`: commands as targets: figures, receipts, files put back, nothing left running.
//! - `compare`: two runs, two arms of a study, and pairs that cannot be compared.
//! - `import`: reports of other programs, kept as bundles.
//! - `plans`: plans of execution next to each other.
//! - `prune`: copies of traces without spans, and traces compared.
//! - `audit`: published claims, and bundles that prove them.
//! - `bundles`: nothing is overwritten, and unused reservations are removed.
//! - `serve`: every route prints what the program prints; Ctrl-C.
//! - `share`: copies without names.
//! - `orphans`: leftovers of killed processes, and the ways to end one.
//! - `for_programs`: output as JSON, Markdown and JUnit; named baselines.
//! - `foreign_text`: names with control characters, paths that are not UTF-8.
//! - `snoop`: traces of programs, their bundles in other commands, and their errors.
//! - `hostile_text`: markup, quotes and control characters on every page.
//! - `trace`: every request of a run, printed from its bundle.
//! - `backup`: backups there and back.
//! - `faults`: bad input, damage, two processes, no room, Ctrl-C.
//! - `kills`: makers of leftovers, each killed at three moments.
//! - `full_disk`: commands on a file system without room.
//! - `memory_files`: overlayfs and tmpfs, whose page cache says nothing of a device.
//! - `limits`: fewer threads, rings and less memory than requested.
//! - `visits`: studies on a running PostgreSQL server, interrupted and killed.
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
mod for_programs;
mod foreign_text;
mod full_disk;
mod hostile_text;
mod import;
mod kills;
mod large_sort;
mod limits;
mod memory_files;
mod orphans;
mod own_data;
mod pages;
mod periods;
mod places;
mod plan_sort;
mod plans;
mod program;
mod prune;
mod record_sort;
mod redo;
mod scans;
mod serve;
mod share;
mod slob;
mod snoop;
mod sort;
mod study;
mod study_file;
mod texts;
mod tour;
mod trace;
mod visits;

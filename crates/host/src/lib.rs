//! The machine on which a program runs, and the kernel's facts about files, processes and disks.
//!
//! [`device`] describes the storage under a path and [`limits`] the limits of this process.
//! [`readings`] reads the kernel's counters of a file, a process or a disk; [`proc_files`] the
//! texts and links of a process. [`process`] starts and watches other programs, [`programs`] finds
//! them. [`owner`] marks temporary files, and [`leftover`] describes those of killed programs.
//! [`regular`] opens regular files only. [`extents`] finds the sectors of a file. [`shared_memory`]
//! removes segments of killed programs.
//!
//! Mechanism: it reads `/proc` and `/sys`, and tries features, because names and versions do
//! not show if they work.
//!
//! Why apart from `plumb-io`: a report, an importer or a target needs facts of the machine
//! and opens no data file. This crate knows no io_uring; the caller of [`device::describe`]
//! passes the probe for it.
//!
//! Limits: Linux.

#![warn(missing_docs)]

pub mod device;
pub mod extents;
pub mod kernel;
pub mod kind;
pub mod leftover;
pub mod limits;
pub mod owner;
pub mod priority;
pub mod proc_files;
pub mod process;
pub mod programs;
pub mod readings;
pub mod regular;
pub mod rights;
mod roots;
pub mod shared_memory;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

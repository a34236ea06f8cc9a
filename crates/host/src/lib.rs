//! The machine that a program runs on, and what its kernel says of files, processes and disks.
//!
//! What it does: [`device`] says what lies under a path, [`limits`] what the system gives this
//! process, [`readings`] what the kernel counted of a file, a process or a disk, [`process`]
//! starts and watches other programs, [`owner`] marks what has to go again, [`regular`] opens
//! only regular files.
//!
//! How: by reading `/proc` and `/sys`, and by trying what names and versions do not tell.
//!
//! Why apart from `plumb-io`: a report, an importer or a target needs to know the machine and
//! opens no data file. Nothing here knows io_uring; [`device::describe`] is given the probe of it.
//!
//! Limits: Linux.

#![warn(missing_docs)]

pub mod device;
pub mod kernel;
pub mod kind;
pub mod limits;
pub mod owner;
pub mod priority;
pub mod process;
pub mod readings;
pub mod regular;
pub mod rights;
mod roots;

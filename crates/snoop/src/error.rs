//! Errors of a trace, a line each, with the cure.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Reason why a trace cannot begin or go on.
#[derive(Debug, Error)]
pub enum SnoopError {
    #[error(
        "tracefs is not mounted: expected the kernel's tracepoints at /sys/kernel/tracing; \
         `mount -t tracefs nodev /sys/kernel/tracing` as root mounts it"
    )]
    NotMounted,
    /// The caller may not use tracefs.
    #[error(
        "{} cannot be {what} (user {user}): expected root, or a mount of tracefs for the \
         user's group; run it as root, or with --sample, which needs no rights",
        path.display()
    )]
    NoRights {
        /// The file or directory that was refused.
        path: PathBuf,
        what: &'static str,
        user: u32,
    },
    /// This kernel lacks a tracepoint that a view needs.
    #[error(
        "tracepoint {name} is missing in kernel {kernel}: expected {}; a kernel with {option}=y has it, \
         and --sample does without", path.display()
    )]
    NoTracepoint {
        name: String,
        kernel: String,
        /// The directory that was expected.
        path: PathBuf,
        /// Option of the kernel's configuration.
        option: &'static str,
    },
    /// A tracepoint lacks a field, or its format is not understood.
    #[error("the format of tracepoint {name} is not understood: {why}; please report it with {}",
        path.display())]
    Format {
        name: String,
        /// The missing field or odd line.
        why: String,
        path: PathBuf,
    },
    /// A file of tracefs or /proc failed.
    #[error("{} failed: {source}; expected a kernel with tracefs instances (4.1 or newer)", path.display())]
    File { path: PathBuf, source: io::Error },
    /// No process has the number.
    #[error("process {pid} does not exist{namespace}; `plumb snoop --name NAME` finds one by its name")]
    NoProcess {
        pid: u32,
        /// Hint on number spaces; may be empty.
        namespace: &'static str,
    },
    /// This user may read no process of the target.
    #[error(
        "process {pid} cannot be read ({}: {reason}): expected its own user or root; run it as one of them",
        path.display()
    )]
    Unreadable { pid: u32, path: PathBuf, reason: io::ErrorKind },
    /// No process has the name.
    #[error(
        "no process has {name:?} in its name or title; `ps -e -o pid,comm,args` lists them, \
         -- COMMAND starts one"
    )]
    NoName { name: String },
    /// The command cannot be started.
    #[error("{command:?} cannot be started: {source}; name a program on PATH or its path")]
    NotStarted {
        /// First word of the command.
        command: String,
        source: io::Error,
    },
}

impl SnoopError {
    /// Returns the error for a file of tracefs; a refusal has a cure of its own.
    pub fn of_file(path: PathBuf, what: &'static str, source: io::Error) -> SnoopError {
        match source.kind() {
            io::ErrorKind::PermissionDenied => {
                SnoopError::NoRights { path, what, user: rustix::process::geteuid().as_raw() }
            }
            _ => SnoopError::File { path, source },
        }
    }
}

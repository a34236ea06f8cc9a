//! Place of a running server: on this machine, with /proc of its processes, or elsewhere.
//!
//! An address does not say it: a tunnel ends on this machine, and a container has numbers of its
//! own. A server is local if the process of a session has here the program `postgres` and the start
//! time that the server reports, within [`START_WITHIN`].
//!
//! The parent of that process is the server's first one, which works in the data directory.
//!
//! Nothing is written there. So its device is taken from the number that stat(2) has, without the
//! probe file that a description of a directory needs.

use plumb_events::clock;
use plumb_host::device;
use plumb_host::kernel::{self, stat_fields, status_field};
use plumb_host::proc_files;
use plumb_host::readings::ProcessIo;
use plumb_units::Bytes;
use rustix::process::Pid;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

/// Largest difference of the start times, in seconds: the kernel counts ticks from a boot whose
/// time it rounds.
const START_WITHIN: f64 = 2.0;
const PROGRAM: &str = "postgres";

/// A server whose processes this program sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LocalServer {
    pub postmaster: i32,
    pub data: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Whereabouts {
    Here(LocalServer),
    /// No process of the server is seen, for this reason.
    Elsewhere(&'static str),
}

impl Whereabouts {
    /// Finds the server of a session by its process and its start, in seconds since 1970; `None` if
    /// the role may not see it.
    pub fn of(pid: i32, started: Option<f64>) -> Whereabouts {
        let Some(started) = started else {
            return Whereabouts::Elsewhere("this role may not see when its process began");
        };
        match serves(pid, started) {
            true => parent(pid).map_or(Whereabouts::Elsewhere(NO_RIGHT), inspected),
            false if has_namespace(pid, started) => Whereabouts::Elsewhere(
                "its processes have numbers of their own, in a container of this machine",
            ),
            false => Whereabouts::Elsewhere("no process of this machine is its session's"),
        }
    }

    pub fn here(&self) -> Option<&LocalServer> {
        match self {
            Whereabouts::Here(server) => Some(server),
            Whereabouts::Elsewhere(_) => None,
        }
    }
}

const NO_RIGHT: &str = "this user may not read its processes in /proc; run plumb as root or as its user";

/// True if a process is a server's and began at this time, in seconds since 1970.
fn serves(pid: i32, started: f64) -> bool {
    is_server(pid) && begun(pid).is_some_and(|begun| (begun - started).abs() <= START_WITHIN)
}

/// True if the program of a process is the server's. Another user's link may be closed; the name of
/// the process is not.
fn is_server(pid: i32) -> bool {
    match proc_files::link(pid, "exe") {
        // A program that was replaced while it runs has a note behind its name.
        Some(exe) => {
            exe.file_name().and_then(OsStr::to_str).and_then(|name| name.split(' ').next()) == Some(PROGRAM)
        }
        None => proc_files::text(pid, "comm").is_some_and(|name| name.trim() == PROGRAM),
    }
}

/// Returns the start of a process in seconds since 1970.
fn begun(pid: i32) -> Option<f64> {
    let ticks = kernel::start_time(u32::try_from(pid).ok()?)? as f64;
    let uptime = kernel::uptime()?.seconds();
    Some(clock::wall().as_secs_f64() - uptime + ticks / rustix::param::clock_ticks_per_second() as f64)
}

fn parent(pid: i32) -> Option<i32> {
    let stat = proc_files::text(pid, "stat")?;
    stat_fields(&stat).nth(1)?.parse().ok().filter(|parent| is_server(*parent))
}

/// Returns a local server if this user may read all that receipts need.
fn inspected(postmaster: i32) -> Whereabouts {
    let data = proc_files::link(postmaster, "cwd").filter(|data| fs::read_dir(data).is_ok());
    let may_read = Pid::from_raw(postmaster).is_some_and(|pid| ProcessIo::of(pid).is_ok());
    match data.filter(|_| may_read) {
        Some(data) => Whereabouts::Here(LocalServer { postmaster, data }),
        None => Whereabouts::Elsewhere(NO_RIGHT),
    }
}

/// True if a process of a container of this machine has this number in it.
fn has_namespace(pid: i32, started: f64) -> bool {
    proc_files::all().any(|number| {
        let status = proc_files::text(number, "status").unwrap_or_default();
        inner(&status) == Some(pid) && number != pid && serves(number, started)
    })
}

/// Returns the number that a process has in the innermost namespace.
fn inner(status: &str) -> Option<i32> {
    status_field(status, "NSpid")?.split_whitespace().last()?.parse().ok()
}

impl LocalServer {
    /// Returns the bytes that are free where its data are.
    pub fn free(&self) -> Option<Bytes> {
        device::space(&self.data).ok().map(|space| space.free)
    }

    /// Returns the disk below its data; `None` if there is none, as on tmpfs.
    pub fn disk(&self) -> Option<String> {
        device::disk(rustix::fs::stat(&self.data).ok()?.st_dev)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_another_program_or_another_time_is_elsewhere() {
        let own = i32::try_from(std::process::id()).expect("a number");
        let begun = begun(own).expect("it runs");
        assert!((clock::wall().as_secs_f64() - begun) < 3600.0, "{begun}");
        let of = |pid, started| Whereabouts::of(pid, started);
        let elsewhere = Whereabouts::Elsewhere("no process of this machine is its session's");
        assert_eq!(of(own, Some(begun)), elsewhere, "this program is no postgres");
        assert_eq!(of(i32::MAX, Some(begun)), elsewhere, "no such process");
        assert!(of(own, None).here().is_none());
    }

    #[test]
    fn the_number_in_a_container_is_the_last_one() {
        assert_eq!(inner("Name:\tpostgres\nNSpid:\t4711\t70\t7\n"), Some(7));
        assert_eq!(inner("Name:\tpostgres\n"), None);
    }
}

//! Readings of a server's process in /proc.
//!
//! The texts are parsed by pure functions, so that tests read recorded files.

use plumb_events::clock::parse_schedstat;
use plumb_host::kernel::{stat_fields, status_field};
use plumb_host::proc_files::{self, Descriptor, text};
use plumb_host::readings::{OpenFlags, ProcessIo};
use plumb_units::{Bytes, Nanos};
use rustix::process::Pid;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A clock tick of /proc/PID/stat, 100 a second on every architecture that Linux runs on today.
const TICK: u64 = 10_000_000;

/// Counters of a process since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counters {
    pub cpu: Nanos,
    /// Ready to run, without a processor.
    pub queue: Nanos,
    /// `None` where this user may not read it.
    pub io: Option<ProcessIo>,
}

/// True if a process was on a processor or ready for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum On {
    Cpu,
    Off,
}

impl Counters {
    /// Reads them; `None` if the process has ended.
    #[must_use]
    pub fn of(pid: i32) -> Option<Counters> {
        let (cpu, queue) = parse_schedstat(&text(pid, "schedstat")?)?;
        let io = Pid::from_raw(pid).and_then(|pid| ProcessIo::of(pid).ok());
        Some(Counters { cpu, queue, io })
    }

    #[must_use]
    pub fn since(&self, earlier: &Counters) -> Counters {
        Counters {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            queue: self.queue.saturating_sub(earlier.queue),
            io: self.io.zip(earlier.io).map(|(later, earlier)| later.since(&earlier)),
        }
    }
}

/// Returns the state of a process; `None` if it has ended.
#[must_use]
pub fn on(pid: i32) -> Option<On> {
    state(&text(pid, "stat")?)
}

/// Returns the CPU time of the children that a process has waited for.
#[must_use]
pub fn children_cpu(pid: i32) -> Option<Nanos> {
    waited_for(&text(pid, "stat")?)
}

/// Returns the memory of a process that no other process shares.
#[must_use]
pub fn anonymous(pid: i32) -> Option<Bytes> {
    kilobytes(&text(pid, "status")?, "RssAnon")
}

/// Returns the shared mapping that holds a server's buffers, from its first process.
#[must_use]
pub fn shared_mapping(pid: i32) -> Option<SharedMapping> {
    mapping(&text(pid, "smaps")?)
}

/// The largest shared mapping of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedMapping {
    pub size: Bytes,
    pub page: Bytes,
}

/// Returns the open files of a process below a directory, by their paths in it, with their flags.
#[must_use]
pub fn open_files(pid: i32, directory: &Path) -> BTreeMap<PathBuf, OpenFlags> {
    let file = |open: Descriptor| {
        let inside = open.target.strip_prefix(directory).ok()?.to_path_buf();
        let flags = u32::from_str_radix(status_field(&open.info()?, "flags")?, 8).ok()?;
        Some((inside, OpenFlags::of_bits(flags)))
    };
    proc_files::descriptors(pid).filter_map(file).collect()
}

/// Returns the requests that the kernel took from the rings of a process, if it has any.
#[must_use]
pub fn ring_requests(pid: i32) -> Option<u64> {
    let rings =
        proc_files::descriptors(pid).filter(|open| open.target.as_os_str() == "anon_inode:[io_uring]");
    let requests = rings.filter_map(|ring| status_field(&ring.info()?, "SqTail")?.parse::<u64>().ok());
    requests.reduce(|one, other| one + other)
}

fn state(stat: &str) -> Option<On> {
    match stat_fields(stat).next()? {
        "R" => Some(On::Cpu),
        "Z" | "X" => None,
        _ => Some(On::Off),
    }
}

fn waited_for(stat: &str) -> Option<Nanos> {
    let mut ticks = stat_fields(stat).skip(13).map(|number| number.parse::<u64>().ok());
    Some(Nanos((ticks.next()?? + ticks.next()??) * TICK))
}

fn kilobytes(status: &str, name: &str) -> Option<Bytes> {
    let number = status_field(status, name)?.split_whitespace().next()?.parse::<u64>().ok()?;
    Some(Bytes(number * Bytes::K))
}

/// Parses the mapping of buffers: anonymous shared memory, named for its pages.
pub(crate) fn mapping(smaps: &str) -> Option<SharedMapping> {
    let mut found: Option<SharedMapping> = None;
    let mut inside = false;
    for line in smaps.lines() {
        let is_head =
            line.split(' ').next().is_some_and(|range| range.contains('-') && !range.ends_with(':'));
        if is_head {
            inside = line.ends_with("/dev/zero (deleted)") || line.ends_with("/anon_hugepage (deleted)");
        } else if inside && let Some(size) = kilobytes(line, "Size") {
            found = found.filter(|known| known.size >= size).or(Some(SharedMapping { size, page: Bytes(0) }));
        } else if inside && let Some(page) = kilobytes(line, "KernelPageSize") {
            found = found.map(|known| SharedMapping { page: known.page.max(page), ..known });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;

    #[test]
    fn recorded_files_of_a_server_are_read() {
        for version in recorded::VERSIONS {
            let text = |name| recorded::text(version, name);
            let (cpu, queue) = parse_schedstat(&text("schedstat")).expect("two times");
            assert!(cpu.0 > 1_000_000 && queue.0 > 0, "{version}: {cpu} {queue}");
            assert!(state(&text("stat")).is_some(), "{version}");
            assert!(waited_for(&text("stat")).is_some(), "{version}");
            let memory = kilobytes(&text("status"), "RssAnon");
            assert!(memory.is_some_and(|memory| memory.0 > Bytes::M), "{version}: {memory:?}");
            let shared = mapping(&text("smaps")).expect("a mapping of buffers");
            let expected = 16 * Bytes::M..80 * Bytes::M;
            assert!(expected.contains(&shared.size.0) && shared.page == Bytes(4096), "{version}: {shared:?}");
        }
    }

    #[test]
    fn a_name_with_a_bracket_does_not_shift_the_fields() {
        assert_eq!(state("7 (postgres: a) b) R 1 2"), Some(On::Cpu));
        assert_eq!(state("7 (postgres) Z 1 2"), None);
        assert_eq!(state("nothing"), None);
    }
}

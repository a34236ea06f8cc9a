//! What the system gives this process, and how much of it is taken: threads, memory, locked memory, open files.
//!
//! The kernel says that a limit was hit and not which: EAGAIN of a thread, ENOMEM of a ring. The functions here
//! find the limit behind such an error, with its value and the number it takes, while what was begun still
//! counts against it. Control groups are read in both of their layouts, each group with its parents.
//!
//! A [`Quota`] is a limit of our own, so that a test hits one at a place of its choice.

use crate::kernel::{Host, status_field};
use crate::roots::{Roots, names};
use plumb_units::{Bytes, Nanos};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::{io, thread};

/// So many may be had at once; any number by default.
#[derive(Debug, Clone)]
pub struct Quota {
    most: usize,
    taken: Arc<AtomicUsize>,
}

impl Default for Quota {
    fn default() -> Quota {
        Quota { most: usize::MAX, taken: Arc::default() }
    }
}

impl Quota {
    /// At most so many at once.
    #[must_use]
    pub fn of(most: usize) -> Quota {
        Quota { most, ..Quota::default() }
    }

    /// Takes the place of a thread, which is free again when the share is dropped.
    ///
    /// # Errors
    /// As the kernel refuses a thread, when all are taken.
    pub fn thread(&self) -> io::Result<Share> {
        self.take(1).map(|()| Share(Arc::clone(&self.taken))).ok_or_else(|| Errno::AGAIN.into())
    }

    /// Takes the places of `count` threads, or none of them.
    ///
    /// # Errors
    /// As the kernel refuses a thread, when fewer are free.
    pub fn threads(&self, count: usize) -> io::Result<Vec<Share>> {
        self.take(count).ok_or(Errno::AGAIN)?;
        Ok((0..count).map(|_| Share(Arc::clone(&self.taken))).collect())
    }

    /// Takes the place of a ring.
    ///
    /// # Errors
    /// As the kernel refuses locked memory, when all are taken.
    pub fn ring(&self) -> io::Result<Share> {
        self.take(1).map(|()| Share(Arc::clone(&self.taken))).ok_or_else(|| Errno::NOMEM.into())
    }

    fn take(&self, count: usize) -> Option<()> {
        let add = |taken: usize| taken.checked_add(count).filter(|sum| *sum <= self.most);
        self.taken.fetch_update(Relaxed, Relaxed, add).ok().map(|_| ())
    }

    /// Returns the number of places that are free.
    #[must_use]
    pub fn free(&self) -> usize {
        self.most.saturating_sub(self.taken())
    }

    /// Returns the number of places that are taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.taken.load(Relaxed)
    }
}

/// One of a [`Quota`].
#[derive(Debug)]
pub struct Share(Arc<AtomicUsize>);

impl Drop for Share {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// What an instance may have at once.
#[derive(Debug, Clone, Default)]
pub struct Quotas {
    /// Threads.
    pub threads: Quota,
    /// Rings.
    pub rings: Quota,
}

/// Threads that could not all be started.
#[derive(Debug)]
pub struct ThreadShortage {
    /// Those that could.
    pub started: usize,
    /// What the kernel said of the next.
    pub source: io::Error,
    /// The limit that was hit.
    pub limit: String,
}

/// Starts so many threads that do nothing and ends them again: work whose threads wait for each other begins
/// only where all of them can be had.
///
/// # Errors
/// When not all can be started.
pub fn try_threads(quota: &Quota, wanted: usize) -> Result<(), ThreadShortage> {
    let gate = Mutex::new(());
    thread::scope(|scope| {
        // All are there at once: each waits, for less than a millisecond, until the last was tried.
        let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
        for started in 0..wanted {
            let tried = quota.thread().and_then(|share| {
                let wait = || drop((gate.lock(), share));
                thread::Builder::new().spawn_scoped(scope, wait)
            });
            if let Err(source) = tried {
                return Err(ThreadShortage { started, source, limit: threads(wanted - started) });
            }
        }
        drop(closed);
        Ok(())
    })
}

/// The limit that stands against so many more threads, and what it must be.
#[must_use]
pub fn threads(needed: usize) -> String {
    let limit = getrlimit(Resource::Nproc).current;
    threads_at(&Roots::real(), limit, needed as u64)
}

/// Threads that counted when the limit was hit and may have ended before they were counted.
const ENDED_SINCE: u64 = 8;

pub(crate) fn threads_at(roots: &Roots, limit: Option<u64>, needed: u64) -> String {
    let used = threads_of_user(roots);
    let least = used + needed + ENDED_SINCE;
    if let Some(limit) = limit.filter(|limit| least > *limit) {
        return format!(
            "this user may have {limit} threads (RLIMIT_NPROC), has {used} and needs {needed} more: set ulimit -u to \
             {least} or more"
        );
    }
    let groups = roots.group_files("pids", &["pids.max"]);
    for (directory, limit) in groups {
        let used = roots.number_in(&directory, "pids.current").unwrap_or(0);
        if used + needed > limit {
            return format!(
                "the control group may have {limit} threads (pids.max), has {used} and needs {needed} more: raise it to {} \
                 or more (docker: --pids-limit; systemd: TasksMax)",
                used + needed
            );
        }
    }
    let limit = limit.map_or("unlimited".to_string(), |limit| limit.to_string());
    format!(
        "RLIMIT_NPROC is {limit} and this user has {used} threads: look at kernel.threads-max, vm.max_map_count and the \
         limit on virtual memory (ulimit -v)"
    )
}

/// Threads of all processes of this user, as far as /proc shows them.
fn threads_of_user(roots: &Roots) -> u64 {
    let user = rustix::process::getuid().as_raw();
    let processes = names(&roots.proc).into_iter().filter(|name| name.parse::<u32>().is_ok());
    let threads = |name: String| {
        let owner = roots.proc.join(&name).metadata().ok()?.uid();
        let status = roots.proc_text(&format!("{name}/status")).filter(|_| owner == user)?;
        status_field(&status, "Threads")?.parse::<u64>().ok()
    };
    processes.filter_map(threads).sum()
}

/// Files and rings that a run of a few servers opens.
const FILES_OF_A_RUN: u64 = 64;

/// The limit that stands against a further open file, and what it must be.
#[must_use]
pub fn files() -> (String, String) {
    let limit = getrlimit(Resource::Nofile).current;
    let least = limit.unwrap_or_default() + FILES_OF_A_RUN;
    let limit = limit.map_or("unlimited".to_string(), |limit| limit.to_string());
    // To count them takes one more, which is not there when all are taken.
    let used = names(Path::new("/proc/self/fd")).len().checked_sub(1);
    let used = used.map_or("has them all".to_string(), |used| format!("has {used}"));
    (
        format!("this process may have {limit} files open (RLIMIT_NOFILE) and {used}"),
        format!("set ulimit -n to {least} or more: each ring and each file takes one"),
    )
}

/// The limit that stands against locking `needed` more bytes, beside `held` that are known of, and what it must be.
#[must_use]
pub fn locked(needed: Bytes, held: Bytes) -> (String, String) {
    let limit = getrlimit(Resource::Memlock).current.map(Bytes);
    let shown = limit.map_or("not limited".to_string(), |limit| format!("limited to {limit}"));
    // Of other processes of the user nothing is known: with as much more as is needed they are beside the point.
    let least = Bytes(needed.0 + limit.unwrap_or_default().max(held).0);
    (
        format!(
            "locked memory is {shown} (RLIMIT_MEMLOCK, of all processes of this user); this process has locked {held} and \
             needs {needed} more"
        ),
        format!("set ulimit -l to {} or more (systemd: LimitMEMLOCK)", least.0.div_ceil(1024)),
    )
}

/// Returns the bytes that this process may lock in all; `None`: no limit.
#[must_use]
pub fn lockable() -> Option<u64> {
    let host = Host::this();
    host.memlock_soft.filter(|_| !host.memlock_exempt).map(|bytes| bytes.0)
}

/// Returns the bytes that this process has pinned.
#[must_use]
pub fn pinned() -> Bytes {
    let status = Roots::real().proc_text("self/status").unwrap_or_default();
    Bytes(status_field(&status, "VmPin").and_then(kibibytes).unwrap_or(0))
}

/// The memory a process may use, and what bounds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryBounds {
    /// The machine's, or less where a control group says so.
    pub total: Bytes,
    /// Which of them: `MemTotal` or `memory.max`.
    pub source: &'static str,
    /// What could still be taken.
    pub available: Bytes,
}

/// The memory this process may use; `None` where /proc does not tell.
#[must_use]
pub fn memory() -> Option<MemoryBounds> {
    memory_at(&Roots::real())
}

pub(crate) fn memory_at(roots: &Roots) -> Option<MemoryBounds> {
    let info = roots.proc_text("meminfo")?;
    let field = |name| status_field(&info, name).and_then(kibibytes);
    let total = field("MemTotal")?;
    let machine =
        MemoryBounds { total: Bytes(total), source: "MemTotal", available: Bytes(field("MemAvailable")?) };
    let groups = roots.group_files("memory", &["memory.max", "memory.limit_in_bytes"]);
    Some(groups.into_iter().fold(machine, |bounds, (directory, limit)| {
        let current = ["memory.current", "memory.usage_in_bytes"];
        let used = current.iter().find_map(|name| roots.number_in(&directory, name)).unwrap_or(0);
        let available = bounds.available.min(Bytes(limit.saturating_sub(used)));
        if Bytes(limit) < bounds.total {
            return MemoryBounds {
                total: Bytes(limit),
                source: "memory.max of the control group",
                available,
            };
        }
        bounds
    }))
}

/// A quota of processor time that a control group has, and how often it was reached since the group was made.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuQuota {
    /// The directory of the group.
    pub group: PathBuf,
    /// The processors that it may use: 0.5 for half of the time of one.
    pub cpus: f64,
    /// Periods in which it had something to run.
    pub periods: u64,
    /// Of these, periods in which it was stopped because its quota was used up.
    pub throttled: u64,
    /// Time that it was stopped, summed over processors.
    pub throttled_time: Nanos,
}

impl CpuQuota {
    /// What was added since an earlier reading of the same group.
    #[must_use]
    pub fn since(&self, earlier: &CpuQuota) -> CpuQuota {
        CpuQuota {
            periods: self.periods.saturating_sub(earlier.periods),
            throttled: self.throttled.saturating_sub(earlier.throttled),
            throttled_time: self.throttled_time.saturating_sub(earlier.throttled_time),
            ..self.clone()
        }
    }
}

/// The quotas of processor time that bound this process, its own group's first; none where nothing bounds it.
#[must_use]
pub fn cpu_quotas() -> Vec<CpuQuota> {
    cpu_quotas_at(&Roots::real())
}

pub(crate) fn cpu_quotas_at(roots: &Roots) -> Vec<CpuQuota> {
    let quota = |group: PathBuf| {
        // One tree has both numbers in a file; a tree for each controller has a file for each, and -1 for no quota.
        let cpus = match crate::roots::text(&group.join("cpu.max")) {
            Some(both) => {
                let (quota, period) = both.split_once(' ')?;
                quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?
            }
            None => {
                let of = |name| roots.number_in(&group, name);
                of("cpu.cfs_quota_us")? as f64 / of("cpu.cfs_period_us")? as f64
            }
        };
        let stat = crate::roots::text(&group.join("cpu.stat")).unwrap_or_default();
        let count = |name| {
            let words = stat.lines().filter_map(|line| line.split_once(' '));
            words.filter(|(own, _)| *own == name).find_map(|(_, value)| value.trim().parse::<u64>().ok())
        };
        let micros = count("throttled_usec").map(|micros| micros.saturating_mul(1_000));
        let quota = CpuQuota {
            cpus,
            periods: count("nr_periods").unwrap_or(0),
            throttled: count("nr_throttled").unwrap_or(0),
            throttled_time: Nanos(micros.or(count("throttled_time")).unwrap_or(0)),
            group,
        };
        (quota.cpus > 0.0 && quota.cpus.is_finite()).then_some(quota)
    };
    roots.group_directories("cpu").into_iter().filter_map(quota).collect()
}

/// The memory pressure of this process's control group, as the kernel writes it; `None` where it keeps none for a group.
#[must_use]
pub fn memory_pressure() -> Option<String> {
    let groups = Roots::real().group_directories("memory");
    groups.into_iter().find_map(|group| crate::roots::text(&group.join("memory.pressure")))
}

/// Bytes that the machine has moved to and from its swap since it started; `None` where /proc does not tell.
#[must_use]
pub fn swapped() -> Option<Bytes> {
    let pages: u64 = ["pswpin", "pswpout"].into_iter().map(counter).sum::<Option<u64>>()?;
    Some(Bytes(pages.saturating_mul(rustix::param::page_size() as u64)))
}

/// A counter of /proc/vmstat.
fn counter(name: &str) -> Option<u64> {
    let text = Roots::real().proc_text("vmstat")?;
    let words = text.lines().filter_map(|line| line.split_once(' '));
    words.filter(|(own, _)| *own == name).find_map(|(_, value)| value.trim().parse().ok())
}

/// Bytes in the page cache of all files that are still to be written; `None` where /proc does not tell.
#[must_use]
pub fn unwritten() -> Option<Bytes> {
    let info = Roots::real().proc_text("meminfo")?;
    let field = |name| status_field(&info, name).and_then(kibibytes);
    Some(Bytes(field("Dirty")? + field("Writeback")?))
}

fn kibibytes(text: &str) -> Option<u64> {
    text.strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests;

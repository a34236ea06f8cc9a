//! Limits of this process and their use: threads, memory, locked memory, open files.
//!
//! The kernel reports that a limit was hit, not which one: EAGAIN for a thread, ENOMEM for a ring.
//! The functions here find the limit behind such an error, with its value and the number needed.
//! Call them while the partial work still counts against the limit. Control groups are read in both
//! of their layouts, each group with its parents.
//!
//! A [`Quota`] is a limit of the program's own, so that a test can hit one at a chosen place.

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

/// A limit on the number held at once; none by default.
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
    /// Returns a quota of `most` places.
    pub fn of(most: usize) -> Quota {
        Quota { most, ..Quota::default() }
    }

    /// Takes a place for a thread, freed when the share is dropped.
    ///
    /// # Errors
    /// When all places are taken, as the kernel refuses a thread (EAGAIN).
    pub fn thread(&self) -> io::Result<Share> {
        self.take(1).map(|()| Share(Arc::clone(&self.taken))).ok_or_else(|| Errno::AGAIN.into())
    }

    /// Takes the places of `count` threads, or none of them.
    ///
    /// # Errors
    /// When fewer are free, as the kernel refuses a thread (EAGAIN).
    pub fn threads(&self, count: usize) -> io::Result<Vec<Share>> {
        self.take(count).ok_or(Errno::AGAIN)?;
        Ok((0..count).map(|_| Share(Arc::clone(&self.taken))).collect())
    }

    /// Takes a place for a ring, freed when the share is dropped.
    ///
    /// # Errors
    /// When all places are taken, as the kernel refuses locked memory (ENOMEM).
    pub fn ring(&self) -> io::Result<Share> {
        self.take(1).map(|()| Share(Arc::clone(&self.taken))).ok_or_else(|| Errno::NOMEM.into())
    }

    fn take(&self, count: usize) -> Option<()> {
        let add = |taken: usize| taken.checked_add(count).filter(|sum| *sum <= self.most);
        self.taken.fetch_update(Relaxed, Relaxed, add).ok().map(|_| ())
    }

    /// Returns the number of places that are free.
    pub fn free(&self) -> usize {
        self.most.saturating_sub(self.taken())
    }

    /// Returns the number of places that are taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.taken.load(Relaxed)
    }
}

/// One place of a [`Quota`], freed on drop.
#[derive(Debug)]
pub struct Share(Arc<AtomicUsize>);

impl Drop for Share {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Limits of an instance on the threads and rings held at once.
#[derive(Debug, Clone, Default)]
pub struct Quotas {
    /// Most threads at once, across all pools.
    pub threads: Quota,
    /// Most rings of io_uring at once.
    pub rings: Quota,
}

/// Failure to start all threads of some work.
#[derive(Debug)]
pub struct ThreadShortage {
    /// Number of threads that started.
    pub started: usize,
    /// The kernel's error from the next start.
    pub source: io::Error,
    /// The limit that was hit.
    pub limit: String,
}

/// Starts `wanted` idle threads and ends them again. Work whose threads wait for each other starts
/// only if the system can run all of them.
///
/// # Errors
/// When one of them cannot be started, with the limit that was hit.
pub fn try_threads(quota: &Quota, wanted: usize) -> Result<(), ThreadShortage> {
    let gate = Mutex::new(());
    thread::scope(|scope| {
        // All exist at once: each waits, for less than a millisecond, until
        // the last start was tried.
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

/// Returns the limit that prevents `needed` more threads, with the value that it needs.
pub fn threads(needed: usize) -> String {
    let limit = getrlimit(Resource::Nproc).current;
    threads_at(&Roots::real(), limit, needed as u64)
}

/// Margin for threads that counted when the limit was hit and ended before this count.
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

/// Counts the threads of all processes of this user that /proc shows.
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

/// Number of files and rings that a run with a few servers opens.
const FILES_OF_A_RUN: u64 = 64;

/// Returns the limit that prevents another open file, and its cure.
pub fn files() -> (String, String) {
    let limit = getrlimit(Resource::Nofile).current;
    let least = limit.unwrap_or_default() + FILES_OF_A_RUN;
    let limit = limit.map_or("unlimited".to_string(), |limit| limit.to_string());
    // Counting opens one more file, which fails when all are taken.
    let used = names(Path::new("/proc/self/fd")).len().checked_sub(1);
    let used = used.map_or("has them all".to_string(), |used| format!("has {used}"));
    (
        format!("this process may have {limit} files open (RLIMIT_NOFILE) and {used}"),
        format!("set ulimit -n to {least} or more: each ring and each file takes one"),
    )
}

/// Returns the limit that prevents locking `needed` more bytes on top of `held`, and its cure.
#[must_use]
pub fn locked(needed: Bytes, held: Bytes) -> (String, String) {
    let limit = getrlimit(Resource::Memlock).current.map(Bytes);
    let shown = limit.map_or("not limited".to_string(), |limit| format!("limited to {limit}"));
    // Other processes of the user may hold locked memory, which is unknown here. The limit is
    // raised by all of `needed`, so their share does not matter.
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

/// Returns the bytes that this process has pinned (VmPin).
pub fn pinned() -> Bytes {
    let status = Roots::real().proc_text("self/status").unwrap_or_default();
    Bytes(status_field(&status, "VmPin").and_then(kibibytes).unwrap_or(0))
}

/// The memory that a process may use, and the source of the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryBounds {
    /// Memory of the machine, or less where a control group limits it.
    pub total: Bytes,
    /// Source of the limit: `MemTotal`, or `memory.max` of the control group.
    pub source: &'static str,
    /// Bytes that the process could still take.
    pub available: Bytes,
}

/// Returns the memory that this process may use; `None` where /proc does not show it.
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

/// A control group's quota of processor time, and its use since the group was made.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuQuota {
    /// The directory of the group.
    pub group: PathBuf,
    /// The processors that it may use; 0.5 is half of the time of one.
    pub cpus: f64,
    /// Periods in which a process of the group was runnable.
    pub periods: u64,
    /// Periods in which the quota ran out and the group was stopped.
    pub throttled: u64,
    /// Time for which it was stopped, summed over processors.
    pub throttled_time: Nanos,
}

impl CpuQuota {
    /// Returns the growth since an earlier reading of the same group.
    pub fn since(&self, earlier: &CpuQuota) -> CpuQuota {
        CpuQuota {
            periods: self.periods.saturating_sub(earlier.periods),
            throttled: self.throttled.saturating_sub(earlier.throttled),
            throttled_time: self.throttled_time.saturating_sub(earlier.throttled_time),
            ..self.clone()
        }
    }
}

/// Returns the quotas of processor time that bind this process, its own
/// group's first; empty for none.
pub fn cpu_quotas() -> Vec<CpuQuota> {
    cpu_quotas_at(&Roots::real())
}

pub(crate) fn cpu_quotas_at(roots: &Roots) -> Vec<CpuQuota> {
    let quota = |group: PathBuf| {
        // The unified layout has both numbers in one file. The older one has a file for each,
        // with -1 for no quota.
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

/// Returns the memory pressure of this process's control group, as the kernel writes it; `None`
/// where the kernel keeps none.
pub fn memory_pressure() -> Option<String> {
    let groups = Roots::real().group_directories("memory");
    groups.into_iter().find_map(|group| crate::roots::text(&group.join("memory.pressure")))
}

/// Returns the bytes that the machine has moved to and from its swap since its start; `None` where
/// /proc does not show them.
pub fn swapped() -> Option<Bytes> {
    let pages: u64 = ["pswpin", "pswpout"].into_iter().map(counter).sum::<Option<u64>>()?;
    Some(Bytes(pages.saturating_mul(rustix::param::page_size() as u64)))
}

/// Returns a counter of /proc/vmstat.
fn counter(name: &str) -> Option<u64> {
    let text = Roots::real().proc_text("vmstat")?;
    let words = text.lines().filter_map(|line| line.split_once(' '));
    words.filter(|(own, _)| *own == name).find_map(|(_, value)| value.trim().parse().ok())
}

/// Returns the bytes of all files in the page cache that are not yet written; `None` where
/// /proc does not show them.
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

//! Version of the kernel, and its limits for this process.

use crate::proc_files;
use crate::roots::{Roots, bracketed};
use plumb_units::{Bytes, Nanos};

/// Version of the kernel, and its limits for this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// The release of the kernel, as `uname -r` prints it.
    pub kernel_release: Option<String>,
    /// The size of a page of memory.
    pub page_size: Bytes,
    /// The soft limit on locked memory (`ulimit -l`); `None` for no limit.
    pub memlock_soft: Option<Bytes>,
    /// True if that limit does not bind this process (`CAP_IPC_LOCK`).
    pub memlock_exempt: bool,
    /// Policy for huge pages: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
}

impl Host {
    /// Reads these facts of this machine.
    pub fn this() -> Host {
        read(&Roots::real())
    }
}

/// The bit of `CAP_IPC_LOCK` in the capability sets of `/proc/self/status`.
const CAP_IPC_LOCK: u32 = 14;

pub(crate) fn read(roots: &Roots) -> Host {
    let status = roots.proc_text("self/status").unwrap_or_default();
    let huge_pages = roots.sys_text("kernel/mm/transparent_hugepage/enabled");
    Host {
        kernel_release: roots.proc_text("sys/kernel/osrelease"),
        page_size: Bytes(rustix::param::page_size() as u64),
        memlock_soft: rustix::process::getrlimit(rustix::process::Resource::Memlock).current.map(Bytes),
        memlock_exempt: status_field(&status, "CapEff")
            .and_then(|mask| u64::from_str_radix(mask, 16).ok())
            .is_some_and(|mask| mask >> CAP_IPC_LOCK & 1 == 1),
        transparent_huge_pages: huge_pages.as_deref().and_then(bracketed).map(str::to_owned),
    }
}

/// Returns the fields of a stat file of proc_pid_stat(5) after the name, from the state (field 3)
/// on. The name is in brackets and may contain any character. Without a name there are none.
pub fn stat_fields(stat: &str) -> impl Iterator<Item = &str> {
    stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace()
}

/// Returns the start time of a process in clock ticks since boot, because numbers are reused;
/// `None` if it has ended.
#[must_use]
pub fn start_time(process: u32) -> Option<u64> {
    let stat = proc_files::text(process, "stat")?;
    let mut fields = stat_fields(&stat);
    // A killed process stays as a zombie until its parent waits for it, and holds nothing.
    fields.next().filter(|state| !matches!(*state, "Z" | "X"))?;
    fields.nth(18)?.parse().ok()
}

/// Returns the number of this boot, which no other boot has; empty if the kernel hides it.
pub fn boot_id() -> String {
    Roots::real().proc_text("sys/kernel/random/boot_id").unwrap_or_default()
}

/// Returns the time since the boot.
pub fn uptime() -> Option<Nanos> {
    let text = Roots::real().proc_text("uptime")?;
    let seconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(Nanos((seconds * 1e9) as u64))
}

/// Returns the value of a field in the text of `/proc/self/status`.
pub fn status_field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_killed_process_has_ended_before_its_parent_waits_for_it() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a process");
        assert!(start_time(child.id()).is_some());
        child.kill().expect("it runs");
        let ended = (0..1000).any(|_| {
            std::thread::sleep(Duration::from_millis(2));
            start_time(child.id()).is_none()
        });
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("a zombie");
        let _ = child.wait();
        assert!(ended, "{stat}");
    }
}

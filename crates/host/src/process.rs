//! Child commands: ended as a group, waited for with their resource use, and sampled from outside.
//!
//! ```text
//! start(command) ──> Started::wait ──> Ended   (the clock stops when the command does)
//!                       │ Looks::look, from another thread: samples /proc of all its processes
//!                     dropped: all its processes are killed
//! ```
//!
//! A command runs in a process group of its own, and this process is the reaper of all its
//! descendants. So processes that a command leaves behind are found and killed, whatever
//! groups and sessions they made.
//!
//! Mechanism: an ended process stays a zombie until it is waited for. A zombie still has its
//! counters of bytes and requests, including those of children that it waited for. They are read
//! between `waitid`, which only reports the end, and `wait4`, which returns CPU time and peak of
//! memory. Open files, libraries and the executable vanish with the end, so they are sampled while
//! it lives: soon after the start, then ten times a second.
//!
//! Why not ptrace, which would miss nothing: it stops the command at each event, and
//! its time is the measurement.
//!
//! Limits: a process that lives shorter than the time between two samples may be missed. An exec
//! keeps the peak of memory, so a small command has at least the peak of its parent.

use crate::kernel::stat_fields;
use crate::proc_files::{self, Descriptor};
use crate::readings::{self, OpenFlags, ProcessIo};
use plumb_events::clock;
use plumb_units::{Bytes, Nanos};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, set_child_subreaper, set_parent_process_death_signal,
    waitid,
};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::Duration;
use std::{fs, io};

/// Longest time for killed processes to end.
const END_BOUND: Nanos = Nanos(5_000_000_000);

/// Resources that a command used, with all children that it waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode.
    pub user: Nanos,
    /// CPU time in the kernel.
    pub system: Nanos,
    /// The peak of memory of the largest of its processes.
    pub peak: Bytes,
    /// Bytes and calls; `None` where the kernel does not show them.
    pub io: Option<ProcessIo>,
}

/// End of a command, with its use of resources.
#[derive(Debug)]
pub struct Ended {
    /// Exit status or signal of the command.
    pub status: ExitStatus,
    /// CPU time, memory and I/O.
    pub usage: Usage,
    /// Time from before the start to after the end, by the monotonic clock.
    pub elapsed: Nanos,
    /// Number of its processes that outlived it and were killed.
    pub left: usize,
}

/// A running command; dropping it kills all its processes.
#[derive(Debug)]
pub struct Started {
    /// The process, with the pipes that were requested.
    pub child: Child,
    pid: Pid,
    begin: Nanos,
}

/// Starts a command in a process group of its own.
///
/// # Errors
/// When the program is missing or the kernel refuses a process.
pub fn start(command: &mut Command) -> io::Result<Started> {
    // Its orphans become children of this process, and can be found.
    set_child_subreaper(Some(rustix::process::getpid()))?;
    command.process_group(0);
    let begin = clock::now();
    let child = command.spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("a process without a number"))?;
    Ok(Started { child, pid, begin })
}

impl Started {
    /// Returns the number of the command's process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// True if the command's process has ended; it stays until [`Started::wait`].
    pub fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        !matches!(waitid(WaitId::Pid(self.pid), options), Ok(None) | Err(Errno::INTR))
    }

    /// Waits until it has ended, and kills the processes that it left.
    ///
    /// # Errors
    /// When the kernel's wait fails, or a left process does not end.
    pub fn wait(self) -> io::Result<Ended> {
        loop {
            // It stays a zombie, with readable counters.
            match waitid(WaitId::Pid(self.pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let elapsed = clock::now().saturating_sub(self.begin);
        let io = ProcessIo::of(self.pid).ok();
        let (status, usage) = reap(self.pid)?;
        let left = end_all()?;
        Ok(Ended { status, usage: Usage { io, ..usage }, elapsed, left })
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // A process that does not end now is no longer this program's to kill.
        let _ = end_all();
    }
}

/// Makes the kernel send a signal to a command's process when the thread that starts it ends, so
/// that a server does not outlive a killed program.
pub fn end_with_this_thread(command: &mut Command, signal: Signal) {
    let parent = rustix::process::getpid();
    let request = move || {
        set_parent_process_death_signal(Some(signal))?;
        // The parent may have ended before the request.
        match rustix::process::getppid() == Some(parent) {
            true => Ok(()),
            false => Err(io::Error::other("the parent has ended")),
        }
    };
    // SAFETY: between fork and exec the closure makes two system calls and allocates nothing
    // unless it fails.
    #[allow(unsafe_code)]
    unsafe {
        command.pre_exec(request);
    }
}

/// Removes an ended process from the kernel's table.
fn reap(pid: Pid) -> io::Result<(ExitStatus, Usage)> {
    let mut status = 0;
    // SAFETY: a structure of integers, for which zero is a value.
    #[allow(unsafe_code)]
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to variables of this function.
    #[allow(unsafe_code)]
    let waited = unsafe { libc::wait4(pid.as_raw_nonzero().get(), &raw mut status, 0, &raw mut used) };
    if waited < 0 {
        return Err(io::Error::last_os_error());
    }
    let time = |time: libc::timeval| Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000);
    let usage = Usage {
        user: time(used.ru_utime),
        system: time(used.ru_stime),
        peak: Bytes(used.ru_maxrss as u64 * Bytes::K),
        io: None,
    };
    Ok((ExitStatus::from_raw(status), usage))
}

/// Kills every descendant of this process; returns the number that were alive.
///
/// # Errors
/// When one does not end within five seconds.
pub fn end_all() -> io::Result<usize> {
    let begin = clock::now();
    let mut ended = BTreeSet::new();
    loop {
        let living = below(rustix::process::getpid());
        let mut alive = false;
        for pid in living {
            if is_zombie(pid) {
                // Only its parent can reap a zombie; this reaps those of this process.
                let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
                continue;
            }
            alive = true;
            ended.insert(pid.as_raw_nonzero());
            let _ = kill_process(pid, Signal::KILL);
        }
        if !alive {
            return Ok(ended.len());
        }
        if clock::now().saturating_sub(begin) > END_BOUND {
            return Err(io::Error::other("a process that a command left does not end"));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns all descendants of a process, in the order found: children before their own children.
pub fn below(parent: Pid) -> Vec<Pid> {
    let mut found: Vec<Pid> = Vec::new();
    let mut parents = vec![parent];
    while let Some(parent) = parents.pop() {
        let children = children(parent).into_iter().filter(|child| !found.contains(child));
        let children: Vec<Pid> = children.collect();
        found.extend(&children);
        parents.extend(children);
    }
    found
}

/// Returns the children of all threads of a process.
fn children(parent: Pid) -> Vec<Pid> {
    let tasks = format!("/proc/{}/task", parent.as_raw_nonzero());
    let lists = fs::read_dir(tasks).into_iter().flatten().flatten();
    let lists = lists.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let numbers = |list: String| {
        let numbers = list.split_whitespace().filter_map(|number| Pid::from_raw(number.parse().ok()?));
        numbers.collect::<Vec<_>>()
    };
    lists.flat_map(numbers).collect()
}

fn is_zombie(pid: Pid) -> bool {
    let stat = proc_files::text(pid.as_raw_nonzero().get(), "stat").unwrap_or_default();
    stat_fields(&stat).next().is_none_or(|state| state.starts_with(['Z', 'X']))
}

/// Facts about the processes of a command, over all samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Looks {
    /// Number of samples in which it was alive.
    pub count: u64,
    /// Numbers of its processes, as the kernel gives them.
    pub processes: BTreeSet<i32>,
    /// Paths of the executables that they ran.
    pub executables: BTreeSet<PathBuf>,
    /// Libraries and other files mapped for execution.
    pub libraries: BTreeSet<PathBuf>,
    /// Files that were open, each with the union of its open flags, as octal bits.
    pub files: BTreeMap<PathBuf, OpenFlags>,
    /// Sockets that were open, by number. Other processes may work at their far ends.
    pub sockets: BTreeSet<PathBuf>,
    /// Requests through each ring, by process and descriptor.
    pub rings: BTreeMap<(i32, i32), u64>,
    /// Most threads of all processes in one sample.
    pub threads_max: u64,
    /// Peak of memory of the largest process, as the kernel counts it.
    pub peak: Bytes,
}

impl Looks {
    /// Samples a process and its descendants. A process that ends meanwhile is missed.
    pub fn look(&mut self, root: Pid) {
        let mut threads = 0;
        let mut seen = false;
        for pid in std::iter::once(root).chain(below(root)) {
            if is_zombie(pid) {
                continue;
            }
            seen = true;
            threads += self.look_at(pid);
        }
        self.count += u64::from(seen);
        self.threads_max = self.threads_max.max(threads);
    }

    /// Samples one process and returns the number of its threads.
    fn look_at(&mut self, pid: Pid) -> u64 {
        let number = pid.as_raw_nonzero().get();
        self.processes.insert(number);
        self.executables.extend(proc_files::link(number, "exe"));
        let maps = proc_files::text(number, "maps").unwrap_or_default();
        let mapped =
            maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|flags| flags.contains('x')));
        self.libraries.extend(mapped.filter_map(|line| Some(PathBuf::from(&line[line.find('/')?..]))));
        for open in proc_files::descriptors(number) {
            if let Some(info) = open.info() {
                self.open(number, open, &info);
            }
        }
        let status = proc_files::text(number, "status").unwrap_or_default();
        let value = |name| readings::field(&status, name)?.split(' ').next()?.parse::<u64>().ok();
        self.peak = self.peak.max(Bytes(value("VmHWM").unwrap_or(0) * Bytes::K));
        value("Threads").unwrap_or(0)
    }

    fn open(&mut self, process: i32, descriptor: Descriptor, info: &str) {
        let Descriptor { number, target, .. } = descriptor;
        if target.as_os_str() == "anon_inode:[io_uring]" {
            // SqHead counts the requests that the kernel took from the ring.
            let taken = readings::field(info, "SqHead").and_then(|head| head.parse().ok()).unwrap_or(0);
            let ring = self.rings.entry((process, number)).or_default();
            *ring = (*ring).max(taken);
        } else if target.as_os_str().as_encoded_bytes().starts_with(b"socket:") {
            self.sockets.insert(target);
        } else if target.is_absolute()
            && let Some(flags) = readings::flags_of(info)
        {
            self.files.entry(target).and_modify(|known| *known = known.with(flags)).or_insert(flags);
        }
    }

    /// Returns the requests through all rings.
    pub fn ring_requests(&self) -> u64 {
        self.rings.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// One test, because every test sees the descendants of this process.
    #[test]
    fn a_command_is_waited_for_with_what_it_used_and_nothing_of_it_lives_on() {
        let ended = start(&mut sh("head -c 3000000 /dev/zero >/dev/null; exit 3"))
            .expect("sh")
            .wait()
            .expect("it ends");
        assert_eq!((ended.status.code(), ended.left), (Some(3), 0));
        assert!(ended.elapsed >= Nanos(1000) && ended.usage.peak > Bytes(0));
        if let Some(io) = ended.usage.io {
            // The shell waited for head, so its bytes count too.
            assert!(io.rchar.0 >= 3_000_000, "{io:?}");
        }

        let ended = start(&mut sh("(setsid sleep 1000 &) ; sleep 0.1")).expect("sh").wait().expect("it ends");
        assert_eq!((ended.status.code(), ended.left), (Some(0), 1));

        let started = start(&mut sh("exec 3>/dev/null; sleep 1000; true")).expect("sh");
        let mut looks = Looks::default();
        for _ in 0..200 {
            looks.look(started.pid());
            if looks.executables.len() > 1 {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        assert!(looks.processes.len() >= 2 && looks.threads_max >= 2, "{looks:?}");
        assert!(looks.executables.iter().any(|path| path.ends_with("sleep")), "{looks:?}");
        assert!(looks.files.contains_key(std::path::Path::new("/dev/null")), "{looks:?}");
        let pid = started.pid();
        drop(started);
        assert!(below(rustix::process::getpid()).iter().all(|living| *living != pid || is_zombie(*living)));
    }
}

//! Commands that were started: ended as a group, waited for with what they used, and looked at from outside.
//!
//! ```text
//! Guard::new ──> start(command) ──> wait ──> Ended     (the clock stops when the command does)
//!                     │ look, every now and then, from another thread: /proc of all its processes
//!                   dropped: nothing of it lives any more
//! ```
//!
//! What it does: a command runs in a process group of its own, and this process is the reaper of everything below it,
//! so that what a command leaves behind is found and ended, whatever groups and sessions it made.
//!
//! How: an ended process stays a zombie until it is waited for, and a zombie still has its counters of bytes and
//! requests, those of the children that it waited for included. They are read between `waitid`, which only says that
//! it has ended, and `wait4`, which gives CPU time and peak of memory. What goes with the end (open files, libraries,
//! the executable) is looked at while it lives, soon after the start and then ten times a second.
//!
//! Why not ptrace, which would miss nothing: it stops the command at each event, and what is measured is its time.
//!
//! Limits: what lives shorter than the time between two looks may not be seen. The kernel takes a process's peak of
//! memory over an exec along, so that a small command has at least the peak of the process that started it.

use crate::readings::{self, OpenFlags, ProcessIo};
use plumb_events::clock;
use plumb_units::{Bytes, Nanos};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, set_child_subreaper, waitid};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::Duration;

/// How long what was killed may take to go.
const END_BOUND: Nanos = Nanos(5_000_000_000);

/// What a command used, with all that it waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode.
    pub user: Nanos,
    /// CPU time in the kernel.
    pub system: Nanos,
    /// The peak of memory of the largest of its processes.
    pub peak: Bytes,
    /// Bytes and calls; none where the kernel does not tell.
    pub io: Option<ProcessIo>,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    /// Its status.
    pub status: ExitStatus,
    /// What it used.
    pub usage: Usage,
    /// From before it was started to after it had ended, by the monotonic clock.
    pub elapsed: Nanos,
    /// Its processes that lived on, and were ended.
    pub left: usize,
}

/// A command that runs. Whatever is left of it ends when this is dropped.
#[derive(Debug)]
pub struct Started {
    /// The process, with the pipes that were asked for.
    pub child: Child,
    pid: Pid,
    begin: Nanos,
}

/// Starts a command in a process group of its own.
///
/// # Errors
/// When it cannot be started.
pub fn start(command: &mut Command) -> io::Result<Started> {
    // What it leaves behind becomes ours, and can be found.
    set_child_subreaper(Some(rustix::process::getpid()))?;
    command.process_group(0);
    let begin = clock::now();
    let child = command.spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("a process without a number"))?;
    Ok(Started { child, pid, begin })
}

impl Started {
    /// Its number.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Waits until it has ended, and ends what it left.
    ///
    /// # Errors
    /// When the kernel loses it.
    pub fn wait(self) -> io::Result<Ended> {
        loop {
            // It stays a zombie, whose counters can still be read.
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
        // What cannot be ended now is not ours any more.
        let _ = end_all();
    }
}

/// Takes an ended process out of the kernel's table.
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

/// Ends every process below this one; says how many lived.
///
/// # Errors
/// When one does not go.
pub fn end_all() -> io::Result<usize> {
    let begin = clock::now();
    let mut ended = BTreeSet::new();
    loop {
        let living = below(rustix::process::getpid());
        let mut alive = false;
        for pid in living {
            if is_zombie(pid) {
                // Only its parent can take it; where that is us, it goes here.
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

/// All processes below one, children first.
#[must_use]
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

/// The children of all threads of a process.
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
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    // The name before the state may have anything in it.
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

/// What was seen of the processes of a command, over all looks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Looks {
    /// How many looks there were at which it lived.
    pub count: u64,
    /// Its processes.
    pub processes: BTreeSet<i32>,
    /// The executables.
    pub executables: BTreeSet<PathBuf>,
    /// Libraries and other files that were mapped for execution.
    pub libraries: BTreeSet<PathBuf>,
    /// Files that were open, each with all flags that it was ever open with, as octal bits.
    pub files: BTreeMap<PathBuf, OpenFlags>,
    /// Sockets that were open, each by its number: others may work at their far ends.
    pub sockets: BTreeSet<PathBuf>,
    /// Rings, and the requests that went through each.
    pub rings: BTreeMap<(i32, i32), u64>,
    /// Most threads of all processes at once.
    pub threads_max: u64,
    /// The peak of the largest process, by its own count.
    pub peak: Bytes,
}

impl Looks {
    /// Looks at a process and all below it. What has ended meanwhile is not seen.
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

    /// One process; its threads.
    fn look_at(&mut self, pid: Pid) -> u64 {
        let number = pid.as_raw_nonzero().get();
        let at = |name: &str| format!("/proc/{number}/{name}");
        self.processes.insert(number);
        self.executables.extend(fs::read_link(at("exe")));
        let maps = fs::read_to_string(at("maps")).unwrap_or_default();
        let mapped =
            maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|flags| flags.contains('x')));
        self.libraries.extend(mapped.filter_map(|line| Some(PathBuf::from(&line[line.find('/')?..]))));
        for entry in fs::read_dir(at("fd")).into_iter().flatten().flatten() {
            let (Ok(target), name) = (fs::read_link(entry.path()), entry.file_name()) else { continue };
            let Ok(info) = fs::read_to_string(at("fdinfo") + "/" + &name.to_string_lossy()) else { continue };
            self.open(number, &name.to_string_lossy(), target, &info);
        }
        let status = fs::read_to_string(at("status")).unwrap_or_default();
        let value = |name| readings::field(&status, name)?.split(' ').next()?.parse::<u64>().ok();
        self.peak = self.peak.max(Bytes(value("VmHWM").unwrap_or(0) * Bytes::K));
        value("Threads").unwrap_or(0)
    }

    fn open(&mut self, process: i32, descriptor: &str, target: PathBuf, info: &str) {
        if target.as_os_str() == "anon_inode:[io_uring]" {
            // Requests taken out of the ring by the kernel.
            let taken = readings::field(info, "SqHead").and_then(|head| head.parse().ok()).unwrap_or(0);
            let ring = self.rings.entry((process, descriptor.parse().unwrap_or(-1))).or_default();
            *ring = (*ring).max(taken);
        } else if target.as_os_str().as_encoded_bytes().starts_with(b"socket:") {
            self.sockets.insert(target);
        } else if target.is_absolute()
            && let Some(flags) = readings::flags_of(info)
        {
            self.files.entry(target).and_modify(|known| *known = known.with(flags)).or_insert(flags);
        }
    }

    /// Requests through all rings.
    #[must_use]
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

    /// One test, because processes below this one are everybody's.
    #[test]
    fn a_command_is_waited_for_with_what_it_used_and_nothing_of_it_lives_on() {
        let ended = start(&mut sh("head -c 3000000 /dev/zero >/dev/null; exit 3"))
            .expect("sh")
            .wait()
            .expect("it ends");
        assert_eq!((ended.status.code(), ended.left), (Some(3), 0));
        assert!(ended.elapsed >= Nanos(1000) && ended.usage.peak > Bytes(0));
        if let Some(io) = ended.usage.io {
            // The shell waited for head: its bytes count too.
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

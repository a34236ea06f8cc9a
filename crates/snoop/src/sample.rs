//! Samples of /proc for callers without the right to trace.
//!
//! ```text
//! each 100 ms   /proc/PID/io            calls and bytes of the process, bytes at the device
//!               /proc/PID/fdinfo/FD     positions: what read and write moved, a file
//! ```
//!
//! Limits are part of the result ([`LIMITS`]), because a table of sums without them looks like a
//! trace. Bytes of files are a lower bound: pread and pwrite move no position.
//!
//! Y1 A byte is in the row of one process. The kernel adds the counters of a child to those of the
//! parent that waits for it, so they are subtracted there from then on.
//!
//! Y2 A figure that could not be read has no row. A process of another user is named with the
//! reason, and a target without a readable process is an error.

use crate::error::SnoopError;
use crate::owner::descriptor::{self, FileKind};
use crate::target::{self, SnoopTarget};
use plumb_host::kernel::status_field;
use plumb_host::process::{self, Started};
use plumb_host::readings::ProcessIo;
use plumb_record::{Snoop, SnoopAmplification, SnoopCalls, SnoopPart, SnoopRequests};
use rustix::process::Pid;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

const EVERY: Duration = Duration::from_millis(100);
/// Descriptors that are sampled in a process.
const DESCRIPTORS_MAX: usize = 512;
/// Processes without rights that are named.
const REFUSED_SHOWN: usize = 5;
/// Number of the signal that reports the end of a child.
const SIGCHLD: u32 = 17;
/// Limits of a sample, as reports print them.
pub const LIMITS: [&str; 3] = [
    "Samples of /proc each 100 ms show sums: no single call or request, no times, no offsets of pread \
     and pwrite, no syncs, no requests of io_uring, and nothing of a process that lived between two \
     samples",
    "Bytes of a file are those that moved a descriptor's position; bytes at the device are charged to \
     the process that made pages dirty, when it did",
    "To see each request: run it as root on a machine with tracefs \
     (`mount -t tracefs nodev /sys/kernel/tracing`)",
];

#[derive(Debug, Default)]
struct Sampled {
    comm: String,
    parent: u32,
    first: ProcessIo,
    last: ProcessIo,
    /// Counters of ended children, which are part of its own (Y1).
    of_children: ProcessIo,
    /// True once its counters are part of its parent's.
    is_waited_for: bool,
    positions: HashMap<i32, (String, u64)>,
}

impl Sampled {
    /// Returns its own figures since the first sample, without those of its children (Y1).
    fn own(&self) -> ProcessIo {
        self.last.since(&self.first).since(&self.of_children)
    }
}

/// A process that this user may not read.
#[derive(Debug)]
struct Refused {
    comm: String,
    reason: ErrorKind,
}

/// Samples of the targets so far.
#[derive(Debug)]
pub struct ProcSampling {
    target: SnoopTarget,
    command: Option<Started>,
    processes: BTreeMap<u32, Sampled>,
    refused: BTreeMap<u32, Refused>,
    /// Bytes that moved a position, by process and file.
    files: BTreeMap<(u32, String), u64>,
    /// Reason why the kernel is not traced; empty if it was asked for.
    reason: String,
    alive: bool,
}

impl ProcSampling {
    /// Starts to sample the target. Fails if it does not exist, cannot be read or cannot be
    /// started.
    pub fn start(target: SnoopTarget, reason: String) -> Result<ProcSampling, SnoopError> {
        let found = target::find(&target)?;
        let refusals: Vec<ErrorKind> = found.iter().filter_map(|pid| counters(*pid).err()).collect();
        if let (Some(pid), Some(reason)) = (found.first(), refusals.first())
            && refusals.len() == found.len()
        {
            return Err(SnoopError::Unreadable { pid: *pid, path: io_of(*pid), reason: *reason });
        }
        let command = match &target {
            SnoopTarget::Command(words) => {
                let started = process::start(&mut target::command(words)?);
                Some(started.map_err(|source| target::not_started(words, source))?)
            }
            _ => None,
        };
        let (processes, refused, files) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Ok(ProcSampling { target, command, processes, refused, files, reason, alive: true })
    }

    /// Takes a sample and waits for the time of the next.
    pub fn step(&mut self) {
        let roots = match &self.command {
            Some(started) => vec![started.pid().as_raw_nonzero().get().unsigned_abs()],
            None => target::find(&self.target).unwrap_or_default(),
        };
        let of_root = |root: &u32| {
            let pid = i32::try_from(*root).ok().and_then(Pid::from_raw);
            let below = pid.map(process::below).unwrap_or_default();
            let below = below.into_iter().map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
            std::iter::once(*root).chain(below).collect::<Vec<_>>()
        };
        // A sampled shell may have started this program, whose calls are no part of the target.
        let own = std::process::id();
        let pids: BTreeSet<u32> = roots.iter().flat_map(of_root).filter(|pid| *pid != own).collect();
        // Parents come last: a child that ends meanwhile is then seen before it counts for them.
        let seen = pids.into_iter().rev().filter(|pid| self.sample(*pid)).count();
        self.alive = seen > 0 || matches!(self.target, SnoopTarget::Name(_));
        std::thread::sleep(EVERY);
    }

    /// Samples a process; returns false if it has ended.
    fn sample(&mut self, pid: u32) -> bool {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let Some(comm) = status_field(&status, "Name") else { return false };
        let is_zombie = status_field(&status, "State").is_some_and(|state| state.starts_with('Z'));
        let ended = self.ended_children(pid, &status);
        let io = match counters(pid) {
            Ok(io) => io,
            // It may have ended since its status was read.
            Err(_) if !Path::new(&format!("/proc/{pid}")).exists() => return false,
            // The kernel shows the counters of an ended process to root alone, so that its end is
            // no refusal.
            Err(_) if is_zombie => return false,
            Err(reason) => {
                self.refused.entry(pid).or_insert_with(|| Refused { comm: comm.to_string(), reason });
                return true;
            }
        };
        let is_command = self.command.is_some();
        let sampled = self.processes.entry(pid).or_insert_with(|| Sampled {
            // A command's counters begin with it; those of a running process before the samples.
            first: if is_command { ProcessIo::default() } else { io },
            ..Sampled::default()
        });
        sampled.comm = comm.to_string();
        sampled.parent = status_field(&status, "PPid").and_then(|pid| pid.parse().ok()).unwrap_or(0);
        sampled.of_children.add(&ended);
        sampled.last = io;
        // An ended process keeps its counters until it is waited for, and has no files.
        if is_zombie {
            return false;
        }
        self.positions(pid);
        true
    }

    /// Returns the counters of children that the process has waited for since the last sample (Y1).
    fn ended_children(&mut self, parent: u32, status: &str) -> ProcessIo {
        let ignored = status_field(status, "SigIgn").and_then(|mask| u64::from_str_radix(mask, 16).ok());
        let is_gone = |pid: &u32| !Path::new(&format!("/proc/{pid}")).exists();
        let of_parent = self.processes.iter_mut().filter(|(_, child)| child.parent == parent);
        let ended = of_parent.filter(|(pid, child)| !child.is_waited_for && is_gone(pid));
        let mut sum = ProcessIo::default();
        for (_, child) in ended {
            child.is_waited_for = true;
            sum.add(&child.last);
        }
        // Children of a process that ignores their ends are not added to it.
        let adds = ignored.is_none_or(|mask| mask >> (SIGCHLD - 1) & 1 == 0);
        if adds { sum } else { ProcessIo::default() }
    }

    fn positions(&mut self, pid: u32) {
        let Some(sampled) = self.processes.get_mut(&pid) else { return };
        let names = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let numbers = names.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        for number in numbers.take(DESCRIPTORS_MAX) {
            let Some(found) = descriptor::read(Path::new("/proc"), pid, number) else { continue };
            let Some(position) = found.position.filter(|_| found.kind != FileKind::Other) else { continue };
            let before = sampled.positions.insert(number, (found.path.clone(), position));
            let from = before.filter(|(path, _)| *path == found.path).map_or(position, |(_, from)| from);
            *self.files.entry((pid, found.path)).or_default() += position.saturating_sub(from);
        }
    }

    /// True if a target lives. A name waits for others of it.
    pub fn is_alive(&self) -> bool {
        self.alive
    }

    /// Waits for the end of the command; none without one.
    pub fn wait(&mut self) -> Option<std::io::Result<process::Ended>> {
        self.command.take().map(Started::wait)
    }

    /// Returns the sums of all samples. Fails if no process could be read (Y2).
    pub fn sums(&self) -> Result<Snoop, SnoopError> {
        if let (Some((pid, refused)), true) = (self.refused.first_key_value(), self.processes.is_empty()) {
            let (pid, reason) = (*pid, refused.reason);
            return Err(SnoopError::Unreadable { pid, path: io_of(pid), reason });
        }
        let mut snoop = Snoop {
            target: self.target.to_string(),
            source: "samples of /proc".to_string(),
            cannot_see: LIMITS.map(str::to_string).to_vec(),
            ..Snoop::default()
        };
        if !self.reason.is_empty() {
            snoop.cannot_see.insert(0, format!("Not traced: {}", self.reason));
        }
        if self.processes.is_empty() {
            snoop.cannot_see.push("No sample was taken: the target ended before the first.".to_string());
        }
        snoop.cannot_see.extend(self.refusals());
        let mut totals = ProcessIo::default();
        for (pid, sampled) in &self.processes {
            let io = sampled.own();
            totals.add(&io);
            for (side, effect) in DIRECTIONS.into_iter().enumerate() {
                snoop.calls.push(SnoopCalls {
                    pid: *pid,
                    process: sampled.comm.clone(),
                    operation: format!("{effect} calls"),
                    effect: effect.to_string(),
                    file: "<all, with sockets and pipes>".to_string(),
                    calls: [io.syscr, io.syscw][side],
                    bytes: asked(&io)[side],
                    ..SnoopCalls::default()
                });
                snoop.requests.push(SnoopRequests {
                    pid: *pid,
                    process: sampled.comm.clone(),
                    disk: "all".to_string(),
                    flags: effect[..1].to_uppercase(),
                    how: "process".to_string(),
                    bytes: at_device(&io)[side],
                    ..SnoopRequests::default()
                });
            }
        }
        snoop.calls.extend(self.by_position());
        snoop.amplification = [0, 1].map(|side| amplification(side, &totals)).to_vec();
        Ok(snoop)
    }

    /// Names the processes that are in no sum (Y2).
    fn refusals(&self) -> Vec<String> {
        let shown = self.refused.iter().take(REFUSED_SHOWN);
        let mut lines: Vec<String> = shown
            .map(|(pid, refused)| {
                format!(
                    "Process {pid} ({}) is in no sum: {} cannot be read ({}); root and its own user may",
                    refused.comm,
                    io_of(*pid).display(),
                    refused.reason
                )
            })
            .collect();
        if let Some(more @ 1..) = self.refused.len().checked_sub(REFUSED_SHOWN) {
            lines.push(format!("{more} more processes cannot be read"));
        }
        lines
    }

    /// Returns the bytes by which positions in files moved.
    fn by_position(&self) -> impl Iterator<Item = SnoopCalls> {
        let moved = self.files.iter().filter(|(_, bytes)| **bytes > 0);
        moved.map(|((pid, file), bytes)| SnoopCalls {
            pid: *pid,
            process: self.processes.get(pid).map_or(String::new(), |sampled| sampled.comm.clone()),
            operation: "position moved".to_string(),
            effect: SnoopCalls::POSITION.to_string(),
            file: file.clone(),
            bytes: *bytes,
            ..SnoopCalls::default()
        })
    }
}

const DIRECTIONS: [&str; 2] = ["read", "write"];

fn asked(io: &ProcessIo) -> [u64; 2] {
    [io.rchar.0, io.wchar.0]
}

fn at_device(io: &ProcessIo) -> [u64; 2] {
    [io.read_bytes.0, io.write_bytes.0]
}

fn amplification(side: usize, totals: &ProcessIo) -> SnoopAmplification {
    let disk_bytes = at_device(totals)[side];
    SnoopAmplification {
        direction: DIRECTIONS[side].to_string(),
        call_bytes: asked(totals)[side],
        disk_bytes,
        parts: vec![SnoopPart { how: "process".to_string(), bytes: disk_bytes }],
    }
}

fn io_of(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/io"))
}

/// Reads the counters of a process. Fails if this user may not, or it has ended.
fn counters(pid: u32) -> Result<ProcessIo, ErrorKind> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(ErrorKind::NotFound)?;
    ProcessIo::of(pid).map_err(|error| error.kind())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(script: &str) -> (ProcSampling, Snoop) {
        let _turn = crate::turn();
        let target = SnoopTarget::Command(["sh", "-c", script].map(str::to_string).to_vec());
        let mut sampler = ProcSampling::start(target, "no rights".to_string()).expect("started");
        while sampler.is_alive() {
            sampler.step();
        }
        assert!(sampler.wait().expect("a command").expect("ended").status.success());
        let sums = sampler.sums().expect("it was read");
        (sampler, sums)
    }

    fn written(sums: &Snoop) -> u64 {
        sums.calls.iter().filter(|row| row.effect == "write").map(|row| row.bytes).sum()
    }

    #[test]
    fn samples_of_a_command_have_its_bytes_and_say_what_they_lack() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("written");
        let (_, sums) = sampled(&format!("head -c 1000000 /dev/zero > {}; sleep 0.4", path.display()));
        assert!(sums.calls.iter().any(|row| row.operation == "write calls"), "{sums:?}");
        assert!(sums.buffers.is_empty() && sums.cannot_see[0] == "Not traced: no rights");
        assert_eq!(sums.cannot_see.len(), 1 + LIMITS.len());
    }

    /// Y1: the shell has waited for the writer, whose counters are its own from then on.
    #[test]
    fn bytes_of_a_child_that_was_waited_for_count_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("written").display().to_string();
        let writer = format!("sh -c 'head -c 1000000 /dev/zero > {path}; sleep 0.5; true'; sleep 0.3; true");
        let (sampler, sums) = sampled(&writer);
        assert!(sampler.processes.len() > 1, "the writer was sampled: {:?}", sampler.processes);
        assert_eq!(written(&sums), 1_000_000, "{:?}", sums.calls);
    }

    /// The counters of an ended process are exact until it is waited for.
    #[test]
    fn a_command_that_ends_before_the_first_sample_has_its_bytes() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("written");
        let (_, sums) = sampled(&format!("printf 1234567 > {}", path.display()));
        assert_eq!(written(&sums), 7, "{:?}", sums.calls);
    }

    // Y2
    #[test]
    fn what_this_user_may_not_read_is_no_zero() {
        let target = SnoopTarget::Name("a".to_string());
        let refused = || Refused { comm: "lgwr".to_string(), reason: ErrorKind::PermissionDenied };
        let mut sampler = ProcSampling {
            target,
            command: None,
            processes: BTreeMap::new(),
            refused: (1..=7).map(|pid| (pid, refused())).collect(),
            files: BTreeMap::new(),
            reason: String::new(),
            alive: true,
        };
        let error = sampler.sums().expect_err("Y2").to_string();
        assert_eq!(
            error,
            "process 1 cannot be read (/proc/1/io: permission denied): expected its own user or root; run \
             it as one of them"
        );
        sampler.processes.insert(8, Sampled::default());
        let sums = sampler.sums().expect("one is known");
        assert!(sums.calls.iter().all(|row| row.pid == 8), "{:?}", sums.calls);
        let says = sums.cannot_see.join("\n");
        assert!(says.contains("Process 5 (lgwr) is in no sum") && !says.contains("Process 6"), "{says}");
        assert!(says.ends_with("2 more processes cannot be read"), "{says}");
    }

    #[test]
    fn a_sampled_shell_does_not_count_the_sampling_program() {
        let parent = std::os::unix::process::parent_id();
        let Ok(mut sampler) = ProcSampling::start(SnoopTarget::Pid(parent), String::new()) else {
            return println!("skipped: this user may not read its parent");
        };
        sampler.step();
        assert!(sampler.processes.contains_key(&parent), "{:?}", sampler.processes);
        assert!(!sampler.processes.contains_key(&std::process::id()), "{:?}", sampler.processes);
    }
}

//! Samples of /proc for callers without the right to trace.
//!
//! ```text
//! each 100 ms   /proc/PID/io            calls and bytes of the process, bytes at the device
//!               /proc/PID/fdinfo/FD     positions: what read and write moved, a file
//! ```
//!
//! Limits are part of the result ([`LIMITS`]), because a table of sums without them looks like a
//! trace. Bytes of files are a lower bound: pread and pwrite move no position.

use crate::descriptor::{self, FileKind};
use crate::error::SnoopError;
use crate::target::{self, SnoopTarget};
use plumb_host::kernel::status_field;
use plumb_host::process::{self, Started};
use plumb_record::{Snoop, SnoopAmplification, SnoopCalls, SnoopPart, SnoopRequests};
use rustix::process::Pid;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const EVERY: Duration = Duration::from_millis(100);
/// Descriptors that are sampled in a process.
const DESCRIPTORS_MAX: usize = 512;
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

#[derive(Debug, Clone, Copy, Default)]
struct Io {
    /// Bytes, calls and bytes at the device, of reads and of writes.
    bytes: [u64; 2],
    calls: [u64; 2],
    device: [u64; 2],
}

impl Io {
    fn parse(text: &str) -> Io {
        let value = |name| status_field(text, name).and_then(|value| value.parse().ok()).unwrap_or(0);
        Io {
            bytes: [value("rchar"), value("wchar")],
            calls: [value("syscr"), value("syscw")],
            device: [value("read_bytes"), value("write_bytes")],
        }
    }

    fn since(self, before: Io) -> Io {
        let less = |one: [u64; 2], two: [u64; 2]| [0, 1].map(|side| one[side].saturating_sub(two[side]));
        Io {
            bytes: less(self.bytes, before.bytes),
            calls: less(self.calls, before.calls),
            device: less(self.device, before.device),
        }
    }
}

#[derive(Debug, Default)]
struct Sampled {
    comm: String,
    first: Io,
    last: Io,
    positions: HashMap<i32, (String, u64)>,
}

/// Samples of the targets so far.
#[derive(Debug)]
pub struct ProcSampling {
    target: SnoopTarget,
    command: Option<Started>,
    processes: BTreeMap<u32, Sampled>,
    /// Bytes that moved a position, by process and file.
    files: BTreeMap<(u32, String), u64>,
    /// Reason why the kernel is not traced; empty if it was asked for.
    reason: String,
    alive: bool,
}

impl ProcSampling {
    /// Starts to sample the target. Fails if it does not exist or cannot be started.
    pub fn start(target: SnoopTarget, reason: String) -> Result<ProcSampling, SnoopError> {
        target::find(&target)?;
        let command = match &target {
            SnoopTarget::Command(words) => {
                let failed = |source| SnoopError::NotStarted {
                    command: words.first().cloned().unwrap_or_default(),
                    source,
                };
                let (program, arguments) =
                    words.split_first().ok_or_else(|| failed(std::io::ErrorKind::InvalidInput.into()))?;
                Some(process::start(Command::new(program).args(arguments)).map_err(failed)?)
            }
            _ => None,
        };
        let (processes, files) = (BTreeMap::new(), BTreeMap::new());
        Ok(ProcSampling { target, command, processes, files, reason, alive: true })
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
        let pids: Vec<u32> = roots.iter().flat_map(of_root).collect();
        let seen = pids.into_iter().filter(|pid| self.sample(*pid)).count();
        self.alive = seen > 0 || matches!(self.target, SnoopTarget::Name(_));
        std::thread::sleep(EVERY);
    }

    /// Samples a process; returns false if it has ended.
    fn sample(&mut self, pid: u32) -> bool {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let Some(comm) = status_field(&status, "Name") else { return false };
        if status_field(&status, "State").is_some_and(|state| state.starts_with('Z')) {
            return false;
        }
        let text = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        let io = Io::parse(&text);
        let is_command = self.command.is_some();
        let sampled = self.processes.entry(pid).or_insert_with(|| Sampled {
            // A command's counters begin with it; those of a running process before the samples.
            first: if is_command { Io::default() } else { io },
            ..Sampled::default()
        });
        sampled.comm = comm.to_string();
        // Without the right to read it, the last sample stays.
        if !text.is_empty() {
            sampled.last = io;
        }
        let names = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let numbers = names.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        for number in numbers.take(DESCRIPTORS_MAX) {
            let Some(found) = descriptor::read(Path::new("/proc"), pid, number) else { continue };
            let Some(position) = found.position.filter(|_| found.kind != FileKind::Other) else { continue };
            let before = sampled.positions.insert(number, (found.path.clone(), position));
            let from = before.filter(|(path, _)| *path == found.path).map_or(position, |(_, from)| from);
            *self.files.entry((pid, found.path)).or_default() += position.saturating_sub(from);
        }
        true
    }

    /// True if a target lives. A name waits for others of it.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.alive
    }

    /// Waits for the end of the command; none without one.
    pub fn wait(&mut self) -> Option<std::io::Result<process::Ended>> {
        self.command.take().map(Started::wait)
    }

    /// Returns the sums of all samples.
    #[must_use]
    pub fn sums(&self) -> Snoop {
        let mut snoop = Snoop {
            target: self.target.to_string(),
            source: "samples of /proc".to_string(),
            cannot_see: LIMITS.map(str::to_string).to_vec(),
            ..Snoop::default()
        };
        if !self.reason.is_empty() {
            snoop.cannot_see.insert(0, format!("Not traced: {}", self.reason));
        }
        let mut totals = Io::default();
        for (pid, sampled) in &self.processes {
            let io = sampled.last.since(sampled.first);
            for (side, effect) in ["read", "write"].into_iter().enumerate() {
                totals.bytes[side] += io.bytes[side];
                totals.device[side] += io.device[side];
                snoop.calls.push(SnoopCalls {
                    pid: *pid,
                    process: sampled.comm.clone(),
                    operation: format!("{effect} calls"),
                    effect: effect.to_string(),
                    file: "<all, with sockets and pipes>".to_string(),
                    calls: io.calls[side],
                    bytes: io.bytes[side],
                    ..SnoopCalls::default()
                });
                snoop.requests.push(SnoopRequests {
                    pid: *pid,
                    process: sampled.comm.clone(),
                    disk: "all".to_string(),
                    flags: effect[..1].to_uppercase(),
                    how: "process".to_string(),
                    bytes: io.device[side],
                    ..SnoopRequests::default()
                });
            }
        }
        let moved = self.files.iter().filter(|(_, bytes)| **bytes > 0);
        snoop.calls.extend(moved.map(|((pid, file), bytes)| SnoopCalls {
            pid: *pid,
            process: self.processes.get(pid).map_or(String::new(), |sampled| sampled.comm.clone()),
            operation: "position moved".to_string(),
            effect: "position".to_string(),
            file: file.clone(),
            bytes: *bytes,
            ..SnoopCalls::default()
        }));
        snoop.amplification = ["read", "write"]
            .into_iter()
            .enumerate()
            .map(|(side, direction)| {
                let part = SnoopPart { how: "process".to_string(), bytes: totals.device[side] };
                SnoopAmplification {
                    direction: direction.to_string(),
                    call_bytes: totals.bytes[side],
                    disk_bytes: totals.device[side],
                    parts: vec![part],
                }
            })
            .collect();
        snoop
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_command_have_its_bytes_and_say_what_they_lack() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("written");
        let script = format!("head -c 1000000 /dev/zero > {}; sleep 0.4", path.display());
        let command = ["sh", "-c", &script].map(str::to_string).to_vec();
        let target = SnoopTarget::Command(command);
        let mut sampler = ProcSampling::start(target, "no rights".to_string()).expect("started");
        while sampler.is_alive() {
            sampler.step();
        }
        assert!(sampler.wait().expect("a command").expect("ended").status.success());
        let sums = sampler.sums();
        assert!(sums.calls.iter().any(|row| row.operation == "write calls"), "{sums:?}");
        assert!(sums.buffers.is_empty() && sums.cannot_see[0] == "Not traced: no rights");
        assert_eq!(sums.cannot_see.len(), 1 + LIMITS.len());
    }

    #[test]
    fn counters_are_differences_and_a_missing_one_is_zero() {
        let later = Io::parse("rchar: 10\nwchar: 7\nsyscr: 3\nread_bytes: 4096\n");
        let io = later.since(Io::parse("rchar: 4\nwchar: 9\n"));
        assert_eq!((io.bytes, io.calls, io.device), ([6, 0], [3, 0], [4096, 0]));
    }
}

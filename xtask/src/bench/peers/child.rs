//! Processes of the benchmark: started, watched, and ended with it.
//!
//! Each child is the head of a process group of its own, so that Ctrl-C at the
//! terminal reaches this program alone, which then ends its children: while it
//! waits it looks at the flag of [`Stop`], and a child that is dropped before it
//! ended is killed with its group. What a child prints goes to files, which
//! need no threads to empty them.
//!
//! CPU time is that of the watched process, its children, and what they waited for,
//! in ticks of the kernel, read at the same time as memory.
//!
//! Memory is what the kernel shows of the watched process and its children
//! every [`SAMPLE_NANOS`]: private memory of all of them, and once what they
//! share. For one process alone it is its own high-water mark, which no
//! sampling misses. Children of threads other than the first are not seen; no
//! peer has any.

use crate::bench::stop::Stop;
use anyhow::{Context, bail};
use plumb_events::now;
use plumb_units::{Bytes, Nanos};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Between two looks at a child.
const LOOK: Duration = Duration::from_millis(2);
/// Between two readings of memory: eight processes cost half a millisecond.
const SAMPLE_NANOS: u64 = 20_000_000;
/// How long a server may take to end by itself.
const LEAVE_NANOS: u64 = 30_000_000_000;

/// What a tree of processes used while it was watched.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Used {
    /// Physical memory when the watch began, and at most.
    pub(super) memory_start: Bytes,
    pub(super) memory_peak: Bytes,
    /// CPU time, up to the last look.
    pub(super) cpu_seconds: f64,
}

/// What a child that ended well left behind.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) seconds: f64,
    pub(super) output: String,
    /// Of the watched process; zero where none was.
    pub(super) used: Used,
}

/// Whose memory to read while waiting.
#[derive(Debug, Clone, Copy)]
pub(super) enum Watch {
    /// None: the child measures itself.
    Nobody,
    Itself,
    /// That of another process, which does the work for the child.
    Process(u32),
}

/// A process that is killed with its group when this is dropped.
#[derive(Debug)]
pub(super) struct Child {
    process: std::process::Child,
    name: String,
    output: PathBuf,
    errors: PathBuf,
    begin: Nanos,
    ended: bool,
}

impl Child {
    /// Starts a command; what it prints goes to files named for it in `directory`.
    pub(super) fn start(mut command: Command, name: &str, directory: &Path) -> anyhow::Result<Child> {
        use std::os::unix::process::CommandExt;
        let output = directory.join(format!("{name}.out"));
        let errors = directory.join(format!("{name}.err"));
        let create = |path: &Path| File::create(path).with_context(|| format!("creating {}", path.display()));
        command.stdin(Stdio::null()).stdout(create(&output)?).stderr(create(&errors)?).process_group(0);
        let begin = now();
        let process = command
            .spawn()
            .with_context(|| format!("{} cannot be started", command.get_program().to_string_lossy()))?;
        Ok(Child { process, name: name.to_string(), output, errors, begin, ended: false })
    }

    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Waits until it ends; when it fails, the error is the last line it wrote.
    pub(super) fn finish(mut self, stop: &Stop, limit: Duration, watch: Watch) -> anyhow::Result<Finished> {
        let watched = match watch {
            Watch::Nobody => None,
            Watch::Itself => Some(self.id()),
            Watch::Process(id) => Some(id),
        };
        let mut used = Used::default();
        let mut cpu_begin = None;
        let mut sampled = Nanos(0);
        let status = loop {
            if let Some(id) = watched
                && now().saturating_sub(sampled).0 >= SAMPLE_NANOS
            {
                let present = tree_memory(id);
                used.memory_start = if used.memory_start.0 == 0 { present } else { used.memory_start };
                used.memory_peak = used.memory_peak.max(present);
                let cpu = tree_cpu_seconds(id);
                used.cpu_seconds = used.cpu_seconds.max(cpu - *cpu_begin.get_or_insert(cpu));
                sampled = now();
            }
            if let Some(status) = self.process.try_wait()? {
                break status;
            }
            stop.check()?;
            if now().saturating_sub(self.begin).seconds() > limit.as_secs_f64() {
                bail!("{} was ended after {} s", self.name, limit.as_secs());
            }
            thread::sleep(LOOK);
        };
        let seconds = now().saturating_sub(self.begin).seconds();
        self.ended = true;
        if !status.success() {
            bail!("{}", last_line(&self.errors).unwrap_or_else(|| status.to_string()));
        }
        Ok(Finished { seconds, output: fs::read_to_string(&self.output).unwrap_or_default(), used })
    }

    /// Fails when it has ended, with the last line it wrote.
    pub(super) fn check_alive(&mut self) -> anyhow::Result<()> {
        if let Some(status) = self.process.try_wait()? {
            self.ended = true;
            bail!("{}", last_line(&self.errors).unwrap_or_else(|| status.to_string()));
        }
        Ok(())
    }

    /// Asks it to end, waits, and kills it if it does not.
    pub(super) fn leave(mut self) {
        let Some(pid) = Pid::from_raw(self.id() as i32) else { return };
        let asked = now();
        if kill_process(pid, Signal::INT).is_err() {
            return;
        }
        while now().saturating_sub(asked).0 < LEAVE_NANOS {
            if matches!(self.process.try_wait(), Ok(Some(_))) {
                self.ended = true;
                return;
            }
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        if let Some(pid) = Pid::from_raw(self.id() as i32) {
            // Only a group that has ended by itself cannot be killed.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.process.wait();
    }
}

fn last_line(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().rev().find(|line| !line.trim().is_empty()).map(|line| line.trim().to_string())
}

/// CPU time of a process, its descendants, and those of them that have ended.
pub(in crate::bench) fn tree_cpu_seconds(id: u32) -> f64 {
    let ticks: u64 = tree(id).iter().map(|id| cpu_ticks(&read_proc(*id, "stat"))).sum();
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// utime, stime, and those of children that were waited for: fields 14 to 17 of
/// `/proc/PID/stat`, counted behind the name, which may hold anything.
fn cpu_ticks(stat: &str) -> u64 {
    let behind_name = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let fields = behind_name.split_ascii_whitespace().skip(11).take(4);
    fields.filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// A process and its descendants.
fn tree(id: u32) -> Vec<u32> {
    let mut found = vec![id];
    let mut next = 0;
    while let Some(id) = found.get(next) {
        let children = read_proc(*id, &format!("task/{id}/children"));
        found.extend(children.split_ascii_whitespace().filter_map(|id| id.parse::<u32>().ok()));
        next += 1;
    }
    found
}

/// Empty where the process has ended.
fn read_proc(id: u32, file: &str) -> String {
    fs::read_to_string(format!("/proc/{id}/{file}")).unwrap_or_default()
}

/// Memory of one process as `/proc/PID/status` shows it, in bytes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Status {
    peak: u64,
    private: u64,
    shared: u64,
    file: u64,
}

impl Status {
    fn parse(text: &str) -> Status {
        let mut status = Status::default();
        for line in text.lines() {
            let Some((name, value)) = line.split_once(':') else { continue };
            let field = match name {
                "VmHWM" => &mut status.peak,
                "RssAnon" => &mut status.private,
                "RssShmem" => &mut status.shared,
                "RssFile" => &mut status.file,
                _ => continue,
            };
            let kib = value.trim().strip_suffix(" kB").and_then(|kib| kib.trim().parse::<u64>().ok());
            *field = kib.unwrap_or(0) * Bytes::K;
        }
        status
    }
}

/// Memory of a process and its descendants now; of one without any, its peak.
fn tree_memory(id: u32) -> Bytes {
    let texts = tree(id).into_iter().map(|id| read_proc(id, "status"));
    // A process that ends between listing and reading holds no memory.
    let found: Vec<Status> = texts.filter(|text| !text.is_empty()).map(|text| Status::parse(&text)).collect();
    Bytes(sum_memory(&found))
}

fn sum_memory(found: &[Status]) -> u64 {
    if let [only] = found {
        return only.peak;
    }
    let most = |value: fn(&Status) -> u64| found.iter().map(value).max().unwrap_or(0);
    found.iter().map(|status| status.private).sum::<u64>()
        + most(|status| status.shared)
        + most(|status| status.file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_of_several_processes_counts_once() {
        let text =
            "Name:\tpostgres\nVmHWM:\t   900 kB\nRssAnon:\t 10 kB\nRssFile:\t 20 kB\nRssShmem:\t 30 kB\n";
        let one = Status::parse(text);
        assert_eq!(one, Status { peak: 900 << 10, private: 10 << 10, shared: 30 << 10, file: 20 << 10 });
        assert_eq!(sum_memory(&[one]), 900 << 10);
        assert_eq!(sum_memory(&[Status::parse(text), Status::parse(text)]), (10 + 10 + 30 + 20) << 10);
        assert_eq!(sum_memory(&[]), 0);
    }

    #[test]
    fn cpu_time_is_that_of_a_process_and_of_children_it_waited_for() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 200 0 0 11 22 33 44 20 0 1 0 5 6 7";
        assert_eq!(cpu_ticks(stat), 110);
        assert_eq!(cpu_ticks(""), 0);
    }

    #[test]
    fn a_failed_child_is_reported_by_its_last_line_and_a_long_one_is_ended() {
        let directory = tempdir();
        let stop = Stop::default();
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            Child::start(command, "sh", &directory).expect("a shell")
        };
        let limit = Duration::from_secs(60);
        let fine = shell("echo done").finish(&stop, limit, Watch::Itself).expect("it ends well");
        assert_eq!(fine.output, "done\n");
        let failed = shell("echo first >&2; echo why >&2; exit 3").finish(&stop, limit, Watch::Nobody);
        assert_eq!(failed.expect_err("it failed").to_string(), "why");
        let long = shell("sleep 60").finish(&stop, Duration::from_millis(20), Watch::Nobody);
        assert_eq!(long.expect_err("too long").to_string(), "sh was ended after 0 s");
        fs::remove_dir_all(directory).expect("removed");
    }

    fn tempdir() -> PathBuf {
        let path = std::env::temp_dir().join(format!("plumb-peers-test-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        path
    }
}

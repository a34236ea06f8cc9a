//! Watches a server while it works: its processes from outside, its wait events by a session.
//!
//! ```text
//! start ──> [ sample: wait events, then state, counters, memory of each process ]* ──> end
//! ```
//!
//! Exact, from the kernel: the time of each process on a processor, ready for one, and neither
//! (off CPU). Sampled: how the time off CPU divides among wait events. A sample is an event with
//! the state of its process, because neither alone is enough. A process without an event may still
//! wait, and one with an event may be on a processor, copying from the page cache.
//!
//! The interval is drawn for each sample, 10 ms on average, because a fixed one locks on to the
//! server's own timers. Late samples are counted. What the sampler costs is measured: the time of
//! its thread and of its session.
//!
//! Sessions of other clients are kept apart: their work is none of the run's, and disturbs it. Each
//! session of plumb's has its name.
//!
//! Counters of a process vanish with it. The last reading may be one interval old. The rest is what
//! the first process has waited for, in ticks of 10 ms, and is kept apart.
//!
//! Rejected: sampling inside the server (`pg_wait_sampling`), which the user would have to install.
//!
//! Limits: an event and its state are read about 0.1 ms apart. A process that lives shorter than an
//! interval may be missed.

use crate::PostgresError;
use crate::client::Client;
use crate::process::{self, Counters, On};
use crate::session::Served;
use plumb_events::clock;
use plumb_host::readings::{OpenFlags, ProcessIo};
use plumb_units::{Bytes, Nanos, SplitMix};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio_postgres::Statement;

/// Mean time between two samples; each is drawn from half of it to one and a half.
pub const INTERVAL: Nanos = Nanos(10_000_000);
/// Name of the sampler's session.
const SESSION: &str = "plumb sampler";
/// Start of the names of temporary files, before the number of their process.
const TEMPORARY: &str = "pgsql_tmp";
/// Samples between two readings of open files, which cost more than the rest.
const FILES_EVERY: u64 = 10;
/// Statement that lists processes with their events.
pub const EVENTS: &str = "select pid, coalesce(wait_event_type, ''), coalesce(wait_event, ''), coalesce(backend_type, ''), \
                          leader_pid, pg_catalog.starts_with(coalesce(application_name, ''), 'plumb') from pg_catalog.pg_stat_activity";
/// Condition that leaves out the sessions of other databases.
const OF_DATABASE: &str = " where datname is null or datname = pg_catalog.current_database()";

/// A wait event with its class, as the server spells them; empty for none.
pub type EventName = (String, String);

/// A process of the server, over the samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    pub pid: i32,
    /// Kind as the server names it: `client backend`, `parallel worker`, `checkpointer`.
    pub kind: String,
    pub leader: Option<i32>,
    /// Time from the first reading, or from its start, to the last one.
    pub elapsed: Nanos,
    /// Growth of its counters in that time.
    pub counters: Counters,
    /// Largest private memory above that at the start of the watch, or of the process.
    pub memory_grown: Bytes,
    /// Number of samples by event and state.
    pub samples: BTreeMap<(EventName, On), u64>,
    /// True if it ended before the watch.
    pub ended: bool,
}

impl Process {
    /// True if it works for a client.
    #[must_use]
    pub fn is_foreground(&self) -> bool {
        ["client backend", "parallel worker"].contains(&self.kind.as_str())
    }

    /// Returns the time off CPU.
    #[must_use]
    pub fn off(&self) -> Nanos {
        self.elapsed.saturating_sub(self.counters.cpu).saturating_sub(self.counters.queue)
    }

    /// Returns the number of samples in which it did not wait for something to do.
    fn busy(&self) -> u64 {
        let busy = self.samples.iter().filter(|(sample, _)| !is_at_rest(sample));
        busy.map(|(_, count)| *count).sum()
    }
}

/// True for a sample of a session without work.
pub(crate) fn is_at_rest(((class, _), on): &(EventName, On)) -> bool {
    *on == On::Off && ["Client", "Activity"].contains(&class.as_str())
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct WatchedProcesses {
    pub processes: Vec<Process>,
    /// Sessions of other clients, with their parallel workers.
    pub others: Vec<Process>,
    pub samples: u64,
    /// Samples that came later than one and a half intervals after their time.
    pub late: u64,
    /// CPU time of the sampler's thread and session.
    pub cost: Nanos,
    /// Largest bytes of temporary files at once.
    pub temporary_bytes: Bytes,
    /// Files of the data directory that were open, by their paths in it.
    pub open: BTreeMap<PathBuf, OpenFlags>,
    /// Largest number of parallel workers at once.
    pub workers: u64,
    pub ring_requests: Option<u64>,
    /// Number of changes of the control file, one or more for each checkpoint.
    pub control_changes: u64,
    /// CPU time of ended processes behind their last reading.
    pub unseen_cpu: Nanos,
}

impl WatchedProcesses {
    /// Returns the processes of a kind.
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Process> + Clone {
        self.processes.iter().filter(move |process| process.kind == kind)
    }

    /// Returns the share of the time in which sessions of other clients worked, with the counts.
    /// `None` if there were no such sessions.
    #[must_use]
    pub fn other_clients(&self) -> Option<(f64, String)> {
        let elapsed = self.others.iter().map(|process| process.elapsed.0).max()?;
        let cpu = Nanos(self.others.iter().map(|process| process.counters.cpu.0).sum());
        let busy: u64 = self.others.iter().map(Process::busy).sum();
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let evidence = format!(
            "{} of other clients worked in {busy} of {} samples, and used {cpu} of CPU time",
            match self.others.len() {
                1 => "1 session".to_string(),
                several => format!("{several} sessions"),
            },
            self.samples
        );
        // Without samples during the work, CPU time alone tells.
        Some((share(busy, self.samples).max(share(cpu.0, elapsed)), evidence))
    }
}

/// Sampling of wait events; an experiment may switch it off to know its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventSampling {
    On,
    /// Only the readings at the start and at the end are taken.
    Off,
}

/// Server, directory and processes that a watch samples.
pub struct WatchedServer<'a> {
    pub server: &'a dyn Served,
    pub postmaster: i32,
    pub data: &'a Path,
    pub scope: WatchScope,
}

/// Processes of a server that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchScope {
    Server,
    /// Processes of the session's database, and of the server as a whole.
    Database,
}

#[derive(Debug)]
pub struct ProcessWatch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<WatchedProcesses>>,
}

impl ProcessWatch {
    /// Starts a watch; its first sample has been taken when this returns.
    ///
    /// # Errors
    /// If its session cannot connect.
    pub fn start(of: &WatchedServer<'_>, sampling: EventSampling) -> Result<ProcessWatch, PostgresError> {
        let WatchedServer { server, postmaster, data, scope } = *of;
        let mut client = server.open(SESSION, Box::new(|_| {}))?;
        let own = client
            .query_one("select pg_catalog.pg_backend_pid()", &[])
            .and_then(|row| Ok(row.try_get(0)?))
            .map_err(|error| server.failed("the sampler starts", &error))?;
        let events = match scope {
            WatchScope::Server => EVENTS.to_string(),
            WatchScope::Database => format!("{EVENTS}{OF_DATABASE}"),
        };
        let events = client.prepare(&events).map_err(|error| server.failed("the sampler starts", &error))?;
        let mut watching = Watching {
            client,
            events,
            own,
            postmaster,
            scope,
            data: data.canonicalize().unwrap_or_else(|_| data.to_path_buf()),
            known: BTreeMap::new(),
            control: None,
            children: process::children_cpu(postmaster),
            seen: WatchedProcesses::default(),
        };
        watching.sample();
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&stop);
        let sampler = thread::Builder::new().name("plumb sampler".to_string());
        let thread = sampler.spawn(move || watching.until(&theirs, sampling));
        let failed =
            |source| PostgresError::File { what: "cannot start the sampler for", path: data.into(), source };
        Ok(ProcessWatch { stop, thread: Some(thread.map_err(failed)?) })
    }

    /// Takes a last sample and ends.
    #[must_use]
    pub fn end(mut self) -> WatchedProcesses {
        self.join().unwrap_or_default()
    }

    fn join(&mut self) -> Option<WatchedProcesses> {
        self.stop.store(true, Relaxed);
        let thread = self.thread.take()?;
        thread.thread().unpark();
        thread.join().ok()
    }
}

impl Drop for ProcessWatch {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

/// A process with its readings.
struct Known {
    process: Process,
    begin: Nanos,
    first: Counters,
    last: Counters,
    /// `None` for a process that began within the watch.
    memory_first: Option<Bytes>,
    /// True if a sample had plumb's name for it, which a new session does not have at once.
    named: bool,
}

impl Known {
    /// True for a session of another client.
    fn is_others(&self) -> bool {
        self.process.kind == "client backend" && !self.named
    }
}

/// A process in the server's list.
struct Found {
    pid: i32,
    leader: Option<i32>,
    kind: String,
    event: EventName,
    named: bool,
}

/// State of the sampler's thread.
struct Watching {
    client: Client,
    events: Statement,
    own: i32,
    postmaster: i32,
    scope: WatchScope,
    data: PathBuf,
    known: BTreeMap<i32, Known>,
    /// Content of the control file.
    control: Option<Vec<u8>>,
    children: Option<Nanos>,
    seen: WatchedProcesses,
}

impl Watching {
    fn until(mut self, stop: &AtomicBool, sampling: EventSampling) -> WatchedProcesses {
        let begin = clock::thread_cpu();
        let mut random = SplitMix(clock::now().0);
        while !stop.load(Relaxed) {
            let pause = Nanos(INTERVAL.0 / 2 + random.below(INTERVAL.0));
            let due = clock::now() + pause;
            thread::park_timeout(match sampling {
                EventSampling::On => Duration::from_nanos(pause.0),
                EventSampling::Off => Duration::MAX,
            });
            if stop.load(Relaxed) {
                break;
            }
            let late = clock::now().saturating_sub(due);
            self.seen.late += u64::from(late > Nanos(INTERVAL.0 * 3 / 2));
            self.sample();
        }
        self.sample();
        self.finished(clock::thread_cpu().saturating_sub(begin))
    }

    /// Takes a sample. A server that has ended gives none.
    fn sample(&mut self) {
        let Ok(rows) = self.client.query(&self.events, &[]) else { return };
        let now = clock::now();
        let mut alive = BTreeSet::new();
        for row in rows {
            let text = |column: usize| row.try_get::<_, String>(column).unwrap_or_default();
            let (Ok(pid), leader) = (row.try_get::<_, i32>(0), row.try_get::<_, Option<i32>>(4)) else {
                continue;
            };
            let (event, kind) = ((text(1), text(2)), text(3));
            let named = row.try_get(5).unwrap_or_default();
            let found = Found { pid, leader: leader.unwrap_or(None), kind, event, named };
            if self.read(found, now).is_some() {
                alive.insert(pid);
            }
        }
        for (pid, known) in &mut self.known {
            known.process.ended |= !alive.contains(pid);
        }
        let workers = self.known.values().filter(|known| known.process.kind == "parallel worker");
        let workers = workers.filter(|known| !known.process.ended && !self.is_others(known)).count() as u64;
        self.seen.workers = self.seen.workers.max(workers);
        let is_ours = |name: &str| {
            self.scope == WatchScope::Server || maker(name).is_some_and(|pid| self.known.contains_key(&pid))
        };
        self.seen.temporary_bytes = self.seen.temporary_bytes.max(temporary(&self.data, &is_ours));
        self.checkpoints();
        if self.seen.samples.is_multiple_of(FILES_EVERY) {
            self.files();
        }
        self.seen.samples += 1;
    }

    /// True for a session of another client, and for a parallel worker of one.
    fn is_others(&self, known: &Known) -> bool {
        let leader = known.process.leader.and_then(|leader| self.known.get(&leader));
        known.is_others() || leader.is_some_and(Known::is_others)
    }

    /// Reads a process; `None` if it has ended.
    fn read(&mut self, found: Found, now: Nanos) -> Option<()> {
        let Found { pid, leader, kind, event, named } = found;
        let (on, counters) = (process::on(pid)?, Counters::of(pid)?);
        let is_first_sample = self.seen.samples == 0;
        let is_new = !self.known.contains_key(&pid);
        let known = self.known.entry(pid).or_insert_with(|| {
            // A process that began within the watch is read from its start.
            let zero = Counters { io: counters.io.map(|_| ProcessIo::default()), ..Counters::default() };
            let first = if is_first_sample { counters } else { zero };
            let lived = if is_first_sample { Nanos(0) } else { counters.cpu + counters.queue };
            let process = Process {
                pid,
                kind,
                leader,
                elapsed: Nanos(0),
                counters: Counters::default(),
                memory_grown: Bytes(0),
                samples: BTreeMap::new(),
                ended: false,
            };
            let memory_first = if is_first_sample { process::anonymous(pid) } else { None };
            Known { process, begin: now.saturating_sub(lived), first, last: counters, memory_first, named }
        });
        known.last = counters;
        known.named |= named;
        known.process.elapsed = now.saturating_sub(known.begin);
        if !is_first_sample {
            *known.process.samples.entry((event, on)).or_default() += 1;
        }
        if known.process.is_foreground() {
            let memory = process::anonymous(pid).unwrap_or_default().0;
            let grown = Bytes(memory.saturating_sub(known.memory_first.unwrap_or_default().0));
            known.process.memory_grown = known.process.memory_grown.max(grown);
        }
        if is_new && !is_first_sample {
            self.seen.open.extend(process::open_files(pid, &self.data));
        }
        Some(())
    }

    /// Reads the open files of all processes.
    fn files(&mut self) {
        for pid in self.known.keys().copied().collect::<Vec<_>>() {
            for (path, flags) in process::open_files(pid, &self.data) {
                self.seen.open.entry(path).and_modify(|known| *known = known.with(flags)).or_insert(flags);
            }
        }
        // All processes inherit the rings from the first.
        let requests = process::ring_requests(self.postmaster);
        self.seen.ring_requests = self.seen.ring_requests.max(requests);
    }

    fn checkpoints(&mut self) {
        let now = fs::read(self.data.join("global/pg_control")).ok();
        self.seen.control_changes += u64::from(self.control.is_some() && self.control != now);
        self.control = now;
    }

    fn finished(mut self, thread: Nanos) -> WatchedProcesses {
        self.files();
        let mut ended = Nanos(0);
        let of_others: BTreeSet<i32> =
            self.known.iter().filter(|(_, known)| self.is_others(known)).map(|(pid, _)| *pid).collect();
        for (pid, known) in self.known {
            let counters = known.last.since(&known.first);
            ended += if known.process.ended { counters.cpu } else { Nanos(0) };
            let process = Process { counters, ..known.process };
            if pid == self.own {
                self.seen.cost += counters.cpu;
            } else if of_others.contains(&pid) {
                self.seen.others.push(process);
            } else {
                self.seen.processes.push(process);
            }
        }
        self.seen.cost += thread;
        let reaped = process::children_cpu(self.postmaster).zip(self.children);
        let reaped = reaped.map_or(Nanos(0), |(later, earlier)| later.saturating_sub(earlier));
        self.seen.unseen_cpu = reaped.saturating_sub(ended);
        self.seen
    }
}

/// Returns the bytes of temporary files, those of parallel builds one directory deeper.
fn temporary(data: &Path, is_ours: &dyn Fn(&str) -> bool) -> Bytes {
    let mut total = 0;
    let mut directories = vec![data.join("base/pgsql_tmp")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let is_top = entry.file_name().to_str().is_some_and(|name| name.starts_with(TEMPORARY));
            if is_top && !entry.file_name().to_str().is_some_and(is_ours) {
                continue;
            }
            match entry.metadata() {
                Ok(found) if found.is_dir() => directories.push(entry.path()),
                Ok(found) => total += found.len(),
                Err(_) => {}
            }
        }
    }
    Bytes(total)
}

/// Returns the process that made a temporary file: `pgsql_tmp4711.0`.
fn maker(name: &str) -> Option<i32> {
    name.strip_prefix(TEMPORARY)?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(busy: u64, at_rest: u64, cpu: Nanos) -> Process {
        let sample = |class: &str, on, count| (((class.to_string(), String::new()), on), count);
        Process {
            pid: 1,
            kind: "client backend".to_string(),
            leader: None,
            elapsed: Nanos(1_000_000_000),
            counters: Counters { cpu, ..Counters::default() },
            memory_grown: Bytes(0),
            samples: [sample("", On::Cpu, busy), sample("Client", On::Off, at_rest)].into(),
            ended: false,
        }
    }

    #[test]
    fn other_clients_count_by_their_samples_at_work_or_by_their_cpu_time() {
        let of = |others: Vec<Process>, samples| {
            WatchedProcesses { others, samples, ..WatchedProcesses::default() }.other_clients()
        };
        assert_eq!(of(Vec::new(), 100), None);
        let (share, evidence) = of(vec![session(30, 70, Nanos(1_000_000))], 100).expect("a session");
        assert_eq!(share, 0.3);
        assert_eq!(
            evidence,
            "1 session of other clients worked in 30 of 100 samples, and used 1.00 ms of CPU time"
        );
        let idle = of(vec![session(0, 100, Nanos(0))], 100).expect("a session");
        assert_eq!(idle.0, 0.0, "a session without work disturbs nothing");
        let several = vec![session(0, 0, Nanos(200_000_000)), session(0, 0, Nanos(300_000_000))];
        let (share, evidence) = of(several, 2).expect("sessions");
        assert_eq!(share, 0.5, "without samples: {evidence}");
        assert!(evidence.starts_with("2 sessions of other clients worked in 0 of 2 samples"), "{evidence}");
    }
}

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
//! Counters of a process vanish with it. The last reading may be one interval old. The rest is what
//! the first process has waited for, in ticks of 10 ms, and is kept apart.
//!
//! Rejected: sampling inside the server (`pg_wait_sampling`), which the user would have to install.
//!
//! Limits: an event and its state are read about 0.1 ms apart. A process that lives shorter than an
//! interval may be missed.

use crate::PostgresError;
use crate::cluster::Server;
use crate::process::{self, Counters, On};
use plumb_events::clock;
use plumb_host::readings::{OpenFlags, ProcessIo};
use plumb_units::{Bytes, Nanos, SplitMix};
use postgres::{Client, Statement};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Mean time between two samples; each is drawn from half of it to one and a half.
pub const INTERVAL: Nanos = Nanos(10_000_000);
/// Name of the sampler's session.
const SESSION: &str = "plumb sampler";
/// Samples between two readings of open files, which cost more than the rest.
const FILES_EVERY: u64 = 10;
/// Statement that lists processes with their events.
const EVENTS: &str = "select pid, coalesce(wait_event_type, ''), coalesce(wait_event, ''), coalesce(backend_type, ''), \
                      leader_pid from pg_stat_activity";

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
}

/// Result of a watch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Watched {
    pub processes: Vec<Process>,
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
    /// Requests through rings.
    pub ring_requests: Option<u64>,
    /// Number of changes of the control file, one or more for each checkpoint.
    pub control_changes: u64,
    /// CPU time of ended processes behind their last reading.
    pub unseen_cpu: Nanos,
}

impl Watched {
    /// Returns the processes of a kind.
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Process> + Clone {
        self.processes.iter().filter(move |process| process.kind == kind)
    }
}

/// Whether wait events are sampled, which an experiment may switch off to know its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    On,
    /// Only the readings at the start and at the end are taken.
    Off,
}

/// A running watch.
#[derive(Debug)]
pub struct Watch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Watched>>,
}

impl Watch {
    /// Starts a watch; its first sample has been taken when this returns.
    ///
    /// # Errors
    /// If its session cannot connect.
    pub fn start(server: &Server, data: &Path, sampling: Sampling) -> Result<Watch, PostgresError> {
        let mut client = server.connect(SESSION, |_| {})?;
        let own = client
            .query_one("select pg_backend_pid()", &[])
            .and_then(|row| row.try_get(0))
            .map_err(|error| server.failed("the sampler starts", &error))?;
        let events = client.prepare(EVENTS).map_err(|error| server.failed("the sampler starts", &error))?;
        let postmaster = server.pid().as_raw_nonzero().get();
        let mut watching = Watching {
            client,
            events,
            own,
            postmaster,
            data: data.canonicalize().unwrap_or_else(|_| data.to_path_buf()),
            known: BTreeMap::new(),
            control: None,
            children: process::children_cpu(postmaster),
            seen: Watched::default(),
        };
        watching.sample();
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&stop);
        let sampler = thread::Builder::new().name("plumb sampler".to_string());
        let thread = sampler.spawn(move || watching.until(&theirs, sampling));
        let failed =
            |source| PostgresError::File { what: "cannot start the sampler for", path: data.into(), source };
        Ok(Watch { stop, thread: Some(thread.map_err(failed)?) })
    }

    /// Takes a last sample and ends.
    #[must_use]
    pub fn end(mut self) -> Watched {
        self.join().unwrap_or_default()
    }

    fn join(&mut self) -> Option<Watched> {
        self.stop.store(true, Relaxed);
        let thread = self.thread.take()?;
        thread.thread().unpark();
        thread.join().ok()
    }
}

impl Drop for Watch {
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
}

/// State of the sampler's thread.
struct Watching {
    client: Client,
    events: Statement,
    own: i32,
    postmaster: i32,
    data: PathBuf,
    known: BTreeMap<i32, Known>,
    /// Content of the control file.
    control: Option<Vec<u8>>,
    children: Option<Nanos>,
    seen: Watched,
}

impl Watching {
    fn until(mut self, stop: &AtomicBool, sampling: Sampling) -> Watched {
        let begin = clock::thread_cpu();
        let mut random = SplitMix(clock::now().0);
        while !stop.load(Relaxed) {
            let pause = Nanos(INTERVAL.0 / 2 + random.below(INTERVAL.0));
            let due = clock::now() + pause;
            thread::park_timeout(match sampling {
                Sampling::On => Duration::from_nanos(pause.0),
                Sampling::Off => Duration::MAX,
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
            if self.read((pid, leader.unwrap_or(None)), kind, event, now).is_some() {
                alive.insert(pid);
            }
        }
        for (pid, known) in &mut self.known {
            known.process.ended |= !alive.contains(pid);
        }
        let workers = self.known.values().filter(|known| known.process.kind == "parallel worker");
        let workers = workers.filter(|known| !known.process.ended).count() as u64;
        self.seen.workers = self.seen.workers.max(workers);
        self.seen.temporary_bytes = self.seen.temporary_bytes.max(temporary(&self.data));
        self.checkpoints();
        if self.seen.samples.is_multiple_of(FILES_EVERY) {
            self.files();
        }
        self.seen.samples += 1;
    }

    /// Reads a process; `None` if it has ended.
    fn read(
        &mut self,
        (pid, leader): (i32, Option<i32>),
        kind: String,
        event: EventName,
        now: Nanos,
    ) -> Option<()> {
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
            Known { process, begin: now.saturating_sub(lived), first, last: counters, memory_first }
        });
        known.last = counters;
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

    fn finished(mut self, thread: Nanos) -> Watched {
        self.files();
        let mut ended = Nanos(0);
        for (pid, known) in self.known {
            let counters = known.last.since(&known.first);
            ended += if known.process.ended { counters.cpu } else { Nanos(0) };
            match pid == self.own {
                true => self.seen.cost += counters.cpu,
                false => self.seen.processes.push(Process { counters, ..known.process }),
            }
        }
        self.seen.cost += thread;
        let reaped = process::children_cpu(self.postmaster).zip(self.children);
        let reaped = reaped.map_or(Nanos(0), |(later, earlier)| later.saturating_sub(earlier));
        self.seen.unseen_cpu = reaped.saturating_sub(ended);
        self.seen
    }
}

/// Returns the bytes of all temporary files, those of parallel builds one directory deeper.
fn temporary(data: &Path) -> Bytes {
    let mut total = 0;
    let mut directories = vec![data.join("base/pgsql_tmp")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(found) if found.is_dir() => directories.push(entry.path()),
                Ok(found) => total += found.len(),
                Err(_) => {}
            }
        }
    }
    Bytes(total)
}

//! A trace under way: three ring buffers, drained and taken in the order of time.
//!
//! ```text
//! [names: a thread reads /proc] ─> drain calls, disk ─> sort ─> Joiner ─> Sink
//! ```
//!
//! An event is taken when it is 1 ms old: a writer that was interrupted between stamping and
//! committing an event has finished by then, so that the order of times is that of the buffers.
//!
//! A command is started by a thread that is traced itself, so that the kernel follows the child
//! from its first instruction; the thread ends and leaves the trace.
//!
//! Limits: threads of a process are followed from their creation. A new process of a name that was
//! asked for is found within a second.

use crate::error::SnoopError;
use crate::kernel::event::{Decoders, Event, Role, What};
use crate::kernel::syscalls::Effect;
use crate::kernel::tracefs::{self, Handle, Instance};
use crate::owner::descriptor::Raw;
use crate::owner::extents::Extents;
use crate::owner::join::{Joiner, Sink, Unjoined};
use crate::owner::names::Names;
use crate::owner::process::Processes;
use crate::shown::live::Live;
use crate::target::{self, SnoopTarget};
use plumb_events::clock;
use plumb_host::process::{self, Started};
use plumb_record::{Snoop, SnoopBuffer};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of the buffers of each processor: names, calls, disk.
const BUFFER_BYTES: [u64; 3] = [1 << 20, 8 << 20, 8 << 20];
const BUFFER_NAMES: [&str; 3] = ["names", "calls", "disk"];
/// Time between two drains of buffers that were nearly empty.
const WAIT: Duration = Duration::from_millis(20);
/// Age at which an event is taken, nanoseconds.
const SETTLED: u64 = 1_000_000;
/// Bytes of a drain above which the next one follows at once.
const BUSY: usize = 256 << 10;
/// Age at which a request without completion is forgotten, nanoseconds.
const FORGOTTEN: u64 = 120_000_000_000;
/// Interval of the search for new processes of a name, nanoseconds.
const SEARCH: u64 = 500_000_000;
#[derive(Debug)]
pub struct Capture {
    names: Names,
    /// Buffer of the names, when its thread has ended.
    ended_names: Option<Instance>,
    instances: [Instance; 2],
    /// Buffers that keep events of the targets only.
    followers: [Handle; 2],
    starters: [Handle; 3],
    decoders: Decoders,
    processes: Processes,
    joiner: Joiner,
    /// Events that are too young to be taken.
    waiting: Vec<Event>,
    /// Descriptors behind opens that have been read and not yet taken, by thread and time.
    opened: HashMap<(u32, u64), Change>,
    target: SnoopTarget,
    /// Thread that started the command; its own calls are no part of the trace.
    starter: Option<u32>,
    command: Option<Started>,
    begin: u64,
    searched: u64,
    forgot: u64,
    decoded: u64,
}

/// An event that changes a descriptor.
#[derive(Debug)]
struct Change {
    key: (u32, i32),
    found: Option<Raw>,
}

impl Capture {
    /// Starts a trace: makes the buffers, follows the targets, starts a command.
    /// Fails if tracefs or a tracepoint is missing, rights are, or the target does not exist.
    pub fn start(target: SnoopTarget) -> Result<Capture, SnoopError> {
        let pids = target::find(&target)?;
        let root = tracefs::find()?;
        tracefs::remove_orphans(&root);
        let make = |at: usize| Instance::create(&root, BUFFER_NAMES[at], BUFFER_BYTES[at]);
        let (names, instances) = (make(0)?, [make(1)?, make(2)?]);
        let mut of_names = Decoders::default();
        of_names.enable(&names, Role::Names)?;
        names.wake_at_once()?;
        let mut decoders = Decoders::default();
        for (instance, role) in instances.iter().zip([Role::Calls, Role::Disk]) {
            decoders.enable(instance, role)?;
        }
        decoders.missing.extend(of_names.missing.iter().cloned());
        let handle = names.handle();
        let now = clock::now().0;
        let mut capture = Capture {
            followers: [handle.clone(), instances[0].handle()],
            starters: [handle, instances[0].handle(), instances[1].handle()],
            names: Names::start(names, of_names)?,
            ended_names: None,
            instances,
            decoders,
            processes: Processes::new(Path::new("/proc")),
            joiner: Joiner::default(),
            waiting: Vec::new(),
            opened: HashMap::new(),
            target,
            starter: None,
            command: None,
            begin: now,
            searched: now,
            forgot: now,
            decoded: 0,
        };
        for pid in pids {
            capture.follow(pid)?;
        }
        if let SnoopTarget::Command(words) = &capture.target {
            let words = words.clone();
            capture.command = Some(capture.start_command(&words)?);
        } else {
            capture.start_instances()?;
        }
        Ok(capture)
    }

    fn start_instances(&self) -> Result<(), SnoopError> {
        self.starters.iter().try_for_each(Handle::start)
    }

    /// Follows all threads of a process; a thread made meanwhile is found by the second look.
    fn follow(&mut self, pid: u32) -> Result<(), SnoopError> {
        let mut followed = 0;
        loop {
            let threads = self.processes.add(pid);
            if threads.len() == followed {
                return Ok(());
            }
            followed = threads.len();
            self.names.know(pid, &threads);
            self.followers.iter().try_for_each(|buffer| buffer.follow(&threads))?;
        }
    }

    fn start_command(&mut self, words: &[String]) -> Result<Started, SnoopError> {
        let (own, started) = start_followed(words, &self.followers, &self.starters)?;
        self.starter = Some(own);
        self.processes.add_starter(own);
        Ok(started)
    }

    /// Waits for events, at most 20 ms, and passes calls and requests that ended to the sink.
    /// Fails if the kernel fails a read.
    pub fn step(&mut self, sink: &mut Live) -> Result<(), SnoopError> {
        let now = clock::now().0;
        let bytes = self.drain()?;
        self.take(now.saturating_sub(SETTLED), sink);
        if now > self.forgot + FORGOTTEN / 4 {
            self.joiner.forget(now, FORGOTTEN);
            self.forgot = now;
        }
        if now > self.searched + SEARCH {
            self.searched = now;
            self.search()?;
            self.processes.prune();
        }
        if bytes < BUSY {
            std::thread::sleep(WAIT);
        }
        Ok(())
    }

    /// Follows new processes of a name.
    fn search(&mut self) -> Result<(), SnoopError> {
        if !matches!(self.target, SnoopTarget::Name(_)) {
            return Ok(());
        }
        let found = target::find(&self.target).unwrap_or_default();
        let new: Vec<u32> =
            found.into_iter().filter(|pid| self.processes.process_of(*pid).is_none()).collect();
        new.into_iter().try_for_each(|pid| self.follow(pid))
    }

    fn drain(&mut self) -> Result<usize, SnoopError> {
        let before = self.waiting.len();
        self.take_names();
        let mut bytes = 0;
        let (decoders, events) = (&self.decoders, &mut self.waiting);
        for instance in &mut self.instances {
            bytes += instance.drain(&mut |page| {
                decoders.decode(page, events);
            })?;
        }
        self.decoded += (self.waiting.len() - before) as u64;
        Ok(bytes)
    }

    fn take_names(&mut self) {
        for named in self.names.take() {
            let event = named.event;
            if let Some(number) = named.changes {
                let key = self.processes.announce(event.thread, number);
                self.opened.insert((event.thread, event.time), Change { key, found: named.found });
            }
            self.waiting.push(event);
        }
    }

    /// Passes the events up to a time to the joiner, in order.
    fn take(&mut self, until: u64, sink: &mut impl Sink) {
        let mut events = std::mem::take(&mut self.waiting);
        events.sort_by_key(|event| event.time);
        let young = events.partition_point(|event| event.time <= until);
        for event in &events[..young] {
            self.taken(event, sink);
        }
        events.drain(..young);
        self.waiting = events;
    }

    fn taken(&mut self, event: &Event, sink: &mut impl Sink) {
        if self.starter == Some(event.thread) && !matches!(event.what, What::Fork { .. } | What::End { .. }) {
            return;
        }
        let change = self.opened.remove(&(event.thread, event.time));
        if let Some(change) = &change {
            self.processes.settle(change.key.0, change.key.1);
        }
        self.joiner.event(event, &mut self.processes, sink);
        if let (Some(change), What::Exit { call, .. }) = (change, event.what)
            && (call.effect == Effect::Open || self.processes.is_unknown(event.thread, change.key.1))
        {
            // A duplicate is the file of another descriptor, if that is known.
            self.processes.opened(event.thread, change.key.1, change.found);
        }
    }

    /// True if a traced process lives. A trace by name waits for others of its name.
    pub fn is_alive(&self) -> bool {
        matches!(self.target, SnoopTarget::Name(_)) || self.processes.live() > 0
    }

    /// Stops the trace and passes what is left to the sink.
    /// Fails if the kernel fails a read.
    pub fn finish(&mut self, sink: &mut Live) -> Result<(), SnoopError> {
        self.starters.iter().try_for_each(Handle::stop)?;
        self.ended_names = self.names.finish()?;
        self.drain()?;
        self.take(u64::MAX, sink);
        Ok(())
    }

    /// Waits for the end of the command and returns its exit code; none without a command.
    pub fn wait(&mut self) -> Option<std::io::Result<process::Ended>> {
        self.command.take().map(Started::wait)
    }

    /// Returns the sums of what a receiver got, with the kernel's counts of events.
    pub fn sums(&self, live: &Live) -> Snoop {
        let mut snoop = live.tally().record(&self.processes, &mut Extents::default());
        self.count(&mut snoop);
        snoop
    }

    /// Returns the directories of the kernel's buffers, which exist until this is dropped.
    pub fn directories(&self) -> Vec<PathBuf> {
        self.starters.iter().map(Handle::path).collect()
    }

    /// Returns the monotonic time of the start.
    #[must_use]
    pub fn begin(&self) -> u64 {
        self.begin
    }

    /// Fills the counts of events and of what was not joined.
    fn count(&self, snoop: &mut Snoop) {
        let rows = self.ended_names.iter().chain(&self.instances).zip(BUFFER_NAMES).zip(BUFFER_BYTES);
        let cpus = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
        snoop.buffers = rows
            .map(|((instance, name), bytes)| {
                let counts = instance.counts();
                let events = counts.read + counts.unread + counts.lost;
                SnoopBuffer { name: name.to_string(), bytes: bytes * cpus, events, lost: counts.lost }
            })
            .collect();
        let Unjoined { completions, exits, other_files, in_flight } = self.joiner.unjoined();
        snoop.unmatched_completions = completions;
        snoop.unmatched_exits = exits;
        snoop.other_calls = other_files;
        snoop.in_flight = in_flight;
        snoop.target = self.target.to_string();
        snoop.source = "tracepoints".to_string();
        if !self.decoders.missing.is_empty() {
            snoop.cannot_see.push(format!(
                "This kernel lacks the tracepoints {}: parts of queue times, io_uring or write-back \
                 are not seen",
                self.decoders.missing.join(", ")
            ));
        }
    }

    /// Returns the number of events that were read.
    pub fn decoded(&self) -> u64 {
        self.decoded
    }
}

/// Starts recording and a command, by a thread that `followers` follow; returns the number of the
/// thread, which has ended.
pub(crate) fn start_followed(
    words: &[String],
    followers: &[Handle],
    starters: &[Handle],
) -> Result<(u32, Started), SnoopError> {
    let mut command = target::command(words)?;
    let failed = |source| target::not_started(words, source);
    let start = || {
        let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        followers.iter().try_for_each(|buffer| buffer.follow(&[own]))?;
        starters.iter().try_for_each(Handle::start)?;
        let started = process::start(&mut command).map_err(failed)?;
        Ok::<_, SnoopError>((own, started))
    };
    let ended = std::thread::scope(|scope| scope.spawn(start).join());
    ended.map_err(|_| failed(std::io::Error::other("its thread ended")))?
}

//! The thread that reads descriptors from /proc while their processes have them open.
//!
//! ```text
//! poll (wakes at each event) ─> drain ─> read /proc/TID/fd ─> drain again ... ─> [NamedEvent]
//! ```
//!
//! Why a thread: a short program opens, writes and ends within 3 ms, which is a slice of the
//! scheduler. A thread that sleeps nearly always, with precedence, runs when it is woken; the
//! thread that takes all events has used up its turn.
//!
//! N1 A descriptor that was read belongs to its event: the buffer was empty of changes of the same
//! descriptor when it had been read. Otherwise the event has none.

use crate::error::SnoopError;
use crate::kernel::event::{Decoders, Event, What};
use crate::kernel::syscalls::Effect;
use crate::kernel::tracefs::Instance;
use crate::owner::descriptor::{self, Raw};
use plumb_events::locked;
use plumb_host::priority;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// Drains of one batch: a program that opens without end must not keep the others waiting.
const ROUNDS: usize = 16;

/// An event with the descriptor that it opened.
#[derive(Debug, Clone)]
pub(crate) struct NamedEvent {
    pub event: Event,
    /// Descriptor of an open; none if it could not be read in time.
    pub found: Option<Raw>,
    /// Number of the descriptor that it opens or closes.
    pub changes: Option<i32>,
}

#[derive(Debug, Default)]
struct Shared {
    events: Mutex<Vec<NamedEvent>>,
    /// Processes of threads, as far as known.
    threads: Mutex<HashMap<u32, u32>>,
    ends: AtomicBool,
}

/// The thread, which ends when it is dropped or finished.
#[derive(Debug)]
pub(crate) struct Names {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<Instance, SnoopError>>>,
}

impl Names {
    /// Starts the thread over an instance whose events are enabled.
    /// Fails if the kernel refuses a thread.
    pub fn start(instance: Instance, decoders: Decoders) -> Result<Names, SnoopError> {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("names".to_string());
        let thread = thread.spawn(move || run(instance, &decoders, &own));
        let thread = thread.map_err(|source| SnoopError::File { path: "/proc/self/task".into(), source })?;
        Ok(Names { shared, thread: Some(thread) })
    }

    /// Makes the threads of a process known, so that changes by each of them count.
    pub fn know(&self, process: u32, threads: &[u32]) {
        locked(&self.shared.threads).extend(threads.iter().map(|thread| (*thread, process)));
    }

    /// Takes the events so far, in the order of the buffers.
    #[must_use]
    pub fn take(&self) -> Vec<NamedEvent> {
        std::mem::take(&mut *locked(&self.shared.events))
    }

    /// Ends the thread after a last drain; returns the instance.
    /// Fails if the kernel failed a read.
    pub fn finish(&mut self) -> Result<Option<Instance>, SnoopError> {
        self.shared.ends.store(true, SeqCst);
        self.thread.take().and_then(|thread| thread.join().ok()).transpose()
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

fn run(mut instance: Instance, decoders: &Decoders, shared: &Shared) -> Result<Instance, SnoopError> {
    // Without the right, names are lost to short processes on a busy machine.
    let _ = priority::put_first();
    let mut duplicating = HashSet::new();
    loop {
        let ends = shared.ends.load(SeqCst);
        batch(&mut instance, decoders, shared, &mut duplicating)?;
        if ends {
            return Ok(instance);
        }
        let mut files: Vec<PollFd<'_>> =
            instance.files().map(|file| PollFd::new(file, PollFlags::IN)).collect();
        // A signal ends the wait, as an event does.
        let _ = poll(&mut files, Some(&WAIT));
    }
}

/// Takes all events of the buffer. `duplicating` has the threads within a dup.
fn batch(
    instance: &mut Instance,
    decoders: &Decoders,
    shared: &Shared,
    duplicating: &mut HashSet<u32>,
) -> Result<(), SnoopError> {
    let mut batch: Vec<NamedEvent> = Vec::new();
    // Event that changed a descriptor last, by process and descriptor.
    let mut last: HashMap<(u32, i32), usize> = HashMap::new();
    for _ in 0..ROUNDS {
        let before = batch.len();
        let mut events = Vec::new();
        instance.drain(&mut |page| {
            decoders.decode(page, &mut events);
        })?;
        if events.is_empty() {
            break;
        }
        events.sort_by_key(|event: &Event| event.time);
        for event in events {
            let changes = changed_descriptor(&event, duplicating);
            if let Some(number) = changes {
                let key = (process_of(shared, &event), number);
                // N1: the earlier one was read too late, or is not read any more.
                if let Some(earlier) = last.insert(key, batch.len()) {
                    batch[earlier].found = None;
                }
            }
            batch.push(NamedEvent { event, found: None, changes });
        }
        for (at, named) in batch.iter_mut().enumerate().skip(before) {
            let NamedEvent { event, changes, .. } = &*named;
            let Some(number) = changes.filter(|_| matches!(event.what, What::Exit { .. })) else { continue };
            if last.get(&(process_of(shared, event), number)) == Some(&at) {
                let found = descriptor::read(Path::new("/proc"), event.thread, number);
                named.found = found;
            }
        }
    }
    assert!(batch.iter().all(|named| named.found.is_none() || named.changes.is_some()), "N1");
    locked(&shared.events).append(&mut batch);
    Ok(())
}

fn process_of(shared: &Shared, event: &Event) -> u32 {
    let mut threads = locked(&shared.threads);
    let process = threads.get(&event.thread).copied().unwrap_or(event.thread);
    if let What::Fork { child, is_thread, .. } = event.what {
        threads.insert(child, if is_thread { process } else { child });
    }
    process
}

/// Returns the descriptor that an event opens, duplicates or closes.
fn changed_descriptor(event: &Event, duplicating: &mut HashSet<u32>) -> Option<i32> {
    match event.what {
        What::Enter { call, .. } if call.effect == Effect::Duplicate => {
            duplicating.insert(event.thread);
            None
        }
        What::Exit { call, result } if matches!(call.effect, Effect::Open | Effect::Duplicate) => {
            let counts = call.effect == Effect::Open || duplicating.remove(&event.thread);
            i32::try_from(result).ok().filter(|number| counts && *number >= 0)
        }
        What::Enter { call, arguments } if call.effect == Effect::Close => Some(arguments[0] as u32 as i32),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::syscalls::CALLS;

    /// N1 rests on which events change a descriptor.
    #[test]
    fn opens_that_succeed_and_closes_change_a_descriptor() {
        let call = |name: &str| CALLS.iter().find(|call| call.name == name).expect("a row");
        let event = |what| Event { time: 0, thread: 1, what };
        let exit = |name: &str, result| event(What::Exit { call: call(name), result });
        let mut duplicating = HashSet::new();
        let mut changed = |event: &Event| changed_descriptor(event, &mut duplicating);
        assert_eq!(changed(&exit("openat", 7)), Some(7));
        assert_eq!(changed(&exit("openat", -2)), None);
        assert_eq!(changed(&exit("read", 7)), None);
        let enter = |name: &str| event(What::Enter { call: call(name), arguments: [9, 0, 0, 0] });
        assert_eq!(changed(&enter("close")), Some(9));
        assert_eq!(changed(&exit("fcntl", 2050)), None, "its result is flags");
        assert_eq!(changed(&enter("dup2")), None);
        assert_eq!(changed(&exit("dup2", 1)), Some(1));
    }
}

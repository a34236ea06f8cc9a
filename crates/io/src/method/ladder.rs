//! Fallback for a method that was not asked for by name: a channel gets the best that is available.
//!
//! ```text
//! ring              as many entries as requests may be in flight
//! smaller ring      the same number in flight, handed over some at a time
//! threads           the pool, which is started when the first channel needs it
//! calls             the session makes them itself: cannot be refused
//! ```
//!
//! Each channel starts at the top, because the limits (locked memory, open files) depend on
//! other processes, and a refused ring costs microseconds. The ladder counts the rung of
//! each channel. [`Ladder::said`] reports the counts with the first reason; reports print
//! it and receipts check it.

use super::threads::{Pool, PoolChannel};
use super::uring::{self, RingChannel, Size};
use super::{ChannelBackend, MethodKind, RingSetup};
use crate::{Arena, File, IoError};
use plumb_events::locked;
use plumb_host::limits::Quotas;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Kinds of channels, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Rung {
    Ring,
    SmallerRing,
    Threads,
    Calls,
}

impl Rung {
    const ALL: [Rung; 4] = [Rung::Ring, Rung::SmallerRing, Rung::Threads, Rung::Calls];

    const fn kind(self) -> MethodKind {
        match self {
            Rung::Ring | Rung::SmallerRing => MethodKind::IoUring,
            Rung::Threads => MethodKind::Threads,
            Rung::Calls => MethodKind::Sync,
        }
    }
}

#[derive(Debug)]
pub(super) struct Ladder {
    // Request
    queue_depth: usize,
    quotas: Quotas,
    /// The best that was available at the start.
    top: Rung,
    setup: RingSetup,
    pool: Mutex<Option<Arc<Pool>>>,
    /// Number of channels by rung.
    opened: [AtomicU64; Rung::ALL.len()],
    /// Channels whose ring failed to register its buffers.
    unregistered: AtomicU64,
    /// The first refusal's reason and cure.
    why: Mutex<Option<String>>,
}

impl Ladder {
    /// Creates a ladder whose top is `kind`, or the best below it that works now.
    pub(super) fn new(kind: MethodKind, queue_depth: usize, quotas: &Quotas) -> Ladder {
        let entries = uring::entries(queue_depth);
        let setup = crate::ring_setup::best(entries).unwrap_or(RingSetup::Plain);
        let begin = Rung::ALL.into_iter().find(|rung| rung.kind() == kind).unwrap_or(Rung::Calls);
        let tried = Ladder::of(begin, setup, queue_depth, quotas);
        let (top, _) = tried.climb(queue_depth, &[], &[]);
        Ladder { why: tried.why, pool: tried.pool, ..Ladder::of(top, setup, queue_depth, quotas) }
    }

    fn of(top: Rung, setup: RingSetup, queue_depth: usize, quotas: &Quotas) -> Ladder {
        Ladder {
            queue_depth,
            quotas: quotas.clone(),
            top,
            setup,
            pool: Mutex::default(),
            opened: Default::default(),
            unregistered: AtomicU64::new(0),
            why: Mutex::default(),
        }
    }

    /// Returns a ladder of the same top whose rings are not bound to the thread that makes them.
    pub(super) fn for_any_thread(&self) -> Ladder {
        Ladder::of(self.top, RingSetup::Plain, self.queue_depth, &self.quotas)
    }

    pub(super) fn kind(&self) -> MethodKind {
        self.top.kind()
    }

    pub(super) fn setup(&self) -> Option<RingSetup> {
        (self.kind() == MethodKind::IoUring).then_some(self.setup)
    }

    /// True if a channel uses this method.
    pub(super) fn used(&self, kind: MethodKind) -> bool {
        Rung::ALL.into_iter().any(|rung| rung.kind() == kind && self.opened[rung as usize].load(Relaxed) > 0)
    }

    pub(super) fn open(&self, depth: usize, files: &[&Arc<File>], arenas: &[&Arena]) -> ChannelBackend {
        let (rung, backend) = self.climb(depth, files, arenas);
        self.opened[rung as usize].fetch_add(1, Relaxed);
        if let ChannelBackend::Ring(ring) = &backend
            && let Some(why) = ring.unregistered()
        {
            self.unregistered.fetch_add(1, Relaxed);
            self.note(why.to_string());
        }
        backend
    }

    fn climb(&self, depth: usize, files: &[&Arc<File>], arenas: &[&Arena]) -> (Rung, ChannelBackend) {
        for rung in Rung::ALL.into_iter().filter(|rung| *rung >= self.top) {
            match self.attempt(rung, depth, files, arenas) {
                Ok(backend) => return (rung, backend),
                Err(error) => self.note(match error {
                    IoError::MethodUnsupported { why, cure, .. } => format!("{why}; {cure}"),
                    other => other.to_string(),
                }),
            }
        }
        (Rung::Calls, ChannelBackend::Sync)
    }

    fn attempt(
        &self,
        rung: Rung,
        depth: usize,
        files: &[&Arc<File>],
        arenas: &[&Arena],
    ) -> Result<ChannelBackend, IoError> {
        let ring = |size| {
            let shape = (self.setup, depth, size);
            let ring = RingChannel::open(shape, arenas, files, &self.quotas.rings)?;
            Ok(ChannelBackend::Ring(Box::new(ring)))
        };
        match rung {
            Rung::Ring => ring(Size::Whole),
            Rung::SmallerRing => ring(Size::Small),
            Rung::Threads => {
                let mut pool = locked(&self.pool);
                let pool = match &*pool {
                    Some(pool) => pool,
                    None => pool.insert(Arc::new(Pool::start(self.queue_depth, &self.quotas.threads)?)),
                };
                Ok(ChannelBackend::Pool(PoolChannel::open(pool)))
            }
            Rung::Calls => Ok(ChannelBackend::Sync),
        }
    }

    fn note(&self, why: String) {
        locked(&self.why).get_or_insert(why);
    }

    /// Returns the counts of channels below the best rung, with the first reason; `None`
    /// while all have the best.
    pub(super) fn said(&self) -> Option<String> {
        let why = locked(&self.why).clone()?;
        let counts = self.opened.each_ref().map(|count| count.load(Relaxed));
        let worse = [
            (counts[Rung::SmallerRing as usize], "have a smaller ring"),
            (self.unregistered.load(Relaxed), "registered no buffers"),
            (counts[Rung::Threads as usize], "go by threads"),
            (counts[Rung::Calls as usize], "go by plain calls"),
        ];
        let worse: Vec<String> = worse
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let total: u64 = counts.iter().sum();
        (!worse.is_empty()).then(|| format!("of {total} channels {}, because {why}", worse.join(", ")))
    }
}

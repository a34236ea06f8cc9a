//! The thread pool: requests wait in one queue, workers make the system calls.
//!
//! The way to asynchronous I/O where rings are forbidden (container profiles,
//! `kernel.io_uring_disabled`). One queue for all sessions keeps every worker busy. Each session
//! has its own completion list, so that no session wakes for another's request. A request costs two
//! thread switches more than in a ring, which matters for 8K requests and hardly for 512K.

use super::{Attempt, Pending, sync};
use crate::IoError;
use plumb_events::{locked, now};
use plumb_host::limits::{self, Quota};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// The most workers of a pool: beyond it a virtual disk of one queue gains nothing.
const WORKERS_MAX: usize = 32;

#[derive(Debug)]
pub(super) struct Pool {
    queue: Arc<Queue>,
    workers: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Queue {
    jobs: Mutex<Jobs>,
    posted: Condvar,
}

#[derive(Debug, Default)]
struct Jobs {
    waiting: VecDeque<(Pending, Arc<Arrivals>)>,
    closed: bool,
}

#[derive(Debug, Default)]
struct Arrivals {
    attempts: Mutex<Vec<Attempt>>,
    posted: Condvar,
}

impl Pool {
    /// Starts a pool for sessions with `queue_depth` requests in flight.
    pub(super) fn start(queue_depth: usize, quota: &Quota) -> Result<Pool, IoError> {
        let wanted = queue_depth.min(WORKERS_MAX);
        let mut pool = Pool { queue: Arc::default(), workers: Vec::new() };
        let refused = |source, started: usize| IoError::Threads {
            what: format!("the {wanted} threads of io_method=threads, but only {started}"),
            source,
            limit: limits::threads(wanted - started),
        };
        let shares = quota.threads(wanted).map_err(|source| refused(source, quota.free()))?;
        for (started, share) in shares.into_iter().enumerate() {
            let queue = Arc::clone(&pool.queue);
            let serve = move || {
                let _share = share;
                queue.serve();
            };
            let named = thread::Builder::new().name(format!("io-{started:02}")).stack_size(128 * 1024);
            pool.workers.push(named.spawn(serve).map_err(|source| refused(source, started))?);
        }
        Ok(pool)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        locked(&self.queue.jobs).closed = true;
        self.queue.posted.notify_all();
        for worker in self.workers.drain(..) {
            // A worker that panicked has printed the reason.
            let _ = worker.join();
        }
    }
}

impl Queue {
    fn serve(&self) {
        while let Some((pending, arrivals)) = self.next() {
            let attempt = sync::attempt(pending);
            locked(&arrivals.attempts).push(attempt);
            arrivals.posted.notify_one();
        }
    }

    fn next(&self) -> Option<(Pending, Arc<Arrivals>)> {
        let mut jobs = locked(&self.jobs);
        loop {
            if let Some(job) = jobs.waiting.pop_front() {
                return Some(job);
            }
            if jobs.closed {
                return None;
            }
            jobs = self.posted.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A session's end of the pool.
#[derive(Debug)]
pub(super) struct PoolChannel {
    pool: Arc<Pool>,
    arrivals: Arc<Arrivals>,
    /// Number of requests with the workers.
    away: usize,
}

impl Drop for PoolChannel {
    /// C2: the caller may truncate or remove the file after the drop.
    fn drop(&mut self) {
        while self.away > 0 {
            self.collect(true, &mut Vec::new());
        }
    }
}

impl PoolChannel {
    pub(super) fn open(pool: &Arc<Pool>) -> PoolChannel {
        PoolChannel { pool: Arc::clone(pool), arrivals: Arc::default(), away: 0 }
    }

    pub(super) fn submit(&mut self, mut pending: Pending) {
        pending.leaves(now());
        self.away += 1;
        let queue = &self.pool.queue;
        locked(&queue.jobs).waiting.push_back((pending, Arc::clone(&self.arrivals)));
        queue.posted.notify_one();
    }

    pub(super) fn collect(&mut self, wait: bool, into: &mut Vec<Attempt>) {
        let mut attempts = locked(&self.arrivals.attempts);
        while wait && attempts.is_empty() {
            attempts = self.arrivals.posted.wait(attempts).unwrap_or_else(PoisonError::into_inner);
        }
        assert!(attempts.len() <= self.away, "C1: what comes back was with the workers");
        self.away -= attempts.len();
        into.append(&mut attempts);
    }
}
